package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// act is what the main thread does for a while, with the GPU at some activity.
type act struct {
	length timeline.Nanos
	line   int // of the cell
	file   string
	fn     string // of a library frame below, if file is set
	state  timeline.State
	gpu    float64 // percent
}

// phaseFile is a library that runs while the notebook displays a result.
const phaseFile = "/x/site-packages/pandas/io/formats/html.py"

// scene plays acts over and over, 100 ms windows for each GPU given.
type scene struct {
	acts   []act
	times  int
	gpus   int // devices; the second and later ones at gpu·other
	other  float64
	cell   string // text of the cell; empty = cellText
	change func(*timeline.Builder)
	script bool           // the acts are a script's, not a cell's; line 0: no frame of its own
	window timeline.Nanos // of the GPUs' activity; 0 = as long as each act
}

func (s scene) record() *timeline.Recording {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	text := s.cell
	if text == "" {
		text = cellText
	}
	b.Describe(func(r *timeline.Recording) {
		if r.Sources = []timeline.Source{{File: cellFile, Text: text}}; !s.script {
			r.Target.Cell = &timeline.Cell{File: cellFile, Text: text}
		}
		r.Target.PID = 1
		r.Processes = []timeline.Process{{PID: 1, Role: "kernel"}}
		for i := range s.gpus {
			r.GPUs = append(r.GPUs, timeline.GPU{Index: i, Name: "Test GPU", PIDs: []int{1}})
		}
	})
	id := b.Thread(timeline.Thread{PID: 1, Main: true, RunsCell: true})
	at := timeline.Nanos(0)
	for range max(s.times, 1) {
		for _, a := range s.acts {
			node := timeline.RootNode
			if a.line > 0 {
				node = b.Child(node, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: a.line}))
			}
			if a.file == phaseFile {
				node = b.Child(node, b.Frame(timeline.Frame{Phase: timeline.PhaseDisplay}))
			}
			if a.file != "" {
				node = b.Child(node, b.Frame(timeline.Frame{Function: a.fn, File: a.file, Line: 1}))
			}
			b.Set(id, at, node, a.state, false)
			for i := range s.gpus {
				value := a.gpu
				if i > 0 {
					value *= s.other
				}
				w := b.Track(timeline.TrackSpec{ID: fmt.Sprintf("gpu%d.util", i), Kind: timeline.KindRate, Unit: "%", Device: i, MaxPoints: 1 << 16})
				if s.window == 0 {
					w.AddWindow(at, at+a.length, value)
				}
			}
			at += a.length
		}
	}
	for i := range s.gpus {
		for from := timeline.Nanos(0); s.window > 0 && from < at; from += s.window {
			w := b.Track(timeline.TrackSpec{ID: fmt.Sprintf("gpu%d.util", i), Device: i})
			w.AddWindow(from, min(from+s.window, at), s.acts[0].gpu)
		}
	}
	if s.change != nil {
		s.change(b)
	}
	return b.Snapshot(at)
}

// gauge adds a track of one value over the recording.
func gauge(id string, limit float64, values ...float64) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		device := -1
		if strings.HasPrefix(id, "gpu0") {
			device = 0
		}
		w := b.Track(timeline.TrackSpec{ID: id, Kind: timeline.KindGauge, Limit: limit, Device: device})
		for i, v := range values {
			w.Add(timeline.Nanos(i)*100*ms, v)
		}
	}
}

func both(changes ...func(*timeline.Builder)) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		for _, c := range changes {
			c(b)
		}
	}
}

// throttled says why GPU 0 ran slower than it could.
func throttledBy(reasons ...timeline.ThrottleReason) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Describe(func(r *timeline.Recording) { r.GPUs[0].Throttle = reasons })
	}
}

// beside lets another thread of the program do something all the time.
func beside(name string, state timeline.State, line int, file, fn string) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		id := b.Thread(timeline.Thread{PID: 1, NativeID: 100, Name: name})
		node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "Thread._bootstrap", File: threadingLib, Line: 1}))
		node = b.Child(node, b.Frame(timeline.Frame{Function: "work", File: cellFile, Line: line}))
		if file != "" {
			node = b.Child(node, b.Frame(timeline.Frame{Function: fn, File: file, Line: 1}))
		}
		b.Set(id, 0, node, state, false)
	}
}

// child adds a child process that lives as long as the recording.
func child(command, role string) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Describe(func(r *timeline.Recording) {
			r.Processes = append(r.Processes, timeline.Process{PID: 50 + len(r.Processes), Parent: 1, Role: timeline.Role(role), Command: command})
		})
	}
}

func printed(messages int64) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Describe(func(r *timeline.Recording) { r.Output = &timeline.Output{Messages: messages, Bytes: 40 * messages} })
	}
}

const (
	torchModule  = "/x/site-packages/torch/nn/modules/module.py"
	c10d         = "/x/site-packages/torch/distributed/distributed_c10d.py"
	dynamo       = "/x/site-packages/torch/_dynamo/convert_frame.py"
	torchSave    = "/x/site-packages/torch/serialization.py"
	threadingLib = "/usr/lib/python3.12/threading.py"
	sec          = 1000 * ms
)

var (
	training = act{length: sec, line: 5, file: torchModule, fn: "f", state: timeline.StateNative, gpu: 100}
	// twoLines of Python share the time.
	twoLines = []act{{sec, 8, "", "", timeline.StatePython, 0}, {sec, 7, "", "", timeline.StatePython, 0}}
	other    = act{sec, 7, "", "", timeline.StatePython, 0}
	joining  = act{sec, 7, threadingLib, "Thread.join", timeline.StateWaiting, 0}
)

// one act of a second beside others.
func one(line int, file, fn string, state timeline.State, gpu float64) act {
	return act{sec, line, file, fn, state, gpu}
}

// short is the same for a tenth of the time.
func short(a act) act {
	a.length /= 10
	return a
}

const (
	inline  = "_SingleProcessDataLoaderIter._next_data"
	workers = "_MultiProcessingDataLoaderIter._next_data"
	site    = "/x/site-packages/"
)

