package pystack

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

const (
	method       = "process_vm_readv, read twice"
	listEvery    = int64(25 * time.Millisecond)  // least time between two walks of the thread list
	upkeepEvery  = int64(200 * time.Millisecond) // pace, tracks, epoch of the code cache
	cpuEvery     = int64(time.Second)            // CPU time of the threads
	probeLeast   = int64(2 * time.Millisecond)   // between two questions to the kernel about one thread
	probeMost    = int64(2560 * time.Millisecond)
	probeIdle    = int64(320 * time.Millisecond) // the second question about a thread that does not run at the start
	probeRunning = int64(10 * time.Millisecond)  // the most while it is on a CPU
	probeRounds  = 4                             // threads looked at for a due question per tick
	maxNodeCache = 1 << 17                       // entries
)

// session is one recording in progress.
type session struct {
	p          *Process
	place      int  // of the process in Recording.Processes
	descendant bool // a Sampler's: it keeps the pace, and the recording's own figures are the target's
	begun      int64
	sink       Sink
	opts       SampleOptions
	clock      *clock
	stats      Stats

	nodes map[nodeKey]timeline.NodeID
	at    int64 // CLOCK_MONOTONIC of the tick in progress
	// changed is where the tick's changes are put: half-way from the tick before,
	// so that a late tick does not leave all of its delay to the state before it.
	changed int64
	first   bool  // first tick: every thread is read
	listed  int64 // when the thread list was last walked

	listDue   bool
	newcomers bool // threads were listed that have not been read yet
	maxProbes int  // questions to the kernel allowed per tick

	gilBuf  [gilSwitches + wordSize]byte
	others  []*thread // of readOthers, and its ranges and buffer
	bulk    []Range
	bulkBuf []byte
	turn    int

	gil gilTracks

	upkeepAt, cpuAt int64
	cpuStart        time.Duration
	cpuLast         time.Duration
	slowed          bool
}

type nodeKey struct {
	parent    timeline.NodeID
	object    *codeObject
	line      int32
	suspended bool
}

// Sample reads the stacks of all threads again and again and writes what changes
// to sink, until ctx is done (nil error) or the target is gone (ErrGone). It
// locks its goroutine to an operating system thread meanwhile.
func (p *Process) Sample(ctx context.Context, sink Sink, opts SampleOptions) (Stats, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := newSession(p, sink, opts)
	start := s.at
	err := s.run(ctx)
	s.finish(start)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrGone) {
		err = nil
	}
	return s.stats, err
}

// newSession readies the threads known from before for a recording.
func newSession(p *Process, sink Sink, opts SampleOptions) *session {
	opts = opts.withDefaults()
	return startSession(p, sink, opts, newClock(opts.Interval))
}

func startSession(p *Process, sink Sink, opts SampleOptions, clock *clock) *session {
	s := &session{p: p, sink: sink, opts: opts, clock: clock, first: true,
		nodes: make(map[nodeKey]timeline.NodeID), cpuStart: threadCPU()}
	s.cpuLast = s.cpuStart
	s.maxProbes = int(min(max(opts.Interval/time.Millisecond, 1), 64))
	for _, t := range p.threads {
		t.session, t.unsure = threadSession{}, true
		for i := range t.stack {
			t.stack[i].node = 0
		}
	}
	p.reader.codes.epoch++
	s.at = s.clock.now()
	s.begun, s.upkeepAt, s.cpuAt, s.gil.at = s.at, s.at, s.at, s.at
	return s
}

func (s *session) run(ctx context.Context) error {
	done := ctx.Done()
	for {
		if !s.clock.sleep(done) {
			return nil
		}
		if err := s.step(time.Now()); err != nil {
			return err
		}
		s.stats.Missed += s.clock.next(s.clock.at(s.p.reader.stamp))
	}
}

