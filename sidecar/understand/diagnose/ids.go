package diagnose

// Severity ranks a finding.
type Severity string

const (
	Info    Severity = "info"    // worth knowing
	Warning Severity = "warning" // costs a good part of the time or may break the program
	Limit   Severity = "limit"   // qualifies all the rest: a part of the time was not observed, or the machine was busy
)

// Unit is what a finding's value and threshold are counted in.
type Unit string

const (
	Share     Unit = "share"      // of the recording, 0..1
	Fullness  Unit = "share-full" // of the memory, 0..1
	Bytes     Unit = "bytes"
	PerSecond Unit = "1/s"
	Count     Unit = "count"
)

// FindingID names a finding. The comment of each says what its findings have beside
// Value, Evidence, Advice and Cost.
type FindingID string

// The findings of programs that use a GPU. Those that begin with GPUWaits are about the
// idle time of one Kind of cause, which Value is the share of, as means over the used
// devices. Where one Cause surely has nearly all of it, Time, Low and High are that
// cause's; else they are the kind's, and Parts has its causes. Place is the line that
// surely has most.
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
	GPUWaitsForCopies      FindingID = "gpu-waits-for-copies"
	GPUWaitsForSync        FindingID = "gpu-waits-for-sync"
	GPUWaitsAtStart        FindingID = "slow-start"
	GPUWaitsAtExit         FindingID = "gpu-waits-at-exit"

	GPUIdleUndecided     FindingID = "gpu-idle-undecided"         // Alternatives: kinds of causes whose bounds overlap
	GPUIdle              FindingID = "gpu-idle"                   // Kind, Cause, Place, where a kind surely has most; Against: its share of the idle time
	GPUBusy              FindingID = "gpu-busy"                   // Devices; Value: the share
	GPULost              FindingID = "gpu-lost"                   // Devices, At, AtLast; Time: what was left of the recording
	GPUError             FindingID = "gpu-error"                  // Devices; Xid: of the first error, At; Count: errors
	GPUUnused            FindingID = "gpu-unused"                 // Time: of a framework on the CPU; Name: the device's
	GPUMemoryNearFull    FindingID = "gpu-memory-near-full"       // Devices
	GPUMemoryCollectives FindingID = "gpu-memory-and-collectives" // Devices, Place; Time: in collectives
	GPUThrottled         FindingID = "gpu-throttled"              // Devices, Throttle
	GPUPowerCapped       FindingID = "gpu-power-capped"           // Devices
	SomeGPUsIdle         FindingID = "some-gpus-idle"             // Devices, Value: how busy they were; Peer, Against: the busiest
	SyncInLoop           FindingID = "sync-in-loop"               // Time: of the host; Place, Count: visits; Against: the share that the GPU was idle
	HostDeviceCopies     FindingID = "host-device-copies"         // Time: of the host; Place
)

