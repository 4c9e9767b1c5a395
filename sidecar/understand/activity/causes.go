package activity

import "slices"

// Cause is what a thread was doing, or what it was waiting for. The ids are part
// of the report and do not change; package wording has their names.
type Cause string

// The causes. What a program computes comes first, then what it waits for.
const (
	Python     Cause = "python"               // bytecode, or a C call that holds the GIL
	Native     Cause = "native"               // C code that has released the GIL
	Launch     Cause = "launch"               // a framework's calls that launch work of a GPU
	Import     Cause = "import"               // modules being imported
	Compile    Cause = "compilation"          // torch.compile, triton, XLA, numba
	Draw       Cause = "drawing"              // matplotlib, plotly and their like
	Checkpoint Cause = "checkpoint"           // a model or checkpoint is written or read
	Load       Cause = "data-loading"         // a data loader of a framework, or the user's own
	LoadHere   Cause = "data-loading-here"    // batches are made in the training's own thread
	LoadWorker Cause = "data-loading-workers" // the loader's worker processes are waited for
	// LoadSampler: which samples the next batch has is computed, in the training's own thread, whether or not there are workers.
	LoadSampler Cause = "data-loading-sampler"
	Display     Cause = "display"     // the notebook formats the value of the cell's last line
	Around      Cause = "around-cell" // the notebook's other work before and after the cell
	Tracing     Cause = "tracing"     // torch.profiler starts, stops and writes, as --torch and --exact have it

	Sync       Cause = "synchronisation" // until the GPU has done what was launched
	Copy       Cause = "copy"            // between host and GPU
	Collective Cause = "collective"      // for other ranks
	Network    Cause = "network"
	Database   Cause = "database"
	InOut      Cause = "input-output" // files, pipes, sockets: what is not known more precisely
	Sleep      Cause = "sleep"        // time.sleep and its like
	UserInput  Cause = "user-input"   // input()
	Child      Cause = "child-process"
	Thread     Cause = "thread"     // another thread of the program
	Lock       Cause = "lock"       // a lock, event, queue or the like: nobody knows for whom
	EventLoop  Cause = "event-loop" // every task of the event loop waits
	Waiting    Cause = "waiting"    // off the CPU, for what is not known
	GIL        Cause = "gil"        // for the interpreter's lock
	NoCPU      Cause = "no-cpu"     // for a free CPU

	StartUp Cause = "start-up"    // the interpreter starts: nothing of the script runs yet
	Exit    Cause = "exit"        // the interpreter ends: the script's last line is over
	Queued  Cause = "queued"      // the next kernel was launched already: what the device needs between two
	SetUp   Cause = "set-up"      // before the first work of a GPU
	NoWork  Cause = "no-gpu-work" // nothing ran on the GPU: nobody is to blame
	Unknown Cause = "unknown"
)

// Kind is a group of causes that have the same remedy.
type Kind string

// The kinds of causes.
const (
	Host            Kind = "host"       // the host computes
	Launching       Kind = "launch"     // the host launches too slowly
	Starvation      Kind = "starvation" // the next batch is not there
	Synchronisation Kind = "synchronisation"
	Copying         Kind = "copy"
	Collectives     Kind = "collective"
	InputOutput     Kind = "input-output"
	Checkpoints     Kind = "checkpoint"
	Compilation     Kind = "compilation"
	Waits           Kind = "waiting"    // for a time, a person, a process or a thread
	Contention      Kind = "contention" // for the GIL or a CPU
	SettingUp       Kind = "set-up"     // imports, and what comes before the first work
	Ending          Kind = "exit"       // what comes after the last
	BetweenKernels  Kind = "between-kernels"
	Absence         Kind = "absence"
	NotKnown        Kind = "unknown"
)

var causes = []struct {
	cause Cause
	kind  Kind
}{
	{Python, Host}, {Native, Host}, {Launch, Launching}, {Import, SettingUp}, {Compile, Compilation}, {Draw, Host},
	{Checkpoint, Checkpoints}, {Load, Starvation}, {LoadHere, Starvation}, {LoadWorker, Starvation}, {LoadSampler, Starvation}, {Display, Host}, {Around, Host},
	{Tracing, Host},
	{Sync, Synchronisation}, {Copy, Copying}, {Collective, Collectives},
	{Network, InputOutput}, {Database, InputOutput}, {InOut, InputOutput},
	{Sleep, Waits}, {UserInput, Waits}, {Child, Waits}, {Thread, Waits}, {Lock, Waits}, {EventLoop, Waits}, {Waiting, Waits},
	{GIL, Contention}, {NoCPU, Contention},
	{StartUp, SettingUp}, {Exit, Ending}, {Queued, BetweenKernels}, {SetUp, SettingUp}, {NoWork, Absence}, {Unknown, NotKnown},
}

// Causes lists all causes.
func Causes() []Cause {
	list := make([]Cause, len(causes))
	for i, c := range causes {
		list[i] = c.cause
	}
	return list
}

// Kind returns the group the cause belongs to.
func (c Cause) Kind() Kind {
	for _, known := range causes {
		if known.cause == c {
			return known.kind
		}
	}
	return NotKnown
}

// Computes reports whether a thread with this cause is at work on a CPU.
func (c Cause) Computes() bool {
	return slices.Contains([]Cause{Python, Native, Launch, Import, Compile, Draw, Checkpoint, Display, Around, Tracing}, c)
}