// step reads the stacks once.
func (s *session) step(now time.Time) error {
	s.p.lendLibrary()
	before := s.at
	s.at, s.p.reader.stamp = s.clock.at(now), now
	s.changed = before + (s.at-before)/2
	if err := s.tick(); err != nil {
		return err
	}
	s.stats.Samples++
	s.first = false
	if s.at-s.upkeepAt >= upkeepEvery {
		s.upkeep()
	}
	return nil
}

func (s *session) tick() error {
	if s.first || s.listDue && s.at-s.listed >= listEvery {
		if err := s.list(); err != nil {
			return err
		}
	}
	if s.newcomers && !s.first {
		if err := s.readNewcomers(); err != nil {
			return err
		}
	}
	for _, g := range s.p.gils {
		if err := s.tickGroup(g); err != nil {
			return err
		}
	}
	return nil
}

// list walks the thread list anew, and ends the threads that are gone.
func (s *session) list() error {
	s.listDue, s.listed = false, s.at
	before := s.p.threads
	if err := s.p.findThreads(); err != nil {
		if errors.Is(err, ErrStarting) { // finalized: wait for the end
			return nil
		}
		if errors.Is(err, errUnmapped) {
			return fmt.Errorf("%w, or runs another program now", ErrGone)
		}
		return err
	}
	for addr, t := range before {
		if s.p.threads[addr] != t {
			s.end(t)
			s.p.kernel.forget(t.tid)
		}
	}
	for addr, t := range s.p.threads {
		s.newcomers = s.newcomers || before[addr] != t
	}
	for _, g := range s.p.gils {
		if h := g.holder; h != nil && s.p.threads[h.addr] != h {
			g.holder = nil
		}
	}
	return nil
}

