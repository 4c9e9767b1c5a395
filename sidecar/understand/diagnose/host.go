package diagnose

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// hostState is what a thread was doing, as far as causes go.
type hostState struct {
	cause Cause
	at    Place
}

// stretch is a time in which the host state did not change.
type stretch struct {
	start, end timeline.Nanos
	state      int // index of host.states
}

// host is one thread over the whole recording: its stretches follow each other
// from 0 to the duration.
type host struct {
	states    []hostState
	stretches []stretch
}

const unknownState = 0 // of every host: the thread did not exist or had no frames

// responsible picks the thread a device's idle time is charged to: exactly one,
// else n threads would count it n times. It is the one that runs the cell, if
// its process is on the device or nobody knows whose is; else the main thread of
// a process that is. Of a launcher it is its leading rank's in place of its own.
func (s *stacks) responsible(device int) *timeline.Thread {
	rec := s.rec
	runs := func(t *timeline.Thread) bool {
		if s.leader != nil {
			return t == s.leader
		}
		return t.RunsCell
	}
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
		case runs(t) && on(t.PID):
			r = 4
		case t.Main && on(t.PID):
			r = 3
		case runs(t):
			r = 2
		case t.Main:
			r = 1
		}
		if r > rank || r == rank && r > 0 && seen(t) > seen(best) { // it may have been lost and found again
			best, rank = t, r
		}
	}
	return best
}

// seen is for how long something is known of a thread.
func seen(t *timeline.Thread) timeline.Nanos {
	sum := timeline.Nanos(0)
	for _, s := range t.Spans {
		if s.Node != timeline.RootNode {
			sum += s.End - s.Start
		}
	}
	return sum
}

// lifetime is what is known of a recording beyond stacks: when the device first
// had work, when the script's own code began and ended.
type lifetime struct {
	firstWork  timeline.Nanos      // 0: from the start, or there was none
	begin, end timeline.Nanos      // of the script; 0 and the duration where that is not known
	born, died timeline.Nanos      // of the process, where it is not the target; 0: not known, or later
	unread     []timeline.Interval // in which the process's stacks told nothing for a reason that is no stage of its life; in order of time
}

// newHost reads a thread's spans as host states.
func newHost(s *stacks, t *timeline.Thread, life lifetime) *host {
	h := &host{states: []hostState{{cause: Unknown}}}
	if life.end == 0 {
		life.end = s.rec.Duration
	}
	if t == nil {
		h.add(0, s.rec.Duration, unknownState)
		return h
	}
	byKey := make(map[hostKey]int)
	byState := map[hostState]int{h.states[0]: unknownState}
	lookup := func(k hostKey) int {
		if id, ok := byKey[k]; ok {
			return id
		}
		st := h.states[unknownState]
		if k.known {
			st.cause, st.at = s.classify(s.stack(k.node), k.state, k.wait)
		}
		st = k.stage.of(st)
		if st.cause == Exit && !s.files.Own(st.at.File) {
			st.at = Place{}
		}
		id, ok := byState[st]
		if !ok {
			id = len(h.states)
			h.states = append(h.states, st)
			byState[st] = id
		}
		byKey[k] = id
		return id
	}
	put := func(start, end timeline.Nanos, k hostKey) {
		for start < end {
			k.stage = life.stageAt(start)
			until := min(end, life.nextAfter(start))
			h.add(start, until, lookup(k))
			start = until
		}
	}
	at := timeline.Nanos(0)
	for _, span := range t.Spans {
		start, end := max(span.Start, at), min(span.End, s.rec.Duration)
		if start >= end {
			continue
		}
		put(at, start, hostKey{})
		put(start, end, hostKey{node: span.Node, state: span.State, wait: span.Wait, known: true})
		at = end
	}
	put(at, s.rec.Duration, hostKey{})
	return h
}

// hostKey is what a host state is found by.
type hostKey struct {
	node  timeline.NodeID
	state timeline.State
	wait  timeline.Wait
	known bool // else the thread did not exist, or was not observed
	stage stage
}

// stage is a part of a program's life that gives a vague cause another name.
type stage uint8

const (
	running stage = iota
	starting
	beforeFirstWork
	ending
)

func (l lifetime) stageAt(t timeline.Nanos) stage {
	switch {
	case t < l.born && t < l.firstWork: // a launcher has not started its ranks yet
		return beforeFirstWork
	case t < l.born, t >= l.died && l.died > 0, l.unreadAt(t):
		return running
	case t < l.begin:
		return starting
	case t >= l.end:
		return ending
	case t < l.firstWork:
		return beforeFirstWork
	}
	return running
}

// nextAfter is when the stage of t is over.
func (l lifetime) nextAfter(t timeline.Nanos) timeline.Nanos {
	next := timeline.Nanos(1<<63 - 1)
	for _, edge := range []timeline.Nanos{l.begin, l.end, l.firstWork, l.born, l.died} {
		if edge > t {
			next = min(next, edge)
		}
	}
	if i := l.unreadFrom(t); i < len(l.unread) {
		if edge := l.unread[i].Start; edge > t {
			return min(next, edge)
		}
		next = min(next, l.unread[i].End)
	}
	return next
}

