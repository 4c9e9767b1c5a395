package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	ms       = timeline.Nanos(1e6)
	cellFile = "/tmp/ipykernel_1/7.py"
)

func cellAt(line int) timeline.Frame {
	return timeline.Frame{Function: "<module>", File: cellFile, Line: line, FirstLine: 1}
}

// program is what the recordings here have in common: a loop that loads and trains
// on one GPU, 100 ms each turn, with a thread beside it.
func program(target timeline.Target, role string, top func(line int) timeline.Frame, turns int) *timeline.Recording {
	b := timeline.NewBuilder(timeline.Options{Origin: 5e12, StartedAt: time.Unix(1_790_000_000, 0).UTC()})
	stack := func(frames ...timeline.Frame) timeline.NodeID {
		n := timeline.RootNode
		for _, f := range frames {
			n = b.Child(n, b.Frame(f))
		}
		return n
	}
	const packages = "/home/ann/venv/lib/python3.12/site-packages/"
	module := timeline.Frame{Function: "Trainer.fit", File: "/home/ann/project/train.py", Line: 3, FirstLine: 2}
	loader := timeline.Frame{Function: "_SingleProcessDataLoaderIter._next_data", File: packages + "torch/utils/data/dataloader.py", Line: 700, FirstLine: 690}
	item := timeline.Frame{Function: "Tensor.item", File: packages + "torch/_tensor.py", Line: 40, FirstLine: 38}
	main := b.Thread(timeline.Thread{PID: 100, NativeID: 100, Name: "MainThread", Main: true, RunsCell: true, OnCPU: timeline.Nanos(turns) * 55 * ms})
	beside := b.Thread(timeline.Thread{PID: 100, NativeID: 101, Name: "prefetch", OnCPU: -1, Leaf: "waiting for a lock"})
	util := b.Track(timeline.TrackSpec{ID: "gpu0.util", Kind: timeline.KindRate, Unit: "%", Source: "GPM", Resolution: 20 * time.Millisecond, Device: 0, Limit: 100})
	cpu := b.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindRate, Unit: "cores", Source: "/proc/PID/stat", Resolution: 100 * time.Millisecond, PID: 100, Device: -1, Limit: 8})
	rss := b.Track(timeline.TrackSpec{ID: "rss", Kind: timeline.KindGauge, Unit: "B", Source: "/proc/PID/statm", PID: 100, Device: -1})
	thread := b.Track(timeline.TrackSpec{ID: "thread.101.cpu", Kind: timeline.KindRate, Unit: "cores", PID: 100, Device: -1})
	at := timeline.Nanos(0)
	b.Set(beside, 0, stack(timeline.Frame{Function: "wait", File: "/usr/lib/python3.12/threading.py", Line: 355, FirstLine: 320}), timeline.StateWaiting, false)
	for turn := range turns {
		start := at
		for _, part := range []struct {
			length timeline.Nanos
			node   timeline.NodeID
			state  timeline.State
			cut    bool
		}{
			{40 * ms, stack(top(2), loader), timeline.StatePython, false},
			{20 * ms, stack(top(2), loader), timeline.StateIO, false},
			{15 * ms, stack(top(3), module), timeline.StateNative, turn%2 == 1},
			{20 * ms, stack(top(4), item), timeline.StateWaiting, false},
			{5 * ms, stack(top(1)), timeline.StatePython, false},
		} {
			b.Set(main, at, part.node, part.state, part.cut)
			at += part.length
		}
		for k := range timeline.Nanos(5) {
			util.AddWindow(start+k*20*ms, start+(k+1)*20*ms, []float64{0, 0, 0, 75, 100}[k])
		}
		cpu.Add(at, 0.7512345678)
		rss.Add(at, float64(1<<30+turn<<20))
		if turn != 1 {
			thread.AddWindow(start, at, 0.01)
		}
		b.Mark(timeline.Mark{Kind: "step", Start: start, End: at, Source: timeline.StepOptimizer})
		b.Mark(timeline.Mark{Kind: "region", Name: "load", Start: start, End: start + 60*ms})
	}
	exit := 0
	b.Describe(func(r *timeline.Recording) {
		r.Target = target
		r.Host = timeline.Host{BootID: "6f1c8f9e-0000-4000-8000-7a3a0c1d2e3f", Name: "worker-3", Cores: 8, Memory: 64 << 30}
		r.Wall = timeline.Wall{Begin: timeline.Bridge{Offset: 5e12 - 1_790_000_000e9, Error: 90}, End: timeline.Bridge{Offset: 5e12 - 1_790_000_000e9, Error: 110}}
		r.Sampling = timeline.Sampling{Method: timeline.MethodOutside, Interval: time.Millisecond, Samples: int64(100 * turns), Lost: 1, Truncated: int64(15 * (turns / 2)), CPU: 3 * ms}
		r.Processes = []timeline.Process{
			{PID: 100, Parent: 1, Role: timeline.Role(role), Command: "python", Start: -2e9, CPU: timeline.Nanos(turns) * 60 * ms},
			{PID: 140, Parent: 100, Role: "child", Command: "nvidia-smi", Start: 30 * ms, End: 60 * ms, CPU: 4 * ms, Exit: &exit},
		}
		r.GPUs = []timeline.GPU{{Index: 0, UUID: "GPU-4a3b", Name: "NVIDIA H100 80GB HBM3", Driver: "550.54", Source: "GPM", Resolution: 20 * time.Millisecond, PIDs: []int{100}}}
		r.Installation = timeline.Installation{Prefixes: []string{"/usr", "/home/ann/venv"}, Standard: []string{"/usr/lib/python3.12"}}
	})
	b.Note(timeline.NoteUnavailable, "PCIe throughput", "not offered by this driver")
	return b.Snapshot(at)
}

