package pytasks

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/alarm"
	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/spare"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// The pace: tasks are read every readEvery at most, and less often where reading takes
// more than budget of a core on average. What was not used is saved up to burst, so that
// the first reads, which cost more and see many tasks begin, are not few. While no thread of the process has run they cannot have
// changed, and are not read. While it runs and they do not change, as when a cell
// computes in a kernel whose loop waits below it, they are read ever less often; even less where that
// has lasted for a while and no CPU is free, since what reads them is then taken from the program.
const (
	readEvery  = 5 * time.Millisecond
	quietEvery = 40 * time.Millisecond // at the longest, while they do not change …
	quietReads = 4                     // … which this many reads in a row show
	calmAfter  = 5 * time.Second       // they have not changed for so long
	calmEvery  = 200 * time.Millisecond
	lookEvery  = 50 * time.Millisecond // while nothing that has event loops is imported, or it cannot be read
	budget     = 0.03
	burst      = 15 * time.Millisecond
	// describeEvery is how often the recording's own account is brought up to date.
	describeEvery = 250 * time.Millisecond
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

// Collector writes where the tasks of one process wait into a Sink.
type Collector struct {
	Process int                     // its index in Recording.Processes
	Current func() *pystack.Process // the process, attached to; nil while there is none
	Spare   spare.CPUs
}

// series is one collection in progress.
type series struct {
	c     *Collector
	sink  Sink
	nodes map[nodeKey]timeline.NodeID

	process *pystack.Process // that reader is of
	reader  *Reader

	at        int64            // CLOCK_MONOTONIC of the last read
	from      int64            // since when the tasks are as now: half-way from the read before
	now       []where          // tasks by where they wait, for each timeline.AwaitKind
	last      Snapshot         // that now is of
	awaits    map[uint64]await // by task: the one that it was in at the last read
	known     bool             // there was a read, so that now means something
	cpu       int64            // CPU time of the process at the last read; -1: not known
	due       int64            // CLOCK_MONOTONIC before which reading would cost too much
	saved     time.Duration    // CPU time that may be spent at savedAt; negative: too much was
	savedAt   int64            // CLOCK_MONOTONIC
	reading   timeline.TaskReading
	sum       uint64 // of the last snapshot
	quiet     int    // reads in a row that were equal
	begun     int64  // CLOCK_MONOTONIC of the first tick
	changed   int64  // and since when the reads are equal
	accounted int64  // when the recording's account was brought up to date
	shown     timeline.TaskReading
	spent     time.Duration // CPU time of all ticks
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
func (c *Collector) Collect(ctx context.Context, sink Sink) {
	s := &series{c: c, sink: sink, begun: timeline.Monotonic(), nodes: make(map[nodeKey]timeline.NodeID), awaits: make(map[uint64]await)}
	for range timeline.AwaitKinds() {
		s.now = append(s.now, where{make(map[timeline.NodeID]int), make(map[timeline.NodeID]int)})
	}
	wake := alarm.New(0)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			s.finish()
			return
		case <-wake.C:
			wake.Reset(s.tick())
		}
	}
}

// tick reads if it is time, and returns after how long to look again. Its goroutine has a thread of its own only
// meanwhile: a thread that belongs to one that waits has to be woken up by another one.
func (s *series) tick() (again time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := timeline.ThreadCPU()
	again = s.look()
	s.spent += timeline.ThreadCPU() - before
	return again
}

func (s *series) look() time.Duration {
	if process := s.c.Current(); process != s.process {
		s.lose()
		if s.process, s.reader = process, nil; process != nil {
			s.reader = New(process.Interpreter())
		}
	}
	if s.reader == nil {
		return lookEvery
	}
	at := timeline.Monotonic()
	cpu := processCPU(s.reader.pid)
	if s.known && cpu >= 0 && cpu == s.cpu { // nothing has run since, but sleeps end
		if before := s.at; s.last.Wake(at) {
			s.take(&s.last, at)
		} else {
			s.at = max(before, at)
		}
		return readEvery
	}
	if at < s.due {
		return min(max(time.Duration(s.due-at), readEvery), max(50*time.Millisecond, s.calm(at)))
	}
	before := timeline.ThreadCPU()
	snapshot, err := s.reader.Read()
	if s.cpu = cpu; err != nil {
		return s.failed(err)
	}
	end := timeline.Monotonic()
	s.count(&snapshot)
	s.take(&snapshot, at+(end-at)/2)
	spent := timeline.ThreadCPU() - before
	s.due = end + max(int64(s.spend(spent, end)), int64(s.pause(&snapshot, end)))
	if s.accounted+int64(describeEvery) < end {
		s.accounted = end
		s.describe()
	}
	return max(readEvery, s.calm(end))
}