// The findings of any program. Time is that of the thread that runs the cell or of
// the main thread, Place the line with most of it and PlaceTime that line's. Of a launcher
// it is that of the first rank's main thread, and its life is the Whole.
const (
	RankFailed       FindingID = "rank-failed"        // Process: the first of Count ranks that an exception or an exit code ended, At; Rank; Place: where the exception was raised, or that was seen last
	WorkerKilled     FindingID = "worker-killed"      // Process: the first of Count workers that a signal ended, At; Bytes: that it held when last read
	OneLine          FindingID = "one-line"           // Time: of the line; Cause, Call, Cores, CutTime
	Computing        FindingID = "computing"          // Cause, Call, Cores, CutTime
	NoLineStandsOut  FindingID = "no-line-stands-out" // Time: computing; Cores; Name: the function that has most of it, defined at Place, by PlaceTime, and Next its line that has most of that; without one, Functions, or Lines of a cell without any
	CollectsGarbage  FindingID = "garbage-collection" // in whatever line it set in
	Imports          FindingID = "imports"            // Modules
	Drawing          FindingID = "drawing"            // Call
	Displaying       FindingID = "display"            // Call
	AroundCell       FindingID = "around-cell"
	Tracing          FindingID = "tracing" // torch.profiler's start, stop and trace
	Compiling        FindingID = "compilation"
	Saving           FindingID = "checkpoint"         // Call
	LoadsData        FindingID = "data-loading"       // Cause; Against: the share of it that workers could save, 0: not known
	TrainingLoads    FindingID = "training-loads"     // Cause; Whole: the training's own time, of which Value is the share; Against: as of LoadsData
	StepsSlowDown    FindingID = "steps-slow-down"    // Time: by which steps were longer than the first, of Count; Against: the last as a multiple of the first; Name: the phase, and Place, with most of it; Bytes: that resident memory grew by
	WaitsForNetwork  FindingID = "waits-for-network"  // Call
	WaitsForDatabase FindingID = "waits-for-database" // Call
	WaitsForIO       FindingID = "io-bound"           // Call
	WaitsForUser     FindingID = "waits-for-user"
	WaitsForChildren FindingID = "waits-for-children" // Actors; Cores: that they used
	WaitsForThreads  FindingID = "waits-for-threads"  // Actors; Cores: of the program without its children
	WaitsForLock     FindingID = "waits-for-lock"     // Call, or Actors with HasLock
	WaitsForRanks    FindingID = "waits-for-ranks"    // where there is no Straggler
	WaitsForEvents   FindingID = "event-loop-idle"
	TasksWait        FindingID = "tasks-wait"     // Time: of the thread, while tasks waited at Place, in the function Name, for Call: Count at once, Against on average
	AwaitsInTurn     FindingID = "awaits-in-turn" // Time: of Count awaits at Place, for Call, each of Against seconds; AtLeast
	LoopBlocked      FindingID = "loop-blocked"   // Time: for which Name, or Call, ran while tasks were ready, Count at once at most; Place: that called it
	WaitsUnknown     FindingID = "waiting"
	Sleeps           FindingID = "sleeps"              // Actors: who worked meanwhile, on how many Cores
	GILContention    FindingID = "gil-contention"      // Actors: who held it
	ThreadsTakeTurns FindingID = "threads-take-turns"  // Count: threads; Value: share of their time that they waited for the GIL; Actors; Place: where they did; Evidence: when
	NoFreeCPU        FindingID = "no-free-cpu"         // Cores: used by the program
	BusyMachine      FindingID = "busy-machine"        // Time: for which the main thread wanted a CPU and had none; Cores: used by the program
	StacksUnknown    FindingID = "stacks-unknown"      // Gap: why nothing is known; Time: for how long
	Traceback        FindingID = "traceback"           // Time: for which it was formatted, after the recording; Value: its share of both together
	DrawnAfterError  FindingID = "drawing-after-error" // Time: for which figures were drawn, likewise
	BegunLate        FindingID = "begun-late"          // Time: for which the cell had run before the recording began; Value: its share of both together
	Straggler        FindingID = "straggler"           // Rank, of Count ranks: Time of Whole for which others waited, CollectiveTime of it in Collective, in LateSteps of its Steps, and for AfterSteps after them; Value: Time's share of Whole; Place: where it was longer than they, by PlaceTime on average
	EngineTasks      FindingID = "tasks"               // of an engine's workers, in merged reports: Time of Whole; Value: Time's share of Whole
	Printing         FindingID = "printing"            // Count, Bytes, AtLeast; Time: of the main thread
	MemoryPressure   FindingID = "memory-pressure"     // Name: "process" or "machine"
	Swapping         FindingID = "swapping"            // Bytes
	SlowStartUp      FindingID = "interpreter-start-up"
	SlowExit         FindingID = "interpreter-exit"
)

// FindingIDs lists all findings there are.
func FindingIDs() []FindingID {
	list := make([]FindingID, 0, len(rules)+2)
	for _, r := range rules {
		list = append(list, r.id)
		if r.id == OneLine { // the same rule's other answers
			list = append(list, Computing, NoLineStandsOut)
		}
	}
	return list
}

// Advice is what to change. It is given only where it fits.
type Advice string

