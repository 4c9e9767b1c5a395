package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// processes writes the target, the other processes of the recording and, where it does
// not list them, those of threads.
func (b *builder) processes() {
	root := slices.IndexFunc(b.rec.Processes, func(p timeline.Process) bool { return p.PID == b.rec.Target.PID })
	if root < 0 {
		b.addProcess(timeline.Process{PID: b.rec.Target.PID, CPU: -1})
	} else {
		b.addProcess(b.rec.Processes[root])
	}
	b.byPlace = make([]int, len(b.rec.Processes))
	for i, p := range b.rec.Processes {
		if i != root {
			b.byPlace[i] = b.addProcess(p)
		}
	}
	for _, t := range b.rec.Threads {
		if _, known := b.byPID[b.pid(t.PID)]; !known {
			b.addProcess(timeline.Process{PID: t.PID, CPU: -1})
		}
	}
	for i, p := range b.rec.Processes {
		at := b.byPlace[i]
		parent, known := b.byPID[p.Parent]
		if known = known && p.Parent != 0; p.ParentIndex >= 0 && p.ParentIndex < len(b.byPlace) && b.rec.Processes[p.ParentIndex].PID == p.Parent {
			parent, known = b.byPlace[p.ParentIndex], true
		}
		if known && parent != at {
			b.doc.Processes[at].Parent = &parent
		}
	}
	if b.program = b.process(b.rec.Target.PID); len(b.about.Runs) > 0 {
		t := &b.rec.Threads[b.about.Runs[0]]
		b.program = b.owner(t.Process, t.PID)
	}
	for _, t := range b.rec.Threads {
		if at := b.owner(t.Process, t.PID); len(t.Spans) > 0 {
			b.doc.Processes[at].Stacks = b.seen(at, t.Process)
		}
	}
	b.works()
}

// works writes what those that descend from the target spent their time with.
func (b *builder) works() {
	for i, did := range interpret.Accounts(b.rec) {
		if p := b.rec.Processes[i]; did.Alive > 0 && p.IsDescendant() {
			b.doc.Processes[b.byPlace[i]].Work = &Work{
				ThreadNS: int64(did.Alive), StartingNS: int64(did.Starting - did.Reloading), NoTaskNS: int64(did.Starved), PassingNS: int64(did.InLibrary),
			}
		}
	}
}

// addProcess returns its index. Of two with one pid, of which little is known, the
// later one is meant.
func (b *builder) addProcess(p timeline.Process) int {
	i := len(b.doc.Processes)
	if _, known := b.byPID[p.PID]; !known || p.PID != b.rec.Target.PID {
		b.byPID[p.PID] = i
	}
	out := Process{
		PID: max(p.PID, 0), Role: clean(string(p.Role)), RoleNumber: natural(p.Number), Rank: natural(p.Rank), Command: clean(p.Command),
		Text: clean(wording.Process(p)), StartNS: int64(min(p.Start, b.rec.Duration)), ExitCode: p.Exit,
	}
	if out.Role == "" {
		out.Role = string(timeline.RoleProcess)
	}
	if p.CPU >= 0 {
		out.CPUNS = pointer(amount(p.CPU))
	}
	if p.End > 0 {
		out.EndNS, out.EndReason = pointer(int64(min(p.End, b.rec.Duration))), pointer(endReason(p))
	}
	out.Exception = b.exceptionOf(p)
	out.Stacks = b.stacksOf(p, i == 0)
	b.doc.Processes = append(b.doc.Processes, out)
	return i
}

// stacksOf reports whether stacks were read, by what is said of it.
func (b *builder) stacksOf(p timeline.Process, target bool) Stacks {
	reason := p.Stacks.Reason
	switch {
	case reason == timeline.StacksRead:
		return Stacks{Read: true, IntervalNS: known(int64(p.Stacks.Interval), 0)}
	case target:
		return Stacks{Reason: pointer("none-seen"), Text: "no Python stack was seen"}
	case reason == timeline.StacksUnknown:
		return Stacks{Reason: pointer("not-recorded"), Text: "nobody tried to read its stacks"}
	}
	return Stacks{Reason: pointer(clean(string(reason))), Text: clean(wording.NoStacks(p.Stacks))}
}

