package activity

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Activity is what a thread was doing, as far as causes go.
type Activity struct {
	Cause Cause
	Place Place
}

// Stretch is a time in which a thread's activity did not change.
type Stretch struct {
	Start, End timeline.Nanos
	State      int // index of History.States
}

// History is one thread over the whole recording: its stretches follow each other
// from 0 to the duration.
type History struct {
	States    []Activity // each once; the first is that nothing is known
	Stretches []Stretch
}

const unknownState = 0 // of every history: the thread did not exist or had no frames

// newHistory reads a thread's spans as activities.
func newHistory(s *Stacks, t *timeline.Thread, life lifetime) *History {
	h := &History{States: []Activity{{Cause: Unknown}}}
	if life.end == 0 {
		life.end = s.Rec.Duration
	}
	if t == nil {
		h.Add(0, s.Rec.Duration, unknownState)
		return h
	}
	byKey := make(map[activityKey]int)
	byState := map[Activity]int{h.States[0]: unknownState}
	lookup := func(k activityKey) int {
		if id, ok := byKey[k]; ok {
			return id
		}
		st := h.States[unknownState]
		if k.known {
			st.Cause, st.Place = s.doing(t, s.Stack(k.node), k.state, k.wait)
		}
		st = k.stage.of(st)
		if st.Cause == Exit && !s.Files.Own(st.Place.File) {
			st.Place = Place{}
		}
		id, ok := byState[st]
		if !ok {
			id = len(h.States)
			h.States = append(h.States, st)
			byState[st] = id
		}
		byKey[k] = id
		return id
	}
	put := func(start, end timeline.Nanos, k activityKey) {
		for start < end {
			k.stage = life.stageAt(start)
			until := min(end, life.nextAfter(start))
			h.Add(start, until, lookup(k))
			start = until
		}
	}
	at := timeline.Nanos(0)
	for _, span := range t.Spans {
		start, end := max(span.Start, at), min(span.End, s.Rec.Duration)
		if start >= end {
			continue
		}
		put(at, start, activityKey{})
		put(start, end, activityKey{node: span.Node, state: span.State, wait: span.Wait, known: true})
		at = end
	}
	put(at, s.Rec.Duration, activityKey{})
	return h
}

// activityKey is what an activity is found by.
type activityKey struct {
	node  timeline.NodeID
	state timeline.State
	wait  timeline.Wait
	known bool // else the thread did not exist, or was not observed
	stage stage
}

// inStartUp reports whether nothing but what the interpreter does by itself is on the
// stack: it imports site and what that asks for.
func (s *Stacks) inStartUp(stack []timeline.FrameID) bool {
	if len(stack) == 0 {
		return true
	}
	outermost := stack[len(stack)-1]
	return s.Files.Of(s.Rec.Frames[outermost].File).Owner == origin.Interpreter && s.facts[outermost].means&origin.RunsMain == 0
}

// Add appends a stretch, and joins it to the one before where it is the same.
func (h *History) Add(start, end timeline.Nanos, state int) {
	if start >= end {
		return
	}
	if n := len(h.Stretches); n > 0 && h.Stretches[n-1].State == state && h.Stretches[n-1].End == start {
		h.Stretches[n-1].End = end
		return
	}
	h.Stretches = append(h.Stretches, Stretch{start, end, state})
}

// Times returns how long the thread was in each state.
func (h *History) Times() []timeline.Nanos {
	sums := make([]timeline.Nanos, len(h.States))
	for _, s := range h.Stretches {
		sums[s.State] += s.End - s.Start
	}
	return sums
}

// Spent is the time with one cause at one place.
type Spent struct {
	Cause Cause
	Place Place // zero: none of the user's own lines was on the stack
	Nanos timeline.Nanos
}

// Spent sums the thread's time up by cause and place, most first.
func (h *History) Spent() []Spent {
	sums := make(map[Activity]timeline.Nanos)
	for state, nanos := range h.Times() {
		sums[h.States[state]] += nanos
	}
	var list []Spent
	for st, nanos := range sums {
		if nanos > 0 {
			list = append(list, Spent{st.Cause, st.Place, nanos})
		}
	}
	slices.SortFunc(list, func(a, b Spent) int {
		return cmp.Or(cmp.Compare(b.Nanos, a.Nanos), strings.Compare(string(a.Cause), string(b.Cause)), a.Place.Compare(b.Place))
	})
	return list
}

// CauseAt is what the thread did most at a place, of the causes that fit.
func (h *History) CauseAt(at Place, fits func(Cause) bool) Cause {
	sums := make(map[Cause]timeline.Nanos)
	for state, nanos := range h.Times() {
		if st := h.States[state]; st.Place == at && fits(st.Cause) {
			sums[st.Cause] += nanos
		}
	}
	return Most(sums, func(a, b Cause) int { return cmp.Compare(a, b) })
}

// TimeAt is how long the thread was at a place, of the causes that fit.
func (h *History) TimeAt(at Place, fits func(Cause) bool) (sum timeline.Nanos) {
	for state, nanos := range h.Times() {
		if st := h.States[state]; st.Place == at && fits(st.Cause) {
			sum += nanos
		}
	}
	return sum
}

// PlainHistory is the history of a thread of whose life nothing more is known.
func (s *Stacks) PlainHistory(t *timeline.Thread) *History {
	h, known := s.histories[t]
	if !known {
		h = newHistory(s, t, lifetime{})
		s.histories[t] = h
	}
	return h
}
