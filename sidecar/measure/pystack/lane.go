package pystack

import (
	"errors"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// register announces a thread to the sink at its first sample; false if it is left out.
func (s *session) register(t *thread) bool {
	if other := s.p.known(t); other != nil {
		return s.join(t, other)
	}
	if t.session.excluded = s.opts.Leave(t.nativeID); t.session.excluded {
		return false
	}
	s.p.identify(t)
	if s.descendant && t.tid != 0 {
		// Until a forked process has come out of fork, its thread has the id of its parent's.
		if _, gone := s.p.kernel.activity(t.tid); gone {
			return false
		}
	}
	main := s.p.isMain(t)
	t.session = threadSession{known: true, state: timeline.StateUnknown, ran: true, waitsAt: -1}
	t.session.leads = main || t.nativeID == s.opts.RunsCell
	if s.first && !s.opts.FromStart {
		t.session.cpuAtStart, _ = s.p.kernel.scheduled(t.tid)
	}
	runs := !s.descendant && (t.nativeID == s.opts.RunsCell || s.opts.RunsCell == 0 && main)
	t.session.id = s.sink.Thread(timeline.Thread{
		PID: s.p.pid, Process: s.place, NativeID: t.nativeID, Name: t.name, Main: main, RunsCell: runs, OnCPU: -1})
	if s.late && main {
		s.sink.Set(t.session.id, 0, timeline.RootNode, timeline.StateUnknown, false)
	}
	if s.first { // it may go on in a lane that was lost
		s.sink.UpdateThread(t.session.id, func(known *timeline.Thread) { t.session.cpuBefore = max(known.OnCPU, 0) })
	}
	return true
}

// identify finds a thread's id here and its name.
func (p *Process) identify(t *thread) {
	if first := t.first(); first != t {
		p.identify(first)
		t.tid, t.name, t.named = first.tid, first.name, first.named
		return
	}
	if t.tid == 0 {
		t.tid = p.kernel.tid(t.nativeID)
	}
	if t.named {
		return
	}
	if p.isMain(t) {
		t.name, t.named = "MainThread", true
	} else if name, err := p.reader.threadName(t); err == nil {
		t.name, t.named = name, true
	} else if t.name == "" {
		t.name = p.kernel.comm(t.tid)
		if t.interp != p.mainInterp {
			t.name += " (subinterpreter)"
		}
	}
}

// isMain recognises the process's first thread, whose id is the process's own.
func (p *Process) isMain(t *thread) bool {
	return t.tid == p.pid && t.tid != 0 && t.first().interp == p.mainInterp
}

func (s *session) end(t *thread) {
	if s.leaveLane(t) {
		return
	}
	if t.session.known {
		s.setState(t, call{state: timeline.StateUnknown})
		if !s.reportCPU(t) { // it has gone, with what it used since the last reading
			s.sink.UpdateThread(t.session.id, func(t *timeline.Thread) { t.OnCPUAtLeast = t.OnCPU >= 0 })
		}
		s.sink.End(t.session.id, s.sink.Since(s.at))
		t.session = threadSession{}
	}
}

// noteLast reports when the stacks were known for the last time.
func (s *session) noteLast() {
	good := s.sink.Since(s.good)
	if s.first {
		return // they never were
	}
	s.sink.Describe(func(r *timeline.Recording) {
		if s.place < len(r.Processes) {
			r.Processes[s.place].Stacks.Last = good
		}
	})
}

// lose ends the threads where the process has, and says else that nothing is known
// of them since the last good tick.
func (s *session) lose(err error) {
	good := s.sink.Since(s.good)
	for _, t := range s.p.threads {
		ts := &t.session
		switch {
		case !ts.known || t.isElsewhere():
		case errors.Is(err, ErrGone):
			s.sink.End(ts.id, max(good, s.sink.Since(s.changed)))
		default:
			s.sink.Lose(ts.id, good)
		}
		*ts = threadSession{}
	}
	switch {
	case errors.Is(err, ErrGone):
		gone := s.sink.Since(s.at)
		s.sink.Describe(func(r *timeline.Recording) {
			if s.place < len(r.Processes) {
				r.Processes[s.place].Stacks.Gone = gone
			}
		})
	case errors.Is(err, ErrPermission):
		s.sink.BeginGap(s.p.pid, good, timeline.GapPermission)
	case errors.Is(err, ErrStarting):
		s.sink.BeginGap(s.p.pid, good, timeline.GapExit)
	case errors.Is(err, ErrReplaced):
		s.sink.BeginGap(s.p.pid, good, timeline.GapExec)
	default:
		s.sink.BeginGap(s.p.pid, good, timeline.GapUnreadable)
	}
}

// took takes over what came of reading a thread's stack.
func (s *session) took(t *thread, v verdict, g *gilGroup) {
	if v == threadGone {
		s.listDue, s.listed = true, 0
		return
	}
	if !t.session.known && !s.register(t) {
		return
	}
	s.stats.Reads++
	t.session.ran, t.session.readAt = true, s.at
	before := t.session.node
	t.session.truncated, t.session.idle, t.session.again = v != stackWhole, false, v != stackWhole
	switch v {
	case stackLost:
		s.stats.Lost++
		t.session.node = s.base(t)
	case stackCut:
		s.stats.Truncated++
		t.session.node = s.node(t)
	default:
		t.session.node = s.node(t)
		s.tookLoop(t, g)
	}
	if t.session.node != before { // whatever it waited for, it does something else now
		t.session.probeAt, t.session.probeEvery, t.session.changedAt = 0, 0, s.at
		s.growth.moved(t, before)
	}
	s.readLoader(t, v)
	s.enter(t)
}

// tookLoop puts what a thread waits for that is idle in an event loop in the loop's place.
func (s *session) tookLoop(t *thread, g *gilGroup) {
	top := t.loopTop()
	if top == 0 || g.held == t.addr { // with the GIL the loop itself is at work
		return
	}
	if s.p.reader.readAwaiting(t, s.opts.Coroutine(t.nativeID)) {
		if t.hub() != nil {
			t.session.node = s.awaitingNode(s.base(t), &t.awaiting, false)
		} else {
			t.session.node = s.awaitingNode(s.below(t, top), &t.awaiting, true)
		}
		t.session.idle = true
	} else {
		t.session.again = t.session.leads
	}
}

// report writes a thread's stack and state to the sink if they have changed.
func (s *session) report(t *thread) {
	ts := &t.session
	if !ts.known || t.isElsewhere() {
		return
	}
	if ts.shared {
		s.takeLane(t)
	}
	now := reading{ts.node, ts.state, ts.truncated, ts.wait, ts.on}
	if ts.collecting && ts.node != timeline.RootNode { // at its exit the interpreter collects, too
		now.node = s.collection(ts.node)
	}
	if ts.reported && ts.now == now {
		return
	}
	begins := !ts.reported
	ts.now, ts.reported, ts.reportedAt = now, true, s.sink.Since(s.changed)
	s.sink.Set(ts.id, ts.reportedAt, now.node, now.state, now.truncated)
	s.sink.SetWait(ts.id, ts.reportedAt, now.wait, now.on)
	if begins { // what it uses from now on is weighed
		s.reportCPU(t)
	}
}

// updateCPU reports to the sink how long each thread that has been seen to run was on a
// CPU.
func (s *session) updateCPU() {
	for _, t := range s.p.threads {
		if t.session.ran {
			s.reportCPU(t)
		}
	}
}

// reportCPU reports to the sink how long a thread was on a CPU; false if that cannot be read.
func (s *session) reportCPU(t *thread) bool {
	ts := &t.session
	if !ts.known || ts.cpuAtStart < 0 || t.isElsewhere() {
		return false
	}
	s.p.identify(t) // its name, if it was too early before
	total, delayed := s.p.kernel.scheduled(t.tid)
	if total < 0 {
		return false
	}
	if ts.counted = delayed >= 0; ts.counted {
		s.sink.Account(ts.id, timeline.Scheduled{At: s.sink.Since(s.at), Ran: timeline.Nanos(total), Delayed: timeline.Nanos(delayed)})
	}
	ts.ran, ts.cpuAt = false, s.at
	name, leaf, onCPU := t.name, ts.leaf, ts.cpuBefore+timeline.Nanos(total-ts.cpuAtStart)
	s.sink.UpdateThread(ts.id, func(t *timeline.Thread) { t.Name, t.OnCPU, t.Leaf = name, onCPU, leaf })
	return true
}