// Every finding with a recording that makes it fire, the line it must name, the
// advice that fits, and a recording like it that keeps it silent.
var findingCases = map[FindingID]struct {
	fires  scene
	line   int
	advice Advice
	silent scene
}{
	GPUWaitsForData: {
		scene{acts: []act{one(1, dataloaderFile, inline, timeline.StatePython, 0), training}, times: 4, gpus: 1}, 1, UseWorkers,
		scene{acts: []act{one(1, dataloaderFile, inline, timeline.StatePython, 95), training}, times: 4, gpus: 1},
	},
	GPUWaitsForLaunches: {
		scene{acts: []act{one(3, torchModule, "Module._call_impl", timeline.StatePython, 40)}, times: 5, gpus: 1}, 3, LaunchLess,
		scene{acts: []act{one(3, torchModule, "Module._call_impl", timeline.StatePython, 95)}, times: 5, gpus: 1},
	},
	GPUWaitsForHost: {
		scene{acts: []act{training, one(8, "", "", timeline.StatePython, 0), training}, times: 4, gpus: 1}, 8, UseGPU,
		scene{acts: []act{{100 * ms, 8, "", "", timeline.StatePython, 0}, training}, times: 4, gpus: 1},
	},
	GPUWaitsForIO: {
		scene{acts: []act{training, one(8, "", "", timeline.StateIO, 0), training}, times: 4, gpus: 1}, 8, ReadAhead,
		scene{acts: []act{one(8, "", "", timeline.StateIO, 100), training}, times: 4, gpus: 1},
	},
	GPUWaitsForCheckpoint: {
		scene{acts: []act{one(9, torchSave, "save", timeline.StateIO, 0), training}, times: 4, gpus: 1}, 9, SaveAside,
		scene{acts: []act{one(9, torchSave, "save", timeline.StateIO, 100), training}, times: 4, gpus: 1},
	},
	GPUWaitsForCompilation: {
		scene{acts: []act{training, one(3, dynamo, "compile", timeline.StatePython, 0)}, gpus: 1}, 3, CompileShapes,
		scene{acts: []act{training, training, {100 * ms, 3, dynamo, "compile", timeline.StatePython, 0}}, gpus: 1},
	},
	GPUWaitsForRanks: {
		scene{acts: []act{training, one(7, c10d, "all_reduce", timeline.StateWaiting, 0)}, gpus: 1}, 7, BalanceRanks,
		scene{acts: []act{training, one(7, c10d, "all_reduce", timeline.StateWaiting, 99)}, gpus: 1},
	},
	GPUWaitsForWaits: {
		scene{acts: []act{training, one(10, "", "", timeline.StateWaiting, 0)}, gpus: 1}, 10, QueueWork,
		scene{acts: []act{training, {100 * ms, 10, "", "", timeline.StateWaiting, 0}}, gpus: 1},
	},
	GPUWaitsForContention: {
		scene{acts: []act{training, one(8, "", "", timeline.StateGIL, 0)}, gpus: 1}, 8, AvoidGIL,
		scene{acts: []act{training, {100 * ms, 8, "", "", timeline.StateGIL, 0}}, gpus: 1},
	},
	GPUWaitsForCopies: {
		scene{acts: []act{training, one(2, "", "", timeline.StateNative, 0)}, gpus: 1}, 2, CopyAsync,
		scene{acts: []act{training, one(2, "", "", timeline.StateNative, 100)}, gpus: 1},
	},
	GPUWaitsForSync: {
		scene{acts: []act{training, one(6, "", "", timeline.StateNative, 40)}, gpus: 1}, 6, SyncLess,
		scene{acts: []act{training, one(6, "", "", timeline.StateNative, 100)}, gpus: 1},
	},
	GPUWaitsAtStart: {
		scene{acts: []act{one(8, "", "", timeline.StatePython, 0), training}, gpus: 1}, 8, SetUpApart,
		scene{acts: []act{training, one(8, "", "", timeline.StatePython, 0)}, gpus: 1},
	},
	GPUWaitsAtExit: {
		scene{acts: []act{training, one(0, "", "", timeline.StatePython, 0)}, gpus: 1, script: true}, 0, NoAdvice,
		scene{acts: []act{one(8, "", "", timeline.StatePython, 0), training}, gpus: 1, script: true},
	},
	GPUIdleUndecided: { // five times within each window
		scene{acts: []act{{20 * ms, 1, dataloaderFile, inline, timeline.StatePython, 50}, {20 * ms, 3, torchModule, "f", timeline.StatePython, 50}}, times: 100, gpus: 1, window: 100 * ms}, 0, RecordTrace,
		scene{acts: []act{one(1, dataloaderFile, inline, timeline.StatePython, 50), one(3, torchModule, "f", timeline.StatePython, 90)}, times: 4, gpus: 1},
	},
	SyncInLoop: {
		scene{acts: []act{{100 * ms, 6, "", "", timeline.StateNative, 100}, {200 * ms, 3, torchModule, "f", timeline.StatePython, 30}}, times: 20, gpus: 1}, 6, SyncLess,
		scene{acts: []act{{100 * ms, 6, "", "", timeline.StateNative, 100}, {3 * sec, 3, torchModule, "f", timeline.StatePython, 30}}, times: 3, gpus: 1},
	},
	HostDeviceCopies: {
		scene{acts: []act{one(2, "", "", timeline.StateNative, 20), training}, times: 4, gpus: 1}, 2, CopyAsync,
		scene{acts: []act{{20 * ms, 2, "", "", timeline.StateNative, 20}, training}, times: 4, gpus: 1},
	},
	Straggler: {
		scene{acts: launching, change: ddp(4, 9, 4, 4)}, 3, BalanceRanks,
		scene{acts: launching, change: ddp(4, 4, 4, 4)},
	},
	SomeGPUsIdle: {
		scene{acts: []act{training}, times: 3, gpus: 2, other: 0.05}, 0, BalanceDevices,
		scene{acts: []act{training}, times: 3, gpus: 2, other: 0.9},
	},
	GPUMemoryNearFull: {
		scene{acts: []act{training}, times: 3, gpus: 1, change: gauge("gpu0.mem", 80e9, 50e9, 78e9, 60e9)}, 0, SmallerBatch,
		scene{acts: []act{training}, times: 3, gpus: 1, change: gauge("gpu0.mem", 80e9, 50e9, 60e9)},
	},
	GPUMemoryCollectives: {
		scene{acts: []act{training, one(7, c10d, "all_reduce", timeline.StateWaiting, 50)}, gpus: 1, change: gauge("gpu0.mem", 80e9, 79e9)}, 7, LeaveRoom,
		scene{acts: []act{training}, times: 2, gpus: 1, change: gauge("gpu0.mem", 80e9, 79e9)},
	},
	GPUThrottled: {
		scene{acts: []act{training}, gpus: 1, change: both(gauge("gpu0.throttle", 1, 0, 1, 1), throttledBy(timeline.PowerCap, timeline.ThermalHardware))}, 0, CheckCooling,
		scene{acts: []act{training}, gpus: 1, change: both(gauge("gpu0.throttle", 1, 0, 1, 1), throttledBy(timeline.PowerCap))},
	},
	GPUPowerCapped: {
		scene{acts: []act{training}, gpus: 1, change: both(gauge("gpu0.throttle", 1, 0, 1, 1), throttledBy(timeline.PowerCap))}, 0, PowerLimitIsNormal,
		scene{acts: []act{training}, gpus: 1, change: gauge("gpu0.throttle", 1, 0, 0, 0)},
	},
	GPUUnused: {
		scene{acts: []act{{5 * sec, 3, torchModule, "f", timeline.StateNative, 0}}, gpus: 1}, 0, MoveToGPU,
		scene{acts: twoLines, times: 3, gpus: 1},
	},
	GPUBusy: {
		scene{acts: []act{training}, times: 3, gpus: 1}, 0, FasterKernels,
		scene{acts: []act{training, one(8, "", "", timeline.StatePython, 0)}, times: 3, gpus: 1},
	},
	GPUIdle: {
		scene{acts: []act{one(9, torchSave, "save", timeline.StateIO, 0), training, training, one(8, "", "", timeline.StatePython, 20)}, gpus: 1}, 9, SaveAside,
		scene{acts: []act{training}, times: 4, gpus: 1},
	},
	GPULost: {
		scene{acts: []act{training}, times: 4, gpus: 1, change: lostAt(2 * sec)}, 0, NoAdvice,
		scene{acts: []act{training}, times: 4, gpus: 1},
	},
	GPUError: {
		scene{acts: []act{training}, times: 4, gpus: 1, change: reports(timeline.Xid{At: 3 * sec, Code: 45}, timeline.Xid{At: 3 * sec, Code: 31})}, 0, FindFaultyKernel,
		scene{acts: []act{training}, times: 4, gpus: 1},
	},

	OneLine: {
		scene{acts: []act{one(6, "", "", timeline.StatePython, 0), {200 * ms, 7, "", "", timeline.StatePython, 0}}, times: 9}, 6, NoAdvice,
		scene{acts: []act{one(2, "", "", timeline.StatePython, 0)}, times: 3, cell: "%%omni_perf\nf()"},
	},
	Computing: {
		scene{acts: []act{one(8, "", "", timeline.StatePython, 0), {700 * ms, 7, "", "", timeline.StatePython, 0}, {600 * ms, 3, "", "", timeline.StatePython, 0}}}, 8, NoAdvice,
		scene{acts: twoLines},
	},
	NoLineStandsOut: {
		scene{acts: []act{one(8, "", "", timeline.StatePython, 0), one(7, "", "", timeline.StatePython, 0), one(4, "", "", timeline.StateNative, 0)}}, 0, NoAdvice,
		scene{acts: []act{one(8, "", "", timeline.StateIO, 0), other}},
	},
	Imports: {
		scene{acts: []act{one(4, "<frozen importlib._bootstrap>", "_find_and_load", timeline.StatePython, 0), other}}, 4, NoAdvice,
		scene{acts: twoLines},
	},
	Drawing: {
		scene{acts: []act{one(4, site+"matplotlib/figure.py", "Figure.savefig", timeline.StatePython, 0), other}}, 4, NoAdvice,
		scene{acts: []act{short(one(4, site+"matplotlib/figure.py", "Figure.savefig", timeline.StatePython, 0)), other}},
	},
	Displaying: {
		scene{acts: []act{one(0, phaseFile, "DataFrame._repr_html_", timeline.StatePython, 0), other}}, 0, NoAdvice,
		scene{acts: []act{short(one(0, phaseFile, "DataFrame._repr_html_", timeline.StatePython, 0)), other}},
	},
	AroundCell: {
		scene{acts: twoLines, change: inPhase(timeline.PhaseCallbacks)}, 0, NoAdvice,
		scene{acts: twoLines},
	},
	Tracing: {
		scene{acts: twoLines, change: inPhase(timeline.PhaseTorchTrace)}, 0, NoAdvice,
		scene{acts: twoLines, change: inPhase(timeline.PhaseCallbacks)},
	},
	Compiling: {
		scene{acts: []act{one(3, dynamo, "compile", timeline.StatePython, 0), other}}, 3, CompileShapes,
		scene{acts: []act{short(one(3, dynamo, "compile", timeline.StatePython, 0)), other}},
	},
	Saving: {
		scene{acts: []act{one(3, torchSave, "save", timeline.StateIO, 0), other}}, 3, NoAdvice,
		scene{acts: []act{short(one(3, torchSave, "save", timeline.StateIO, 0)), other}},
	},
	LoadsData: {
		scene{acts: []act{one(1, dataloaderFile, workers, timeline.StateWaiting, 0), other}}, 1, FasterOnCPU,
		scene{acts: []act{short(one(1, dataloaderFile, workers, timeline.StateWaiting, 0)), other}},
	},
	StepsSlowDown: {growing(0.01, nil), 3, NoAdvice, growing(0, nil)},
	TrainingLoads: { // the imports took most of it
		scene{acts: []act{{7 * sec, 1, "<frozen importlib._bootstrap>", "_find_and_load", timeline.StatePython, 0},
			{2 * sec, 2, dataloaderFile, "_SingleProcessDataLoaderIter._next_data", timeline.StatePython, 0}, {sec, 3, site + "torch/_tensor.py", "Tensor.backward", timeline.StateNative, 0}}}, 2, WorkersOnCPU,
		scene{acts: []act{{7 * sec, 1, "<frozen importlib._bootstrap>", "_find_and_load", timeline.StatePython, 0},
			{sec / 2, 2, dataloaderFile, "_SingleProcessDataLoaderIter._next_data", timeline.StatePython, 0}, {2 * sec, 3, site + "torch/_tensor.py", "Tensor.backward", timeline.StateNative, 0}}},
	},
	WaitsForNetwork: {
		scene{acts: []act{one(4, site+"requests/api.py", "get", timeline.StateIO, 0), short(other)}, times: 5}, 4, ManyRequests,
		scene{acts: []act{short(one(4, site+"requests/api.py", "get", timeline.StateIO, 0)), other}},
	},
	WaitsForDatabase: {
		scene{acts: []act{one(4, site+"psycopg2/extras.py", "execute", timeline.StateWaiting, 0), short(other)}, times: 9}, 4, FewerQueries,
		scene{acts: []act{short(one(4, site+"psycopg2/extras.py", "execute", timeline.StateWaiting, 0)), other}},
	},
	WaitsForIO: {
		scene{acts: []act{one(8, "", "", timeline.StateIO, 0), short(other)}}, 8, NoAdvice,
		scene{acts: []act{short(one(8, "", "", timeline.StateIO, 0)), other}},
	},
	WaitsForUser: {
		scene{acts: []act{one(4, site+"ipykernel/kernelbase.py", "Kernel._input_request", timeline.StateWaiting, 0), short(other)}}, 4, NoAdvice,
		scene{acts: []act{one(4, site+"ipykernel/kernelbase.py", "Kernel._send", timeline.StateWaiting, 0), short(other)}},
	},
	WaitsForChildren: {
		scene{acts: []act{joining}, times: 3, change: both(cores(3.5), child("ffmpeg", "child"), inSubprocess)}, 8, NoAdvice,
		scene{acts: []act{joining}, times: 3},
	},
	WaitsForThreads: {
		scene{acts: []act{joining}, times: 3, change: beside("loader", timeline.StateNative, 3, "", "")}, 7, NoAdvice,
		scene{acts: []act{one(8, "", "", timeline.StateWaiting, 0)}, times: 3},
	},
	WaitsForLock: {
		scene{acts: []act{one(8, threadingLib, "Condition.wait", timeline.StateWaiting, 0), short(other)}, times: 3}, 8, NoAdvice,
		scene{acts: []act{one(8, threadingLib, "Condition.wait", timeline.StateWaiting, 0)}, times: 3, change: beside("loader", timeline.StateNative, 3, "", "")},
	},
	WaitsForRanks: {
		scene{acts: launching, script: true, change: ddp(4, 4)}, 7, BalanceRanks,
		scene{acts: launching, script: true, change: ddp(2, 9)}, // for one of them: the straggler
	},
	WaitsForEvents: {
		scene{acts: []act{one(0, "/usr/lib/python3.12/selectors.py", "EpollSelector.select", timeline.StateWaiting, 0), short(other)}, times: 5}, 0, AwaitTogether,
		scene{acts: []act{short(one(0, "/usr/lib/python3.12/selectors.py", "EpollSelector.select", timeline.StateWaiting, 0)), other}},
	},
	TasksWait: {
		scene{acts: []act{selecting, other}, change: tasksAt(timeline.AwaitsOther, 4, 18, 1, 0, sec)}, 4, NoAdvice,
		scene{acts: []act{selecting, other}, change: tasksAt(timeline.AwaitsTasks, 4, 18, 1, 0, sec)}, // that is what these wait for
	},
	AwaitsInTurn: {
		scene{acts: []act{selecting, other}, change: tasksAt(timeline.AwaitsOther, 4, 1, 10, 0, sec)}, 4, AwaitTogether,
		scene{acts: []act{selecting, other}, change: both(tasksAt(timeline.AwaitsOther, 4, 1, 10, 0, sec), tasksAt(timeline.AwaitsOther, 6, 1, 1, 0, sec))},
	},
	LoopBlocked: {
		scene{acts: []act{one(3, "", "", timeline.StatePython, 0), selecting}, change: tasksAt(timeline.AwaitsTurn, 4, 5, 1, 0, sec)}, 3, KeepLoopFree,
		scene{acts: []act{one(3, "", "", timeline.StatePython, 0), selecting}, change: taking(4)}, // a task has its turn each 10 ms
	},
	WaitsUnknown: {
		scene{acts: []act{one(8, "", "", timeline.StateWaiting, 0), short(other)}}, 8, NoAdvice,
		scene{acts: []act{short(one(8, "", "", timeline.StateWaiting, 0)), other}},
	},
	Sleeps: {
		scene{acts: []act{one(10, "", "", timeline.StateWaiting, 0)}, times: 3}, 10, NoAdvice,
		scene{acts: []act{one(9, "", "", timeline.StateWaiting, 0)}, times: 3},
	},
	GILContention: {
		scene{acts: []act{one(8, "", "", timeline.StateGIL, 0), other, other}, change: beside("worker", timeline.StatePython, 3, "", "")}, 8, AvoidGIL,
		scene{acts: []act{short(one(8, "", "", timeline.StateGIL, 0)), other, other}},
	},
	ThreadsTakeTurns: {
		scene{acts: []act{joining}, times: 3, change: both(beside("a", timeline.StatePython, 3, "", ""), beside("b", timeline.StateGIL, 3, "", ""))}, 3, AvoidGIL,
		scene{acts: []act{joining}, times: 3, change: both(beside("a", timeline.StateNative, 3, "", ""), beside("b", timeline.StateNative, 3, "", ""))},
	},
	NoFreeCPU: {
		scene{acts: []act{one(8, "", "", timeline.StateOff, 0), other, other}, change: ownCores(1.9, 2)}, 8, FewerThreads,
		scene{acts: []act{short(one(8, "", "", timeline.StateOff, 0)), other, other}},
	},
	BusyMachine: { // the scheduler counted no time for the thread
		scene{acts: twoLines, change: machine(2, 2)}, 0, NoAdvice,
		scene{acts: twoLines, change: machine(1, 2)},
	},
	StacksUnknown: {
		scene{acts: twoLines, change: stoppedFor(sec / 2)}, 0, NoAdvice,
		scene{acts: twoLines, change: stoppedFor(sec / 10)},
	},
	Traceback: {
		scene{acts: twoLines, change: formatted(sec)}, 0, NoAdvice,
		scene{acts: twoLines, change: formatted(sec / 20)}, // nobody waits for that
	},
	DrawnAfterError: {
		scene{acts: twoLines, change: figures(sec)}, 0, NoAdvice,
		scene{acts: twoLines, change: figures(sec / 20)},
	},
	BegunLate: {
		scene{acts: twoLines, change: late(sec)}, 0, NoAdvice,
		scene{acts: twoLines, change: late(sec / 20)},
	},
	CollectsGarbage: {
		scene{acts: []act{one(8, timeline.GarbageCollection.File, timeline.GarbageCollection.Function, timeline.StatePython, 0), other, other}}, 8, CollectLess,
		scene{acts: []act{one(8, timeline.GarbageCollection.File, timeline.GarbageCollection.Function, timeline.StatePython, 0), other, other, other}},
	},
	Printing: {
		scene{acts: twoLines, change: printed(4000)}, 0, PrintLess,
		scene{acts: twoLines, change: printed(20)},
	},
	MemoryPressure: {
		scene{acts: twoLines, change: gauge("rss", 16e9, 8e9, 15.9e9)}, 0, FreeMemory,
		scene{acts: twoLines, change: gauge("rss", 16e9, 8e9, 12e9)},
	},
	RankFailed: {
		scene{acts: launching, script: true, change: both(ddp(9, 4), ends(1, 1, &timeline.Raised{Type: "KeyError", Stack: []timeline.RaisedAt{{File: cellFile, Line: 6}}}, 9*sec))}, 6, NoAdvice,
		scene{acts: launching, script: true, change: both(ddp(9, 4), ends(1, 143, nil, 9*sec))}, // its launcher ended it
	},
	WorkerKilled: {
		scene{acts: twoLines, change: endedWorker(9, sec)}, 0, KilledForMemory,
		scene{acts: twoLines, change: endedWorker(15, 2*sec)}, // it was asked to end
	},
	Swapping: {
		scene{acts: twoLines, change: gauge("swap", 8e9, 1e9, 2e9)}, 0, LessMemory,
		scene{acts: twoLines, change: gauge("swap", 8e9, 5e9, 5e9)},
	},
	SlowStartUp: {
		scene{acts: []act{one(0, "<frozen site>", "main", timeline.StatePython, 0), other}, script: true}, 0, NoAdvice,
		scene{acts: twoLines, script: true},
	},
	SlowExit: {
		scene{acts: []act{other, {500 * ms, 0, "", "", timeline.StateNative, 0}}, script: true}, 0, NoAdvice,
		scene{acts: twoLines, script: true},
	},
}