// seen is what is said of a process some of whose stacks were read: of one that may not be
// read any more, as it has become another user's or has forbidden it, that they end before it.
func (b *builder) seen(at, place int) Stacks {
	stacks := Stacks{Read: true, IntervalNS: b.doc.Processes[at].Stacks.IntervalNS}
	if place >= 0 && place < len(b.rec.Processes) && b.byPlace[place] == at {
		if p := b.rec.Processes[place]; p.Stacks.Reason == timeline.StacksDenied {
			stacks.Reason, stacks.Text = pointer(string(p.Stacks.Reason)), clean("not to its end: "+wording.NoStacks(p.Stacks))
		}
	}
	return stacks
}

// exceptionOf is the exception that ended a process. Whoever caught it after all, or ended otherwise at exit, has another
// exit code than a program that an exception or Ctrl-C ended.
func (b *builder) exceptionOf(p timeline.Process) *Exception {
	if p.Raised == nil || p.Exit != nil && *p.Exit != wording.ExitRaised && p.Signal != wording.Interrupt {
		return nil
	}
	e := &Exception{Type: clean(p.Raised.Type), Message: clean(p.Raised.Message)}
	for _, at := range p.Raised.Stack {
		if at.Line > 0 && at.Line <= math.MaxInt32 && b.names.origins.Own(at.File) {
			b.wanted[place(at)] = true
			e.File, e.Line = pointer(b.codes.file(at.File)), pointer(at.Line)
			break
		}
	}
	return e
}

// Ended says how a process ended, where that was not well: "exit code 1", "ended by SIGKILL", "ended by ValueError at train.py:31".
func (v *View) Ended(p *Process) string {
	how := wording.End{Code: p.ExitCode, BySignal: p.EndReason != nil && *p.EndReason == endedBySignal}
	if e := p.Exception; e != nil {
		how.Exception = words.Clean(e.Type, words.MaxName)
		if e.Line != nil {
			how.Place = fmt.Sprintf("%s:%d", words.ShortFile(v.FileName(e.File)), *e.Line)
		}
	}
	return how.String()
}

// HowItEnded says how the program ended, where that was not well, and the message of the exception that ended it. A launcher
// that an exception of its own ended gives that of the process which it started, as does one that repeats that.
func (v *View) HowItEnded() (how, message string) {
	p := &v.Processes[v.Target().Process]
	how = v.Ended(p)
	if p.Exception == nil {
		return how, ""
	}
	if p.Exception.Line == nil || repeats[p.Exception.Type] {
		for i := range v.Processes {
			if c := &v.Processes[i]; c != p && c.Exception != nil && c.Exception.Line != nil {
				return c.Text + " " + v.Ended(c), c.Exception.Message
			}
		}
	}
	return how, p.Exception.Message
}

// repeats are the exceptions that only say that a process has raised one.
var repeats = map[string]bool{
	"ProcessRaisedException": true, // of torch.multiprocessing.spawn
	"ChildFailedError":       true, // of torchrun
}

// endedBySignal is the EndReason of a process that a signal ended.
const endedBySignal = "signal"

// endReason is the id of how a process ended.
func endReason(p timeline.Process) string {
	switch {
	case p.Signal != 0:
		return endedBySignal
	case p.Exit != nil:
		return "exit"
	}
	return "ended" // it is not known how
}

// natural is nil for a number that nobody counts with.
func natural(n *int) *int {
	if n == nil || *n < 0 {
		return nil
	}
	return n
}

// pid is a thread's process; one without is the target.
func (b *builder) pid(of int) int {
	if of == 0 {
		return b.rec.Target.PID
	}
	return of
}

// process is the index of a pid.
func (b *builder) process(pid int) int { return b.byPID[b.pid(pid)] }

// placed is the index of the process at a place of the recording.
func (b *builder) placed(place int) int {
	if place >= 0 && place < len(b.byPlace) {
		return b.byPlace[place]
	}
	return b.process(b.rec.Target.PID)
}

// owner is the index of the process at a place of the recording, if it has
// that pid.
func (b *builder) owner(place, pid int) int {
	if place >= 0 && place < len(b.byPlace) && b.rec.Processes[place].PID == pid {
		return b.byPlace[place]
	}
	return b.process(pid)
}

// ownerOf is the process of a thread.
func (b *builder) ownerOf(t *timeline.Thread) int { return b.owner(t.Process, t.PID) }
