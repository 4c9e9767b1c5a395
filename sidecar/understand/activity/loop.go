package activity

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// TasksAt are the lines at which tasks of a process waited for anything but other tasks, as Awaits has them, but of one that
// sleeps and waits for something else, as "async with lock: await sleep(1)", there are two.
func (s *Stacks) TasksAt(process int) []AwaitLine {
	apart := func(key awaitKey, node timeline.NodeID) awaitsTogether {
		stack := s.suspended(node)
		return awaitsTogether{key, len(stack) > 0 && s.facts[stack[0]].means&origin.Sleeps != 0}
	}
	return awaitsOf(s.Rec, s.isOwn, apart, func(a *timeline.Await) bool { return a.Process == process && s.awaitsNoTask(a) })
}

// WithTasks are the processes whose tasks waited, in order.
func (s *Stacks) WithTasks() (processes []int) {
	for _, a := range s.Rec.Awaits {
		processes = append(processes, a.Process)
	}
	slices.Sort(processes)
	return slices.Compact(processes)
}

// MainThread is what the main thread of a process did; nil: no stack of it was seen.
func (s *Stacks) MainThread(process int) *Reading {
	for i := range s.Rec.Threads {
		if t := &s.Rec.Threads[i]; t.Process == process && t.Main && len(t.Spans) > 0 {
			return &Reading{Thread: t, stacks: s}
		}
	}
	return nil
}

// ReadyTasks are all tasks of a process that were ready; ok is false where none was.
func (s *Stacks) ReadyTasks(process int) (all AwaitLine, ok bool) {
	lines := awaitsOf(s.Rec, s.isOwn, func(key awaitKey, _ timeline.NodeID) awaitsTogether {
		return awaitsTogether{awaitKey: awaitKey{process: key.process}}
	}, func(a *timeline.Await) bool { return a.Process == process && isReady(a) })
	if len(lines) == 0 {
		return AwaitLine{}, false
	}
	return lines[0], true
}

// awaitsNoTask reports whether a task waits for anything but other tasks: for those it may wait in a function that sets a
// future of its own when they have ended.
func (s *Stacks) awaitsNoTask(a *timeline.Await) bool {
	if a.Kind != timeline.AwaitsOther {
		return false
	}
	stack := s.suspended(a.Node)
	return len(stack) > 0 && s.facts[stack[0]].means&origin.AwaitsTasks == 0
}

// suspended is the stack of a task that waits, without the functions that a library suspends each task by.
func (s *Stacks) suspended(node timeline.NodeID) []timeline.FrameID {
	stack := s.Stack(node)
	for len(stack) > 0 && s.facts[stack[0]].means&origin.Selects != 0 {
		stack = stack[1:]
	}
	return stack
}

func (s *Stacks) isOwn(frame timeline.FrameID) bool { return s.facts[frame].own }

// Awaited is the library function that a line at which tasks waited called; sleeps reports that it is a sleep, by the
// line itself.
func (s *Stacks) Awaited(a *AwaitLine) (call Call, sleeps bool) {
	stack := s.suspended(a.Node)
	call, _ = s.callFrom(stack, a.Place)
	at := s.ownest(stack)
	if leaf := s.Rec.Frames[stack[0]]; isSpecial(call.Function) && s.Files.Of(leaf.File).Package == call.Package && !isInternal(leaf.Function) {
		call.Function = publicName(leaf.Function) // Lock.acquire of "async with lock"
	}
	other := func(id timeline.FrameID) bool { return s.facts[id].means&origin.Sleeps == 0 }
	return call, at > 0 && !slices.ContainsFunc(stack[:at], other)
}

// Held is the line at which tasks waited while they had what others waited for at the header of a block, as a lock: of the
// lines in that block of the same function that with the most waiting. nil: none.
func (s *Stacks) Held(at *AwaitLine, lines []AwaitLine) (best *AwaitLine) {
	f := s.Rec.Frames[at.Function]
	for i := range lines {
		in := &lines[i]
		g := s.Rec.Frames[in.Function]
		if in.Process != at.Process || g.File != f.File || g.Function != f.Function || g.FirstLine != f.FirstLine || best != nil && in.Waiting <= best.Waiting {
			continue
		}
		if slices.ContainsFunc(s.source.headers(in.Place.File, in.Place.Line), func(h header) bool { return h.line == at.Place.Line }) {
			best = in
		}
	}
	return best
}

// isSpecial reports whether a function is one that Python calls by itself.
func isSpecial(function string) bool {
	return strings.HasPrefix(function[strings.LastIndexByte(function, '.')+1:], "__")
}

// LoopIdle are the times in which the thread's event loop waited for whatever comes first.
func (t *Reading) LoopIdle() (where []timeline.Interval) {
	if t.Thread == nil {
		return nil
	}
	for _, span := range t.Spans {
		if stack := t.stacks.Stack(span.Node); len(stack) > 0 && offCPU.has(span.State) &&
			(t.stacks.Rec.Frames[stack[0]].Suspended || t.stacks.facts[stack[0]].means&origin.Selects != 0) {
			where = append(where, timeline.Between(span.Start, span.End))
		}
	}
	return timeline.Joined(where)
}