// spend takes CPU time off what was saved, and returns for how long reading has to wait until
// nothing is owed.
func (s *series) spend(cpu time.Duration, at int64) time.Duration {
	s.saved = min(burst, s.saved+time.Duration(budget*float64(at-s.savedAt))) - cpu
	s.savedAt = at
	return time.Duration(float64(max(-s.saved, 0)) / budget)
}

// pause is the least time to the next read.
func (s *series) pause(snapshot *Snapshot, at int64) time.Duration {
	if sum := snapshot.sum(); sum != s.sum || s.changed == 0 {
		s.sum, s.quiet, s.changed = sum, 0, at
	} else {
		s.quiet++
	}
	if s.quiet < quietReads {
		return 0
	}
	return max(min(readEvery<<min(s.quiet-quietReads, 8), quietEvery), s.calm(at))
}

// calm is the least time between two ticks where nothing changes and no CPU is free; 0: there is none.
func (s *series) calm(at int64) time.Duration {
	if s.changed == 0 || at-s.changed < int64(calmAfter) {
		return 0
	}
	return s.c.Spare.Interval(time.Duration(at-s.begun), 0, calmEvery)
}

// failed ends what is known of the tasks if they could not be read.
func (s *series) failed(err error) time.Duration {
	switch {
	case errors.Is(err, errTorn), errors.Is(err, cpython.ErrUnmapped):
		return readEvery // it changed under the read: the next one shows more
	}
	s.lose()
	return lookEvery
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
	from, to := s.sink.Since(s.from), s.sink.Since(until)
	for kind, w := range s.now {
		if len(w.tasks) > 0 {
			s.sink.AddAwaits(s.c.Process, from, to, timeline.AwaitKind(kind), w.tasks, w.begun)
			clear(w.begun)
		}
	}
	s.from = until
}

// take takes a snapshot in: what changed did so half-way from the read before.
func (s *series) take(snapshot *Snapshot, at int64) {
	if s.known {
		s.put(s.at + (at-s.at)/2)
		s.reading.Longest = max(s.reading.Longest, timeline.Nanos(at-s.at))
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
		node, w := s.node(t.Frames), s.now[kindOfAwait(t)]
		w.tasks[node]++
		now := awaitOf(t, node)
		if s.awaits[t.Addr] = now; before[t.Addr] != now {
			w.begun[node]++
		}
	}
}

// count takes a read into the recording's account.
func (s *series) count(snapshot *Snapshot) {
	for i := range snapshot.Tasks {
		if snapshot.Tasks[i].Cut {
			s.reading.Cut++
		}
	}
	if len(snapshot.Tasks) > 0 || snapshot.Lost > 0 {
		s.reading.Reads++
	}
	s.reading.Lost += int64(snapshot.Lost)
	for _, err := range snapshot.Unread {
		s.sink.Note(timeline.NoteUnavailable, "tasks of event loops", err.Error())
	}
	s.reading.Most = max(s.reading.Most, len(snapshot.Tasks))
}

const maxNodes = 1 << 16

// node interns a chain of coroutines.
func (s *series) node(frames []Frame) timeline.NodeID {
	if len(s.nodes) > maxNodes {
		clear(s.nodes)
	}
	at := timeline.RootNode
	for _, f := range frames {
		key := nodeKey{at, f.Code, f.Line}
		node, ok := s.nodes[key]
		if !ok {
			node = s.sink.Child(at, s.sink.Frame(timeline.Frame{
				Function: f.Code.Function, File: f.Code.File, Line: int(f.Line), FirstLine: int(f.Code.FirstLine), Suspended: true}))
			s.nodes[key] = node
		}
		at = node
	}
	return at
}

func (s *series) finish() {
	if s.known {
		end := timeline.Monotonic()
		if cpu := processCPU(s.reader.pid); cpu < 0 || cpu != s.cpu { // read a last time, unless nothing has run
			if snapshot, err := s.reader.Read(); err == nil {
				s.count(&snapshot)
				s.take(&snapshot, end)
			}
		}
		s.put(end)
	}
	s.describe()
}

// describe brings the recording's account up to date.
func (s *series) describe() {
	s.reading.CPU = timeline.Nanos(s.spent)
	now, before := s.reading, s.shown
	if s.shown = now; now.Reads == 0 {
		return
	}
	s.sink.Describe(func(r *timeline.Recording) {
		t := &r.Tasks
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
