package diagnose

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
	Around     Cause = "around-cell"          // the notebook's own work before and after the cell

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
	Idle       Cause = "event-loop" // every task of the event loop waits
	Waiting    Cause = "waiting"    // off the CPU, for what is not known
	GIL        Cause = "gil"        // for the interpreter's lock
	NoCPU      Cause = "no-cpu"     // for a free CPU

	StartUp Cause = "start-up"    // the interpreter starts: nothing of the script runs yet
	Exit    Cause = "exit"        // the interpreter ends: the script's last line is over
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
	Ends            Kind = "set-up"     // before the work and after it
	Absence         Kind = "absence"
	NotKnown        Kind = "unknown"
)

var causes = []struct {
	cause Cause
	kind  Kind
}{
	{Python, Host}, {Native, Host}, {Launch, Launching}, {Import, Host}, {Compile, Compilation}, {Draw, Host},
	{Checkpoint, Checkpoints}, {Load, Starvation}, {LoadHere, Starvation}, {LoadWorker, Starvation}, {Around, Host},
	{Sync, Synchronisation}, {Copy, Copying}, {Collective, Collectives},
	{Network, InputOutput}, {Database, InputOutput}, {InOut, InputOutput},
	{Sleep, Waits}, {UserInput, Waits}, {Child, Waits}, {Thread, Waits}, {Lock, Waits}, {Idle, Waits}, {Waiting, Waits},
	{GIL, Contention}, {NoCPU, Contention},
	{StartUp, Ends}, {Exit, Ends}, {SetUp, Ends}, {NoWork, Absence}, {Unknown, NotKnown},
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

// computes tells whether a thread with this cause is at work on a CPU.
func (c Cause) computes() bool {
	return slices.Contains([]Cause{Python, Native, Launch, Import, Compile, Draw, Checkpoint, Around}, c)
}

// Method is how idle time was divided inside a measured window.
type Method string

const (
	// ByWindows: the causes last longer than the windows, which tell them apart.
	ByWindows Method = "windows"
	// ByRepetition: a regression over repeated steps looked below the windows.
	ByRepetition Method = "repetition"
	// ByAverage: neither was possible; the shares are estimates within bounds.
	ByAverage Method = "average"
	// ByAbsence: no GPU work was seen, there is nothing to divide.
	ByAbsence Method = "absence"
)

// Severity ranks a finding.
type Severity string

const (
	Info    Severity = "info"    // worth knowing
	Warning Severity = "warning" // costs a good part of the time or may break the program
	Limit   Severity = "limit"   // a part of the time was not observed: it qualifies all the rest
)

// Unit is what a finding's value and threshold are counted in.
type Unit string

const (
	Share     Unit = "share"      // of the recording, 0..1
	Fullness  Unit = "share-full" // of the memory, 0..1
	Bytes     Unit = "bytes"
	PerSecond Unit = "1/s"
)

// FindingID names a rule; its constants stand with the rules' documentation.
type FindingID string

// The findings of programs that use a GPU. Unless it says otherwise a finding has
// Time (the idle time, a mean over the used devices), Low and High (its bounds),
// Cause and Place of most of it.
const (
	GPUWaitsForData        FindingID = "dataloader-bound"
	GPUWaitsForLaunches    FindingID = "launch-bound"
	GPUWaitsForHost        FindingID = "host-bound"
	GPUWaitsForIO          FindingID = "gpu-waits-for-io"
	GPUWaitsForCheckpoint  FindingID = "gpu-waits-for-checkpoint"
	GPUWaitsForCompilation FindingID = "gpu-waits-for-compilation"
	GPUWaitsForRanks       FindingID = "gpu-waits-for-ranks"
	GPUWaitsForWaits       FindingID = "gpu-waits-for-waits"
	GPUWaitsForContention  FindingID = "gpu-waits-for-contention"
	GPUWaitsAtEnds         FindingID = "slow-start"
	GPUWaitsForCopies      FindingID = "gpu-waits-for-copies"
	GPUWaitsForSync        FindingID = "gpu-waits-for-sync"
	GPUIdleUndecided       FindingID = "gpu-idle-undecided" // Alternatives: causes whose bounds overlap
	GPUIdle                FindingID = "gpu-idle"           // no kind of cause stands out
	GPUBusy                FindingID = "gpu-busy"           // Value: the share
	SyncInLoop             FindingID = "sync-in-loop"       // Count: visits; Time: the host's; Value2: the idle share
	HostDeviceCopies       FindingID = "host-device-copies" // Time: the host's
	OneGPUIdle             FindingID = "one-gpu-idle"       // Devices: the less busy ones, then the busiest; Value, Value2: their shares
	GPUMemoryNearFull      FindingID = "gpu-memory-near-full"
	GPUMemoryCollectives   FindingID = "gpu-memory-and-collectives" // Value: how full; Time: in collectives
	GPUThrottled           FindingID = "gpu-throttled"              // Throttle
	GPUPowerCapped         FindingID = "gpu-power-capped"
	GPUUnused              FindingID = "gpu-unused" // Name: the device's; Time: of the framework on the CPU
	GPULost                FindingID = "gpu-lost"   // Devices; At
)

// The findings of any program. Time is the time of the thread that runs the cell
// or the main thread, Place the line with most of it and PlaceTime that line's.
const (
	OneLine         FindingID = "one-line"             // Cause, Call, Cores
	Computing       FindingID = "computing"            // the line with most stands out a little
	NothingStandsUp FindingID = "no-line-stands-out"   // Time: computing
	Imports         FindingID = "imports"              // Modules
	Drawing         FindingID = "drawing"              // Call
	AroundCell      FindingID = "around-cell"          // Call
	CompilationCPU  FindingID = "compilation"          //
	Saving          FindingID = "checkpoint"           //
	DataLoadingCPU  FindingID = "data-loading"         //
	WaitsNetwork    FindingID = "waits-for-network"    // Call
	WaitsDatabase   FindingID = "waits-for-database"   // Call
	WaitsIO         FindingID = "io-bound"             //
	Sleeps          FindingID = "sleeps"               // Actors: who worked meanwhile
	WaitsUser       FindingID = "waits-for-user"       //
	WaitsChildren   FindingID = "waits-for-children"   // Actors, Cores
	WaitsThreads    FindingID = "waits-for-threads"    // Actors, Cores
	WaitsLock       FindingID = "waits-for-lock"       //
	WaitsEvents     FindingID = "event-loop-idle"      //
	WaitsUnknown    FindingID = "waiting"              //
	GILContention   FindingID = "gil-contention"       // Actors: who held it
	ThreadsTakeTurn FindingID = "threads-take-turns"   // Count: threads; Value: share of their time that they waited for the GIL
	NoFreeCPU       FindingID = "no-free-cpu"          // Cores: used by the program; Value2: of how many
	Printing        FindingID = "printing"             // Count, Bytes, AtLeast
	MemoryPressure  FindingID = "memory-pressure"      // Value; Name: "process" or "machine"
	Swapping        FindingID = "swapping"             // Bytes
	SlowStartUp     FindingID = "interpreter-start-up" //
	SlowExit        FindingID = "interpreter-exit"     // Call
)

// Advice is what to change. It is given only where it fits.
type Advice string

// The advice; the zero value is none.
const (
	NoAdvice           Advice = ""
	UseWorkers         Advice = "loader-workers"
	SpeedUpWorkers     Advice = "faster-workers"
	Prefetch           Advice = "prefetch"
	SyncLess           Advice = "synchronise-less"
	CopyAsync          Advice = "copy-asynchronously"
	CompileOnce        Advice = "compile-once"
	SaveAside          Advice = "save-aside"
	LaunchLess         Advice = "launch-less"
	BalanceRanks       Advice = "balance-ranks"
	ReadAhead          Advice = "read-ahead"
	AvoidGIL           Advice = "avoid-gil"
	UseGPU             Advice = "use-gpu"
	QueueWork          Advice = "queue-work"
	FewerThreads       Advice = "fewer-threads"
	AwaitTogether      Advice = "await-together"
	SetUpApart         Advice = "set-up-apart"
	Vectorise          Advice = "vectorise"
	WholeColumns       Advice = "whole-columns"
	PrintLess          Advice = "print-less"
	FreeMemory         Advice = "free-memory"
	LessMemory         Advice = "less-memory"
	BalanceDevices     Advice = "balance-devices"
	SmallerBatch       Advice = "smaller-batch"
	LeaveRoom          Advice = "leave-room"
	CheckCooling       Advice = "check-cooling"
	PowerLimitIsNormal Advice = "power-limit"
	MoveToGPU          Advice = "move-to-gpu"
	FasterKernels      Advice = "faster-kernels"
	ManyRequests       Advice = "many-requests"
	FewerQueries       Advice = "fewer-queries"
	Processes          Advice = "processes"
	ShorterWindows     Advice = "trace-for-detail"
)
