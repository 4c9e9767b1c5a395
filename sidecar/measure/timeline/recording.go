package timeline

import (
	"sort"
	"strconv"
	"time"
)

// Nanos is a time on CLOCK_MONOTONIC since the recording's start, or the
// difference of two such times, in nanoseconds.
type Nanos int64

// Seconds returns n in seconds, for display and JSON.
func (n Nanos) Seconds() float64 { return float64(n) / 1e9 }

// Duration returns n as a time.Duration.
func (n Nanos) Duration() time.Duration { return time.Duration(n) }

// State is what a thread was doing while its stack stood still.
type State uint8

const (
	StatePython  State = iota // runs bytecode, or a C call that holds the GIL
	StateNative               // on a CPU outside the GIL: numpy, a kernel launch, compression
	StateWaiting              // off the CPU: sleep, lock, queue, select, join
	StateIO                   // off the CPU in a read, write, send, recv or in uninterruptible (D) state
	StateGIL                  // waits for the GIL
	StateOff                  // runnable, but not running
	StateUnknown              // not known: not asked yet, refused, or the process was stopped (see Gap)
	NumStates    = int(StateUnknown) + 1
)

var stateNames = [NumStates]string{"python", "native", "waiting", "io", "gil", "off", "unknown"}

// String returns the state's name in the report.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Computes recognises the states in which a thread has a CPU.
func (s State) Computes() bool { return s == StatePython || s == StateNative }

// Runnable recognises the states in which a thread has a CPU, or would if one were free.
func (s State) Runnable() bool { return s.Computes() || s == StateOff }

// ParseState is the inverse of State.String.
func ParseState(name string) (State, bool) {
	for i, n := range stateNames {
		if n == name {
			return State(i), true
		}
	}
	return StateUnknown, false
}

// Wait is what a thread that is off the CPU is blocked in, by its system call.
type Wait uint8

const (
	WaitUnknown Wait = iota // not known, or the thread does not wait
	WaitSleep               // until a time
	WaitLock                // a futex: a lock, condition or queue, another thread's end
	WaitPoll                // poll, select, epoll
	WaitChild               // a child process
	WaitSocket              // recv, send, connect, accept
	WaitFile                // read, write and the like: files, pipes, terminals
	WaitOther
	NumWaits = int(WaitOther) + 1
)

// SentCode is the file of functions that cloudpickle has sent by value: those of notebooks and of __main__, as the
// modules of libraries are sent by name.
const SentCode = "<dynamic-code>"

// Frame is one Python function at one of its lines. Leaf notes are known by
// Native: "in C, on the CPU", "in poll", "waiting for a lock"; empty otherwise.
type Frame struct {
	Function  string // qualified name: "Trainer.fit", "<module>"
	File      string // co_filename of the code object
	Line      int    // line being executed; 0 when the code object has none there
	FirstLine int    // the function's first line; (Function, File, FirstLine) is the function
	// Phase replaces the frames of a notebook's kernel: package usercode
	// puts it there; what a collector writes has none.
	Phase Phase
	// Task: it stands for the engine's task of the name Function, with all that the engine calls
	// before the task's own code, or without a name for having none; package interpret puts it there.
	Task bool
	// Suspended: a coroutine's that awaits at Line while its thread waits in the event
	// loop below it on the stack.
	Suspended bool
	// Elided: it stands for about this many frames of a deep recursion that are left
	// out, most of them of this function, and has no line.
	Elided int
}

// GarbageCollection stands for the interpreter's collector, which has no frame, above the function in which it set in.
var GarbageCollection = Frame{Function: "garbage collection", File: "<frozen gc>"}

// Phase is what a notebook's kernel, or our extension, does in the time of a cell beside its code.
type Phase uint8

const (
	PhaseNone       Phase = iota
	PhasePrepare          // IPython transforms and compiles the cell
	PhaseDisplay          // the value of the cell's last expression is displayed
	PhaseTraceback        // an exception is formatted
	PhaseFigures          // figures that the cell left open are drawn
	PhaseCallbacks        // other callbacks of IPython's events
	PhaseTorchTrace       // we start torch.profiler, or stop it and write its trace, within the cell
)

var phaseNames = [...]string{"", "prepare", "display", "traceback", "figures", "callbacks", "torch-trace"}

// String returns the phase's name in the report.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return ""
}

// FrameID and NodeID index Recording.Frames and Recording.Nodes.
type (
	FrameID uint32
	NodeID  uint32
)