// text is what the files of the recordings hold.
var text = map[string]string{
	"/home/ann/project/train.py":  "class Trainer:\n    def fit(self, x):\n        return self.model(x).backward()\n",
	"/home/ann/project/script.py": "trainer = Trainer()\nfor x in loader:\n    trainer.fit(x)\n    losses.append(loss.item())\n",
}

func line(file string, number int) string {
	lines := strings.Split(text[file], "\n")
	if number < 1 || number > len(lines) {
		return ""
	}
	return lines[number-1]
}

func built(t testing.TB, rec *timeline.Recording, opts report.Options) *report.View {
	t.Helper()
	opts.Version, opts.Home, opts.Line = "1.2.3", "/home/ann", line
	opts.Text = func(file string) []byte { return []byte(text[file]) }
	d := diagnose.Options{Line: line}.Run(rec)
	v, err := report.Build(rec, &d, opts)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// goldens are reports of each kind.
func goldens(t testing.TB) map[string]*report.View {
	cell := timeline.Target{PID: 100, PythonVersion: "3.12.1", Interpreter: "/home/ann/venv/bin/python", Cell: &timeline.Cell{
		ExecutionCount: 7, File: cellFile, Name: "epoch", Outcome: "error: KeyError", Text: text["/home/ann/project/script.py"],
	}}
	ofCell := program(cell, "kernel", cellAt, 4)
	ofCell.Output = &timeline.Output{Messages: 4, Bytes: 120, AtLeast: true}

	script := timeline.Target{PID: 100, PythonVersion: "3.12.1", Interpreter: "/home/ann/venv/bin/python",
		Argv: []string{"/home/ann/venv/bin/python", "/home/ann/project/script.py", "--token=abc"}}
	ofScript := program(script, "script", func(line int) timeline.Frame {
		return timeline.Frame{Function: "<module>", File: "/home/ann/project/script.py", Line: line, FirstLine: 1}
	}, 4)

	outside := timeline.Target{PID: 100, Cell: &timeline.Cell{ExecutionCount: 3, File: cellFile, Outcome: "ok", Text: text["/home/ann/project/script.py"]}}
	ofKernel := program(outside, "kernel", cellAt, 2)
	ofKernel.Sampling.Method, ofKernel.Sampling.FallbackReason = timeline.MethodInside, "the kernel refuses it"

	ofTrace := program(cell, "kernel", cellAt, 4)
	return map[string]*report.View{
		"cell": built(t, ofCell, report.Options{}), "script": built(t, ofScript, report.Options{}), "kernel": built(t, ofKernel, report.Options{}),
		"merged": built(t, ofTrace, report.Options{Kernels: []report.KernelLane{
			{Device: 0, Stream: 7, GapNS: report.Column{65_000_000, 1_500, 900}, LengthNS: report.Column{2_200, 13_000_001, 4_000_000},
				Name: report.Column{0, 1, 0}, Count: report.Column{1, 1, 3}, Names: []string{"ampere_sgemm_128x64_tn", "ncclDevKernel_AllReduce"}, ResolutionNS: 1000},
		}, Torch: &report.Torch{
			Operators: []report.Operator{
				{Name: "aten::mm", Calls: 2, SelfCPUNS: 40_000, TotalCPUNS: 40_000, SelfDeviceNS: pointer(int64(4_002_200)), TotalDeviceNS: pointer(int64(4_002_200)), Flops: pointer(2e9)},
				{Name: "aten::linear", InputShapes: pointer("[[32, 64], [64, 64], [64]]"), Calls: 2, SelfCPUNS: 9_000, TotalCPUNS: 49_000, SelfDeviceNS: pointer(int64(0)), TotalDeviceNS: pointer(int64(4_002_200)),
					SelfCPUBytes: pointer(int64(-4096)), SelfDeviceBytes: pointer(int64(8192))},
			},
			KernelTimes: []report.KernelTime{{Name: "ampere_sgemm_128x64_tn", Kind: "computation", Count: 2, TotalNS: 4_002_200, MinNS: 2_200, MaxNS: 4_000_000}},
			Traces:      []report.Trace{{File: "rank0.5.pt.trace.json", StartNS: 60_000_000, EndNS: 90_000_000, Steps: 2, Events: 9, ErrorNS: 300}},
		}, OutOfMemory: []report.Failure{{
			At: 0, Stack: []activity.Place{{File: "/home/ann/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", Line: 12}, {File: cellFile, Line: 2}},
			OutOfMemory: report.OutOfMemory{Device: 1, RequestedBytes: 1 << 30, UsableBytes: 8 << 30, FreeBytes: 1 << 29, All: true,
				Reserved:   &report.Reserved{Bytes: 7 << 30, Segments: 41, InUseBytes: 6 << 30, AwaitingFreeBytes: 1 << 28, FreeBytes: 3 << 28, LargestFreeBytes: 1 << 20, ReleasableBytes: 1 << 20},
				Variables:  []report.Variable{{Name: "model", Kind: "parameters", Function: "<module>", Bytes: 1 << 30, Tensors: 40}, {Name: "x", Kind: "tensor", Function: "forward", Bytes: 1 << 20, Tensors: 1, Shape: pointer("float32 [512, 512]")}},
				Allocators: []report.Allocator{{Function: "forward", Bytes: 1 << 30, Blocks: 3}}},
			VariablePlaces: []activity.Place{{File: cellFile, Line: 3}, {}}, AllocatedAt: []activity.Place{{File: cellFile, Line: 1}},
		}}}),
	}
}

func schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text []byte) {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(document); err != nil {
		t.Error(err)
	}
}

