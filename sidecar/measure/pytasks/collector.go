package pytasks

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/alarm"
	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/spare"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Sink takes what is read; a *timeline.Builder is one.
type Sink interface {
	Since(monotonic int64) timeline.Nanos
	Frame(timeline.Frame) timeline.FrameID
	Child(parent timeline.NodeID, f timeline.FrameID) timeline.NodeID
	AddAwaits(process int, from, to timeline.Nanos, kind timeline.AwaitKind, tasks, begun map[timeline.NodeID]int)
	Note(id timeline.NoteID, what, reason string)
	Describe(func(*timeline.Recording))
}

var _ Sink = (*timeline.Builder)(nil)

// Source is a process whose tasks are read.
type Source struct {
	Process int              // its index in Recording.Processes
	Of      *pystack.Process // attached to it
}

// Collector writes where the tasks of processes wait into a Sink.
type Collector struct {
	// Sources are the processes now; what it returns counts until the next call. A process that runs another program is another
	// Source.
	Sources func() []Source
	Spare   spare.CPUs
}

// round is one collection in progress, of all processes.
type round struct {
	c       *Collector
	sink    Sink
	nodes   map[nodeKey]timeline.NodeID
	sources []Source  // at the last tick …
	series  []*series // … and theirs
	busy    int       // of them that have tasks …
	idle    int       // … and that have none
	purse   purse

	begun     int64 // CLOCK_MONOTONIC of the first tick
	reading   timeline.TaskReading
	accounted int64 // when the recording's account was brought up to date
	shown     timeline.TaskReading
}

// series is the tasks of one process.
type series struct {
	r       *round
	process int // its index in Recording.Processes
	reader  *Reader
	next    int64 // CLOCK_MONOTONIC of the next look
	purse   purse // its part of the budget, which others leave to it

	at      int64            // CLOCK_MONOTONIC of the last read
	from    int64            // since when the tasks are as now: half-way from the read before
	now     []where          // tasks by where they wait, for each timeline.AwaitKind
	last    Snapshot         // that now is of
	awaits  map[uint64]await // by task: the one that it was in at the last read
	known   bool             // there was a read, so that now means something
	cpu     int64            // CPU time of the process at the last read; -1: not known
	ran     spell            // when it has run since, as far as the looks at its CPU time show
	due     int64            // CLOCK_MONOTONIC before which it is not to be read
	sum     uint64           // of the last snapshot
	quiet   int              // reads in a row that were equal
	misses  int              // looks in a row that found no asyncio
	active  int64            // CLOCK_MONOTONIC of the last look at which the process had run
	changed int64            // since when the reads are equal
}

// where has tasks by their stacks: how many there are, and how many awaits have begun since the read before.
type where struct{ tasks, begun map[timeline.NodeID]int }

// await is what tells one await of a task from the next, where anything does: the memory of a future is soon used
// again, but no two sleeps end at the same time.
type await struct {
	node   timeline.NodeID
	waiter uint64
	wake   int64
	turns  uint32
}

func awaitOf(t *Task, node timeline.NodeID) await {
	if t.Turns > 0 { // and a deadline of trio's that has passed is taken off before the task goes on
		return await{node: node, turns: t.Turns}
	}
	return await{node: node, waiter: t.Waiter, wake: t.Wake}
}

// kindOfAwait is what a task that does not run waits for.
func kindOfAwait(t *Task) timeline.AwaitKind {
	switch {
	case t.State != Waiting:
		return timeline.AwaitsTurn
	case t.ForTasks:
		return timeline.AwaitsTasks
	}
	return timeline.AwaitsOther
}

type nodeKey struct {
	parent timeline.NodeID
	code   *cpython.Code
	line   int32
}

// Collect reads until ctx is done.
func (c *Collector) Collect(ctx context.Context, sink Sink) { c.begin(sink).collect(ctx) }

func (c *Collector) begin(sink Sink) *round {
	return &round{c: c, sink: sink, begun: timeline.Monotonic(), nodes: make(map[nodeKey]timeline.NodeID)}
}

func (r *round) collect(ctx context.Context) {
	wake := alarm.New(0)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			r.finish()
			return
		case <-wake.C:
			wake.Reset(r.tick())
		}
	}
}