// RootNode is the empty stack: a thread that runs no Python code.
const RootNode NodeID = 0

// Node is a stack: its leaf frame and the caller's node. Nodes[0] is the root,
// its Frame means nothing. A parent's index is always less than its child's.
type Node struct {
	Parent NodeID
	Frame  FrameID
}

// ThreadID indexes Recording.Threads.
type ThreadID int

// Span is a stretch of time in which a thread's stack and state stood still, as
// far as the sampling shows. A thread's spans are in order and do not overlap;
// between them the thread did not exist.
type Span struct {
	Start, End Nanos
	Node       NodeID
	State      State
	Truncated  bool     // frames nearer the leaf were torn and are left out
	Wait       Wait     // in state waiting or io
	On         ObjectID // likewise: what it waits for
}

// GoesOn reports whether nothing has changed from the span before on: the two may be one.
func (s *Span) GoesOn(before *Span) bool {
	return before.End == s.Start && before.Node == s.Node && before.State == s.State && before.Wait == s.Wait && before.On == s.On && before.Truncated == s.Truncated
}

// Thread is one thread of one process.
type Thread struct {
	PID      int
	Process  int    // index in Recording.Processes, of which the target is the first
	NativeID int    // as gettid() says in the target's own pid namespace
	Name     string // threading's name, else the kernel's comm
	Main     bool   // the process's main thread
	RunsCell bool   // runs the recorded cell, or the script's main module
	Internal bool   // all it ever ran is the notebook kernel's own; package usercode shows
	OnCPU    Nanos  // CPU time during the recording; -1 unknown
	// OnCPUAtLeast: it was on a CPU for longer than OnCPU, perhaps: it ended, or could no
	// longer be read, after the last reading.
	OnCPUAtLeast bool
	Leaf         string // last known native leaf: "in poll", "waiting for a lock"; may be empty
	Spans        []Span
}

// Gap is a stretch in which the stacks of a process are unknown: its threads are in
// StateUnknown, without a stack, or not there. Of GapLate only those are that did not wait
// all the time.
type Gap struct {
	Start, End Nanos
	PID        int
	Reason     GapReason
}

// GapReason says why there is a Gap.
type GapReason uint8

const (
	GapUnreadable GapReason = iota // its memory no longer showed a stack
	GapStarting                    // it did not run Python yet: a launcher, or an interpreter being set up
	GapExec                        // it has become another program by exec
	GapExit                        // the interpreter has shut down
	GapPermission                  // the system no longer allowed to read it
	GapStopped                     // it was stopped, as by SIGSTOP
	GapTraced                      // a debugger held it
	GapLate                        // the sampler itself got no CPU for long
	GapNoPython                    // no CPython was in it at any time
	NumGapReasons = int(GapNoPython) + 1
)

var gapNames = []string{"unreadable", "starting", "exec", "exit", "permission", "stopped", "traced", "late", "no-python"}

// String returns the reason's id.
func (r GapReason) String() string {
	if int(r) < len(gapNames) {
		return gapNames[r]
	}
	return gapNames[GapUnreadable]
}

// BeforePython reports whether the process had not run Python yet, or never did.
func (r GapReason) BeforePython() bool { return r == GapStarting || r == GapNoPython }

// Track kinds: how a point's value is meant.
const (
	KindGauge = "gauge" // the value at that instant: bytes of memory, °C
	KindRate  = "rate"  // mean since the previous point: bytes per second, share of cores
)

// TrackSpec says what a track's figures are.
type TrackSpec struct {
	ID         string        // "cpu", "rss", "gpu0.util", "thread.1234.cpu"; unique in a recording
	Name       string        // of a thread that it is of, by the kernel; empty: none, or the process's own
	Kind       string        // KindGauge or KindRate
	Unit       string        // "B", "B/s", "cores", "%", "W", "MHz", "°C", "1/s"
	Source     string        // "/proc/PID/stat", "NVML sample buffer"
	Resolution time.Duration // of the source
	PID        int           // process the figure is of; 0 = whole machine
	Process    int           // where PID is not 0: index of the process in Recording.Processes
	Device     int           // GPU index; -1 = none
	Limit      float64       // natural upper bound (cores, total memory, 100 %); 0 = none known
	MaxPoints  int           // thinned beyond; 0 = 8,192
}

// Point is one value of a track. A gauge's value is at At; a rate's is the mean
// over (From, At]. NaN means unknown there; it is never zero for unknown.
type Point struct {
	From, At Nanos
	Value    float64
}