// readable writes one property a line.
func readable(t *testing.T, d *report.Document) []byte {
	t.Helper()
	v := reflect.ValueOf(d).Elem()
	out := bytes.NewBufferString("{")
	for i := range v.NumField() {
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if option != "" && v.Field(i).IsZero() {
			continue
		}
		value, err := json.Marshal(v.Field(i).Interface())
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n\"" + name + "\": ")
		out.Write(value)
	}
	out.WriteString("\n}\n")
	return out.Bytes()
}

// A report of each kind is what it was, holds to the schema, and reads back as it is.
func TestGoldens(t *testing.T) {
	s := schema(t)
	for name, v := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			got, path := readable(t, v.Document), filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs; if that is meant, run go test -update and read it", path)
			}
			validate(t, s, want)
			again, err := report.Read(want)
			if err != nil {
				t.Fatal(err)
			}
			if back := readable(t, again.Document); !bytes.Equal(back, want) {
				t.Error("reads back as something else")
			}
		})
	}
}

// What a user adds up adds up.
func TestFiguresAddUp(t *testing.T) {
	for name, v := range goldens(t) {
		for _, d := range v.Devices {
			if d.BusyNS+d.IdleNS+d.UnknownNS != v.DurationNS {
				t.Errorf("%s: device %d", name, d.Number)
			}
		}
		idle, lines := int64(0), int64(0)
		for _, c := range v.Idle.Causes {
			idle += c.NS
		}
		for _, l := range v.Lines {
			lines += l.SelfNS
		}
		if target := v.Target(); idle != v.Idle.IdleNS || lines+target.NoLineNS != target.ThreadNS || target.ThreadNS != v.Threads[0].StateNS.Sum() {
			t.Errorf("%s: idle %d of %d, lines %d and %d of %d", name, idle, v.Idle.IdleNS, lines, target.NoLineNS, target.ThreadNS)
		}
		for i := range v.Threads {
			sum := int64(0)
			for _, s := range v.History(i) {
				sum += s.End - s.Start
			}
			if math.Abs(float64(sum-v.Threads[i].StateNS.Sum())) > 1000 {
				t.Errorf("%s: thread %d has spans of %d ns, states of %d", name, i, sum, v.Threads[i].StateNS.Sum())
			}
		}
	}
}

