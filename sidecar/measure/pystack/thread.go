package pystack

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// thread is what is kept of one thread of the target between samples. The
// goroutine that holds the Process's lock owns it.
type thread struct {
	addr     uint64 // of its PyThreadState
	interp   uint64
	nativeID int // as the target's own pid namespace has it
	tid      int // as our /proc has it; 0 unknown
	name     string
	named    bool // name is threading's, not the kernel's

	plan  plan
	stack []frame // of the last sample, root first
	// unsure says that any of its code objects may be another by now: nobody has
	// looked for a while, or one of them is.
	unsure   bool
	compared time.Time // when its code objects last were
	next     []frame   // of the sample in progress

	seen place // by the last sample

	awaiting awaiting // what its event loop waits for, when last looked at

	loading loading // of torch's loaders that it iterates over

	os *osThread // nil: this is its only state

	session threadSession
}

// place is a thread's innermost frame and instruction: they show cheaply that nothing has changed.
type place struct {
	frame, top  uint64 // of the thread state
	leaf        uint64 // its frame
	code, instr uint64 // of the leaf
}

// threadSession is what is kept of a thread for one recording.
type threadSession struct {
	known      bool // registered with the sink
	shared     bool // other states of its operating system thread have the same lane
	excluded   bool // out of the recording
	leads      bool // it runs the recorded cell, or is the process's main thread
	id         timeline.ThreadID
	now        reading // as last reported to the sink
	reported   bool
	reportedAt timeline.Nanos

	node       timeline.NodeID
	base       timeline.NodeID // that the stack begins above
	cut        cut             // of the stack that has it
	truncated  bool
	idle       bool // in an event loop, while a coroutine awaits
	doubts     int  // that it is its operating system thread's
	doubtedAt  int64
	again      bool // the next read may show more: the stack was cut, or the loop waits for nothing known
	collecting bool // it runs the garbage collector
	state      timeline.State
	wait       timeline.Wait
	on         timeline.ObjectID
	lock       lockWait // that it was last found to wait for
	leaf       string
	asks       bool // who has the lock of a file that it waits for

	probeAt    int64          // CLOCK_MONOTONIC from which the kernel is asked again
	probeEvery int64          // nanoseconds between; grows while the answer stays
	counted    bool           // the scheduler counts for how long it is runnable
	waitsAt    int64          // CPU time when it was last found waiting; -1 it was not
	cpuAtStart int64          // nanoseconds; -1 unknown
	cpuAt      int64          // CLOCK_MONOTONIC of the last reading
	cpuBefore  timeline.Nanos // reported of it before it was lost
	ran        bool           // since its CPU time was last asked for
	readAt     int64          // CLOCK_MONOTONIC of the last tick at which it was read
	changedAt  int64          // CLOCK_MONOTONIC of the last change of its stack
	movedAt    int64          // likewise, of its place in the code
	growth     threadGrowth
}

// reading is what the sink gets when it changes.
type reading struct {
	node      timeline.NodeID
	state     timeline.State
	truncated bool
	wait      timeline.Wait
	on        timeline.ObjectID
}