// Track is a series of one figure over time, ordered by At.
type Track struct {
	TrackSpec
	Points []Point
	Peak   float64 // largest value seen, decimated ones included; NaN when empty
	// Step is the spacing the points were thinned to; 0 = every point was kept.
	Step time.Duration
	// Ended says why the track stopped before the recording did; empty otherwise.
	Ended string
}

// Mark is a point or stretch named by the user's program.
type Mark struct {
	Kind       string // "step", "region", or "optimizer": one of the class Name stepped first besides the one of the steps
	Name       string
	Process    int        // whose, as an index into Recording.Processes
	Source     MarkSource // of a step
	Start, End Nanos      // a step's Start is the end of the step before
	// Thread is the native id of the thread that a region is of: an engine's task ran in that thread
	// alone. 0: it is of the process.
	Thread int
	Batch  Batch // of a step
	// Anew is of the first step of another optimizer than those before it: what set that one up, as another training
	// does, is part of it.
	Anew bool
	// Optimizer is when the optimizer was called whose step is the end of this one; 0: not known.
	Optimizer Nanos
}

// Batch is what a training step worked on, as the program reported; zero values: it did not.
type Batch struct {
	Samples, Tokens int64
	Epoch           *int
}

// MarkSource is how a step was found; empty: not known.
type MarkSource string

// How steps are found.
const (
	StepMarked    MarkSource = "marked"    // by the program: omni_perf.step()
	StepOptimizer MarkSource = "optimizer" // by torch's hook for optimizers
	// StepSampled is by the calls of an optimizer on the sampled stacks: where a step is
	// short, or the sampling coarse, there are none.
	StepSampled MarkSource = "sampled"
)

// Note says what could not be read, or is less exact than asked, and why.
type Note struct {
	ID     NoteID
	What   string // a track, or what a collector is called
	Reason string
}

// IntervalText writes an interval into a note's Reason, as people write one: 1 ms, 50 µs, 1000 ms.
func IntervalText(d time.Duration) string {
	unit, name := time.Millisecond, " ms"
	switch {
	case d < time.Microsecond:
		unit, name = time.Nanosecond, " ns"
	case d < time.Millisecond:
		unit, name = time.Microsecond, " µs"
	}
	return strconv.FormatFloat(float64(d)/float64(unit), 'f', -1, 64) + name
}

// NoteStacks is the What of notes on the reading of the target's stacks.
const NoteStacks = "Python stacks"

// NoteID is the kind of a note.
type NoteID string

const (
	NoteUnavailable   NoteID = "unavailable"    // it cannot be had here
	NoteFailed        NoteID = "failed"         // it could be had, and then no longer
	NoteFault         NoteID = "fault"          // a bug of ours ended it
	NoteSlower        NoteID = "slower"         // it was read less often than asked
	NoteOtherInterval NoteID = "other-interval" // another recording, which this one runs in, asked for another
	NoteLate          NoteID = "late"           // its last readings were not waited for
	NoteLeftOut       NoteID = "left-out"       // there were more than are kept
	NoteReplaced      NoteID = "replaced"       // it comes from another source than at first
	NoteUnmatched     NoteID = "unmatched"      // nothing of it could be shown to be the program's
	NoteExact         NoteID = "exact"          // it is of a trace, not sampled
	NoteClamped       NoteID = "clamped"        // more was asked for than is possible
	NoteEstimated     NoteID = "estimated"      // it follows from other figures
	NoteBegunLate     NoteID = "begun-late"     // the recording began after what it is of
	NotePartial       NoteID = "partial"        // what is recorded is not over
	NoteGoesOn        NoteID = "goes-on"        // it outlives what was recorded
	NoteAbsent        NoteID = "absent"         // this machine has none of it: nothing that a user of it would miss
)

// Source is the text of a code object's file that exists only in the kernel: a
// notebook cell.
type Source struct {
	File           string // co_filename of the cell's code
	ExecutionCount int
	Text           string // as typed, where that is known
	// Lines has for each line of the code its line in Text, counted from 1; nil
	// where they are the same but for empty lines at the top, which IPython drops.
	Lines []int
	// Nested means that a cell ran this code, as %%capture runs its body: the cell
	// of that number is another text.
	Nested bool
}

// Installation says where the target's Python and its packages lie, as the target
// itself or /proc said. The zero value: not known.
type Installation struct {
	Prefixes  []string // sys.prefix, sys.base_prefix and their exec_ forms
	Standard  []string // folders of the standard library
	Extension string   // folder of omni_perf's extension; empty where there is none
}