// The schema describes everything that is written, and nothing else, and says what
// it is; objects are open.
func TestTheSchemaTellsAll(t *testing.T) {
	text, err := os.ReadFile("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	if whole["$id"] == nil {
		t.Error("the schema has no $id")
	}
	c := schemaWalk{t, whole["$defs"].(map[string]any)}
	c.object("report", whole, reflect.TypeFor[report.Document]())
}

type schemaWalk struct {
	t    *testing.T
	defs map[string]any
}

func (c schemaWalk) resolve(node map[string]any) map[string]any {
	for {
		if ref, ok := node["$ref"].(string); ok {
			node = c.defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
			continue
		}
		if either, ok := node["oneOf"].([]any); ok {
			node = either[len(either)-1].(map[string]any)
			continue
		}
		return node
	}
}

func (c schemaWalk) object(path string, node map[string]any, typ reflect.Type) {
	properties, _ := node["properties"].(map[string]any)
	written := make(map[string]bool)
	for _, field := range reflect.VisibleFields(typ) {
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous || name == "" {
			continue
		}
		written[name] = true
		property, ok := properties[name].(map[string]any)
		if !ok {
			c.t.Errorf("%s.%s is not described", path, name)
			continue
		}
		if text, _ := property["description"].(string); text == "" {
			c.t.Errorf("%s.%s has no description", path, name)
		}
		required := false
		for _, r := range node["required"].([]any) {
			required = required || r == name
		}
		if required != (option == "") {
			c.t.Errorf("%s.%s: required is %v", path, name, required)
		}
		c.value(path+"."+name, property, field.Type)
	}
	for name := range properties {
		if !written[name] {
			c.t.Errorf("%s.%s is never written", path, name)
		}
	}
	if _, closed := node["additionalProperties"].(bool); closed {
		c.t.Errorf("%s is not open", path)
	}
}

func (c schemaWalk) value(path string, node map[string]any, typ reflect.Type) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	node = c.resolve(node)
	switch {
	case typ == reflect.TypeFor[time.Time]():
	case typ.Kind() == reflect.Struct:
		c.object(path, node, typ)
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct:
		c.value(path+"[]", node["items"].(map[string]any), typ.Elem())
	}
}

func pointer[T any](v T) *T { return &v }