// tick looks at the processes whose time it is, and returns after how long to do so again. Its goroutine has a thread of its own
// only meanwhile: a thread that belongs to one that waits has to be woken up by another one.
func (r *round) tick() (again time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := timeline.ThreadCPU()
	r.follow()
	at := timeline.Monotonic()
	come := lookEvery // it is not known that any process does
	if len(r.series) > 1 {
		come = grid
	}
	next := at + int64(r.seldom(come))
	for _, s := range r.series {
		if s.next <= at+int64(together) {
			pause := s.look()
			if s.next = timeline.Monotonic() + int64(pause); pause >= grid && !s.some() { // many at one time
				s.next += int64(grid) - s.next%int64(grid)
			}
		}
		next = min(next, s.next)
	}
	at = timeline.Monotonic()
	r.reading.CPU += timeline.Nanos(timeline.ThreadCPU() - before)
	if r.accounted+int64(describeEvery) < at {
		r.accounted = at
		r.describe()
	}
	return time.Duration(max(next-at, int64(together)))
}

// follow has a series for each process that there is, and none of others.
func (r *round) follow() {
	if now := r.c.Sources(); !slices.Equal(now, r.sources) {
		before := make(map[Source]*series, len(r.series))
		for i, source := range r.sources {
			before[source] = r.series[i]
		}
		r.sources, r.series = append(r.sources[:0], now...), nil
		for _, source := range r.sources {
			s := before[source]
			if delete(before, source); s == nil {
				s = r.begin(source.Process)
				s.reader = New(source.Of.Interpreter())
			}
			r.series = append(r.series, s)
		}
		for _, gone := range before {
			gone.lose()
		}
	}
	r.busy, r.idle = 0, 0
	for _, s := range r.series {
		if s.some() {
			r.busy++
		} else {
			r.idle++
		}
	}
}

func (r *round) begin(process int) *series {
	s := &series{r: r, process: process, awaits: make(map[uint64]await), cpu: -1, purse: purse{at: timeline.Monotonic()}}
	for range timeline.AwaitKinds() {
		s.now = append(s.now, where{make(map[timeline.NodeID]int), make(map[timeline.NodeID]int)})
	}
	return s
}

// look reads if it is time, and returns after how long to look again.
func (s *series) look() time.Duration {
	at := timeline.Monotonic()
	cpu := processCPU(s.reader.pid)
	if cpu >= 0 && cpu == s.cpu { // nothing has run since, but sleeps end
		switch before := s.at; {
		case !s.known:
			if at-s.active > int64(sleeps) {
				s.misses = 0 // a worker that has waited for a task may begin a loop
			}
		case s.last.Wake(at):
			s.take(&s.last, at)
		default:
			s.at = max(before, at)
		}
		s.ran = spell{cpu: cpu, looked: at}
		return s.poll()
	}
	s.active = at
	s.ran.look(cpu, at)
	// What others do not use is left to who needs more than its share.
	due := max(s.due, min(s.purse.due(s.share()), s.r.purse.due(s.r.budget())))
	switch {
	case at >= due:
	case !s.some():
		return max(time.Duration(due-at), readEvery)
	default:
		return s.wait(time.Duration(due-at), at)
	}
	before := timeline.ThreadCPU()
	snapshot, err := s.reader.Read()
	if err == nil {
		end := timeline.Monotonic()
		s.count(&snapshot)
		s.take(&snapshot, at+(end-at)/2)
	}
	spent, end := timeline.ThreadCPU()-before, timeline.Monotonic()
	s.purse.spend(spent, end, s.share())
	s.r.purse.spend(spent, end, s.r.budget())
	if s.cpu = cpu; err != nil {
		return s.failed(err)
	}
	s.ran = spell{cpu: cpu, looked: s.at}
	s.misses = 0
	if s.due = end + int64(s.pause(&snapshot, end)); !s.some() {
		return max(time.Duration(s.due-end), readEvery)
	}
	return max(s.poll(), s.calm(end))
}

// failed ends what is known of the tasks if they could not be read.
func (s *series) failed(err error) time.Duration {
	if errors.Is(err, errTorn) || errors.Is(err, cpython.ErrUnmapped) {
		return readEvery // it changed under the read: the next one shows more
	}
	s.lose()
	s.misses++
	return s.r.seldom(min(lookFirst<<min(s.misses/lookTwice, 16), max(lookEvery, time.Duration(s.r.idle)*lookEach)))
}

// lose ends what is known, at the last read.
func (s *series) lose() {
	if s.known {
		s.put(s.at)
	}
	s.known = false
}

