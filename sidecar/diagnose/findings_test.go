package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
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

// scene plays acts over and over, 100 ms windows for each GPU given.
type scene struct {
	acts   []act
	times  int
	gpus   int // devices; the second and later ones at gpu·other
	other  float64
	cell   string // text of the cell; empty = cellText
	change func(*timeline.Builder)
}

func (s scene) record() *timeline.Recording {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	text := s.cell
	if text == "" {
		text = cellText
	}
	b.Describe(func(r *timeline.Recording) {
		r.Target.Cell = &timeline.Cell{File: cellFile, Text: text}
		r.Processes = []timeline.Process{{PID: 1, Role: "kernel"}}
		for i := range s.gpus {
			r.GPUs = append(r.GPUs, timeline.GPU{Index: i, Name: "Test GPU", PIDs: []int{1}})
		}
	})
	id := b.Thread(timeline.Thread{PID: 1, Main: true, RunsCell: true})
	at := timeline.Nanos(0)
	for range max(s.times, 1) {
		for _, a := range s.acts {
			node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: a.line}))
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
				w.AddWindow(at, at+a.length, value)
			}
			at += a.length
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

func note(what, reason string) func(*timeline.Builder) {
	return func(b *timeline.Builder) { b.Note(what, reason) }
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
	// computing is two lines of Python that share the time.
	computing = []act{{sec, 8, "", "", timeline.StatePython, 0}, {sec, 7, "", "", timeline.StatePython, 0}}
)

