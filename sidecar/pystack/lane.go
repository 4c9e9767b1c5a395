package pystack

import (
	"errors"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// register tells the sink of a thread at its first sample; false if it is left out.
func (s *session) register(t *thread) bool {
	if t.session.left = s.opts.Leave(t.nativeID); t.session.left {
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
	t.session = threadSession{known: true, state: timeline.StateUnknown, ran: true}
	if s.first && !s.opts.FromStart {
		t.session.cpuAtStart = s.p.kernel.cpuTime(t.tid)
	}
	runs := !s.descendant && (t.nativeID == s.opts.RunsCell || s.opts.RunsCell == 0 && main)
	t.session.id = s.sink.Thread(timeline.Thread{
		PID: s.p.pid, Process: s.place, NativeID: t.nativeID, Name: t.name, Main: main, RunsCell: runs, OnCPU: -1})
	if s.first { // it may go on in a lane that was lost
		s.sink.UpdateThread(t.session.id, func(known *timeline.Thread) { t.session.cpuBefore = max(known.OnCPU, 0) })
	}
	return true
}

// identify finds a thread's id here and its name.
func (p *Process) identify(t *thread) {
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

// isMain tells the process's first thread, whose id is the process's own. It may
// have a second thread state, in a subinterpreter; that one is not meant.
func (p *Process) isMain(t *thread) bool {
	return t.tid == p.pid && t.tid != 0 && t.interp == p.mainInterp
}

func (s *session) end(t *thread) {
	if t.session.known {
		s.setState(t, call{state: timeline.StateUnknown})
		if !s.tellCPU(t) { // it has gone, with what it used since the last reading
			s.sink.UpdateThread(t.session.id, func(t *timeline.Thread) { t.OnCPUAtLeast = t.OnCPU >= 0 })
		}
		s.sink.End(t.session.id, s.sink.Since(s.at))
		t.session = threadSession{}
	}
}

// lose ends the threads where the process has, and says else that nothing is known
// of them since the last good tick.
func (s *session) lose(err error) {
	good := s.sink.Since(s.good)
	for _, t := range s.p.threads {
		ts := &t.session
		switch {
		case !ts.known:
		case errors.Is(err, ErrGone):
			s.sink.End(ts.id, max(good, s.sink.Since(s.changed)))
		default:
			s.sink.Lose(ts.id, good)
		}
		*ts = threadSession{}
	}
	switch {
	case errors.Is(err, ErrGone):
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
	t.session.ran = true
	before := t.session.node
	t.session.truncated, t.session.idle = v != stackWhole, false
	switch v {
	case stackLost:
		s.stats.Lost++
		t.session.node = timeline.RootNode
	case stackCut:
		s.stats.Truncated++
		t.session.node = s.node(t)
	default:
		t.session.node = s.node(t)
		// With the GIL the loop itself is at work.
		if top := t.loopTop(); top > 0 && g.held != t.addr && s.p.reader.readAwaiting(t, s.opts.Coroutine(t.nativeID)) {
			t.session.node = s.suspendedNode(s.below(t, top), t.awaiting.frames)
			t.session.idle = true
		}
	}
	if t.session.node != before { // whatever it waited for, it does something else now
		t.session.probeAt, t.session.probeEvery, t.session.changedAt = 0, 0, s.at
	}
}

// Of a stack of more frames than keptWhole the outermost and the innermost are kept:
// each recursion goes its own way, and the tree of stacks is bounded.
const (
	keptWhole = 400
	keptEnd   = 150
)

// node interns a stack. Frames that are the same as in the last sample still
// carry their node.
func (s *session) node(t *thread) timeline.NodeID {
	stack := t.stack
	gap := slices.IndexFunc(stack, func(f frame) bool { return f.elided })
	if gap < 0 && len(stack) <= keptWhole {
		return s.nodeAbove(timeline.RootNode, stack)
	}
	low, high := min(keptEnd, len(stack)), max(len(stack)-keptEnd, 0)
	elided := high - low
	if gap >= 0 {
		low, high = min(low, gap), max(high, gap)
		elided = high - low + t.framesElided()
	}
	parent := s.elision(s.nodeAbove(timeline.RootNode, stack[:low]), stack[low:high], stack[high:], elided)
	for i := low; i < len(stack); i++ {
		stack[i].node = 0 // they stand elsewhere in the next stack
	}
	parent = s.nodeAbove(parent, stack[high:])
	for i := high; i < len(stack)-1; i++ {
		stack[i].node = 0
	}
	return parent
}

// nodeAbove interns frames above a stack.
func (s *session) nodeAbove(parent timeline.NodeID, frames []frame) timeline.NodeID {
	same := true
	for i := range frames {
		f := &frames[i]
		if same && f.node != 0 {
			parent = f.node
			continue
		}
		same = false
		f.node = s.child(parent, f, false)
		parent = f.node
	}
	return parent
}

// framesElided estimates how many frames of a deep recursion were not read.
func (t *thread) framesElided() int {
	sum := uint64(0)
	for i := range t.stack {
		sum += t.stack[i].object.FrameLen
	}
	return int(t.plan.elided() * uint64(len(t.stack)) / max(sum, 1))
}

// elision interns what stands for the frames that are left out of a stack: the
// function that is the most frequent among those between, or above them, and a
// number of one digit.
func (s *session) elision(parent timeline.NodeID, between, above []frame, count int) timeline.NodeID {
	if len(between) == 0 {
		between = above[:min(len(above), keptEnd/2)]
	}
	counts := make(map[*codeObject]int)
	var most *codeObject
	for i := 0; i < len(between); i += 1 + len(between)/keptEnd {
		object := between[i].object
		if counts[object]++; most == nil || counts[object] > counts[most] {
			most = object
		}
	}
	if most == nil {
		return parent
	}
	digit := 1
	for count/digit >= 10 {
		digit *= 10
	}
	return s.sink.Child(parent, s.sink.Frame(timeline.Frame{
		Function: most.Function, File: most.File, FirstLine: int(most.FirstLine), Elided: max(count/digit*digit, 1)}))
}

// below is the node of a stack's first frames.
func (s *session) below(t *thread, top int) timeline.NodeID {
	if node := t.stack[top-1].node; node != 0 {
		return node
	}
	return s.nodeAbove(timeline.RootNode, t.stack[:top])
}

// suspendedNode interns the frames of coroutines that await above the stack parent.
func (s *session) suspendedNode(parent timeline.NodeID, frames []frame) timeline.NodeID {
	for i := range frames {
		parent = s.child(parent, &frames[i], true)
	}
	return parent
}

func (s *session) child(parent timeline.NodeID, f *frame, suspended bool) timeline.NodeID {
	key := nodeKey{parent, f.object, f.object.Line(f.index), suspended}
	node, ok := s.nodes[key]
	if !ok {
		node = s.sink.Child(parent, s.sink.Frame(timeline.Frame{
			Function: f.object.Function, File: f.object.File,
			Line: int(key.line), FirstLine: int(f.object.FirstLine), Suspended: suspended}))
		s.nodes[key] = node
	}
	return node
}

// tell writes a thread's stack and state to the sink if they have changed.
func (s *session) tell(t *thread) {
	ts := &t.session
	if !ts.known {
		return
	}
	now := reading{ts.node, ts.state, ts.truncated, ts.wait}
	if ts.told && ts.now == now {
		return
	}
	ts.now, ts.told, ts.toldAt = now, true, s.sink.Since(s.changed)
	s.sink.Set(ts.id, ts.toldAt, now.node, now.state, now.truncated)
	s.sink.SetWait(ts.id, ts.toldAt, now.wait)
}

// updateCPU tells the sink how long each thread that has been seen to run was on a
// CPU.
func (s *session) updateCPU() {
	for _, t := range s.p.threads {
		if t.session.ran {
			s.tellCPU(t)
		}
	}
}

// tellCPU tells the sink how long a thread was on a CPU; false if that cannot be read.
func (s *session) tellCPU(t *thread) bool {
	ts := &t.session
	if !ts.known || ts.cpuAtStart < 0 {
		return false
	}
	s.p.identify(t) // its name, if it was too early before
	total := s.p.kernel.cpuTime(t.tid)
	if total < 0 {
		return false
	}
	ts.ran, ts.cpuAt = false, s.at
	name, leaf, onCPU := t.name, ts.leaf, ts.cpuBefore+timeline.Nanos(total-ts.cpuAtStart)
	s.sink.UpdateThread(ts.id, func(t *timeline.Thread) { t.Name, t.OnCPU, t.Leaf = name, onCPU, leaf })
	return true
}