// selecting is an event loop that waits for whatever comes first.
var selecting = one(0, "/usr/lib/python3.12/selectors.py", "EpollSelector.select", timeline.StateWaiting, 0)

// tasksAt are so many tasks that sleep at a line of the cell, or would go on there, some awaits after the other.
func tasksAt(kind timeline.AwaitKind, line, tasks, awaits int, from, to timeline.Nanos) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		length := (to - from) / timeline.Nanos(awaits)
		for i := range timeline.Nanos(awaits) {
			addAwaits(b, kind, line, from+i*length, from+(i+1)*length, tasks, tasks)
		}
	}
}

// addAwaits has tasks sleep at a line, some of which began to.
func addAwaits(b *timeline.Builder, kind timeline.AwaitKind, line int, from, to timeline.Nanos, tasks, begun int) {
	node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "fetch", File: cellFile, Line: line, FirstLine: line - 1, Suspended: true}))
	node = b.Child(node, b.Frame(timeline.Frame{Function: "sleep", File: "/usr/lib/python3.12/asyncio/tasks.py", Line: 1, Suspended: true}))
	b.AddAwaits(0, from, to, kind, map[timeline.NodeID]int{node: tasks}, map[timeline.NodeID]int{node: begun})
}

// Awaits of which most of the time one waited alone follow each other, though several waited there at once before; of many of
// which one takes longest nothing follows.
func TestAwaitsInTurnAfterSomeAtOnce(t *testing.T) {
	together := tasksAt(timeline.AwaitsOther, 4, 18, 1, 0, sec/10)
	for name, c := range map[string]struct {
		then func(*timeline.Builder)
		want FindingID
	}{
		"in turn":     {tasksAt(timeline.AwaitsOther, 4, 1, 9, sec/10, sec), AwaitsInTurn},
		"a straggler": {func(b *timeline.Builder) { addAwaits(b, timeline.AwaitsOther, 4, sec/10, sec, 1, 0) }, ""},
		"at once":     {tasksAt(timeline.AwaitsOther, 4, 5, 9, sec/10, sec), TasksWait},
	} {
		list := Run(scene{acts: []act{selecting, other}, change: both(together, c.then)}.record()).Findings
		i := slices.IndexFunc(list, func(f Finding) bool { return f.ID == AwaitsInTurn || f.ID == TasksWait })
		switch {
		case c.want == "" && i < 0:
		case i < 0 || list[i].ID != c.want:
			t.Errorf("%s: %v", name, ids(list))
		case c.want == AwaitsInTurn && (list[i].Count != 9 || list[i].Together != 18 || list[i].Time != 9*sec/10 || list[i].NextTime != sec/10):
			t.Errorf("%s: %+v", name, list[i])
		}
	}
}

