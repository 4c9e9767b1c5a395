package diagnose

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// hostState is what the responsible thread was doing, as far as causes go.
type hostState struct {
	cause Cause
	at    line
	hint  string
}

// waitsForDevice tells that the host is blocked until the device is done: it
// works then, or the wait would be over.
func (s hostState) waitsForDevice() bool { return s.cause == Transfer && s.hint == hintSync }

// stretch is a time in which the host state stood still.
type stretch struct {
	start, end timeline.Nanos
	state      int // index of host.states
}

// host is the one thread that is responsible for a device, over the whole
// recording: its stretches follow each other from 0 to the duration.
type host struct {
	states    []hostState
	stretches []stretch
}

const unknownState = 0 // of every host: the thread did not exist or had no frames

// responsible picks the thread a device's idle time is charged to: exactly one,
// else n threads would count it n times. It is the one that runs the cell, if
// its process is on the device or nobody knows whose is; else the main thread of
// a process that is.
func responsible(rec *timeline.Recording, device int) *timeline.Thread {
	var pids []int
	for _, g := range rec.GPUs {
		if g.Index == device {
			pids = g.PIDs
		}
	}
	on := func(pid int) bool {
		for _, p := range pids {
			if p == pid {
				return true
			}
		}
		return len(pids) == 0
	}
	var best *timeline.Thread
	rank := 0
	for i := range rec.Threads {
		t := &rec.Threads[i]
		r := 0
		switch {
		case len(t.Spans) == 0:
		case t.RunsCell && on(t.PID):
			r = 4
		case t.Main && on(t.PID):
			r = 3
		case t.RunsCell:
			r = 2
		case t.Main:
			r = 1
		}
		if r > rank {
			best, rank = t, r
		}
	}
	return best
}

// newHost reads a thread's spans as host states. Set-up before first counts as
// such where nothing more precise is known; first is 0 when there was none.
func newHost(s *stacks, t *timeline.Thread, first timeline.Nanos) *host {
	h := &host{states: []hostState{{cause: UnknownCause}}}
	if t == nil {
		h.add(0, s.rec.Duration, unknownState)
		return h
	}
	type key struct {
		node  timeline.NodeID
		state timeline.State
		early bool
	}
	byKey := make(map[key]int)
	byState := map[hostState]int{h.states[0]: unknownState}
	lookup := func(k key) int {
		if id, ok := byKey[k]; ok {
			return id
		}
		cause, hint, at := s.classify(s.frames(k.node), k.state)
		if k.early && vagueBeforeFirst[cause] {
			cause, hint = BeforeFirst, hintSetUp
		}
		st := hostState{cause: cause, at: at, hint: hint}
		id, ok := byState[st]
		if !ok {
			id = len(h.states)
			h.states = append(h.states, st)
			byState[st] = id
		}
		byKey[k] = id
		return id
	}
	at := timeline.Nanos(0)
	for _, span := range t.Spans {
		start, end := max(span.Start, at), min(span.End, s.rec.Duration)
		if start >= end {
			continue
		}
		h.add(at, start, unknownState)
		if start < first {
			middle := min(end, first)
			h.add(start, middle, lookup(key{span.Node, span.State, true}))
			start = middle
		}
		h.add(start, end, lookup(key{span.Node, span.State, false}))
		at = end
	}
	h.add(at, s.rec.Duration, unknownState)
	return h
}

// vagueBeforeFirst are the causes that only mean "set-up" before the first GPU work.
var vagueBeforeFirst = map[Cause]bool{
	PythonCPU: true, NativeCPU: true, Waiting: true, NoCPU: true, GILWait: true, InputOutput: true, UnknownCause: true,
}

func (h *host) add(start, end timeline.Nanos, state int) {
	if start >= end {
		return
	}
	if n := len(h.stretches); n > 0 && h.stretches[n-1].state == state && h.stretches[n-1].end == start {
		h.stretches[n-1].end = end
		return
	}
	h.stretches = append(h.stretches, stretch{start, end, state})
}

// times returns how long the host was in each state.
func (h *host) times() []timeline.Nanos {
	sums := make([]timeline.Nanos, len(h.states))
	for _, s := range h.stretches {
		sums[s.state] += s.end - s.start
	}
	return sums
}

// halved splits every state into an early and a late part, at half its median
// stay. A device that works off what was launched at a state's beginning is busy
// early and idle late; one rate for the whole state would miss that.
func (h *host) halved() *host {
	stays := make([][]timeline.Nanos, len(h.states))
	for _, s := range h.stretches {
		stays[s.state] = append(stays[s.state], s.end-s.start)
	}
	out := &host{states: slices.Clone(h.states)}
	half := make([]timeline.Nanos, len(h.states))
	late := make([]int, len(h.states))
	for i := range h.states {
		late[i] = i
		if len(stays[i]) >= minRepeats {
			slices.Sort(stays[i])
			half[i] = stays[i][len(stays[i])/2] / 2
			late[i] = len(out.states)
			out.states = append(out.states, h.states[i])
		}
	}
	for _, s := range h.stretches {
		middle := min(s.end, s.start+half[s.state])
		out.add(s.start, middle, s.state)
		out.add(middle, s.end, late[s.state])
	}
	return out
}