// Held is for how long something kept an event loop from its other tasks.
type Held struct {
	Function string // of the user's own that a coroutine called; else the coroutine's
	Call     Call   // of a library, that a coroutine called; zero: it called a function of the user's own, or none
	Place    Place  // the coroutine's line with most of it
	There    timeline.Nanos
	Total    timeline.Nanos
	Longest  timeline.Nanos // without a pause
	Where    []timeline.Interval
}

// heldBy is what a stack shows of it.
type heldBy struct {
	function string
	call     Call
}

// LoopHeld is what kept the thread's event loop busy for most of the time for which tasks were ready. A task that
// begins to run, or becomes ready, ends what is taken to be one call.
func (t *Reading) LoopHeld(ready *AwaitLine) (most Held, ok bool) {
	if t.Thread == nil {
		return most, false
	}
	type answer struct {
		by heldBy
		at Place
		ok bool
	}
	known := make(map[timeline.NodeID]answer)
	all := make(map[heldBy]*Held)
	places := make(map[heldBy]map[Place]timeline.Nanos)
	last, since := heldBy{}, timeline.Nanos(-1)
	next := 0 // of ready.Changes
	for _, span := range t.Spans {
		a, asked := known[span.Node]
		if !asked {
			a.by, a.at, a.ok = t.stacks.heldBy(t.stacks.Stack(span.Node))
			known[span.Node] = a
		}
		if !a.ok {
			since = -1
			continue
		}
		h := all[a.by]
		if h == nil {
			h = &Held{Function: a.by.function, Call: a.by.call}
			all[a.by], places[a.by] = h, make(map[Place]timeline.Nanos)
		}
		timeline.Overlap(ready.Where, span.Start, span.End, func(i int, part timeline.Nanos) {
			h.Total += part
			places[a.by][a.at] += part
			h.Where = append(h.Where, timeline.Between(max(ready.Where[i].Start, span.Start), min(ready.Where[i].End, span.End)))
		})
		if since < 0 || a.by != last {
			last, since = a.by, span.Start
		}
		for ; next < len(ready.Changes) && ready.Changes[next].From < span.End; next++ {
			if at := ready.Changes[next].From; at > since {
				h.Longest, since = max(h.Longest, at-since), at
			}
		}
		h.Longest = max(h.Longest, span.End-since)
	}
	totals := make(map[heldBy]timeline.Nanos, len(all))
	for by, h := range all {
		totals[by] = h.Total
	}
	by := Most(totals, func(a, b heldBy) int {
		return cmp.Or(strings.Compare(a.function, b.function), compareCalls(a.call, b.call))
	})
	if totals[by] == 0 {
		return most, false
	}
	most = *all[by]
	most.Place = Most(places[by], Place.Compare)
	most.There = places[by][most.Place]
	return most, true
}

// heldBy is what keeps the loop busy whose task has a stack: what the task's innermost coroutine of the user's own has
// called, and where; ok is false where the loop waits, and where no code of the user's own runs.
func (s *Stacks) heldBy(stack []timeline.FrameID) (by heldBy, at Place, ok bool) {
	if len(stack) == 0 || s.Rec.Frames[stack[0]].Suspended || s.facts[stack[0]].means&origin.Selects != 0 {
		return by, at, false
	}
	coroutine := -1
	for i := s.turnOf(stack) - 1; i >= 0; i-- {
		if s.facts[stack[i]].own && (coroutine < 0 || s.isCoroutine(stack[i])) {
			coroutine = i
		} else if coroutine >= 0 {
			break
		}
	}
	if coroutine < 0 {
		return by, at, false
	}
	f := s.Rec.Frames[stack[coroutine]]
	at = Place{f.File, f.Line}
	if coroutine > 0 && s.facts[stack[coroutine-1]].own {
		return heldBy{function: s.Rec.Frames[stack[coroutine-1]].Function}, at, true
	}
	call, none := s.callFrom(stack, at)
	if none || call.Function == "" {
		return heldBy{function: f.Function}, at, true
	}
	return heldBy{call: call}, at, true
}

// turnOf is the index of the frame of an event loop below which the task's own frames are; in a notebook, whose own
// loop is left out, the length of the stack.
func (s *Stacks) turnOf(stack []timeline.FrameID) int {
	for _, loop := range []origin.Meanings{origin.TurnsLoop, origin.RunsLoop} {
		for i, id := range stack {
			if s.facts[id].means&loop != 0 {
				return i
			}
		}
	}
	if s.Rec.Target.Cell != nil {
		return len(stack)
	}
	return 0
}

// isCoroutine reports whether a frame's function can be suspended.
func (s *Stacks) isCoroutine(frame timeline.FrameID) bool {
	f := s.Rec.Frames[frame]
	if s.coroutines == nil {
		s.coroutines = make(map[Place]bool)
		for _, g := range s.Rec.Frames {
			if g.Suspended {
				s.coroutines[Place{g.File, g.FirstLine}] = true
			}
		}
	}
	first := Place{f.File, f.FirstLine}
	return s.coroutines[first] || strings.HasPrefix(strings.TrimSpace(s.Line(s.definition(first))), "async def ")
}