// How many tasks were ready is counted while the loop was blocked there, and not while others had their turns.
func TestTasksThatABlockedLoopKeepsReady(t *testing.T) {
	blocked := scene{acts: []act{one(3, "", "", timeline.StatePython, 0), selecting}, change: both(
		tasksAt(timeline.AwaitsTurn, 4, 1, 1, 0, sec), tasksAt(timeline.AwaitsTurn, 4, 6, 1, sec, 3*sec/2))}
	list := Run(blocked.record()).Findings
	i := slices.IndexFunc(list, func(f Finding) bool { return f.ID == LoopBlocked })
	if i < 0 || list[i].Count != 1 || list[i].Time != sec {
		t.Errorf("%v, %+v", ids(list), list)
	}
}

// A call of C that waits for the lock of a file has no frame: the line is asked.
func TestWaitForTheLockOfAFile(t *testing.T) {
	waits := scene{acts: []act{one(1, "", "", timeline.StateWaiting, 0), short(other)}, cell: "fcntl.flock(f, fcntl.LOCK_EX)\n", script: true}
	f := Run(waits.record()).Findings[0]
	if f.ID != WaitsForLock || f.Call != (activity.Call{Package: "fcntl", Function: "flock"}) || f.Time != sec {
		t.Errorf("%+v", f)
	}
}

// What a program does already is not advised: it has a session, or sends its requests from tasks of an event loop.
func TestAdviceForRequests(t *testing.T) {
	client := func(file, fn string) act { return one(4, site+file, fn, timeline.StateIO, 0) }
	for _, c := range []struct {
		call act
		loop bool
		want Advice
	}{
		{client("requests/api.py", "get"), false, ManyRequests},
		{client("requests/sessions.py", "Session.get"), false, RequestsAtOnce},
		{client("httpx/_api.py", "get"), false, ManyRequests},
		{client("httpx/_client.py", "AsyncClient.get"), true, NoAdvice},
		{client("aiohttp/connector.py", "TCPConnector.connect"), true, KeepConnection},
	} {
		rec := scene{acts: []act{c.call, short(other)}, times: 5}.record()
		for i := range rec.Frames {
			rec.Frames[i].Suspended = c.loop && rec.Frames[i].File == c.call.file
		}
		d := Run(rec)
		if got := findingOfID(t, &d, WaitsForNetwork); got.Advice != c.want {
			t.Errorf("%s: %q, want %q", c.call.fn, got.Advice, c.want)
		}
	}
}

