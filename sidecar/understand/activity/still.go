package activity

import (
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// minWakeCPU is what a thread needs of a CPU at least to wake another one: it must itself come back from a wait, and then
// run Python code that releases a lock.
const minWakeCPU = timeline.Nanos(5 * time.Microsecond)

// severalWakes is how often a thread must have woken up for those to be known that had no part in it, if they ran at all: a
// thread that ends the wait once, as one that is joined, may be seen in a wait of its own until a moment later.
const severalWakes = 3

// mayWake are the threads that may be the ones for which the thread waited in some intervals. One that stood still in a wait
// of its own whenever the thread woke up, as a server that an earlier cell left in accept() does, is none of them, if another
// one was active meanwhile: else it may still be the one that is to come.
func (c *Bystanders) mayWake(where []timeline.Interval) []bystander {
	woke := c.wokeFrom(where)
	if len(woke) == 0 {
		return c.threads
	}
	candidates, active := c.moved(woke, where)
	if !active {
		return c.threads
	}
	return candidates
}

// OnlyStill reports whether the threads that were active in some intervals, in which the thread waited, stood still whenever it
// woke up: it was for none of them.
func (c *Bystanders) OnlyStill(where []timeline.Interval) bool {
	woke := c.wokeFrom(where)
	if len(woke) == 0 {
		return false
	}
	_, active := c.moved(woke, where)
	return !active
}

// moved are the threads that did not stand still whenever the thread woke up, and whether one of them was active.
func (c *Bystanders) moved(woke, where []timeline.Interval) (list []bystander, active bool) {
	length := timeline.Total(where)
	for _, t := range c.threads {
		if t.stoodStill(woke, c.s.Rec.Duration) {
			continue
		}
		list = append(list, t)
		did, _ := t.active(where)
		active = active || float64(did) >= minActive*float64(length)
	}
	return list, active
}

// wokeFrom are the intervals at whose end something had ended the thread's wait, not the end of the recording: none where they
// are not most of the wait.
func (c *Bystanders) wokeFrom(where []timeline.Interval) []timeline.Interval {
	woke := slices.DeleteFunc(timeline.Joined(where), func(i timeline.Interval) bool { return i.End >= c.s.Rec.Duration })
	if float64(timeline.Total(woke)) < MostShare*float64(timeline.Total(where)) {
		return nil
	}
	return woke
}

// stoodStill reports whether a thread was in one and the same wait from the first of some intervals until after the last, and
// ran for too short to have come back from it at the end of each, or not at all. Its stack alone does not show it: that of a loop
// in one line, as time.sleep(0.1); q.put(x), is nearly always the same, too.
func (t bystander) stoodStill(woke []timeline.Interval, end timeline.Nanos) bool {
	if t.OnCPU < 0 || t.OnCPUAtLeast {
		return false
	}
	// Of a thread that is still there its CPU time is read when the recording is over.
	last := t.Spans[len(t.Spans)-1]
	if ran := t.OnCPU > 0 || last.State == timeline.StateUnknown || last.End < end; ran &&
		(len(woke) < severalWakes || t.OnCPU >= minWakeCPU*timeline.Nanos(len(woke))) {
		return false
	}
	from, to := woke[0].Start, woke[len(woke)-1].End
	if t.Spans[0].Start > from {
		return false
	}
	var first, until *timeline.Span
	for i := range t.Spans {
		s := &t.Spans[i]
		switch {
		case s.End <= from || s.Start > to || s.State == timeline.StateUnknown:
		case s.State != timeline.StateWaiting && s.State != timeline.StateIO:
			return false
		case first != nil && s.Node != first.Node:
			return false
		default:
			if first == nil {
				first = s
			}
			until = s
		}
	}
	return until != nil && until.End > to // else it ended, or left its wait, when the thread woke up
}
