package straggler

import (
	"cmp"
	"slices"
)

// Lane is what the main thread of one rank did: spans in order of time, without overlap.
type Lane struct {
	Process int // whose it is, as the caller counts
	Rank    int
	Spans   []Span
	Steps   [][2]int64 // its training steps, in order; nil: they are not known
}

// Span is a stretch of a lane. Times are nanoseconds.
type Span struct {
	Start, End int64
	In         Collective
	Place      Place // of the user's own line, or where there is none of the library's that was called
}

// Place is a line.
type Place struct {
	File string
	Line int
}

// Part is the time in one collective.
type Part struct {
	In   Collective
	Time int64
}

// Parts sums a lane up by collective, the longest first.
func (l Lane) Parts() []Part {
	sums := make(map[Collective]int64)
	for _, s := range l.Spans {
		if s.In != None {
			sums[s.In] += s.End - s.Start
		}
	}
	out := make([]Part, 0, len(sums))
	for in, sum := range sums {
		out = append(out, Part{in, sum})
	}
	slices.SortFunc(out, func(a, b Part) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.In, b.In)) })
	return out
}

// Straggler is a rank that the others waited for.
type Straggler struct {
	Lane  int   // of those that were compared
	Time  int64 // for which most of the others were in a collective, and it was not
	Of    int64 // for which all ranks trained: after they were set up, before the first has ended
	Mean  int64 // of the others, for which they were waited for
	Place Place // where it was longer than the others were, outside of collectives …
	More  int64 // … by so much more than their mean
	In    Collective
	// Intervals is when.
	Intervals [][2]int64
	Steps     int // of its own, within the time for which all ranks trained
	Late      int // of them, in which it was waited for
}

const (
	// worthWaiting is the share of the common time from which on a wait is worth a word.
	worthWaiting = 0.10
	// lateStep is the share of a step from which on a rank was waited for in it.
	lateStep = 0.10
	// apart is how many times as long as the next rank one must have been waited for, to
	// be the one: ranks that are late by turns have no straggler.
	apart = 1.5
)

// FindStraggler returns the rank that the others waited for; nil where no one rank stands out.
func FindStraggler(lanes []Lane) *Straggler {
	if len(lanes) < 2 {
		return nil
	}
	from, to := common(lanes)
	if to <= from {
		return nil
	}
	waits := waitsFor(lanes, from, to)
	order := make([]int, len(lanes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(waits[b].sum(), waits[a].sum()) })
	first, second := waits[order[0]], waits[order[1]]
	if float64(first.sum()) < worthWaiting*float64(to-from) || float64(first.sum()) < apart*float64(second.sum()) {
		return nil
	}
	s := &Straggler{Lane: order[0], Time: first.sum(), Of: to - from, Intervals: first.where}
	for _, i := range order[1:] {
		s.Mean += waits[i].sum()
	}
	s.Mean /= int64(len(order) - 1)
	s.Place, s.More = more(lanes, s.Lane, from, to)
	s.Steps, s.Late = lateSteps(lanes[s.Lane].Steps, s.Intervals, from, to)
	var most int64
	for in, time := range first.in {
		if time > most || time == most && in < s.In {
			s.In, most = in, time
		}
	}
	return s
}

// common is the time from when all ranks were set up to when the first one ends.
func common(lanes []Lane) (from, to int64) {
	to = 1<<63 - 1
	for _, l := range lanes {
		if len(l.Spans) == 0 {
			return 0, 0
		}
		ready, end := l.Spans[0].Start, l.Spans[len(l.Spans)-1].End
		for _, s := range l.Spans {
			if s.In == SetUp {
				ready = s.End
			}
			if s.In == TearDown && s.Start >= ready {
				end = min(end, s.Start)
			}
		}
		from, to = max(from, ready), min(to, end)
	}
	return from, to
}

// wait is the time for which one rank was waited for.
type wait struct {
	where [][2]int64
	in    map[Collective]int64 // in what the others were
}

func (w wait) sum() (sum int64) {
	for _, i := range w.where {
		sum += i[1] - i[0]
	}
	return sum
}

// waitsFor returns for each rank when it was in no collective and most of the others were.
func waitsFor(lanes []Lane, from, to int64) []wait {
	type edge struct {
		at   int64
		lane int
		in   Collective
	}
	var edges []edge
	for i, l := range lanes {
		for _, s := range l.Spans {
			if s.In != None && s.In != SetUp && s.In != TearDown {
				edges = append(edges, edge{s.Start, i, s.In}, edge{s.End, i, None})
			}
		}
	}
	// Where one span ends and the next begins, what begins counts.
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	out := make([]wait, len(lanes))
	for i := range out {
		out[i].in = make(map[Collective]int64)
	}
	now, inside, last := make([]Collective, len(lanes)), 0, from
	until := func(at int64) {
		if at = min(at, to); at <= last {
			return
		}
		for i := range lanes {
			if now[i] != None || 2*inside <= len(lanes)-1 {
				continue
			}
			if n := len(out[i].where); n > 0 && out[i].where[n-1][1] == last {
				out[i].where[n-1][1] = at
			} else {
				out[i].where = append(out[i].where, [2]int64{last, at})
			}
			for _, in := range now {
				if in != None {
					out[i].in[in] += at - last
				}
			}
		}
		last = at
	}
	for _, e := range edges {
		until(e.at)
		if e.in == None && now[e.lane] != None {
			inside--
		} else if e.in != None && now[e.lane] == None {
			inside++
		}
		now[e.lane] = e.in
	}
	until(to)
	return out
}

// lateSteps counts the steps between two times, and those in which a rank was waited for.
func lateSteps(steps, waits [][2]int64, from, to int64) (count, late int) {
	for _, step := range steps {
		if step[0] < from || step[1] > to || step[1] <= step[0] {
			continue
		}
		count++
		waited := int64(0)
		first, _ := slices.BinarySearchFunc(waits, step[0], func(w [2]int64, at int64) int { return cmp.Compare(w[1], at) })
		for _, w := range waits[first:] {
			if w[0] >= step[1] {
				break
			}
			waited += max(min(w[1], step[1])-max(w[0], step[0]), 0)
		}
		if float64(waited) >= lateStep*float64(step[1]-step[0]) {
			late++
		}
	}
	return count, late
}

// more is the place at which one lane was longer than the others by most. What it did at
// the very time at which they waited says less: it may have caught up with what it had
// been late for.
func more(lanes []Lane, which int, from, to int64) (at Place, by int64) {
	sums := make(map[Place]int64)
	for i, l := range lanes {
		for _, s := range l.Spans {
			part := min(s.End, to) - max(s.Start, from)
			if part <= 0 || s.In != None || s.Place.Line <= 0 {
				continue
			}
			if i == which {
				sums[s.Place] += part
			} else {
				sums[s.Place] -= part / int64(len(lanes)-1)
			}
		}
	}
	for place, excess := range sums {
		if excess > by || excess == by && excess > 0 && (place.File < at.File || place.File == at.File && place.Line < at.Line) {
			at, by = place, excess
		}
	}
	return at, by
}
