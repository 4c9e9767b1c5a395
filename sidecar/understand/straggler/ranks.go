package straggler

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Lane is what the main thread of one rank did: spans in order of time, without overlap.
type Lane struct {
	Process int // whose it is, as the caller counts
	Rank    int
	Spans   []Span
	Steps   []timeline.Interval // its training steps, in order; nil: they are not known
}

// Span is a stretch of a lane.
type Span struct {
	timeline.Interval
	In    Collective
	Place Place // of the user's own line, or where there is none of the library's that was called
}

// Place is a line.
type Place struct {
	File string
	Line int
}

// Part is the time in one collective.
type Part struct {
	In   Collective
	Time timeline.Nanos
}

// Parts sums a lane up by collective, the longest first.
func (l Lane) Parts() []Part {
	sums := make(map[Collective]timeline.Nanos)
	for _, s := range l.Spans {
		if s.In != None {
			sums[s.In] += s.Nanos()
		}
	}
	out := make([]Part, 0, len(sums))
	for in, sum := range sums {
		out = append(out, Part{in, sum})
	}
	slices.SortFunc(out, func(a, b Part) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.In, b.In)) })
	return out
}

// leastKnown is the share of a step whose stacks must be known: else how long it was in collectives is not.
const leastKnown = 0.9

// InCollectives returns for each of its steps how long the lane was in collectives in it; nil where most of its stacks
// are not known.
func (l Lane) InCollectives() []*timeline.Nanos {
	all, inside := make([]timeline.Interval, len(l.Spans)), []timeline.Interval(nil)
	for i, s := range l.Spans {
		if all[i] = s.Interval; s.In != None {
			inside = append(inside, s.Interval)
		}
	}
	times := make([]*timeline.Nanos, len(l.Steps))
	within := func(list []timeline.Interval, step timeline.Interval) (sum timeline.Nanos) {
		timeline.Overlap(list, step.Start, step.End, func(_ int, part timeline.Nanos) { sum += part })
		return sum
	}
	for i, step := range l.Steps {
		if length := step.Nanos(); length > 0 && float64(within(all, step)) >= leastKnown*float64(length) {
			time := within(inside, step)
			times[i] = &time
		}
	}
	return times
}

// Straggler is a rank that the others waited for.
type Straggler struct {
	Lane  int            // of those that were compared
	Time  timeline.Nanos // for which most of the others were in a collective, and it was not
	Of    timeline.Nanos // for which all ranks trained: after they were set up, before the first has ended
	Mean  timeline.Nanos // of the others, for which they were waited for
	Place Place          // where it was longer than the others were, outside of collectives …
	More  timeline.Nanos // … by so much more than their mean
	In    Collective
	// Intervals is when.
	Intervals []timeline.Interval
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
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(timeline.Total(waits[b].where), timeline.Total(waits[a].where))
	})
	first := waits[order[0]]
	time, next := timeline.Total(first.where), timeline.Total(waits[order[1]].where)
	if float64(time) < worthWaiting*float64(to-from) || float64(time) < apart*float64(next) {
		return nil
	}
	s := &Straggler{Lane: order[0], Time: time, Of: to - from, Intervals: first.where}
	for _, i := range order[1:] {
		s.Mean += timeline.Total(waits[i].where)
	}
	s.Mean /= timeline.Nanos(len(order) - 1)
	s.Place, s.More = more(lanes, s.Lane, from, to)
	s.Steps, s.Late = lateSteps(lanes[s.Lane].Steps, s.Intervals, from, to)
	var most timeline.Nanos
	for in, time := range first.in {
		if time > most || time == most && in < s.In {
			s.In, most = in, time
		}
	}
	return s
}

// common is the time from when all ranks were set up to when the first one ends.
func common(lanes []Lane) (from, to timeline.Nanos) {
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
	where []timeline.Interval
	in    map[Collective]timeline.Nanos // in what the others were
}

// waitsFor returns for each rank when it was in no collective and most of the others were.
func waitsFor(lanes []Lane, from, to timeline.Nanos) []wait {
	r := ranks{now: make([]Collective, len(lanes)), waits: make([]wait, len(lanes))}
	for i := range r.waits {
		r.waits[i].in = make(map[Collective]timeline.Nanos)
	}
	last := from
	for _, c := range changes(lanes) {
		if at := min(c.at, to); at > last {
			r.pass(timeline.Between(last, at))
			last = at
		}
		r.apply(c)
	}
	if last < to {
		r.pass(timeline.Between(last, to))
	}
	return r.waits
}

// change is when a lane enters a collective, or leaves it (None).
type change struct {
	at   timeline.Nanos
	lane int
	in   Collective
}

// changes are those of all lanes in order of time. Where one span ends and the next begins, what
// begins comes last.
func changes(lanes []Lane) (list []change) {
	for i, l := range lanes {
		for _, s := range l.Spans {
			if s.In != None && s.In != SetUp && s.In != TearDown {
				list = append(list, change{s.Start, i, s.In}, change{s.End, i, None})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return list
}

// ranks are what all of them do at a time, and for whom they have waited until then.
type ranks struct {
	now    []Collective // by lane
	inside int          // how many are in one
	waits  []wait       // by lane
}

func (r *ranks) apply(c change) {
	switch {
	case c.in == None && r.now[c.lane] != None:
		r.inside--
	case c.in != None && r.now[c.lane] == None:
		r.inside++
	}
	r.now[c.lane] = c.in
}

// pass lets time go by in which nothing changes.
func (r *ranks) pass(time timeline.Interval) {
	if 2*r.inside <= len(r.now)-1 {
		return
	}
	for i := range r.waits {
		if r.now[i] != None {
			continue
		}
		w := &r.waits[i]
		if n := len(w.where); n > 0 && w.where[n-1].End == time.Start {
			w.where[n-1].End = time.End
		} else {
			w.where = append(w.where, time)
		}
		for _, in := range r.now {
			if in != None {
				w.in[in] += time.Nanos()
			}
		}
	}
}

// lateSteps counts the steps between two times, and those in which a rank was waited for.
func lateSteps(steps, waits []timeline.Interval, from, to timeline.Nanos) (count, late int) {
	for _, step := range steps {
		if step.Start < from || step.End > to || step.End <= step.Start {
			continue
		}
		count++
		waited := timeline.Nanos(0)
		timeline.Overlap(waits, step.Start, step.End, func(_ int, part timeline.Nanos) { waited += part })
		if float64(waited) >= lateStep*float64(step.Nanos()) {
			late++
		}
	}
	return count, late
}

// more is the place at which one lane was longer than the others by most. What it did at
// the very time at which they waited says less: it may have caught up with what it had
// been late for.
func more(lanes []Lane, which int, from, to timeline.Nanos) (at Place, by timeline.Nanos) {
	sums := make(map[Place]timeline.Nanos)
	for i, l := range lanes {
		for _, s := range l.Spans {
			part := min(s.End, to) - max(s.Start, from)
			if part <= 0 || s.In != None || s.Place.Line <= 0 {
				continue
			}
			if i == which {
				sums[s.Place] += part
			} else {
				sums[s.Place] -= part / timeline.Nanos(len(lanes)-1)
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
