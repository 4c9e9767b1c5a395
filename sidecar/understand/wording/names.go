package wording

import (
	"fmt"
	"math"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// causes are the words for each cause: its name in a table, and what somebody
// waited for, or while what, in a sentence ("The GPU waited 2 s for imports").
var causes = map[activity.Cause]struct{ name, waited string }{
	activity.Python:      {"Python code", "for Python code"},
	activity.Native:      {"native code on the CPU", "for native code on the CPU"},
	activity.Launch:      {"launching GPU work", "for the host to launch work"},
	activity.Import:      {"imports", "for imports"},
	activity.Compile:     {"compilation", "for compilation"},
	activity.Draw:        {"drawing", "for drawing"},
	activity.Checkpoint:  {"saving or loading", "for saving or loading"},
	activity.Load:        {"data loading", "for data"},
	activity.LoadHere:    {"data loading in this thread", "for data, loaded in the training's own thread"},
	activity.LoadWorker:  {"waiting for the loader's workers", "for the data loader's workers"},
	activity.LoadSampler: {"the loader's sampler", "for the data loader's sampler"},
	activity.Display:     {"displaying the result", "for the display of the result"},
	activity.Around:      {"the notebook's own work", "for the notebook's own work"},
	activity.Tracing:     {"torch.profiler's start, stop and trace", "for torch.profiler's start, stop and trace"},
	activity.Sync:        {"waiting for the GPU", "around synchronisations with the host"},
	activity.Copy:        {"host–device copy", "for copies between host and device"},
	activity.Collective:  {"communication between ranks", "for other ranks"},
	activity.Network:     {"network", "for the network"},
	activity.Database:    {"database", "for a database"},
	activity.InOut:       {"input/output", "for input or output"},
	activity.Sleep:       {"sleep", "while the program slept"},
	activity.UserInput:   {"waiting for the user's input", "for the user's input"},
	activity.Child:       {"waiting for a child process", "for a child process"},
	activity.Thread:      {"waiting for another thread", "for another thread"},
	activity.Lock:        {"waiting for a lock, queue or event", "for a lock, a queue or an event"},
	activity.EventLoop:   {"every task waits", "while every task was waiting"},
	activity.Waiting:     {"waiting", "while the program waited"},
	activity.GIL:         {"waiting for the GIL", "for the GIL"},
	activity.NoCPU:       {"waiting for a free CPU", "for a free CPU"},
	activity.StartUp:     {"interpreter start", "for the interpreter to start"},
	activity.Exit:        {"interpreter exit", "for the interpreter to end"},
	activity.Queued:      {"between queued kernels", "between kernels that were queued"},
	activity.SetUp:       {"set-up before the first GPU work", "before its first work"},
	activity.NoWork:      {"no GPU work was seen", "without any work"},
	activity.Unknown:     {"unknown", "for unknown reasons"},
}

// Cause is a cause's name in a table.
func Cause(c activity.Cause) string { return causes[c].name }

// kinds are the words for each kind of cause: its name, and what a GPU waited for.
var kinds = map[activity.Kind]struct{ name, waited string }{
	activity.Host:            {"the host's computing", "while the host computed"},
	activity.Launching:       {"launching GPU work", "for the host to launch work"},
	activity.Starvation:      {"data loading", "for data"},
	activity.Synchronisation: {"synchronisation", "around synchronisations with the host"},
	activity.Copying:         {"host–device copies", "for copies between host and device"},
	activity.Collectives:     {"communication between ranks", "for other ranks"},
	activity.InputOutput:     {"input/output", "for input or output"},
	activity.Checkpoints:     {"saving or loading", "for saving or loading"},
	activity.Compilation:     {"compilation", "for compilation"},
	activity.Waits:           {"waiting", "while the program waited"},
	activity.Contention:      {"waiting for the GIL or a CPU", "for the GIL or a CPU"},
	activity.SettingUp:       {"imports and set-up", "for imports and set-up"},
	activity.Ending:          {"interpreter exit", "for the interpreter to end"},
	activity.BetweenKernels:  {"gaps between queued kernels", "between kernels that were queued"},
	activity.Absence:         {"no GPU work", "without any work"},
	activity.NotKnown:        {"unknown", "for unknown reasons"},
}

// Kind is the name of a kind of cause.
func Kind(k activity.Kind) string { return kinds[k].name }

var phases = map[timeline.Phase]string{
	timeline.PhasePrepare:    "compiling the cell",
	timeline.PhaseDisplay:    "displaying the result",
	timeline.PhaseTraceback:  "formatting the traceback",
	timeline.PhaseFigures:    "drawing figures after the cell",
	timeline.PhaseCallbacks:  "callbacks around the cell",
	timeline.PhaseTorchTrace: "torch.profiler's start, stop and trace file",
}

// TorchTrace is what notes on the traces of torch.profiler are about.
const TorchTrace = "torch.profiler"

// Phase says what a notebook does around a cell's code.
func Phase(p timeline.Phase) string { return phases[p] }

// Task is what a task of an engine is called; without a name, that there is none.
func Task(name string) string {
	if name == "" {
		return "no task"
	}
	return "task " + name
}

var trainingPhases = map[origin.Phase]string{
	origin.OtherPhase:   "other code",
	origin.StartUp:      "start-up",
	origin.Loading:      "data",
	origin.Transfer:     "transfer to the device",
	origin.Forward:      "forward",
	origin.Backward:     "backward",
	origin.Optimizer:    "optimizer",
	origin.ZeroGrad:     "zero_grad",
	origin.Logging:      "logging",
	origin.Evaluation:   "evaluation",
	origin.Checkpoint:   "checkpoint",
	origin.Callbacks:    "callbacks",
	origin.Compilation:  "compilation",
	origin.CompiledStep: "compiled step",
}

// TrainingPhase names a phase of a training.
func TrainingPhase(p origin.Phase) string { return trainingPhases[p] }

var throttleReasons = map[timeline.ThrottleReason]string{
	timeline.PowerCap:        "the power limit",
	timeline.HardwareSlow:    "a slowdown by hardware",
	timeline.ThermalSoftware: "heat (slowed down by the driver)",
	timeline.ThermalHardware: "heat (slowed down by hardware)",
	timeline.PowerBrake:      "the power brake",
}

// ThrottleReason says what slowed a GPU down.
func ThrottleReason(r timeline.ThrottleReason) string { return throttleReasons[r] }

var methods = map[string]string{
	"":                     "stacks not sampled",
	timeline.MethodOutside: "process_vm_readv, read twice",
	timeline.MethodInside:  "sys._current_frames in the kernel",
}

// Method says how stacks were read.
func Method(id string) string {
	if name, known := methods[id]; known {
		return name
	}
	return id
}

// Certainty is how idle time was divided, as the heading of its table shows it.
func Certainty(c gpuidle.Certainty) string {
	if c.Exact == 0 {
		return ofWindows(c)
	}
	part := ""
	if c.Exact < c.Recorded {
		part = " for " + words.PartOf(c.Exact.Seconds(), c.Recorded.Seconds())
	}
	if c.Method != gpuidle.ByExact {
		return "Exact" + part + ". For the rest: " + ofWindows(c)
	}
	return fmt.Sprintf("Exact%s: from begin and end of each kernel and copy; gaps below %s are between queued kernels.", part, words.Resolution(c.KernelWait.Seconds()))
}

// ofWindows is how idle time was divided of which only windows are known.
func ofWindows(c gpuidle.Certainty) string {
	window := words.Resolution(c.Window.Seconds())
	switch c.Method {
	case gpuidle.ByWindows:
		return fmt.Sprintf("Measured: each cause lasts longer than the %s over which GPU activity is known.", window)
	case gpuidle.ByRepetition:
		return fmt.Sprintf("Estimated below the %s over which GPU activity is known, from %s (R² %s).",
			window, words.Plural(c.Repeats, "repetition", "repetitions"), words.Fixed(c.R2, 2))
	case gpuidle.ByAbsence:
		return "No GPU work was seen: nothing is blamed for the idle time."
	}
	if math.IsNaN(c.R2) {
		return fmt.Sprintf("Estimated: spread evenly over the %s over which GPU activity is known; bounds in brackets.", window)
	}
	return fmt.Sprintf("Estimated below the %s over which GPU activity is known (R² %s); bounds in brackets.", window, words.Fixed(c.R2, 2))
}

var advice = map[diagnose.Advice]string{
	diagnose.NoAdvice:           "",
	diagnose.UseWorkers:         "make batches in other processes: DataLoader(num_workers=4 or more, pin_memory=True, persistent_workers=True)",
	diagnose.SpeedUpWorkers:     "the workers are too slow: more num_workers, prefetch_factor=4, cheaper or cached transforms, pin_memory=True",
	diagnose.WorkersOnCPU:       "make batches in other processes: DataLoader(num_workers=N, persistent_workers=True), N no more than CPUs are free",
	diagnose.WorkersThatWait:    "make batches in other processes: DataLoader(num_workers=N, persistent_workers=True); loading mostly waits, so that N may be more than CPUs are free",
	diagnose.FasterOnCPU:        "the workers are too slow: more num_workers, prefetch_factor=4, cheaper or cached transforms",
	diagnose.CheapSampler:       "the sampler runs in the training's own process, with or without workers: compute its batches in advance, keep them for the next epoch, or make it cheaper",
	diagnose.KeepWorkers:        "the workers are started again and again: make the iterator once, or let them stay (persistent_workers=True)",
	diagnose.MoreCPUs:           "no CPU is free for more workers: cheaper or cached transforms, or a machine with more CPUs",
	diagnose.Prefetch:           "prepare the next batch while the GPU works: worker processes, prefetching, data decoded in advance",
	diagnose.SyncLess:           "this waits for the GPU: move .item()/.cpu()/print out of the loop, or do it every 50 steps on a detached tensor",
	diagnose.CopyAsync:          "copy from pinned memory without waiting: pin_memory=True in the loader and .to(device, non_blocking=True)",
	diagnose.CompileOnce:        "this happens once per shape: warm up first, keep shapes fixed (padding), reuse the compile cache",
	diagnose.CompileShapes:      "this happens once per shape: warm up first, keep shapes fixed (padding) or use torch.compile(dynamic=True), reuse the compile cache",
	diagnose.CompileTypes:       "numba compiles once for each combination of argument types: the same dtypes, an explicit signature, or cache=True",
	diagnose.SaveAside:          "save less often, or hand a CPU copy to a thread (torch.distributed.checkpoint.async_save) so that the GPU goes on",
	diagnose.LaunchLess:         "the CPU launches kernels too slowly: larger batch, torch.compile(mode='reduce-overhead') or CUDA graphs, fused optimizer (fused=True)",
	diagnose.BalanceRanks:       "ranks wait for the slowest: balance the batches, overlap communication with the backward pass (DDP's buckets)",
	diagnose.ShareWork:          "the others wait for what one rank does alone: save in the background (a thread, torch.distributed.checkpoint.async_save), evaluate on all ranks, or do it less often",
	diagnose.ReadAhead:          "read larger pieces, ahead in a thread, and keep what is read twice",
	diagnose.AvoidGIL:           "use processes in place of threads, or code that releases the GIL",
	diagnose.UseGPU:             "do it on the GPU, or move it into the loader's workers",
	diagnose.QueueWork:          "let the GPU have work queued before waiting here",
	diagnose.FewerThreads:       "the program has more busy threads and processes than there are CPUs: lower torch.set_num_threads, OMP_NUM_THREADS or the number of workers",
	diagnose.AwaitTogether:      "awaits that follow each other can run together: asyncio.gather, TaskGroup, a nursery of trio",
	diagnose.KeepLoopFree:       "a blocking call stops all tasks of the loop: await asyncio.to_thread(…), trio.to_thread.run_sync(…), a process pool for what computes, an asynchronous library for input and output",
	diagnose.SetUpApart:         "before the first kernel: imports, building the model, moving it to the GPU; do it in a cell of its own",
	diagnose.Vectorise:          "vectorise it, cache its result, or move work out of the loop",
	diagnose.WholeColumns:       "work on whole columns in place of row by row",
	diagnose.CollectLess:        "keep fewer objects, gc.freeze() once they are made, a higher gc.set_threshold(), or gc.disable() while they are made",
	diagnose.PrintLess:          "print every 100th time, or use tqdm with mininterval=1: each message goes through the kernel's socket to the browser",
	diagnose.FreeMemory:         "the system may end the program: free what is no longer needed, load in parts or with memory mapping, use smaller types",
	diagnose.LessMemory:         "the machine is out of memory and works from disk: use less, or close other programs",
	diagnose.BalanceDevices:     "balance the work: DistributedDataParallel in place of DataParallel, equal shards, or leave the device to others (CUDA_VISIBLE_DEVICES)",
	diagnose.SmallerBatch:       "smaller batch, activation checkpointing, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
	diagnose.LeaveRoom:          "a full device makes the allocator flush its cache in one rank while the others wait: leave 10 % of it free",
	diagnose.CheckCooling:       "check the cooling and the power supply: nvidia-smi -q -d PERFORMANCE",
	diagnose.FindFaultyKernel:   "an error of the program as a rule: compute-sanitizer python train.py names the kernel and its bad access, CUDA_LAUNCH_BLOCKING=1 the line",
	diagnose.CheckDevice:        "see dmesg and nvidia-smi -q: an error of the device or its driver may need a reset, or another device",
	diagnose.PowerLimitIsNormal: "normal under full load; nvidia-smi -q -d POWER shows the limit",
	diagnose.MoveToGPU:          `move model and data there: model.to("cuda"), batch.to("cuda"); torch.cuda.is_available() returns whether this build can use it`,
	diagnose.FasterKernels:      "to go faster: mixed precision (bfloat16), torch.compile, better kernels, or a larger device",
	diagnose.RequestsAtOnce:     "send several at once (ThreadPoolExecutor, asyncio)",
	diagnose.KeepConnection:     "reuse the connection (a session)",
	diagnose.ManyRequests:       "send several at once (ThreadPoolExecutor, asyncio), and reuse the connection (a session)",
	diagnose.FewerQueries:       "handle many rows in one query (executemany, a join) in place of one query for each",
	diagnose.KilledForMemory:    "the system ends processes so when memory runs out (dmesg shows it): fewer workers, smaller batches, or less data held in each",
	diagnose.NativeCrash:        "native code crashed: run with python -X faulthandler to see in which line",
	diagnose.RecordTrace:        "%%omni_perf --exact records when exactly the GPU worked (with PyTorch); --torch shows single operators and kernels, too",
}

// Advice says what to change; empty for none.
func Advice(a diagnose.Advice) string { return advice[a] }

// gaps say why nothing is known of a process's stacks for some time.
var gaps = map[timeline.GapReason]string{
	timeline.GapUnreadable: "no stacks could be read from its memory",
	timeline.GapStarting:   "Python was not running yet",
	timeline.GapExec:       "the process became another program",
	timeline.GapExit:       "the interpreter had shut down",
	timeline.GapPermission: "the system no longer allowed reading the process",
	timeline.GapStopped:    "the process was stopped",
	timeline.GapTraced:     "a debugger held the process",
	timeline.GapLate:       "the sampler had no CPU",
	timeline.GapNoPython:   "it runs no Python",
}

// Gap says why nothing is known of a process's stacks.
func Gap(reason timeline.GapReason) string { return gaps[reason] }

// Restarted says that a kernel was restarted so many times while its cells were followed.
func Restarted(times int) string {
	return "restarted " + words.Plural(times, "time", "times") + " since its cells are followed; they count from 1 again"
}
