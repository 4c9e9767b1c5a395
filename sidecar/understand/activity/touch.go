package activity

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Touch is a growth of resident memory with the stacks of its thread that may have touched it.
type Touch struct {
	timeline.Growth
	// Slept is the stack that the thread slept with at an end of it, which Before and After then have not; else RootNode.
	Slept timeline.NodeID
}

// Touches are the growths of a recording, as a thread that sleeps touches no memory. Of a loop that takes memory and then
// sleeps most readings find the thread asleep, before and after: then it is of the stack that the thread ran
// nearest to it. owner gives the process of a thread.
func Touches(rec *timeline.Recording, owner func(*timeline.Thread) int) []Touch {
	asleep := sleepersOf(rec, owner)
	touches := make([]Touch, len(rec.Growth))
	for i, g := range rec.Growth {
		touches[i] = Touch{Growth: g}
		if g.Bytes <= 0 || g.Before == timeline.RootNode || g.After == timeline.RootNode {
			continue
		}
		touches[i].awake(&asleep)
	}
	return touches
}

// sleeper is a stack of a process's that was seen asleep.
type sleeper struct {
	process int
	node    timeline.NodeID
}

// sleepers are the threads of a recording that were seen asleep.
type sleepers struct {
	with map[sleeper][]*timeline.Thread
	ran  map[*timeline.Thread]map[timeline.NodeID]timeline.Nanos // for how long, with each stack
}

func sleepersOf(rec *timeline.Recording, owner func(*timeline.Thread) int) sleepers {
	s := sleepers{make(map[sleeper][]*timeline.Thread), make(map[*timeline.Thread]map[timeline.NodeID]timeline.Nanos)}
	for i := range rec.Threads {
		t := &rec.Threads[i]
		process, times := owner(t), make(map[timeline.NodeID]timeline.Nanos)
		for j := range t.Spans {
			span := &t.Spans[j]
			if ran(span) {
				times[span.Node] += span.End - span.Start
			}
			if of := (sleeper{process, span.Node}); span.Wait == timeline.WaitSleep && !slices.Contains(s.with[of], t) {
				s.with[of] = append(s.with[of], t)
				s.ran[t] = times
			}
		}
	}
	return s
}

// awake leaves out the ends at which the thread slept.
func (t *Touch) awake(all *sleepers) {
	before := asleepAt(all.with[sleeper{t.Process, t.Before}], t.Start, t.Before)
	after := asleepAt(all.with[sleeper{t.Process, t.After}], t.End-1, t.After)
	switch thread := cmp.Or(before, after); {
	case thread == nil:
	case before != nil && after != nil, t.Before == t.After: // on its way to sleep, or from it
		if ran, ok := all.nearest(thread, (t.Start+t.End)/2, t.After); ok {
			t.Before, t.After, t.Slept = ran, ran, t.After
		}
	case before != nil:
		t.Before, t.Slept = t.After, t.Before
	case after != nil:
		t.After, t.Slept = t.Before, t.After
	}
}

// asleepAt is the thread that slept at a time with a stack; nil: none did.
func asleepAt(threads []*timeline.Thread, at timeline.Nanos, node timeline.NodeID) *timeline.Thread {
	for _, t := range threads {
		if i := firstSpan(t.Spans, at+1); i < len(t.Spans) && t.Spans[i].Start <= at && t.Spans[i].Node == node && t.Spans[i].Wait == timeline.WaitSleep {
			return t
		}
	}
	return nil
}

// firstSpan is the first of a thread's spans that has not ended before a time.
func firstSpan(spans []timeline.Span, at timeline.Nanos) int {
	i, _ := slices.BinarySearchFunc(spans, at, func(s timeline.Span, at timeline.Nanos) int { return cmp.Compare(s.End, at) })
	return i
}

// nearest is the stack that a thread ran nearest to a time. With the one that it sleeps with it also runs, on its way to sleep and
// from it: that is it only where it ran so for longer than with the other one that is nearest.
func (s *sleepers) nearest(t *timeline.Thread, at timeline.Nanos, slept timeline.NodeID) (timeline.NodeID, bool) {
	with, ok := nearestOf(t, at, func(node timeline.NodeID) bool { return true })
	if !ok || with != slept {
		return with, ok
	}
	other, ok := nearestOf(t, at, func(node timeline.NodeID) bool { return node != slept })
	if ok && s.ran[t][other] > s.ran[t][slept] {
		return other, true
	}
	return slept, true
}

// ran reports whether a thread ran in a span, or would have if it had not been held up.
func ran(s *timeline.Span) bool {
	switch s.State {
	case timeline.StatePython, timeline.StateNative, timeline.StateOff, timeline.StateGIL:
		return s.Node != timeline.RootNode
	}
	return false
}

// mostSpans is how far it is looked for, on either side.
const mostSpans = 1000

// nearestOf is the stack of those that fit that a thread ran nearest to a time.
func nearestOf(t *timeline.Thread, at timeline.Nanos, fits func(timeline.NodeID) bool) (timeline.NodeID, bool) {
	runs := func(i int) bool { return ran(&t.Spans[i]) && fits(t.Spans[i].Node) }
	middle := firstSpan(t.Spans, at+1)
	first, end := max(middle-mostSpans, 0), min(middle+mostSpans, len(t.Spans))
	before, after := middle-1, middle
	for before >= first && !runs(before) {
		before--
	}
	for after < end && !runs(after) {
		after++
	}
	switch {
	case before < first && after >= end:
		return timeline.RootNode, false
	case before < first:
		return t.Spans[after].Node, true
	case after < end && t.Spans[after].Start-at < at-t.Spans[before].End:
		return t.Spans[after].Node, true
	}
	return t.Spans[before].Node, true
}
