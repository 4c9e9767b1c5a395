package activity

import (
	"sort"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// lifetime is what is known of a recording beyond stacks: when the device first
// had work, when the script's own code began and ended.
type lifetime struct {
	firstWork  timeline.Nanos      // 0: from the start, or there was none
	begin, end timeline.Nanos      // of the script; 0 and the duration where that is not known
	born, died timeline.Nanos      // of the process, where it is not the target; 0: not known, or later
	unread     []timeline.Interval // in which the process's stacks were not known for a reason that is no stage of its life; in order of time
}

// lifeOf finds when the program's own code began and ended.
func lifeOf(s *Stacks, t *timeline.Thread) lifetime {
	begin, end := scriptLife(s, t)
	life := lifetime{begin: begin, end: end}
	if t != nil {
		life.unread = unreadTimes(s.Rec, t.PID)
	}
	if t != nil && t.Process > 0 && t.Process < len(s.Rec.Processes) {
		life.born, life.died = s.Rec.Processes[t.Process].Start, s.Rec.Processes[t.Process].End
	}
	return life
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

// unreadAt reports whether the process was unread at a time.
func (l lifetime) unreadAt(t timeline.Nanos) bool {
	i := l.unreadFrom(t)
	return i < len(l.unread) && l.unread[i].Start <= t
}

// unreadFrom is the first time in which the process was unread that ends after t.
func (l lifetime) unreadFrom(t timeline.Nanos) int {
	return sort.Search(len(l.unread), func(i int) bool { return l.unread[i].End > t })
}

// unreadTimes are the gaps of a process but for those that are a stage of its life:
// while it does not run Python yet, and while it no longer does. What another program
// did that it became, or what it did while nobody may read it, is not known to be its
// start or its exit.
func unreadTimes(rec *timeline.Recording, pid int) []timeline.Interval {
	var list []timeline.Interval
	for _, g := range rec.Gaps {
		if g.PID == pid && g.Start < g.End && !g.Reason.BeforePython() && g.Reason != timeline.GapExit {
			list = append(list, timeline.Between(g.Start, g.End))
		}
	}
	return timeline.Joined(list)
}

// of names a state as the stage has it.
func (p stage) of(st Activity) Activity {
	switch p {
	case starting:
		return Activity{Cause: StartUp}
	case beforeFirstWork:
		if vagueBeforeFirst[st.Cause] {
			st.Cause = SetUp
		}
	case ending:
		if vagueAtEnd[st.Cause] {
			st.Cause = Exit
		}
	}
	return st
}

// vagueBeforeFirst are the causes that only mean "set-up" before the first GPU work.
var vagueBeforeFirst = map[Cause]bool{
	Python: true, Native: true, Waiting: true, Lock: true, NoCPU: true, GIL: true, InOut: true, Around: true, Tracing: true, Unknown: true,
}

// vagueAtEnd are the causes that only mean "exit" when the script is over. A wait
// for a thread or a process stays what it is.
var vagueAtEnd = map[Cause]bool{
	Python: true, Native: true, Import: true, Waiting: true, Lock: true, NoCPU: true, GIL: true, InOut: true, Unknown: true,
}

// scriptLife finds when a script's own code began and ended, by the thread that
// ran it; the whole recording where there is no script. Of a script that was over
// before it was seen, all that was seen is how the interpreter started.
func scriptLife(s *Stacks, t *timeline.Thread) (begin, end timeline.Nanos) {
	begin, end = 0, s.Rec.Duration
	if s.Rec.Target.Cell != nil || t == nil {
		return begin, end
	}
	// What a worker was started for is no part of the main module, which it only imports.
	worker := t.Process > 0 && t.Process < len(s.Rec.Processes) && s.Rec.Processes[t.Process].IsWorker()
	inside := make(map[timeline.NodeID]bool)
	first, last := timeline.Nanos(-1), timeline.Nanos(-1)
	for _, span := range t.Spans {
		in, known := inside[span.Node]
		if !known {
			stack := s.Stack(span.Node)
			in = s.inScript(stack) || worker && s.ownest(stack) >= 0
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
			stack := s.Stack(span.Node)
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

// CodeEnd is when the own code of a process ended, by its main thread; the recording's end where that is not known.
func (s *Stacks) CodeEnd(process int) timeline.Nanos {
	for i := range s.Rec.Threads {
		if t := &s.Rec.Threads[i]; t.Process == process && t.Main {
			_, end := scriptLife(s, t)
			return end
		}
	}
	return s.Rec.Duration
}

// inScript reports whether the main module is on the stack: its outermost frame,
// below what finds it (runpy), is a module's.
func (s *Stacks) inScript(stack []timeline.FrameID) bool {
	for i := len(stack) - 1; i >= 0; i-- {
		f := s.Rec.Frames[stack[i]]
		if s.facts[stack[i]].means&origin.RunsMain != 0 {
			continue
		}
		return f.Function == "<module>" && s.Files.Of(f.File).Owner != origin.Interpreter
	}
	return false
}