// put writes the tasks that waited since s.from.
func (s *series) put(until int64) {
	if until <= s.from {
		s.from = until
		return
	}
	from, to := s.r.sink.Since(s.from), s.r.sink.Since(until)
	for kind, w := range s.now {
		if len(w.tasks) > 0 {
			s.r.sink.AddAwaits(s.process, from, to, timeline.AwaitKind(kind), w.tasks, w.begun)
			clear(w.begun)
		}
	}
	s.from = until
}

// take takes a snapshot in: what changed did so half-way from the read before, or amid the time in which the process has run since.
func (s *series) take(snapshot *Snapshot, at int64) {
	if s.known {
		s.put(s.ran.middle(s.at, at))
		s.r.reading.Longest = max(s.r.reading.Longest, timeline.Nanos(at-s.at))
	} else {
		s.from = at
	}
	s.at, s.known = at, true
	for _, w := range s.now {
		clear(w.tasks)
		clear(w.begun)
	}
	snapshot.Wake(at)
	s.last = *snapshot
	before := s.awaits
	s.awaits = make(map[uint64]await, len(snapshot.Tasks))
	for i := range snapshot.Tasks {
		t := &snapshot.Tasks[i]
		if t.State == Running || len(t.Frames) == 0 {
			continue
		}
		node, w := s.r.node(t.Frames), s.now[kindOfAwait(t)]
		w.tasks[node]++
		now := awaitOf(t, node)
		if s.awaits[t.Addr] = now; before[t.Addr] != now {
			w.begun[node]++
		}
	}
}

// count takes a read into the recording's account.
func (s *series) count(snapshot *Snapshot) {
	reading := &s.r.reading
	for i := range snapshot.Tasks {
		if snapshot.Tasks[i].Cut {
			reading.Cut++
		}
	}
	if len(snapshot.Tasks) > 0 || snapshot.Lost > 0 {
		reading.Reads++
	}
	reading.Lost += int64(snapshot.Lost)
	for _, err := range snapshot.Unread {
		s.r.sink.Note(timeline.NoteUnavailable, "tasks of event loops", err.Error())
	}
	reading.Most = max(reading.Most, len(snapshot.Tasks))
}

const maxNodes = 1 << 16

// node interns a chain of coroutines.
func (r *round) node(frames []Frame) timeline.NodeID {
	if len(r.nodes) > maxNodes {
		clear(r.nodes)
	}
	at := timeline.RootNode
	for _, f := range frames {
		key := nodeKey{at, f.Code, f.Line}
		node, ok := r.nodes[key]
		if !ok {
			node = r.sink.Child(at, r.sink.Frame(timeline.Frame{
				Function: f.Code.Function, File: f.Code.File, Line: int(f.Line), FirstLine: int(f.Code.FirstLine), Suspended: true}))
			r.nodes[key] = node
		}
		at = node
	}
	return at
}

func (r *round) finish() {
	r.follow() // what has ended meanwhile waits no more
	for _, s := range r.series {
		s.finish()
	}
	r.describe()
}

// finish ends the series now, after a last read unless nothing has run.
func (s *series) finish() {
	if !s.known {
		return
	}
	end, cpu := timeline.Monotonic(), processCPU(s.reader.pid)
	if cpu < 0 {
		s.lose()
		return
	}
	if cpu != s.cpu {
		s.ran.look(cpu, end)
		if snapshot, err := s.reader.Read(); err == nil {
			s.count(&snapshot)
			s.take(&snapshot, end)
		}
	}
	s.put(end)
}

// describe brings the recording's account up to date.
func (r *round) describe() {
	now, before := r.reading, r.shown
	if r.shown = now; now.Reads == 0 {
		return
	}
	r.sink.Describe(func(rec *timeline.Recording) {
		t := &rec.Tasks
		t.Reads += now.Reads - before.Reads
		t.Cut += now.Cut - before.Cut
		t.Lost += now.Lost - before.Lost
		t.CPU += now.CPU - before.CPU
		t.Longest, t.Most = max(t.Longest, now.Longest), max(t.Most, now.Most)
	})
}

// processCPU is the CPU time of all threads of a process so far, in nanoseconds; -1 if it is not known.
func processCPU(pid int) int64 {
	used, err := procfs.CPUTime(pid)
	if err != nil {
		return -1
	}
	return int64(used)
}
