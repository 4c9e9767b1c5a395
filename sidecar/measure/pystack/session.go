package pystack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	method       = timeline.MethodOutside
	listEvery    = int64(25 * time.Millisecond)  // least time between two walks of the thread list
	upkeepEvery  = int64(200 * time.Millisecond) // pace, tracks, epoch of the code cache
	slowEvery    = int64(50 * time.Millisecond)  // the pace where it costs too much: many an import is over before the upkeep
	cpuEvery     = int64(time.Second)            // CPU time of the threads
	holderEvery  = int64(20 * time.Millisecond)  // likewise, of one that holds a GIL: little is missing if it ends
	probeLeast   = int64(2 * time.Millisecond)   // between two questions to the kernel about one thread
	probeMost    = int64(2560 * time.Millisecond)
	probeIdle    = int64(320 * time.Millisecond) // the second question about a thread that does not run at the start
	probeRunning = int64(10 * time.Millisecond)  // the most while it is on a CPU
	probeLock    = int64(8 * time.Millisecond)   // between two questions who has the locks that are waited for
	probeWaiter  = int64(64 * time.Millisecond)  // the most while it waits for a lock that somebody is known to have
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
	// changed is where the tick's changes are put: half-way from the tick before, so that a
	// tick that is a little late does not leave all of its delay to the state before it.
	changed int64
	lanes   map[timeline.ThreadID]*thread // that are shared: which state has reported last
	first   bool                          // first tick: every thread is read
	late    bool                          // the first tick, after a pause since the recording began
	listed  int64                         // when the thread list was last walked

	listDue   bool
	head      uint64 // the first of the interpreters
	headAt    int64  // when that was read
	newcomers bool   // threads were listed that have not been read yet
	maxProbes int    // questions to the kernel allowed per tick

	gilBuf  [cpython.GILSwitches + cpython.WordSize]byte
	others  []*thread // of readOthers, and its ranges and buffer
	bulk    []Range
	bulkBuf []byte

	gil     gilTracks
	growth  growth
	blocked blocked
	locks   locks
	queues  bool // of a loader's workers were found

	upkeepAt, cpuAt int64
	pacedAt         int64 // when the interval was last looked at
	cpuStart        time.Duration
	cpuLast         time.Duration
	slow            time.Duration // for so long it was slower than asked for
	slowed          bool          // and has reported it
	changes         []timeline.IntervalChange

	waited    map[timeline.NodeID]struct{} // stacks that a thread was found waiting with
	computing int                          // threads that are shown to compute, or to want a CPU
	stirred   bool                         // at the tick in progress somebody took a GIL, or went on
	rest      rest
	busy      busyness
	asked     time.Duration // the interval, if that costs no more than it may

	good     int64 // CLOCK_MONOTONIC of the last tick at which the stacks could be read
	halt     standstill
	reported Stats // to the sink
}

type nodeKey struct {
	parent    timeline.NodeID
	object    *codeObject
	line      int32
	suspended bool
}

// Sample reads the stacks of all threads again and again and writes what changes
// to sink, until ctx is done (nil error) or the target is gone (ErrGone). It
// may lock its goroutine to an operating system thread meanwhile.
func (p *Process) Sample(ctx context.Context, sink Sink, opts SampleOptions) (Stats, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	worker := newWorker(true)
	defer worker.end()
	s := newSession(p, sink, opts, worker)
	start := s.at
	err := s.run(ctx)
	s.finish(start)
	if err != nil {
		s.lose(err)
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrGone) {
		err = nil
	}
	return s.stats, err
}

// newSession readies the threads known from before for a recording.
func newSession(p *Process, sink Sink, opts SampleOptions, worker *worker) *session {
	opts = opts.withDefaults()
	c := newClock(worker, opts.Interval)
	return startSession(p, sink, opts, c)
}