// What has a lock of asyncio's waits within the block that others wait for.
func TestTheLineThatHasALockIsNamed(t *testing.T) {
	text := "async def get(n):\n    async with lock:\n        await asyncio.sleep(1)\n    await asyncio.sleep(2)\n"
	at := func(line, tasks int, library ...string) func(*timeline.Builder) {
		return func(b *timeline.Builder) {
			node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "get", File: cellFile, Line: line, FirstLine: 1, Suspended: true}))
			for i := 0; i < len(library); i += 2 {
				node = b.Child(node, b.Frame(timeline.Frame{Function: library[i+1], File: "/usr/lib/python3.12/asyncio/" + library[i], Line: 1, Suspended: true}))
			}
			b.AddAwaits(0, 0, sec, timeline.AwaitsOther, map[timeline.NodeID]int{node: tasks}, map[timeline.NodeID]int{node: tasks})
		}
	}
	waits := at(2, 9, "mixins.py", "_ContextManagerMixin.__aenter__", "locks.py", "Lock.acquire")
	for _, c := range []struct {
		name string
		has  func(*timeline.Builder)
		want int
	}{
		{"in the block", at(3, 1, "tasks.py", "sleep"), 3},
		{"behind it", at(4, 1, "tasks.py", "sleep"), 0},
	} {
		list := Run(scene{acts: []act{selecting, other}, cell: text, change: both(waits, c.has)}.record()).Findings
		if len(list) == 0 || list[0].ID != TasksWait || list[0].Call.Function != "Lock.acquire" || list[0].Next.Line != c.want {
			t.Errorf("%s: %+v, want line %d", c.name, list, c.want)
		}
	}
}

// A fifth of a run in which awaits followed each other is a finding: at once they would take as long as one. What could not
// be saved, or is too little, is none.
func TestAwaitsInTurnThatAreAFifthOfARun(t *testing.T) {
	long := func(a act) act { a.length *= 8; return a }
	text := "async def get(n):\n    async with lock:\n        await asyncio.sleep(1)\n"
	lock := func(turns int) func(*timeline.Builder) {
		return func(b *timeline.Builder) {
			line := func(line int, library, function string) timeline.NodeID {
				node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "get", File: cellFile, Line: line, FirstLine: 1, Suspended: true}))
				return b.Child(node, b.Frame(timeline.Frame{Function: function, File: "/usr/lib/python3.12/asyncio/" + library, Line: 1, Suspended: true}))
			}
			has, waits := line(3, "tasks.py", "sleep"), line(2, "locks.py", "Semaphore.acquire")
			for i := range timeline.Nanos(turns) {
				length := 2 * sec / timeline.Nanos(turns)
				b.AddAwaits(0, i*length, (i+1)*length, timeline.AwaitsOther, map[timeline.NodeID]int{has: 1, waits: 9}, map[timeline.NodeID]int{has: 1})
			}
		}
	}
	two := selecting
	two.length = 2 * sec
	for name, c := range map[string]struct {
		scene
		want FindingID
	}{
		"awaits in turn":                    {scene{acts: []act{two, long(other)}, change: tasksAt(timeline.AwaitsOther, 4, 1, 10, 0, 2*sec)}, AwaitsInTurn},
		"of a run of which they are little": {scene{acts: []act{selecting, long(other), long(other)}, change: tasksAt(timeline.AwaitsOther, 4, 1, 10, 0, sec)}, ""},
		"few":                               {scene{acts: []act{two, long(other)}, change: tasksAt(timeline.AwaitsOther, 4, 1, 2, 0, 2*sec)}, ""},
		"a semaphore of one":                {scene{acts: []act{two, long(other)}, cell: text, change: lock(10)}, TasksWait},
		"one that is had once":              {scene{acts: []act{two, long(other)}, cell: text, change: lock(1)}, ""},
		"at once":                           {scene{acts: []act{two, long(other)}, change: tasksAt(timeline.AwaitsOther, 4, 18, 10, 0, 2*sec)}, ""},
	} {
		list := Run(c.record()).Findings
		if len(list) == 0 || list[0].ID == AwaitsInTurn || list[0].ID == TasksWait {
			t.Errorf("%s: leads %v", name, ids(list))
		}
		i := slices.IndexFunc(list, func(f Finding) bool { return f.ID == AwaitsInTurn || f.ID == TasksWait })
		if i < 0 && c.want != "" || i >= 0 && list[i].ID != c.want {
			t.Errorf("%s: %v, want %q", name, ids(list), c.want)
		}
	}
}

// taking are tasks of which the loop takes another one each 10 ms for a second.
func taking(line int) func(*timeline.Builder) {
	var changes []func(*timeline.Builder)
	for i := range timeline.Nanos(100) {
		changes = append(changes, tasksAt(timeline.AwaitsTurn, line, 20+int(i%2), 1, i*10*ms, (i+1)*10*ms))
	}
	return both(changes...)
}

// ends is how a rank ends, and when.
func ends(rank, code int, raised *timeline.Raised, at timeline.Nanos) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Describe(func(r *timeline.Recording) {
			p := &r.Processes[1+rank]
			if p.Exit, p.Raised, p.End = &code, raised, at; code >= 128 {
				p.Signal = code - 128
			}
		})
	}
}

// The first of several ranks that fail is the one whose own code did: the others fail in collectives, as it is gone, and may
// end before it.
func TestTheRankThatFailedFirst(t *testing.T) {
	own := &timeline.Raised{Type: "ValueError", Stack: []timeline.RaisedAt{{File: cellFile, Line: 6}}}
	together := &timeline.Raised{Type: "RuntimeError", Message: "Connection closed by peer", Stack: []timeline.RaisedAt{{File: "/x/site-packages/torch/autograd/graph.py", Line: 1}, {File: cellFile, Line: 7}}}
	for _, c := range []struct {
		name   string
		change func(*timeline.Builder)
		id     FindingID
		rank   int
	}{
		{"one", both(ends(1, 1, own, 9*sec), ends(0, 143, nil, 9*sec)), RankFailed, 1},
		{"by its exit code", both(ends(1, 3, nil, 9*sec), ends(0, 143, nil, 9*sec)), RankFailed, 1},
		{"another in a collective before it", both(ends(1, 1, own, 9*sec), ends(0, 1, together, 9*sec-200*ms)), RankFailed, 1},
		{"another long after it", both(ends(1, 1, together, 5*sec), ends(0, 1, own, 9*sec)), RankFailed, 1},
		{"another was killed", both(ends(0, 137, nil, 8*sec), ends(1, 1, together, 9*sec)), WorkerKilled, 0},
		{"and then another was killed", both(ends(1, 1, own, 7*sec), ends(0, 137, nil, 8*sec)), RankFailed, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := scene{acts: launching, script: true, change: both(ddp(9, 4), c.change)}.record()
			d := Run(rec)
			main, ok := d.Main()
			if f := d.Findings[main]; !ok || f.ID != c.id || *f.Process.Rank != c.rank {
				t.Errorf("the headline is %s of %+v, want %s of rank %d", f.ID, f.Process, c.id, c.rank)
			}
		})
	}
}

// endedWorker is a worker that a signal has ended, and its memory until then.
func endedWorker(signal int, at timeline.Nanos) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		number, code := 1, 128+signal
		b.Describe(func(r *timeline.Recording) {
			r.Processes = append(r.Processes, timeline.Process{
				PID: 70, Parent: 1, Role: timeline.RoleLoaderWorker, Number: &number, Start: sec / 2, End: at, Exit: &code, Signal: signal,
			})
		})
		memory := b.Track(timeline.TrackSpec{ID: "process.1.rss", Kind: timeline.KindGauge, PID: 70, Process: 1, Device: -1})
		memory.Add(sec, 1<<30)
		memory.Add(at-sec/10, 3<<30)
	}
}

// The system kills a worker; all of a pool's workers at a time are killed by their owner, unless it found one of them dead.
func TestWorkersThatTheirOwnerKilled(t *testing.T) {
	for _, c := range []struct {
		name    string
		ends    []timeline.Nanos
		outcome string
		want    bool
	}{
		{"all at a time", []timeline.Nanos{sec, sec + sec/10}, "error: ValueError", false},
		{"all at a time, and nothing failed", []timeline.Nanos{sec, sec + sec/10}, "ok", false},
		{"all, as one had been killed", []timeline.Nanos{sec, sec + sec/10}, "error: TerminatedWorkerError", true},
		{"one of two", []timeline.Nanos{sec, 0}, "error: ValueError", true},
		{"one after the other", []timeline.Nanos{sec, 3 * sec}, "error: ValueError", true},
		{"the only one", []timeline.Nanos{sec}, "ok", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := scene{acts: []act{one(8, "", "", timeline.StatePython, 0), other}, change: func(b *timeline.Builder) {
				b.Describe(func(r *timeline.Recording) {
					r.Target.Cell.Outcome = c.outcome
					for i, end := range c.ends {
						p := timeline.Process{PID: 70 + i, Parent: 1, Role: timeline.RolePoolWorker, Start: sec / 2, End: end}
						if end > 0 {
							p.Signal = 9
						}
						r.Processes = append(r.Processes, p)
					}
				})
			}}.record()
			if got := slices.Contains(ids(Run(rec).Findings), WorkerKilled); got != c.want {
				t.Errorf("said to be killed: %v, want %v", got, c.want)
			}
		})
	}
}

