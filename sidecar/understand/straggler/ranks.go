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

// Until returns the lanes up to a time, with the steps that had begun.
func Until(lanes []Lane, end timeline.Nanos) []Lane {
	out := slices.Clone(lanes)
	for i := range out {
		lane := &out[i]
		lane.Spans = lane.Spans[:begun(lane.Spans, end, func(s Span) timeline.Interval { return s.Interval })]
		lane.Steps = lane.Steps[:begun(lane.Steps, end, func(s timeline.Interval) timeline.Interval { return s })]
		if n := len(lane.Spans); n > 0 && lane.Spans[n-1].End > end {
			lane.Spans = slices.Clone(lane.Spans)
			lane.Spans[n-1].End = end
		}
		if n := len(lane.Steps); n > 0 && lane.Steps[n-1].End > end {
			lane.Steps = slices.Clone(lane.Steps)
			lane.Steps[n-1].End = end
		}
	}
	return out
}

// begun is how many of a list, in order of time, had begun by an end.
func begun[T any](list []T, end timeline.Nanos, of func(T) timeline.Interval) int {
	if i := slices.IndexFunc(list, func(each T) bool { return of(each).Start >= end }); i >= 0 {
		return i
	}
	return len(list)
}

// Straggler is a rank that the others waited for.
type Straggler struct {
	Lane  int            // of those that were compared
	Time  timeline.Nanos // for which most of the others were in a collective, and it was not
	Of    timeline.Nanos // for which all ranks trained: after they were set up, before the first has ended
	Mean  timeline.Nanos // of the others, for which they were waited for
	Place Place          // where it was longer than the others were, outside of collectives …
	More  timeline.Nanos // … by so much more than their mean
	// In is the collective in which the others were for most of Time, None where none has most of it; InTime: that part.
	In     Collective
	InTime timeline.Nanos
	// Intervals is when.
	Intervals []timeline.Interval
	Steps     int            // of its own
	Late      int            // of them, in which it was waited for: in In, where that has most of the time
	After     timeline.Nanos // of that, after its last step
	Alone     bool           // what made the others wait it did in few of its steps, and they did not do it
}

const (
	// worthWaiting is the share of the common time from which on a wait is worth a word.
	worthWaiting = 0.10
	// lateStep is the share of a step from which on a rank was waited for in it.
	lateStep = 0.10
	// mostWaiting is the share of the time waited from which on it is said in which collective.
	mostWaiting = 0.5
	// fewSteps is the share of its steps up to which a rank does something now and then, as saving, and alone is the share of
	// its own time that the others may spend where it does.
	fewSteps, alone = 0.2, 0.1
	// ofLargest is the part of a wait that a step must have of it, as a share of what the step with most of it has.
	ofLargest = 0.25
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
	waited := s.Intervals
	for in, where := range first.in {
		if time := timeline.Total(where); float64(time) >= mostWaiting*float64(s.Time) && (time > s.InTime || time == s.InTime && in < s.In) {
			s.In, s.InTime, waited = in, time, where
		}
	}
	var others timeline.Nanos
	s.Place, s.More, others = more(lanes, s.Lane, from, to)
	steps := lanes[s.Lane].Steps
	s.Steps, s.Late = len(steps), lateSteps(steps, waited)
	if len(steps) > 0 {
		timeline.Overlap(waited, steps[len(steps)-1].End, to, func(_ int, part timeline.Nanos) { s.After += part })
	}
	s.Alone = s.Steps > 0 && float64(s.Late) <= fewSteps*float64(s.Steps) && 2*s.More >= s.Time && float64(others) <= alone*float64(s.More)
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
	in    map[Collective][]timeline.Interval // in what most of the others were that were in one
}

// waitsFor returns for each rank when it was in no collective and most of the others were.
func waitsFor(lanes []Lane, from, to timeline.Nanos) []wait {
	r := ranks{now: make([]Collective, len(lanes)), waits: make([]wait, len(lanes))}
	for i := range r.waits {
		r.waits[i].in = make(map[Collective][]timeline.Interval)
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
	in := r.mostlyIn()
	for i := range r.waits {
		if r.now[i] == None {
			w := &r.waits[i]
			w.where, w.in[in] = continued(w.where, time), continued(w.in[in], time)
		}
	}
}

// mostlyIn is the collective in which most ranks are now.
func (r *ranks) mostlyIn() (in Collective) {
	counts := make(map[Collective]int)
	for _, now := range r.now {
		if now != None {
			counts[now]++
		}
	}
	for each, n := range counts {
		if n > counts[in] || n == counts[in] && each < in {
			in = each
		}
	}
	return in
}

// continued adds an interval that comes after the others.
func continued(list []timeline.Interval, time timeline.Interval) []timeline.Interval {
	if n := len(list); n > 0 && list[n-1].End == time.Start {
		list[n-1].End = time.End
		return list
	}
	return append(list, time)
}

// lateSteps counts the steps in which a rank was waited for. A wait is seen to end up to a sampling interval late, with
// steps in it that have nothing to do with it: of each wait those count that have about as large a part of it as the others, or as there is outside of steps.
func lateSteps(steps, waits []timeline.Interval) (late int) {
	waited := make([]timeline.Nanos, len(steps))
	for _, wait := range waits {
		largest, outside := timeline.Nanos(0), wait.Nanos()
		timeline.Overlap(steps, wait.Start, wait.End, func(_ int, part timeline.Nanos) { largest, outside = max(largest, part), outside-part })
		largest = max(largest, outside)
		timeline.Overlap(steps, wait.Start, wait.End, func(step int, part timeline.Nanos) {
			if float64(part) >= ofLargest*float64(largest) {
				waited[step] += part
			}
		})
	}
	for i, step := range steps {
		if waited[i] > 0 && float64(waited[i]) >= lateStep*float64(step.Nanos()) {
			late++
		}
	}
	return late
}

// more is the place at which one lane was longer than the others by most. What it did at
// the very time at which they waited says less: it may have caught up with what it had
// been late for. others is the mean of what they spent there.
func more(lanes []Lane, which int, from, to timeline.Nanos) (at Place, by, others timeline.Nanos) {
	sums, own := make(map[Place]timeline.Nanos), make(map[Place]timeline.Nanos)
	for i, l := range lanes {
		for _, s := range l.Spans {
			part := min(s.End, to) - max(s.Start, from)
			if part <= 0 || s.In != None || s.Place.Line <= 0 {
				continue
			}
			if i == which {
				sums[s.Place] += part
				own[s.Place] += part
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
	return at, by, own[at] - by
}