// unreadAt tells whether the process was unread at a time.
func (l lifetime) unreadAt(t timeline.Nanos) bool {
	i := l.unreadFrom(t)
	return i < len(l.unread) && l.unread[i].Start <= t
}

// unreadFrom is the first time in which the process was unread that ends after t.
func (l lifetime) unreadFrom(t timeline.Nanos) int {
	return sort.Search(len(l.unread), func(i int) bool { return l.unread[i].End > t })
}

// unreadTimes are the gaps of a process but for those that tell a stage of its life:
// while it does not run Python yet, and while it no longer does. What another program
// did that it became, or what it did while nobody may read it, is not known to be its
// start or its exit.
func unreadTimes(rec *timeline.Recording, pid int) []timeline.Interval {
	var list []timeline.Interval
	for _, g := range rec.Gaps {
		if g.PID == pid && g.Start < g.End && g.Reason != timeline.GapStarting && g.Reason != timeline.GapExit {
			list = append(list, timeline.Between(g.Start, g.End))
		}
	}
	return timeline.Joined(list)
}

// of names a state as the stage has it.
func (p stage) of(st hostState) hostState {
	switch p {
	case starting:
		return hostState{cause: StartUp}
	case beforeFirstWork:
		if vagueBeforeFirst[st.cause] {
			st.cause = SetUp
		}
	case ending:
		if vagueAtEnd[st.cause] {
			st.cause = Exit
		}
	}
	return st
}

// vagueBeforeFirst are the causes that only mean "set-up" before the first GPU work.
var vagueBeforeFirst = map[Cause]bool{
	Python: true, Native: true, Waiting: true, Lock: true, NoCPU: true, GIL: true, InOut: true, Around: true, Unknown: true,
}

// vagueAtEnd are the causes that only mean "exit" when the script is over. A wait
// for a thread or a process stays what it is.
var vagueAtEnd = map[Cause]bool{
	Python: true, Native: true, Import: true, Waiting: true, Lock: true, NoCPU: true, GIL: true, InOut: true, Unknown: true,
}

// scriptLife finds when a script's own code began and ended, by the thread that
// ran it; the whole recording where there is no script. Of a script that was over
// before it was seen, all that was seen is how the interpreter started.
func scriptLife(s *stacks, t *timeline.Thread) (begin, end timeline.Nanos) {
	begin, end = 0, s.rec.Duration
	if s.rec.Target.Cell != nil || t == nil {
		return begin, end
	}
	inside := make(map[timeline.NodeID]bool)
	first, last := timeline.Nanos(-1), timeline.Nanos(-1)
	for _, span := range t.Spans {
		in, known := inside[span.Node]
		if !known {
			in = s.inScript(s.stack(span.Node))
			inside[span.Node] = in
		}
		if in {
			if first < 0 {
				first = span.Start
			}
			last = span.End
		}
	}
	if first < 0 {
		for _, span := range t.Spans {
			stack := s.stack(span.Node)
			if s.ownest(stack) >= 0 {
				break // called by the interpreter, as what was registered for the exit
			}
			if s.inStartUp(stack) {
				begin = span.End
			}
		}
		return begin, end
	}
	return first, min(last, end)
}

// inStartUp tells whether nothing but what the interpreter does by itself is on the
// stack: it imports site and what that asks for.
func (s *stacks) inStartUp(stack []timeline.FrameID) bool {
	if len(stack) == 0 {
		return true
	}
	outermost := stack[len(stack)-1]
	return s.files.Of(s.rec.Frames[outermost].File).Owner == origin.Interpreter && s.facts[outermost].means&origin.RunsMain == 0
}

// inScript tells whether the main module is on the stack: its outermost frame,
// below what finds it (runpy), is a module's.
func (s *stacks) inScript(stack []timeline.FrameID) bool {
	for i := len(stack) - 1; i >= 0; i-- {
		f := s.rec.Frames[stack[i]]
		if s.facts[stack[i]].means&origin.RunsMain != 0 {
			continue
		}
		return f.Function == "<module>" && s.files.Of(f.File).Owner != origin.Interpreter
	}
	return false
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

// spent sums the thread's time up by cause and place, most first.
func (h *host) spent() []Spent {
	sums := make(map[hostState]timeline.Nanos)
	for state, nanos := range h.times() {
		sums[h.states[state]] += nanos
	}
	var list []Spent
	for st, nanos := range sums {
		if nanos > 0 {
			list = append(list, Spent{st.cause, st.at, nanos})
		}
	}
	slices.SortFunc(list, func(a, b Spent) int {
		return cmp.Or(cmp.Compare(b.Nanos, a.Nanos), strings.Compare(string(a.Cause), string(b.Cause)), comparePlaces(a.Place, b.Place))
	})
	return list
}

// causeAt is what the thread did most at a place, of the causes that fit.
func (h *host) causeAt(at Place, fits func(Cause) bool) Cause {
	sums := make(map[Cause]timeline.Nanos)
	for state, nanos := range h.times() {
		if st := h.states[state]; st.at == at && fits(st.cause) {
			sums[st.cause] += nanos
		}
	}
	return most(sums, func(a, b Cause) int { return cmp.Compare(a, b) })
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