// torch's loader raises as soon as one of its workers was killed: the end of the worker is then seen after the
// program's own.
func TestAWorkerThatEndedItsProgram(t *testing.T) {
	raised := &timeline.Raised{Type: "RuntimeError", Message: "DataLoader worker (pid 70) is killed by signal: Killed."}
	imports := one(7, "<frozen importlib._bootstrap>", "_find_and_load", timeline.StatePython, 0)
	for _, c := range []struct {
		name   string
		raised *timeline.Raised
		after  timeline.Nanos // the end of the program's own code
		want   bool
	}{
		{"just after an exception", raised, ms, true},
		{"long after an exception", raised, 500 * ms, false},
		{"just after a program that ended well", nil, ms, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := scene{acts: []act{imports, {sec, 0, "", "", timeline.StateNative, 0}}, script: true, change: both(endedWorker(9, sec+c.after), func(b *timeline.Builder) {
				b.Describe(func(r *timeline.Recording) { r.Processes[0].Raised = c.raised })
			})}.record()
			d := Run(rec)
			main, ok := d.Main()
			if !ok || (d.Findings[main].ID == WorkerKilled) != c.want {
				t.Errorf("the headline is %v, want the killed worker: %v", d.Findings, c.want)
			}
		})
	}
}

// What worker processes computed is not said of the thread that the main thread waited for, as of Dask's IO loop.
func TestThreadsAreNotChargedWithWhatProcessesComputed(t *testing.T) {
	joining := one(7, threadingLib, "Thread.join", timeline.StateWaiting, 0)
	rec := scene{acts: []act{joining}, times: 3, change: func(b *timeline.Builder) {
		beside("IO loop", timeline.StateNative, 3, "", "")(b)
		b.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindRate, Device: -1, Limit: 2}).AddWindow(0, 3*sec, .75)
		b.Track(timeline.TrackSpec{ID: "cpu.children", Kind: timeline.KindRate, Device: -1}).AddWindow(0, 3*sec, .5)
	}}.record()
	found := Run(rec).Findings
	i := slices.IndexFunc(found, func(f Finding) bool { return f.ID == WaitsForThreads })
	if i < 0 || math.Abs(found[i].Cores-.25) > 1e-9 {
		t.Errorf("got %+v, want %s with 0.25 cores", found, WaitsForThreads)
	}
}

func cores(n float64) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Track(timeline.TrackSpec{ID: "cpu.children", Kind: timeline.KindRate, Device: -1}).AddWindow(0, 3*sec, n)
	}
}

func ownCores(n, limit float64) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindRate, Device: -1, Limit: limit}).AddWindow(0, 3*sec, n)
	}
}

// machine is how many CPUs all programs used, of how many.
func machine(n, limit float64) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Track(timeline.TrackSpec{ID: "cpu.system", Kind: timeline.KindRate, Device: -1, Limit: limit}).AddWindow(0, 3*sec, n)
	}
}

func stoppedFor(d timeline.Nanos) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		pid := 0
		b.Describe(func(r *timeline.Recording) { pid = r.Target.PID })
		b.BeginGap(pid, sec, timeline.GapStopped)
		b.EndGap(pid, sec+d)
	}
}

func formatted(took timeline.Nanos) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Describe(func(r *timeline.Recording) { r.Traceback = took })
	}
}

func figures(took timeline.Nanos) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Describe(func(r *timeline.Recording) { r.Figures = took })
	}
}

func TestACellThatWasOverBeforeItsRecordingBegan(t *testing.T) {
	d := Options{}.Run(&timeline.Recording{Late: sec, Processes: []timeline.Process{{}}})
	if len(d.Findings) != 1 || d.Findings[0].ID != BegunLate || d.Findings[0].Value != 1 || len(d.Headline.Limits) != 1 {
		t.Errorf("%+v, headline %+v; want that its one second was not recorded", d.Findings, d.Headline)
	}
}

func late(by timeline.Nanos) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Describe(func(r *timeline.Recording) { r.Late = by })
	}
}

// reports lets the first GPU's driver report errors.
func reports(errors ...timeline.Xid) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Describe(func(r *timeline.Recording) { r.GPUs[0].Xids = errors })
	}
}

func lostAt(at timeline.Nanos) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Describe(func(r *timeline.Recording) { r.GPUs[0].Lost = at })
	}
}

// inPhase ends the recording with what a notebook, or the profiler, does around the cell's code.
func inPhase(p timeline.Phase) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Set(0, sec, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Phase: p})), timeline.StatePython, false)
	}
}

// inSubprocess ends the recording with the main thread waiting in subprocess.
func inSubprocess(b *timeline.Builder) {
	node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: 8}))
	node = b.Child(node, b.Frame(timeline.Frame{Function: "Popen.wait", File: "/usr/lib/python3.12/subprocess.py", Line: 1}))
	b.Set(0, 0, node, timeline.StateWaiting, false)
}

func TestEveryFindingFiresAndKeepsSilent(t *testing.T) {
	for _, id := range FindingIDs() {
		c, ok := findingCases[id]
		if !ok {
			t.Errorf("finding %s has no test", id)
			continue
		}
		t.Run(string(id), func(t *testing.T) {
			fired := Run(c.fires.record())
			i := slices.IndexFunc(fired.Findings, func(f Finding) bool { return f.ID == id })
			if i < 0 {
				t.Fatalf("not found; found %v, spent %+v, idle %+v", ids(fired.Findings), fired.Spent, fired.Idle)
			}
			f := fired.Findings[i]
			if f.Place.Line != c.line || (c.line > 0) != (f.Place.File == cellFile) {
				t.Errorf("names %+v, want line %d of the cell", f.Place, c.line)
			}
			if f.Advice != c.advice {
				t.Errorf("advises %q, want %q", f.Advice, c.advice)
			}
			if f.Severity == "" || f.Unit == "" {
				t.Errorf("incomplete: %+v", f)
			}
			checkSums(t, string(id), c.fires.record(), fired)
			if silent := Run(c.silent.record()); slices.ContainsFunc(silent.Findings, func(f Finding) bool { return f.ID == id }) {
				t.Errorf("fires where it should be silent: %+v", silent.Findings)
			}
		})
	}
	if len(findingCases) != len(FindingIDs()) {
		t.Errorf("%d findings have tests, there are %d", len(findingCases), len(FindingIDs()))
	}
}

func ids(list []Finding) (out []FindingID) {
	for _, f := range list {
		out = append(out, f.ID)
	}
	return out
}

// The one that explains most of the time comes first.
func TestMainFindingFirst(t *testing.T) {
	s := scene{acts: []act{
		{2 * sec, 1, dataloaderFile, inline, timeline.StatePython, 0},
		one(8, "", "", timeline.StatePython, 0), training,
	}, times: 4, gpus: 1}
	d := Run(s.record())
	if got := ids(d.Findings); len(got) < 2 || got[0] != GPUWaitsForData || got[1] != GPUWaitsForHost || d.Headline.Finding != 0 {
		t.Errorf("findings %v, headline %+v; want the data loader before the host", got, d.Headline)
	}
}

