package pystack

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/spare"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Sink takes what the sampler sees; a *timeline.Builder is one.
type Sink interface {
	Origin() int64
	Since(monotonic int64) timeline.Nanos
	Frame(timeline.Frame) timeline.FrameID
	Child(parent timeline.NodeID, f timeline.FrameID) timeline.NodeID
	Thread(timeline.Thread) timeline.ThreadID
	UpdateThread(timeline.ThreadID, func(*timeline.Thread))
	Set(id timeline.ThreadID, at timeline.Nanos, node timeline.NodeID, state timeline.State, truncated bool)
	SetWait(id timeline.ThreadID, at timeline.Nanos, wait timeline.Wait, on timeline.ObjectID)
	Object(timeline.Object) timeline.ObjectID
	Account(timeline.ThreadID, timeline.Scheduled)
	End(timeline.ThreadID, timeline.Nanos)
	Lose(timeline.ThreadID, timeline.Nanos)
	EndLost(pid int, at timeline.Nanos)
	AddGrowth(timeline.Growth)
	ReadLoader(timeline.Loader, timeline.LoaderReading)
	ReadQueue(timeline.Loader, timeline.QueueReading)
	BeginGap(pid int, at timeline.Nanos, reason timeline.GapReason)
	EndGap(pid int, at timeline.Nanos)
	Track(timeline.TrackSpec) *timeline.TrackWriter
	Note(id timeline.NoteID, what, reason string)
	Describe(func(*timeline.Recording))
}

var _ Sink = (*timeline.Builder)(nil)

// SampleOptions of one recording; the zero value is usable.
type SampleOptions struct {
	// Interval between samples, 1 ms if 0. Less than 2 µs means without pause.
	Interval time.Duration
	// Budget is the share of a core the sampling may use, targetBudget if 0; from 1 on,
	// or negative, it is not limited.
	Budget float64
	// Sharing of that with the Sampler of its descendants.
	Sharing *Sharing
	// Spare says what CPU time is free: where none is, a long recording uses less of the budget; nil = it uses all.
	Spare spare.CPUs
	// RunsCell is the native id of the thread that runs the recorded cell or
	// script; 0 = the main thread.
	RunsCell int
	// FromStart says that the target began with the recording: the CPU time of its
	// threads counts from its start.
	FromStart bool
	// Ready says that the target could be read when the recording began: what passes until
	// the first sample is a pause of the sampler, too.
	Ready bool
	// Coroutine returns the address of the coroutine object that the event loop of a
	// thread, by its native id, runs a recorded cell in; 0 if none is known; nil =
	// never. Called from the sampling goroutine.
	Coroutine func(nativeID int) uint64
	// Leave reports whether a thread, by native id, is left out; nil = none is. Called
	// from the sampling goroutine.
	Leave func(nativeID int) bool
}

func (o SampleOptions) withDefaults() SampleOptions {
	if o.Interval == 0 {
		o.Interval = timeline.DefaultInterval
	}
	if o.Coroutine == nil {
		o.Coroutine = func(int) uint64 { return 0 }
	}
	if o.Leave == nil {
		o.Leave = func(int) bool { return false }
	}
	if o.Budget == 0 {
		o.Budget = targetBudget
	}
	return o
}

// Stats says what a sampling did.
type Stats struct {
	Samples   int64 // ticks at which the stacks were read, or the same for certain
	Missed    int64 // ticks left out because the one before came too late
	Reads     int64 // stacks of threads read
	Truncated int64 // of these, cut to their sure prefix
	Lost      int64 // of these, without anything sure
	Calls     int64 // reads of the target's memory
	CPU       time.Duration
	Wall      time.Duration
	// Interval is the one in force at the end: longer than asked for where the
	// budget or the machine did not allow more.
	Interval time.Duration
}