// The advice; the zero value is none.
const (
	NoAdvice           Advice = ""
	UseWorkers         Advice = "loader-workers"
	SpeedUpWorkers     Advice = "faster-workers"
	WorkersOnCPU       Advice = "loader-workers-on-cpu"    // as UseWorkers, where nothing is copied to a device
	WorkersThatWait    Advice = "loader-workers-that-wait" // as WorkersOnCPU, where loading mostly waits
	FasterOnCPU        Advice = "faster-workers-on-cpu"    // as SpeedUpWorkers, likewise
	CheapSampler       Advice = "cheap-sampler"
	KeepWorkers        Advice = "keep-workers"
	MoreCPUs           Advice = "more-cpus"
	Prefetch           Advice = "prefetch"
	SyncLess           Advice = "synchronise-less"
	CopyAsync          Advice = "copy-asynchronously"
	CompileOnce        Advice = "compile-once"
	CompileTypes       Advice = "compile-types"  // as CompileOnce, by numba
	CompileShapes      Advice = "compile-shapes" // as CompileOnce, by torch.compile
	SaveAside          Advice = "save-aside"
	LaunchLess         Advice = "launch-less"
	BalanceRanks       Advice = "balance-ranks"
	ShareWork          Advice = "share-work" // as BalanceRanks, of what a rank does alone in few steps
	ReadAhead          Advice = "read-ahead"
	AvoidGIL           Advice = "avoid-gil"
	UseGPU             Advice = "use-gpu"
	QueueWork          Advice = "queue-work"
	FewerThreads       Advice = "fewer-threads"
	AwaitTogether      Advice = "await-together"
	KeepLoopFree       Advice = "keep-loop-free"
	SetUpApart         Advice = "set-up-apart"
	Vectorise          Advice = "vectorise"
	WholeColumns       Advice = "whole-columns"
	CollectLess        Advice = "collect-less"
	PrintLess          Advice = "print-less"
	FreeMemory         Advice = "free-memory"
	LessMemory         Advice = "less-memory"
	BalanceDevices     Advice = "balance-devices"
	SmallerBatch       Advice = "smaller-batch"
	LeaveRoom          Advice = "leave-room"
	CheckCooling       Advice = "check-cooling"
	FindFaultyKernel   Advice = "find-faulty-kernel"
	CheckDevice        Advice = "check-device"
	PowerLimitIsNormal Advice = "power-limit"
	MoveToGPU          Advice = "move-to-gpu"
	FasterKernels      Advice = "faster-kernels"
	ManyRequests       Advice = "many-requests"
	RequestsAtOnce     Advice = "requests-at-once" // as ManyRequests, where the connection is used again
	KeepConnection     Advice = "keep-connection"  // as ManyRequests, in an event loop
	FewerQueries       Advice = "fewer-queries"
	RecordTrace        Advice = "record-trace"
	KilledForMemory    Advice = "killed-for-memory"
	NativeCrash        Advice = "native-crash"
)

// AllAdvice lists all advice there is.
func AllAdvice() []Advice {
	return []Advice{
		UseWorkers, SpeedUpWorkers, WorkersOnCPU, WorkersThatWait, FasterOnCPU, CheapSampler, KeepWorkers, MoreCPUs, Prefetch, SyncLess, CopyAsync, CompileOnce, CompileTypes, CompileShapes,
		SaveAside, LaunchLess, BalanceRanks, ShareWork, ReadAhead, AvoidGIL, UseGPU,
		QueueWork, FewerThreads, AwaitTogether, KeepLoopFree, SetUpApart, Vectorise, WholeColumns,
		CollectLess, PrintLess, FreeMemory, LessMemory, BalanceDevices, SmallerBatch, LeaveRoom,
		CheckCooling, FindFaultyKernel, CheckDevice, PowerLimitIsNormal, MoveToGPU, FasterKernels, ManyRequests, RequestsAtOnce, KeepConnection, FewerQueries,
		RecordTrace, KilledForMemory, NativeCrash,
	}
}