// A sentence about a cause has that cause's time, not its kind's.
func TestIdleTimeOfAKindWithSeveralCauses(t *testing.T) {
	python, native := one(8, "", "", timeline.StatePython, 0), one(7, "", "", timeline.StateNative, 0)
	native.length += 100 * ms
	find := func(acts ...act) Finding {
		d := Run(scene{acts: acts, times: 4, gpus: 1, cell: strings.Repeat("f()\n", 10)}.record())
		i := slices.IndexFunc(d.Findings, func(f Finding) bool { return f.ID == GPUWaitsForHost })
		if i < 0 {
			t.Fatalf("found %v", ids(d.Findings))
		}
		return d.Findings[i]
	}
	f := find(training, python, native)
	if f.Cause != "" || f.Kind != activity.Host || f.Time != 4*(2*sec+100*ms) || len(f.Parts) != 2 || f.Parts[0].Cause != activity.Native || f.Parts[0].Nanos != 4*(sec+100*ms) {
		t.Errorf("two causes: %+v", f)
	}
	if f.Place.Line != 7 || f.PlaceTime != 4*(sec+100*ms) || f.Advice != UseGPU {
		t.Errorf("two causes: names %v with %v, advises %q", f.Place, f.PlaceTime, f.Advice)
	}
	python.length = 50 * ms
	if f := find(training, python, native); f.Cause != activity.Native || f.Time != 4*(sec+100*ms) || len(f.Parts) != 0 {
		t.Errorf("nearly all of one cause: %+v", f)
	}
	python.line, python.length = 7, sec // both causes at one line
	if f := find(training, python, native); f.Cause != "" || f.Place.Line != 7 || f.PlaceTime != f.Time {
		t.Errorf("two causes at one line: %+v", f)
	}
}

// That a loop waits for its device says little of why the device was idle: it is the main
// finding only where synchronising may be what the device was idle for.
func TestALoopThatWaitsForABusyGPU(t *testing.T) {
	acts := []act{
		training, {2200 * ms, 3, dynamo, "compile", timeline.StatePython, 0}, {1800 * ms, 8, "", "", timeline.StateIO, 0},
		{1500 * ms, 10, "", "", timeline.StateWaiting, 0},
	}
	for range 20 {
		acts = append(acts, act{400 * ms, 6, "", "", timeline.StateNative, 97}, act{20 * ms, 3, torchModule, "f", timeline.StatePython, 97})
	}
	d := Run(scene{acts: acts, gpus: 1}.record())
	i, ok := d.Main()
	if !ok || d.Findings[i].ID != GPUWaitsForCompilation {
		t.Errorf("found %v; compilation surely costs more than synchronising", ids(d.Findings))
	}
	i = slices.IndexFunc(d.Findings, func(f Finding) bool { return f.ID == SyncInLoop })
	if i < 0 {
		t.Fatalf("found %v", ids(d.Findings))
	}
	if f := d.Findings[i]; f.Cost > sec/2 {
		t.Errorf("to wait less would save %v, though compilation, input and sleep have nearly all of the idle time", f.Cost.Duration())
	}
}

// Of kinds of causes that cannot be distinguished none is left out silently, and none is
// named by a cause or a line that has only a part of it.
func TestUndecidedTellsAllKinds(t *testing.T) {
	var acts []act
	for _, a := range []act{
		one(8, "", "", timeline.StatePython, 50), one(7, "", "", timeline.StateNative, 50), // the host's
		one(1, dataloaderFile, inline, timeline.StatePython, 50), one(9, "", "", timeline.StateIO, 50), one(10, "", "", timeline.StateGIL, 50),
	} {
		a.length = 10 * ms
		acts = append(acts, a)
	}
	d := Run(scene{acts: acts, times: 100, gpus: 1, window: 100 * ms, cell: strings.Repeat("f()\n", 10)}.record())
	i, ok := d.Main()
	if !ok || d.Findings[i].ID != GPUIdleUndecided {
		t.Fatalf("found %v", ids(d.Findings))
	}
	alternatives := d.Findings[i].Alternatives
	if len(alternatives) != 4 || alternatives[0].Kind != activity.Host {
		t.Fatalf("%d alternatives: %+v", len(alternatives), alternatives)
	}
	for _, a := range alternatives {
		if several := a.Kind == activity.Host; several != (a.Cause == "") || several != (a.Place == activity.Place{}) {
			t.Errorf("%s: names it by %q at %v", a.Kind, a.Cause, a.Place)
		}
	}
	i = slices.IndexFunc(d.Findings, func(f Finding) bool { return f.ID == GPUIdle })
	if f := d.Findings[i]; f.Kind != "" || f.Cause != "" || f.Place != (activity.Place{}) {
		t.Errorf("names %s, %s at %v as the largest part", f.Kind, f.Cause, f.Place)
	}
}

// What comes before a GPU's first work and what comes after its last are no one cause.
func TestStartAndEndAreApart(t *testing.T) {
	s := scene{acts: []act{{2 * sec, 8, "", "", timeline.StatePython, 0}, training, {2100 * ms, 0, "", "", timeline.StatePython, 0}}, gpus: 1, script: true}
	d := Run(s.record())
	i, ok := d.Main()
	if !ok || d.Findings[i].ID != GPUWaitsAtExit || d.Findings[i].Time != 2100*ms {
		t.Fatalf("found %+v", d.Findings)
	}
	if i := slices.IndexFunc(d.Findings, func(f Finding) bool { return f.ID == GPUWaitsAtStart }); i < 0 || d.Findings[i].Time != 2*sec {
		t.Errorf("found %v", ids(d.Findings))
	}
}

// A cell without a GPU still gets an answer, and an empty recording says that it is.
func TestEveryProgramHasAMainFinding(t *testing.T) {
	for _, state := range []timeline.State{timeline.StatePython, timeline.StateNative, timeline.StateWaiting, timeline.StateIO, timeline.StateGIL, timeline.StateOff} {
		s := scene{acts: []act{one(8, "", "", state, 0), {300 * ms, 7, "", "", timeline.StatePython, 0}}, times: 2}
		if got := Run(s.record()); got.Headline.Finding != 0 {
			t.Errorf("no finding for a program that is mostly %v", state)
		}
	}
	got := Run(&timeline.Recording{})
	if len(got.Findings) != 0 || got.Idle != nil || got.Headline.Finding != -1 || !got.Headline.NoStacks {
		t.Errorf("an empty recording has findings %+v, headline %+v", got.Findings, got.Headline)
	}
}

// What was not observed qualifies the headline and is not the main finding.
func TestALostGPUIsInTheHeadline(t *testing.T) {
	s := scene{acts: []act{one(1, dataloaderFile, inline, timeline.StatePython, 0), training}, times: 4, gpus: 2, other: 1, change: lostAt(3 * sec)}
	d := Run(s.record())
	if d.Headline.Finding < 0 || d.Findings[d.Headline.Finding].ID != GPUWaitsForData || len(d.Headline.Limits) != 1 {
		t.Fatalf("headline %+v of %v", d.Headline, ids(d.Findings))
	}
	if f := d.Findings[d.Headline.Limits[0]]; f.ID != GPULost || f.At != 3*sec || !slices.Equal(f.Devices, []int{0}) {
		t.Errorf("says %+v", f)
	}
}

// Where devices were lost for most of the time, what the host did is explained instead: that
// the GPU did not answer says nothing of the program.
func TestALostGPULeavesTheHost(t *testing.T) {
	losing := func(at timeline.Nanos) Diagnosis {
		s := scene{acts: []act{training, one(10, "", "", timeline.StateWaiting, 100)}, times: 10, gpus: 2, other: 1}
		s.change = func(b *timeline.Builder) {
			b.Describe(func(r *timeline.Recording) { r.GPUs[0].Lost, r.GPUs[1].Lost = at, at })
		}
		rec := s.record()
		for i := range rec.Tracks {
			t := &rec.Tracks[i]
			t.Points = slices.DeleteFunc(t.Points, func(p timeline.Point) bool { return t.Device >= 0 && p.From >= at })
		}
		return Run(rec)
	}
	d := losing(2 * sec)
	if i, ok := d.Main(); !ok || d.Findings[i].ID != Sleeps || d.Findings[i].Place.Line != 10 || len(d.Headline.Limits) != 1 {
		t.Errorf("lost early: found %v", ids(d.Findings))
	}
	d = losing(18 * sec)
	if slices.Contains(ids(d.Findings), Sleeps) || len(d.Headline.Limits) != 1 {
		t.Errorf("lost late: found %v", ids(d.Findings))
	}
}