// CodeFile is what was found, when the recording ended, of a file that code
// objects name.
type CodeFile struct {
	Name    string // co_filename
	Missing bool   // there is no such file
	// Modified is the time of its text: when that was written, or what a copy was
	// given; zero: not known.
	Modified time.Time
	// Placed is when text, name or rights of the file were changed last, which
	// nobody can give it; zero: not known.
	Placed time.Time
	// Loaded is the time the file had when its code was loaded, as the target reported;
	// zero: it did not.
	Loaded time.Time
	// Compiled is the cached bytecode beside it; nil where there is none, or where
	// the file is in its place since before the target and nobody needs to know.
	Compiled *Bytecode
	// Contradicts means that the text has no definition where a function that ran
	// begins. It is looked for where there is Compiled.
	Contradicts bool
	// Elsewhere are the functions that ran for which that is so. It is looked for in files
	// that were written since the target started.
	Elsewhere []FunctionStart
}

// FunctionStart is where a function's code begins.
type FunctionStart struct {
	Function  string // as Frame has it
	FirstLine int
}

// Bytecode is a .pyc file, which names the text that it was made of.
type Bytecode struct {
	Written time.Time
	Matches bool // it was made of the text that the source file has now
}

// Cell is the recorded notebook cell.
type Cell struct {
	ExecutionCount int
	File           string // co_filename of its code
	Text           string // as typed
	Name           string // --name, or empty
	Outcome        string // "ok", "error: ValueError", "interrupted", "timed out", "kernel died", "kernel restarted"
}

// Host is the machine that a recording was made on. The zero value of each: not known.
type Host struct {
	BootID string // of the kernel's random/boot_id
	Name   string
	Cores  int   // that the target may use
	Memory int64 // bytes of the machine
}

// Wall relates the wall clock (CLOCK_REALTIME) to the recording's: at its begin and at
// its end, between which somebody may have set the wall clock. Zero: not measured.
type Wall struct{ Begin, End Bridge }

// How stacks are read: the ids of Sampling.Method.
const (
	MethodOutside = "process-vm-readv" // from outside, read twice
	MethodInside  = "current-frames"   // sys._current_frames in the kernel
)

// Target says what was recorded.
type Target struct {
	PID           int
	Started       time.Time // wall clock; zero: not known
	PythonVersion string
	Interpreter   string
	Argv          []string
	Rank          *Rank // of a distributed run; nil: none
	Cell          *Cell // nil for scripts and processes
	Restarts      int   // of the kernel, since its cells are followed
}

// Sampling says how the stacks were read, as it was.
type Sampling struct {
	Method   string           // "process_vm_readv, read twice" or "sys._current_frames in the kernel"
	Asked    time.Duration    // the interval asked for
	Interval time.Duration    // the one that the recording began with
	Changes  []IntervalChange // of the interval, in order of time: to stay within the budget
	Clamps   []Clamp          // options that were asked for beyond their limits

	Samples   int64 // ticks at which the stacks were read, or the same for certain …
	Missed    int64 // … and that were due besides, but came too late
	Reads     int64 // stacks read, of single threads …
	Lost      int64 // … of them without a usable frame
	Truncated int64 // … of them cut to their sure prefix

	FallbackReason string // why the in-kernel sampler was used; empty otherwise
	CPU            Nanos  // what the sampling itself cost; -1 unknown
}

// IntervalChange says from when on another sampling interval was kept.
type IntervalChange struct {
	From     Nanos
	Interval time.Duration
}

// Clamp is an option that was kept within its limits. Option is "interval" (of the
// stacks) or "figure_interval".
type Clamp struct {
	Option      string
	Asked, Used time.Duration
}

// Keep says that from a time on an interval is kept, where that is another one than before.
func (s *Sampling) Keep(from Nanos, interval time.Duration) {
	last := s.Interval
	if n := len(s.Changes); n > 0 {
		last = s.Changes[n-1].Interval
	}
	if last > 0 && interval > 0 && interval != last {
		s.Changes = append(s.Changes, IntervalChange{From: from, Interval: interval})
	}
}

// At is the interval that was kept at a time.
func (s *Sampling) At(t Nanos) Nanos {
	after := sort.Search(len(s.Changes), func(i int) bool { return s.Changes[i].From > t })
	if after == 0 {
		return Nanos(s.Interval)
	}
	return Nanos(s.Changes[after-1].Interval)
}