func startSession(p *Process, sink Sink, opts SampleOptions, clock *clock) *session {
	s := &session{p: p, sink: sink, opts: opts, clock: clock, first: true, busy: 1, asked: opts.Interval,
		nodes: make(map[nodeKey]timeline.NodeID), waited: make(map[timeline.NodeID]struct{}), lanes: make(map[timeline.ThreadID]*thread), cpuStart: clock.worker.cpu()}
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
	s.good = s.at
	s.begun, s.upkeepAt, s.pacedAt, s.cpuAt, s.gil.at = s.at, s.at, s.at, s.at, s.at
	return s
}

func (s *session) run(ctx context.Context) error {
	worker := s.clock.worker
	for {
		if !s.clock.sleep(ctx) {
			return nil
		}
		if err := s.step(time.Now()); err != nil {
			return err
		}
		if s.halt.stopped {
			s.clock.next(s.clock.now()) // nothing was missed
			continue
		}
		if worker.due(s.at) {
			worker.away.leave(s.cpus(nil))
		}
		s.clock.rest = time.Duration(max(s.rest.until-s.at, 0))
		missed := s.clock.next(s.clock.at(s.p.reader.times.end))
		worker.missed(missed, s.at)
		if !s.rest.whole {
			s.stats.Missed += missed
		}
	}
}

// step reads the stacks once, unless the process is stopped.
func (s *session) step(now time.Time) error {
	s.p.lendLibrary()
	before := s.at
	s.at, s.p.reader.times.end = s.clock.at(now), now
	s.changed = before + (s.at-before)/2
	stopped := s.halt.stopped
	if s.standsStill() {
		return nil
	}
	s.stirred = false
	s.wake()
	s.beginLate()
	late := !stopped && s.isLate(before)
	if late {
		s.leaveOut(before)
	}
	if err := s.tick(); err != nil {
		return s.p.because(err)
	}
	if late {
		s.reportAll()
	}
	s.grow()
	ticks := s.settle(before)
	if s.first {
		s.sink.EndGap(s.p.pid, s.sink.Since(s.at))
		s.sink.EndLost(s.p.pid, s.sink.Since(s.at))
	}
	s.good = s.at
	s.stats.Samples += ticks
	s.gil.ticks += (ticks - 1) * int64(len(s.p.gils))
	s.first = false
	if s.at-s.upkeepAt >= upkeepEvery {
		s.upkeep()
	} else if s.at-s.pacedAt >= slowEvery && !s.descendant {
		s.keepPace(s.clock.interval)
	}
	return nil
}

func (s *session) tick() error {
	if s.at-s.headAt >= listEvery {
		s.headAt = s.at
		s.listDue = s.newInterpreter() || s.listDue
	}
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
	s.lookAtLocks()
	s.readQueues()
	return nil
}