// GPUs that are lost one after the other are not said to be lost together.
func TestGPUsLostOneAfterTheOther(t *testing.T) {
	s := scene{acts: []act{training}, times: 10, gpus: 2, other: 1}
	s.change = func(b *timeline.Builder) {
		b.Describe(func(r *timeline.Recording) { r.GPUs[0].Lost, r.GPUs[1].Lost = 8*sec, 2*sec })
	}
	d := Run(s.record())
	f := d.Findings[d.Headline.Limits[0]]
	if f.ID != GPULost || f.At != 2*sec || f.AtLast != 8*sec || !slices.Equal(f.Devices, []int{0, 1}) {
		t.Errorf("says %+v", f)
	}
}

func TestTooFewSamplesSayHowToGetMore(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	main := b.Thread(timeline.Thread{Main: true, RunsCell: true})
	b.Set(main, 0, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: "x.py", Line: 3})), timeline.StatePython, false)
	b.Describe(func(r *timeline.Recording) { r.Sampling.Samples = 7 })
	d := Run(b.Snapshot(7 * ms))
	if got := d.Headline.TooFew; got == nil || got.Samples != 7 || got.Interval != 100*time.Microsecond || d.Headline.Finding != -1 || len(d.Findings) != 0 {
		t.Errorf("headline %+v of %v", d.Headline, d.Findings)
	}
	b.Describe(func(r *timeline.Recording) { r.Sampling.FallbackReason = "no permission" })
	if got := Run(b.Snapshot(7 * ms)).Headline.TooFew; got == nil || got.Interval != 0 {
		t.Errorf("a shorter interval is recommended for the sampler in the kernel: %+v", got)
	}
	b.Describe(func(r *timeline.Recording) {
		r.Sampling.FallbackReason, r.Sampling.Interval = "", 100*time.Microsecond
	})
	if got := Run(b.Snapshot(ms)).Headline.TooFew; got == nil || got.Interval != timeline.MinInterval {
		t.Errorf("after 100 µs it says %+v, which the recorder does not keep", got)
	}
	b.Describe(func(r *timeline.Recording) { r.Sampling.Interval = timeline.DefaultInterval })
	if got := Run(b.Snapshot(700 * ms)).Headline.TooFew; got != nil {
		t.Errorf("a long recording is called short: %+v", got)
	}
}

// Another interval does not help a program that fails, nor one that runs no Python.
func TestNoIntervalIsRecommendedWhereItCannotHelp(t *testing.T) {
	code := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		exit    *int
		gap     timeline.GapReason
		samples int64
		finer   bool
	}{
		"it ends well":        {code(0), timeline.GapStarting, 7, true},
		"it runs on":          {nil, timeline.GapStarting, 7, true},
		"it fails":            {code(1), timeline.GapStarting, 7, false},
		"a signal ends it":    {code(137), timeline.GapStarting, 7, false},
		"it runs no Python":   {code(0), timeline.GapNoPython, 0, false},
		"Python never got on": {code(0), timeline.GapStarting, 0, false},
	} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) {
			r.Target.PID = 1
			r.Processes = []timeline.Process{{PID: 1, ParentIndex: -1, Exit: c.exit}}
			r.Sampling.Samples = c.samples
		})
		b.BeginGap(1, 0, c.gap)
		b.EndGap(1, 2*ms)
		if got := Run(b.Snapshot(15 * ms)).Headline.TooFew; got == nil || (got.Interval > 0) != c.finer {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// numba compiles for types, XLA and torch for shapes, and only torch has dynamic=True: what helps
// against one is no help against the other.
func TestHowToCompileLess(t *testing.T) {
	for file, want := range map[string]Advice{dynamo: CompileShapes, "/x/site-packages/jax/_src/compiler.py": CompileOnce, "/x/site-packages/numba/core/compiler.py": CompileTypes} {
		rec := scene{acts: []act{one(3, file, "compile", timeline.StatePython, 0), other}}.record()
		found := Run(rec).Findings
		if i := slices.IndexFunc(found, func(f Finding) bool { return f.ID == Compiling }); i < 0 || found[i].Advice != want {
			t.Errorf("%s: findings %v, want %s with %s", file, found, Compiling, want)
		}
	}
}

// What helps against compiling depends on the compiler, not on the library that has it compile.
func TestHowToCompileLessOfWhatALibraryCompiles(t *testing.T) {
	for file, want := range map[string]Advice{"numba/core/compiler.py": CompileTypes, "torch/_dynamo/convert_frame.py": CompileShapes} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) {
			r.Target.Cell, r.Target.PID = &timeline.Cell{File: cellFile, Text: cellText}, 1
			r.Processes = []timeline.Process{{PID: 1, Role: "kernel"}}
		})
		id := b.Thread(timeline.Thread{PID: 1, Main: true, RunsCell: true})
		node := timeline.RootNode
		for _, f := range []timeline.Frame{{Function: "<module>", File: cellFile, Line: 3}, {Function: "simulate", File: site + "quantecon/markov/core.py"}, {Function: "compile", File: site + file}} {
			node = b.Child(node, b.Frame(f))
		}
		for i := range timeline.Nanos(400) {
			b.Set(id, i*10*ms, node, timeline.State(i%2), false)
		}
		found := Run(b.Snapshot(4 * sec)).Findings
		if i := slices.IndexFunc(found, func(f Finding) bool { return f.ID == Compiling }); i < 0 || found[i].Advice != want {
			t.Errorf("%s: findings %+v, want %s with %s", file, found, Compiling, want)
		}
	}
}

func TestNoTransferWithoutDevice(t *testing.T) {
	s := scene{acts: []act{one(1, "", "", timeline.StatePython, 0), {100 * ms, 2, "", "", timeline.StatePython, 0}}, times: 3, cell: "rows = table.tolist()\nprint(rows[0])"}
	if got := ids(Run(s.record()).Findings); len(got) != 1 || got[0] != OneLine {
		t.Errorf("findings %v of a program that makes lists, want that one line stands out", got)
	}
}

// Where other programs keep the machine busy, the line that was delayed is still where the time was
// spent; computing is what had a CPU.
func TestALineIsNamedWhoeverHasTheCPUs(t *testing.T) {
	cores := func(own, machine float64) func(*timeline.Builder) {
		return func(b *timeline.Builder) {
			b.UpdateThread(0, func(t *timeline.Thread) { t.OnCPU = 0 })
			b.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindRate, Unit: "cores", PID: 1, Limit: 2}).Add(4*sec, own)
			b.Track(timeline.TrackSpec{ID: "cpu.system", Kind: timeline.KindRate, Unit: "cores", Limit: 2}).Add(4*sec, machine)
		}
	}
	computes, delayed := one(8, "", "", timeline.StatePython, 0), one(8, "", "", timeline.StateOff, 0)
	sleeps, draws := one(10, "", "", timeline.StateWaiting, 0), one(12, site+"matplotlib/figure.py", "Figure.savefig", timeline.StateOff, 0)
	loads := one(1, dataloaderFile, workers, timeline.StateWaiting, 0)
	for _, c := range []struct {
		name string
		acts []act
		own  float64
		want FindingID
		time timeline.Nanos
	}{
		{"others have them", []act{computes, delayed, delayed, sleeps}, .5, OneLine, 3 * sec},
		{"the program has them", []act{computes, delayed, delayed, sleeps}, 1.9, NoFreeCPU, 2 * sec},
		{"others have them, and drawing has as much", []act{computes, delayed, delayed, delayed, draws, draws, draws, sleeps, sleeps, sleeps}, .5, OneLine, 4 * sec},
		{"others have them, and it waits for longer than it computes", []act{computes, computes, delayed, one(4, "", "", timeline.StatePython, 0), one(4, "", "", timeline.StateOff, 0),
			loads, loads, loads, loads}, .5, LoadsData, 4 * sec},
		{"others have them, and it seldom computes", []act{computes, delayed, sleeps, sleeps}, .5, OneLine, 2 * sec},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := Run(scene{acts: c.acts, change: cores(c.own, 2)}.record()).Findings
			if len(list) == 0 || list[0].ID != c.want || list[0].Time != c.time {
				t.Errorf("got %+v, want %s of %v first", list, c.want, c.time)
			}
			if isReported := slices.ContainsFunc(list, func(f Finding) bool { return f.ID == BusyMachine }); isReported != (c.own < 1) {
				t.Errorf("the machine's business is reported: %v", isReported)
			}
		})
	}
}