// readNewcomers reads the threads that are new in the list. One that waits ever
// since it was started takes the GIL no more, so that nothing else would show it.
func (s *session) readNewcomers() error {
	s.newcomers = false
	for _, t := range s.p.threads {
		if !t.session.known {
			if err := s.read(t, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish tells the sink what is known only at the end.
func (s *session) finish(start int64) {
	s.stats.Wall = time.Duration(s.clock.now() - start)
	s.stats.CPU = threadCPU() - s.cpuStart
	s.stats.Calls = s.p.reader.calls
	s.stats.Interval = s.clock.interval
	s.p.reader.calls = 0
	s.gil.add(s, s.clock.now())
	s.updateCPU(true)
	s.describe()
	for _, t := range s.p.threads { // it may end before the next recording, with nobody to see it
		s.p.kernel.forget(t.tid)
	}
}

func (s *session) describe() {
	stats, interval := s.stats, s.opts.Interval
	if s.descendant {
		s.describeChild()
		return
	}
	s.sink.Describe(func(r *timeline.Recording) {
		r.Sampling.Method = method
		r.Sampling.Interval = interval
		r.Sampling.Samples = stats.Samples
		r.Sampling.Lost = stats.Lost
		r.Sampling.Truncated = stats.Truncated
		r.Sampling.CPU = timeline.Nanos(stats.CPU)
	})
}

// upkeep does what is due a few times a second.
func (s *session) upkeep() {
	if !s.descendant {
		s.keepPace()
	}
	s.upkeepAt = s.at
	s.p.reader.codes.epoch++
	s.gil.add(s, s.at)
	if s.at-s.cpuAt >= cpuEvery {
		s.cpuAt = s.at
		s.updateCPU(false)
		s.describe()
	}
	if len(s.nodes) > maxNodeCache {
		clear(s.nodes)
	}
}

// keepPace adapts the interval to what the sampling costs.
func (s *session) keepPace() {
	cpu := threadCPU()
	wall := time.Duration(s.at - s.upkeepAt)
	pace := pace{asked: s.opts.Interval, budget: s.opts.Budget}
	s.clock.interval = pace.adjust(s.clock.interval, wall, cpu-s.cpuLast)
	s.cpuLast = cpu
	s.stats.CPU = cpu - s.cpuStart
	if s.clock.interval > s.opts.Interval && !s.slowed {
		s.slowed = true
		s.sink.Note("stack sampling", fmt.Sprintf(
			"slower than the %v asked for, to stay within %.0f %% of a core", s.opts.Interval, 100*s.opts.Budget))
	}
}

// register tells the sink of a thread at its first sample; false if it is left out.
func (s *session) register(t *thread) bool {
	if t.session.left = s.opts.Leave(t.nativeID); t.session.left {
		return false
	}
	s.p.identify(t)
	main := s.p.isMain(t)
	t.session = threadSession{known: true, state: timeline.StateOff, ran: true}
	if s.first {
		t.session.cpuAtStart = s.p.kernel.cpuTime(t.tid)
	}
	runs := !s.descendant && (t.nativeID == s.opts.RunsCell || s.opts.RunsCell == 0 && main)
	t.session.id = s.sink.Thread(timeline.Thread{
		PID: s.p.pid, Process: s.place, NativeID: t.nativeID, Name: t.name, Main: main, RunsCell: runs, OnCPU: -1})
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
		s.setState(t, call{state: timeline.StateOff})
		s.sink.End(t.session.id, s.sink.Since(s.at))
		t.session = threadSession{}
	}
}

// took takes over what came of reading a thread's stack.
func (s *session) took(t *thread, v verdict) {
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
		t.session.node = s.node(t.stack)
	default:
		t.session.node = s.node(t.stack)
		if top := t.loopTop(); top > 0 && s.p.reader.readAwaiting(t, s.opts.Coroutine(t.nativeID)) {
			t.session.node = s.suspendedNode(t.stack[top-1].node, t.awaiting.frames)
			t.session.idle = true
		}
	}
	if t.session.node != before { // whatever it waited for, it does something else now
		t.session.probeAt, t.session.probeEvery, t.session.changedAt = 0, 0, s.at
	}
}

// node interns a stack. Frames that are the same as in the last sample still
// carry their node.
func (s *session) node(stack []frame) timeline.NodeID {
	parent, same := timeline.RootNode, true
	for i := range stack {
		f := &stack[i]
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

// suspendedNode interns the frames of coroutines that await above the stack parent.
func (s *session) suspendedNode(parent timeline.NodeID, frames []frame) timeline.NodeID {
	for i := range frames {
		parent = s.child(parent, &frames[i], true)
	}
	return parent
}

func (s *session) child(parent timeline.NodeID, f *frame, suspended bool) timeline.NodeID {
	key := nodeKey{parent, f.object, f.object.line(f.index), suspended}
	node, ok := s.nodes[key]
	if !ok {
		node = s.sink.Child(parent, s.sink.Frame(timeline.Frame{
			Function: f.object.function, File: f.object.file,
			Line: int(key.line), FirstLine: int(f.object.firstLine), Suspended: suspended}))
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
	ts.now, ts.told = now, true
	at := s.sink.Since(s.changed)
	s.sink.Set(ts.id, at, now.node, now.state, now.truncated)
	s.sink.SetWait(ts.id, at, now.wait)
}

// updateCPU tells the sink how long each thread was on a CPU; unless all are
// asked for, only of those that have been seen to run.
func (s *session) updateCPU(all bool) {
	for _, t := range s.p.threads {
		ts := &t.session
		if !ts.known || ts.cpuAtStart < 0 || !ts.ran && !all {
			continue
		}
		ts.ran = false
		s.p.identify(t) // its name, if it was too early before
		total := s.p.kernel.cpuTime(t.tid)
		if total < 0 {
			continue
		}
		name, leaf, onCPU := t.name, ts.leaf, timeline.Nanos(total-ts.cpuAtStart)
		s.sink.UpdateThread(ts.id, func(t *timeline.Thread) { t.Name, t.OnCPU, t.Leaf = name, onCPU, leaf })
	}
}
