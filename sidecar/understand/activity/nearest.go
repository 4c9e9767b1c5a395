package activity

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

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

// ran reports whether a thread ran in a span, or would have if it had not been held up.
func ran(s *timeline.Span) bool {
	switch s.State {
	case timeline.StatePython, timeline.StateNative, timeline.StateOff, timeline.StateGIL:
		return s.Node != timeline.RootNode
	}
	return false
}

// mostSpans is how far it is looked for what a thread ran, on either side. What it runs in some turns of a loop that sleeps is no further off than
// turnSpans: a turn in which it was not met has two, and what ran before the loop has nothing of it.
const (
	mostSpans = 1000
	turnSpans = 16
)

// nearest is the stack that a thread ran nearest to a time. With the one that it sleeps with it also runs, on its way to sleep and
// from it: that is it only where it ran so for longer than with the other one that is nearest.
func (e *evidence) nearest(process int, t *timeline.Thread, at timeline.Nanos, slept timeline.NodeID) (timeline.NodeID, bool) {
	fits := func(node timeline.NodeID) bool { // what runs in turn with a line of the user's is called by the user's code, too
		return node == slept || e.line(process, node).own || !e.line(process, slept).own
	}
	with, ok := nearestOf(t, at, mostSpans, fits)
	if !ok || with != slept {
		return with, ok
	}
	other, ok := nearestOf(t, at, turnSpans, func(node timeline.NodeID) bool { return node != slept && fits(node) })
	if ok && e.timesOf(t)[other] > e.timesOf(t)[slept] {
		return other, true
	}
	return slept, true
}

// timesOf is for how long a thread ran with each stack.
func (e *evidence) timesOf(t *timeline.Thread) map[timeline.NodeID]timeline.Nanos {
	times := e.times[t]
	if times == nil {
		times = make(map[timeline.NodeID]timeline.Nanos)
		for i := range t.Spans {
			if span := &t.Spans[i]; ran(span) {
				times[span.Node] += span.End - span.Start
			}
		}
		e.times[t] = times
	}
	return times
}

// nearestOf is the stack of those that fit that a thread ran nearest to a time, at most so many spans before it or after it.
func nearestOf(t *timeline.Thread, at timeline.Nanos, most int, fits func(timeline.NodeID) bool) (timeline.NodeID, bool) {
	runs := func(i int) bool { return ran(&t.Spans[i]) && fits(t.Spans[i].Node) }
	middle := firstSpan(t.Spans, at+1)
	first, end := max(middle-most, 0), min(middle+most, len(t.Spans))
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