// Every rule with a recording that makes it fire, the line it must name, and
// one like it that keeps it silent.
var findingCases = map[string]struct {
	fires  scene
	line   int
	silent scene
}{
	"dataloader-bound": {
		scene{acts: []act{{sec, 1, dataloaderFile, "_SingleProcessDataLoaderIter._next_data", timeline.StatePython, 0}, training}, times: 4, gpus: 1}, 1,
		scene{acts: []act{{sec, 1, dataloaderFile, "_SingleProcessDataLoaderIter._next_data", timeline.StatePython, 95}, training}, times: 4, gpus: 1},
	},
	"launch-bound": {
		scene{acts: []act{{sec, 3, torchModule, "Module._call_impl", timeline.StatePython, 40}}, times: 5, gpus: 1}, 3,
		scene{acts: []act{{sec, 3, torchModule, "Module._call_impl", timeline.StatePython, 95}}, times: 5, gpus: 1},
	},
	"host-bound": {
		scene{acts: []act{{sec, 8, "", "", timeline.StatePython, 0}, training}, times: 4, gpus: 1}, 8,
		scene{acts: []act{{100 * ms, 8, "", "", timeline.StatePython, 0}, training}, times: 4, gpus: 1},
	},
	"sync-in-loop": {
		scene{acts: []act{{100 * ms, 6, "", "", timeline.StateNative, 100}, {200 * ms, 3, torchModule, "f", timeline.StatePython, 30}}, times: 20, gpus: 1}, 6,
		scene{acts: []act{{100 * ms, 6, "", "", timeline.StateNative, 100}, {3 * sec, 3, torchModule, "f", timeline.StatePython, 30}}, times: 3, gpus: 1},
	},
	"host-device-copies": {
		scene{acts: []act{{sec, 2, "", "", timeline.StateNative, 20}, training}, times: 4, gpus: 1}, 2,
		scene{acts: []act{{20 * ms, 2, "", "", timeline.StateNative, 20}, training}, times: 4, gpus: 1},
	},
	"gpu-waits-for-io": {
		scene{acts: []act{{sec, 8, "", "", timeline.StateIO, 0}, training}, times: 4, gpus: 1}, 8,
		scene{acts: []act{{sec, 8, "", "", timeline.StateIO, 100}, training}, times: 4, gpus: 1},
	},
	"gpu-waits-for-checkpoint": {
		scene{acts: []act{{sec, 9, torchSave, "save", timeline.StateIO, 0}, training}, times: 4, gpus: 1}, 9,
		scene{acts: []act{{sec, 9, torchSave, "save", timeline.StateIO, 100}, training}, times: 4, gpus: 1},
	},
	"gpu-waits-for-compilation": {
		scene{acts: []act{training, {sec, 3, dynamo, "compile", timeline.StatePython, 0}}, gpus: 1}, 3,
		scene{acts: []act{training, training, {100 * ms, 3, dynamo, "compile", timeline.StatePython, 0}}, gpus: 1},
	},
	"gpu-waits-for-ranks": {
		scene{acts: []act{training, {sec, 7, c10d, "all_reduce", timeline.StateWaiting, 0}}, gpus: 1}, 7,
		scene{acts: []act{training, {sec, 7, c10d, "all_reduce", timeline.StateWaiting, 99}}, gpus: 1},
	},
	"gpu-waits-for-sleep": {
		scene{acts: []act{training, {sec, 10, "", "", timeline.StateWaiting, 0}}, gpus: 1}, 10,
		scene{acts: []act{training, {100 * ms, 10, "", "", timeline.StateWaiting, 0}}, gpus: 1},
	},
	"slow-start": {
		scene{acts: []act{{sec, 8, "", "", timeline.StatePython, 0}, training}, gpus: 1}, 8,
		scene{acts: []act{training, {sec, 8, "", "", timeline.StatePython, 0}}, gpus: 1},
	},
	"one-gpu-idle": {
		scene{acts: []act{training}, times: 3, gpus: 2, other: 0.05}, 0,
		scene{acts: []act{training}, times: 3, gpus: 2, other: 0.9},
	},
	"gpu-memory-near-full": {
		scene{acts: []act{training}, times: 3, gpus: 1, change: gauge("gpu0.mem", 80e9, 50e9, 78e9, 60e9)}, 0,
		scene{acts: []act{training}, times: 3, gpus: 1, change: gauge("gpu0.mem", 80e9, 50e9, 60e9)},
	},
	"gpu-memory-and-collectives": {
		scene{acts: []act{training, {sec, 7, c10d, "all_reduce", timeline.StateWaiting, 50}}, gpus: 1, change: gauge("gpu0.mem", 80e9, 79e9)}, 7,
		scene{acts: []act{training}, times: 2, gpus: 1, change: gauge("gpu0.mem", 80e9, 79e9)},
	},
	"gpu-throttled": {
		scene{acts: []act{training}, gpus: 1, change: both(gauge("gpu0.throttle", 1, 0, 1, 1), note("gpu0.throttle", "thermal slowdown by hardware"))}, 0,
		scene{acts: []act{training}, gpus: 1, change: both(gauge("gpu0.throttle", 1, 0, 1, 1), note("gpu0.throttle", "power cap"))},
	},
	"gpu-power-capped": {
		scene{acts: []act{training}, gpus: 1, change: both(gauge("gpu0.throttle", 1, 0, 1, 1), note("gpu0.throttle", "power cap"))}, 0,
		scene{acts: []act{training}, gpus: 1, change: gauge("gpu0.throttle", 1, 0, 0, 0)},
	},
	"gpu-unused": {
		scene{acts: []act{{5 * sec, 3, torchModule, "f", timeline.StateNative, 0}}, gpus: 1}, 0,
		scene{acts: computing, times: 3, gpus: 1},
	},
	"gpu-busy": {
		scene{acts: []act{training}, times: 3, gpus: 1}, 0,
		scene{acts: []act{training, {sec, 8, "", "", timeline.StatePython, 0}}, times: 3, gpus: 1},
	},
	"gpu-idle": {
		scene{acts: []act{training, training, training, {100 * ms, 8, "", "", timeline.StatePython, 0}, {200 * ms, 7, torchModule, "f", timeline.StatePython, 0},
			{300 * ms, 9, "", "", timeline.StateOff, 0}, {300 * ms, 10, "", "", timeline.StateWaiting, 0}}, times: 3, gpus: 1}, 9,
		scene{acts: []act{{sec, 8, "", "", timeline.StatePython, 0}, training}, times: 4, gpus: 1},
	},
	"gil-contention": {
		scene{acts: []act{{sec, 8, "", "", timeline.StateGIL, 0}, {2 * sec, 7, "", "", timeline.StatePython, 0}}}, 8,
		scene{acts: []act{{100 * ms, 8, "", "", timeline.StateGIL, 0}, {2 * sec, 7, "", "", timeline.StatePython, 0}}},
	},
	"io-bound": {
		scene{acts: []act{{sec, 8, "", "", timeline.StateIO, 0}, {sec, 7, "", "", timeline.StatePython, 0}}}, 8,
		scene{acts: []act{{100 * ms, 8, "", "", timeline.StateIO, 0}, {sec, 7, "", "", timeline.StatePython, 0}}},
	},
	"data-loading": {
		scene{acts: []act{{sec, 1, dataloaderFile, "_MultiProcessingDataLoaderIter._next_data", timeline.StateWaiting, 0}, {sec, 7, "", "", timeline.StatePython, 0}}}, 1,
		scene{acts: []act{{100 * ms, 1, dataloaderFile, "_MultiProcessingDataLoaderIter._next_data", timeline.StateWaiting, 0}, {sec, 7, "", "", timeline.StatePython, 0}}},
	},
	"no-free-cpu": {
		scene{acts: []act{{sec, 8, "", "", timeline.StateOff, 0}, {2 * sec, 7, "", "", timeline.StatePython, 0}}}, 8,
		scene{acts: []act{{100 * ms, 8, "", "", timeline.StateOff, 0}, {2 * sec, 7, "", "", timeline.StatePython, 0}}},
	},
	"compilation": {
		scene{acts: []act{{sec, 3, dynamo, "compile", timeline.StatePython, 0}, {sec, 7, "", "", timeline.StatePython, 0}}}, 3,
		scene{acts: []act{{100 * ms, 3, dynamo, "compile", timeline.StatePython, 0}, {sec, 7, "", "", timeline.StatePython, 0}}},
	},
	"printing": {
		scene{acts: computing, change: printed(4000)}, 0,
		scene{acts: computing, change: printed(20)},
	},
	"imports": {
		scene{acts: []act{{sec, 4, "<frozen importlib._bootstrap>", "_find_and_load", timeline.StatePython, 0}, {sec, 7, "", "", timeline.StatePython, 0}}}, 4,
		scene{acts: computing},
	},
	"memory-pressure": {
		scene{acts: computing, change: gauge("rss", 16e9, 8e9, 15.9e9)}, 0,
		scene{acts: computing, change: gauge("rss", 16e9, 8e9, 12e9)},
	},
	"swapping": {
		scene{acts: computing, change: gauge("swap", 8e9, 1e9, 2e9)}, 0,
		scene{acts: computing, change: gauge("swap", 8e9, 5e9, 5e9)},
	},
	"waits-for-children": {
		scene{acts: []act{{sec, 7, threadingLib, "Thread.join", timeline.StateWaiting, 0}}, times: 3, change: cores(3.5)}, 7,
		scene{acts: []act{{sec, 7, threadingLib, "Thread.join", timeline.StateWaiting, 0}}, times: 3},
	},
	"waiting": {
		scene{acts: []act{{sec, 10, "", "", timeline.StateWaiting, 0}}, times: 3}, 10,
		scene{acts: []act{{sec, 10, "", "", timeline.StateWaiting, 0}}, times: 3, change: cores(3.5)},
	},
	"one-line": {
		scene{acts: []act{{sec, 8, "", "", timeline.StatePython, 0}, {200 * ms, 7, "", "", timeline.StatePython, 0}}, times: 3}, 8,
		scene{acts: []act{{sec, 8, "", "", timeline.StatePython, 0}}, times: 3, cell: "f()"},
	},
	"cpu-bound": {
		scene{acts: append(computing, act{sec, 4, "", "", timeline.StateNative, 0})}, 4,
		scene{acts: []act{{sec, 8, "", "", timeline.StateIO, 0}, {sec, 7, "", "", timeline.StatePython, 0}}},
	},
}