// list walks the thread list anew, and ends the threads that are gone.
func (s *session) list() error {
	s.listDue, s.listed = false, s.at
	before := s.p.threads
	if err := s.p.findThreads(); errors.Is(err, cpython.ErrUnmapped) {
		return ErrReplaced
	} else if err != nil {
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
	for _, g := range s.p.gils {
		for _, t := range g.threads {
			if t.session.known {
				continue
			}
			if err := s.look(t, g, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish reports to the sink what is known only at the end.
func (s *session) finish(start int64) {
	s.stats.Wall = time.Duration(s.clock.now() - start)
	s.stats.CPU = s.clock.worker.cpu() - s.cpuStart
	s.stats.Calls = s.p.reader.mem.calls
	s.stats.Interval = s.clock.interval
	s.p.reader.mem.calls = 0
	s.gil.add(s, s.clock.now())
	if s.clock.interval > s.asked {
		s.slow += time.Duration(s.clock.now() - s.pacedAt)
	}
	if s.stats.Wall > time.Second {
		s.noteSlow(s.stats.Wall)
	}
	for _, t := range s.p.threads {
		s.reportCPU(t)
	}
	s.describe()
	s.noteLast()
	s.finishGrowth()
	for _, t := range s.p.threads { // it may end before the next recording, with nobody to see it
		s.p.kernel.forget(t.tid)
	}
	s.p.kernel.forget(0)
}

func (s *session) describe() {
	if s.descendant {
		s.describeChild()
		return
	}
	stats, changes := s.stats, slices.Clone(s.changes)
	s.changes = nil
	reported := s.reported
	s.reported = stats
	s.sink.Describe(func(r *timeline.Recording) {
		r.Sampling.Method = method
		// What was sampled before, of a process that was another program, counts too.
		r.Sampling.Samples += stats.Samples - reported.Samples
		r.Sampling.Missed += stats.Missed - reported.Missed
		r.Sampling.Reads += stats.Reads - reported.Reads
		r.Sampling.Lost += stats.Lost - reported.Lost
		r.Sampling.Truncated += stats.Truncated - reported.Truncated
		r.Sampling.CPU = max(r.Sampling.CPU, 0) + timeline.Nanos(stats.CPU-reported.CPU)
		r.Sampling.Changes = append(r.Sampling.Changes, changes...)
	})
}

// upkeep does what is due a few times a second.
func (s *session) upkeep() {
	if !s.descendant {
		s.share()
		s.keepPace(s.asked)
	}
	s.upkeepAt = s.at
	s.p.reader.codes.epoch++
	s.gil.add(s, s.at)
	if s.at-s.cpuAt >= cpuEvery {
		s.cpuAt = s.at
		s.updateCPU()
		s.describe()
	}
	if len(s.nodes) > maxNodeCache {
		clear(s.nodes)
	}
}

// share asks for the interval that is due while the target leaves its share to its descendants, or takes it back. One that trains with a
// loader's workers keeps it, though it mostly waits, for a GPU: what it does in between is what matters.
func (s *session) share() {
	busy := s.busy
	if s.queues {
		busy = 1
	}
	if s.opts.Sharing.leave(busy) {
		s.asked = max(s.opts.Interval, seldom)
	} else if s.asked > s.opts.Interval {
		s.asked = s.opts.Interval
		s.setInterval(s.asked)
	}
}

// keepPace adapts the interval to what the sampling costs, and keeps it at least.
func (s *session) keepPace(least time.Duration) {
	cpu := s.clock.worker.cpu()
	wall := time.Duration(s.at - s.pacedAt)
	if s.clock.interval > s.asked {
		s.slow += wall
	}
	pace := pace{asked: s.asked, budget: limit{s.opts.Budget, takenByOne}.now(time.Duration(s.at-s.begun), s.opts.Spare)}
	s.setInterval(max(pace.adjust(s.clock.interval, wall, cpu-s.cpuLast), least))
	s.cpuLast, s.pacedAt = cpu, s.at
	s.clock.worker.suit(time.Duration(s.at-s.begun), s.opts.Spare)
	s.stats.CPU = cpu - s.cpuStart
	if so := time.Duration(s.at - s.begun); so > time.Second {
		s.noteSlow(so)
	}
}

func (s *session) setInterval(to time.Duration) {
	if to != s.clock.interval {
		s.clock.interval = to
		s.changes = append(s.changes, timeline.IntervalChange{From: s.sink.Since(s.at), Interval: to})
	}
}

// noteSlow notes that the sampling was slower than asked for, if it was so for a tenth of the
// time so far: while modules are imported it is for a moment, in nearly every program.
func (s *session) noteSlow(so time.Duration) {
	if s.slowed || s.descendant || s.slow == 0 || s.slow < so/10 {
		return
	}
	s.slowed = true
	// What it cost is the report's figure; the budget beside it would be another.
	s.sink.Note(timeline.NoteSlower, "stack sampling", fmt.Sprintf("slower than one every %s, which would cost too much CPU time", timeline.IntervalText(s.opts.Interval)))
}