// Kept is the interval that was kept over a recording of length d, on average.
func (s *Sampling) Kept(d Nanos) time.Duration {
	if d <= 0 || s.Interval <= 0 {
		return s.Interval
	}
	from, interval, ticks := Nanos(0), s.Interval, 0.0
	for _, c := range s.Changes {
		ticks += float64(min(c.From, d)-min(from, d)) / float64(interval)
		from, interval = c.From, c.Interval
	}
	ticks += float64(d-min(from, d)) / float64(interval)
	return time.Duration(float64(d) / ticks)
}

// Taken is the interval between two samples over a recording of length d, on average: the
// one kept, and longer by the ticks that were missed.
func (s *Sampling) Taken(d Nanos) time.Duration {
	kept := s.Kept(d)
	if s.Samples <= 0 || s.Missed <= 0 {
		return kept
	}
	return time.Duration(float64(kept) * float64(s.Samples+s.Missed) / float64(s.Samples))
}

// GPU is a device that was watched. Its figures are the tracks "gpuN.…" with
// Device = Index.
type GPU struct {
	Index          int
	UUID, Name     string
	Driver         string        // driver version
	Source         string        // of the activity figures: "GPM", "NVML sample buffer"; empty when there are none
	Resolution     time.Duration // of the activity figures, as measured
	OtherProcesses int           // most processes not of the target seen on it at once; -1 unknown
	PIDs           []int         // the target's processes seen on it
	Simulated      bool          // a fake driver's device: say so wherever it is shown
	// Throttle are the reasons for which it ran slower than it could at some time,
	// in the order of ThrottleReasons.
	Throttle []ThrottleReason
	Lost     Nanos // when it stopped answering for good; 0: it did not
	Xids     []Xid // errors that its driver reported, the first 64
}

// Xid is an error of a GPU, by the number that NVIDIA gives its kind.
type Xid struct {
	At   Nanos // when it was read; it was within half a second before
	Code int
}

// ThrottleReason is why a GPU runs slower than it could.
type ThrottleReason string

// The reasons, as NVML reports them.
const (
	PowerCap        ThrottleReason = "power-cap"
	HardwareSlow    ThrottleReason = "hardware-slowdown"
	ThermalSoftware ThrottleReason = "thermal-software"
	ThermalHardware ThrottleReason = "thermal-hardware"
	PowerBrake      ThrottleReason = "power-brake"
)

// ThrottleReasons lists them all.
func ThrottleReasons() []ThrottleReason {
	return []ThrottleReason{PowerCap, HardwareSlow, ThermalSoftware, ThermalHardware, PowerBrake}
}

// Output is what the cell printed, as seen on IOPub.
type Output struct {
	Messages, Bytes int64
	AtLeast         bool // IOPub may have dropped some
}

// Recording is a finished recording: plain data, no longer changed.
type Recording struct {
	StartedAt    time.Time // wall clock, for display
	Origin       int64     // CLOCK_MONOTONIC nanoseconds of Nanos 0
	Duration     Nanos
	Traceback    Nanos         // for how long an exception was formatted after the cell had ended with it, which Duration is without
	Figures      Nanos         // for how long figures were drawn after such an exception, likewise
	Late         Nanos         // for how long the cell had run already when the recording began, which Duration is without
	Resolution   time.Duration // of the spans: the interval that was kept, unless they were thinned
	Host         Host
	Wall         Wall
	Target       Target
	Installation Installation
	CodeFiles    []CodeFile // of the files that Frames name; those that are not listed are not known
	Sampling     Sampling
	Processes    []Process
	Threads      []Thread
	Gaps         []Gap // in order of time
	Frames       []Frame
	Nodes        []Node
	Tracks       []Track
	Marks        []Mark
	Awaits       []Await         // of tasks of event loops
	Tasks        TaskReading     // how those were read
	Objects      []Object        // that threads were blocked in system calls for; the first stands for none
	Growth       []Growth        // of resident memory, in order of time
	Loaders      []Loader        // of torch, that threads iterated over
	Batches      []LoaderReading // of each thread in order of time
	Queues       []QueueReading  // of each loader in order of time
	Sources      []Source
	GPUs         []GPU        // by index
	Work         []DeviceWork // of devices, where a source delivers it
	Output       *Output      // nil where IOPub was not observed
	Notes        []Note
	Subject      *Subject // whom it is about; nil: not decided yet
	Pools        []Pool   // of its processes; nil: likewise, or it has none
}