func cores(n float64) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		b.Track(timeline.TrackSpec{ID: "cpu.children", Kind: timeline.KindRate, Device: -1}).AddWindow(0, 3*sec, n)
	}
}

func TestEveryRuleFiresAndKeepsSilent(t *testing.T) {
	for _, r := range rules {
		c, ok := findingCases[r.id]
		if !ok {
			t.Errorf("rule %s has no test", r.id)
			continue
		}
		t.Run(r.id, func(t *testing.T) {
			fired := Run(c.fires.record())
			i := slices.IndexFunc(fired.Findings, func(f Finding) bool { return f.ID == r.id })
			if i < 0 {
				t.Fatalf("not found; found %+v, idle %+v", ids(fired.Findings), fired.Idle)
			}
			f := fired.Findings[i]
			if f.Line != c.line || (c.line > 0) != (f.File == cellFile) {
				t.Errorf("names %s:%d, want line %d of the cell", f.File, f.Line, c.line)
			}
			if f.Hint == "" || !strings.HasSuffix(f.Text, ".") || !strings.ContainsAny(f.Text, "0123456789") || f.Severity != r.severity {
				t.Errorf("incomplete: %+v", f)
			}
			t.Log(f.Text, "→", f.Hint)
			checkSums(t, r.id, c.fires.record(), fired)
			if silent := Run(c.silent.record()); slices.ContainsFunc(silent.Findings, func(f Finding) bool { return f.ID == r.id }) {
				t.Errorf("fires where it should be silent: %+v", silent.Findings)
			}
		})
	}
}

func ids(list []Finding) (out []string) {
	for _, f := range list {
		out = append(out, f.ID)
	}
	return out
}

// Warnings come before remarks, and among them the costlier one.
func TestMainFindingFirst(t *testing.T) {
	s := scene{acts: []act{
		{2 * sec, 1, dataloaderFile, "_SingleProcessDataLoaderIter._next_data", timeline.StatePython, 0},
		{sec, 8, "", "", timeline.StatePython, 0}, training,
	}, times: 4, gpus: 1}
	got := ids(Run(s.record()).Findings)
	if len(got) < 2 || got[0] != "dataloader-bound" || got[1] != "host-bound" {
		t.Errorf("findings %v, want the data loader before the host", got)
	}
}

// A cell without a GPU still gets an answer, and an empty recording none.
func TestEveryProgramHasAMainFinding(t *testing.T) {
	for _, state := range []timeline.State{timeline.StatePython, timeline.StateNative, timeline.StateWaiting, timeline.StateIO, timeline.StateGIL, timeline.StateOff} {
		s := scene{acts: []act{{sec, 8, "", "", state, 0}, {300 * ms, 7, "", "", timeline.StatePython, 0}}, times: 2}
		if got := Run(s.record()).Findings; len(got) == 0 {
			t.Errorf("no finding for a program that is mostly %v", state)
		}
	}
	if got := Run(&timeline.Recording{}); len(got.Findings) != 0 || got.Idle != nil {
		t.Errorf("an empty recording has findings %+v", got.Findings)
	}
}
