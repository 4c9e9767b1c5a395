// Package criticalpath finds which of the recorded work the length of a step depends on.
//
// In flow the calls of the host and the work of the devices of a stretch of time, as plain numbers; out flow a graph of what waited
// for what ([Build]), its replay with other durations ([Graph.Replay]) and the critical path ([Graph.Path]). The package knows no
// trace and no names.
//
// A thread of the host is a chain of activities. Work of a device waits for the call that launches it, for the work before it on its
// stream, and for the work of another stream where the host had ordered the streams. A synchronising call waits for work. The
// main thread and a thread of autograd hand over to each other. What passes between the end of what an activity waited for and its
// start is a delay: it was recorded, too, and its kind says what is known about it.
package criticalpath

// Events are what was recorded between Start and End. Times are ns.
type Events struct {
	Start, End int64
	Main       int32    // the thread that the step is of
	Autograd   []int32  // threads that it hands over to, and that hand back
	Threads    int      // there are, numbered from 0
	Busy       [][]Busy // by thread: when it was in operators or calls, disjoint, by time; needed of Main and Autograd
	Calls      []Call   // those that launch work, wait for it or order streams
	Work       []Work   // by start
	Short      int64    // a delay up to which a device is said to wait for nothing but its next work
}

// Busy is a time in which a thread was in operators or calls.
type Busy struct{ Start, End int64 }

// Call is one of the host to the runtime.
type Call struct {
	Start, End int64
	Thread     int32
	Waits      bool // returns only when work is done
	Orders     bool // makes a stream wait for another one
}

// Work is a kernel, copy or fill.
type Work struct {
	Start, End int64
	Stream     int32
	Call       int32 // that launched it; -1: not known
	Earlier    bool  // it was launched before Events.Start
	Copy       bool
}

// Delay is what is known of the time between the end of what an activity waited for and its start.
type Delay uint8

const (
	NoDelay    Delay = iota
	Launching        // from the call to the begin of its work
	Queued           // between works of which the next had been launched
	Waited           // as these, but longer: for something that is not recorded
	HandedOver       // from one thread to another
	Earlier          // the device worked for what came before
	Unknown          // the call that launched the work is not recorded
	Delays           // how many there are
)

func (d Delay) String() string {
	return [...]string{"", "launching", "queued", "waited", "handed_over", "earlier", "unknown"}[d]
}
