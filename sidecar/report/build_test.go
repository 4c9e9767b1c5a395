package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	cellFile    = "/tmp/ipykernel_1/222.py"
	earlierFile = "/tmp/ipykernel_1/111.py"
	second      = timeline.Nanos(1e9)
)

// scene builds recordings by what a thread did when.
type scene struct {
	*timeline.Builder
	main timeline.ThreadID
	at   timeline.Nanos
}

func newScene() *scene {
	s := &scene{Builder: timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: time.Unix(0, 0).UTC()})}
	s.main = s.Thread(timeline.Thread{PID: 1, NativeID: 1, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
	s.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 1, PythonVersion: "3.12.1", Cell: &timeline.Cell{
			ExecutionCount: 7, File: cellFile, Outcome: "ok", Text: "model = Model()\nfor x in loader:\n    train(x)\n"}}
		r.Sources = []timeline.Source{
			{File: earlierFile, ExecutionCount: 5, Text: "def train(x):\n    loss = model(x)\n    loss.backward()\n"},
		}
		r.Sampling.Samples = 10_000
	})
	return s
}

func (s *scene) stack(frames ...timeline.Frame) timeline.NodeID {
	n := timeline.RootNode
	for _, f := range frames {
		n = s.Child(n, s.Frame(f))
	}
	return n
}

func (s *scene) run(d timeline.Nanos, state timeline.State, frames ...timeline.Frame) {
	s.Set(s.main, s.at, s.stack(frames...), state, false)
	s.at += d
}

func cellLine(line int) timeline.Frame {
	return timeline.Frame{Function: "<module>", File: cellFile, Line: line, FirstLine: 1}
}

func trainLine(line int) timeline.Frame {
	return timeline.Frame{Function: "train", File: earlierFile, Line: line, FirstLine: 1}
}

var loaderFrame = timeline.Frame{Function: "_next_data", File: "/v/lib/python3.12/site-packages/torch/utils/data/dataloader.py", Line: 700, FirstLine: 690}

func training() *timeline.Recording {
	s := newScene()
	s.run(1*second, timeline.StatePython, cellLine(1))
	for range 3 {
		s.run(2*second, timeline.StateIO, cellLine(2), loaderFrame)
		s.run(1*second, timeline.StateNative, cellLine(3), trainLine(2))
		s.run(1*second, timeline.StatePython, cellLine(3), trainLine(3))
	}
	s.run(1*second, timeline.StateWaiting)
	pool := s.Thread(timeline.Thread{PID: 1, NativeID: 2, Name: "pool", OnCPU: 2 * second})
	s.Set(pool, 0, s.stack(timeline.Frame{Function: "wait", File: "/usr/lib/python3.12/threading.py", Line: 355, FirstLine: 320}), timeline.StateWaiting, false)
	w := s.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindRate, Unit: "cores", Source: "/proc/PID/stat", Device: -1})
	w.Add(7*second, 1)
	w.AddWindow(8*second, 14*second, 0.5)
	return s.Snapshot(14 * second)
}

func TestLinesOfTheUsersCells(t *testing.T) {
	r := Build(training(), nil, Options{})
	var got []string
	for _, l := range r.CellLines {
		got = append(got, fmt.Sprintf("%s:%d %q self %g total %g", l.File, l.Line, l.Text, l.SelfS, l.TotalS))
	}
	want := []string{
		`Cell [7]:2 "for x in loader:" self 6 total 6`,
		`Cell [5]:2 "loss = model(x)" self 3 total 3`,
		`Cell [5]:3 "loss.backward()" self 3 total 3`,
		`Cell [7]:1 "model = Model()" self 1 total 1`,
		`Cell [7]:3 "train(x)" self 0 total 6`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTheLineLaneShowsTheCellWithMostTime(t *testing.T) {
	r := Build(training(), nil, Options{})
	if r.LineFile != "Cell [7]" {
		t.Errorf("lane of %q; Cell [7] holds 7 of 13 s", r.LineFile)
	}
	var lines []int
	for _, s := range r.LineSpans {
		lines = append(lines, s.Line)
	}
	if got, want := fmt.Sprint(lines), "[1 2 3 2 3 2 3 0]"; got != want {
		t.Errorf("lines in order %s, want %s", got, want)
	}
}

func TestFunctionTimes(t *testing.T) {
	r := Build(training(), nil, Options{})
	times := map[string]string{}
	for _, f := range r.Functions {
		times[f.Function] = fmt.Sprintf("%g/%g %s", f.SelfS, f.TotalS, f.Kind)
	}
	for name, want := range map[string]string{
		"Cell [7]":   "1/13 cell",
		"train":      "6/6 cell",
		"_next_data": "6/6 data",
	} {
		if times[name] != want {
			t.Errorf("%s has %q, want %q", name, times[name], want)
		}
	}
	if got, there := times["wait"]; there {
		t.Errorf("a parked thread's wait is in the table: %s", got)
	}
}

func TestTheUsersOwnFunctionsAreKept(t *testing.T) {
	s := newScene()
	own := timeline.Frame{Function: "quick", File: earlierFile, Line: 2, FirstLine: 1}
	s.run(second/1000, timeline.StatePython, own)
	for i := range maxFunctions + 50 {
		s.run(second, timeline.StatePython, cellLine(1),
			timeline.Frame{Function: fmt.Sprint("library", i), File: "/v/lib/python3.12/site-packages/lib.py", Line: 1, FirstLine: i})
	}
	r := Build(s.Snapshot(s.at), nil, Options{})
	kept := make(map[string]bool)
	for _, f := range r.Functions {
		kept[f.Function] = true
	}
	if !kept["quick"] || !kept["Cell [7]"] || len(kept) > maxFunctions+2 {
		t.Errorf("%d functions, quick %v, the cell %v; want the user's beside the longest %d", len(kept), kept["quick"], kept["Cell [7]"], maxFunctions)
	}
}

func TestACutCalleeIsToldOfItsCaller(t *testing.T) {
	s := newScene()
	stack := s.stack(cellLine(1), trainLine(2))
	s.Set(s.main, 0, stack, timeline.StatePython, false)
	s.Set(s.main, 3*second, stack, timeline.StatePython, true)
	r := Build(s.Snapshot(5*second), nil, Options{})
	for _, f := range r.Functions {
		if f.Function == "train" && (f.SelfS != 5 || f.CutS != 2) {
			t.Errorf("train: %g s, of which %g s with its callee cut; want 5 and 2", f.SelfS, f.CutS)
		}
	}
}

func TestRecursionCountsOnceInTotalTimes(t *testing.T) {
	s := newScene()
	fib := timeline.Frame{Function: "fib", File: earlierFile, Line: 2, FirstLine: 1}
	s.run(2*second, timeline.StatePython, cellLine(1), fib, fib, fib)
	r := Build(s.Snapshot(s.at), nil, Options{})
	for _, f := range r.Functions {
		if f.Function == "fib" && (f.TotalS != 2 || f.SelfS != 2) {
			t.Errorf("fib self %g total %g, want 2 and 2", f.SelfS, f.TotalS)
		}
	}
}

func TestUnknownStretchesOfARateAreNull(t *testing.T) {
	r := Build(training(), nil, Options{})
	text, err := json.Marshal(r.Tracks[0])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"t_s":[7,8,14],"value":[1,null,0.5]`) {
		t.Errorf("track %s", text)
	}
	if got, want := float64(r.Tracks[0].Mean), (7*1+6*0.5)/13; math.Abs(got-want) > 1e-12 {
		t.Errorf("mean %v over known time, want %v", got, want)
	}
}

func TestDiagnosisIsConverted(t *testing.T) {
	rec := training()
	rec.GPUs = []timeline.GPU{{Index: 0, UUID: "GPU-1", Name: "H100", Source: "GPM", Resolution: 100 * time.Millisecond, OtherProcesses: 1}}
	d := &diagnose.Diagnosis{
		GPUs: []diagnose.GPUTime{{Device: 0, Busy: 5 * second, Idle: 8 * second, Unknown: second, Used: true,
			Gaps: []diagnose.Interval{{Start: 0, End: 8 * second}}}},
		Idle: &diagnose.Idle{
			Total:     8 * second,
			Certainty: diagnose.Certainty{Method: diagnose.ByAverage, R2: math.NaN(), Window: 167 * time.Millisecond},
			Devices:   []diagnose.DeviceIdle{{Device: 0, Idle: 8 * second}},
			Causes: []diagnose.CauseIdle{{Cause: diagnose.LoadHere, Place: diagnose.Place{File: cellFile, Line: 2}, Nanos: 8 * second, Share: 1,
				Low: 6 * second, High: 9 * second, Advice: diagnose.UseWorkers}},
			Lines: []diagnose.LineIdle{{Place: diagnose.Place{File: cellFile, Line: 2}, Nanos: 8 * second}},
		},
		Findings: []diagnose.Finding{{ID: diagnose.GPUWaitsForData, Severity: diagnose.Warning, Cause: diagnose.Load, Time: 7 * second, Low: 7 * second,
			High: 7 * second, Place: diagnose.Place{File: cellFile, Line: 2}, PlaceTime: 7 * second}},
	}
	r := Build(rec, d, Options{})
	if got := r.GPUs[0]; got.Name != "H100" || got.BusyS+got.IdleS+got.UnknownS != r.DurationS {
		t.Errorf("gpu %+v: the parts must add up to %g s", got, r.DurationS)
	}
	c := r.Idle.Causes[0]
	if c.ID != "data-loading-here" || c.Cause != "data loading in this thread" || !strings.Contains(c.Hint, "num_workers") || c.File != "Cell [7]" || c.SourceText != "for x in loader:" || c.BoundS == nil || *c.BoundS != 2 || *c.LowS != 6 || *c.HighS != 9 || r.Idle.R2 != nil {
		t.Errorf("cause %+v, R² %v", c, r.Idle.R2)
	}
	if r.CellLines[0].IdleS != 8 {
		t.Errorf("line %+v carries no idle time", r.CellLines[0])
	}
	if want := "The GPU waited 7.0 of 14.0 s for data in line 2."; r.Headline != want || r.HeadlineFinding == nil || *r.HeadlineFinding != 0 || r.Findings[0].Text != want {
		t.Errorf("headline %q of %+v, want %q", r.Headline, r.Findings, want)
	}
}

// TestTheIntervalIsTheOneThatWasKept is a sampling that its budget slowed down after two seconds of ten.
func TestTheIntervalIsTheOneThatWasKept(t *testing.T) {
	s := newScene()
	s.Describe(func(r *timeline.Recording) {
		r.Sampling.Asked, r.Sampling.Interval = time.Millisecond, time.Millisecond
		r.Sampling.Changes = []timeline.IntervalChange{{From: 2 * second, Interval: 40 * time.Millisecond}}
	})
	got := Build(s.Snapshot(10*second), nil, Options{}).Sampling
	if want := 10.0 / (2000 + 200); math.Abs(got.IntervalS-want) > 1e-6 || got.AskedS != 0.001 || got.ResolutionS < want-1e-6 {
		t.Errorf("interval %g s, asked for %g s, resolution %g s; want %g s kept of 0.001 s", got.IntervalS, got.AskedS, got.ResolutionS, want)
	}
}

// TestAStandstillIsSaid is a process that was stopped for three seconds, with a thread that ended meanwhile.
func TestAStandstillIsSaid(t *testing.T) {
	s := newScene()
	s.BeginGap(1, 2*second, timeline.GapStopped)
	s.EndGap(1, 5*second)
	s.BeginGap(1, 6*second, timeline.GapExec)
	s.EndGap(1, 6*second+second/100)
	s.UpdateThread(s.main, func(t *timeline.Thread) { t.OnCPU, t.OnCPUAtLeast = second, true })
	r := Build(s.Snapshot(10*second), nil, Options{})
	if len(r.Gaps) != 2 || r.Gaps[0] != (Gap{StartS: 2, EndS: 5, PID: 1, Reason: "stopped"}) || r.Gaps[1].Reason != "exec" {
		t.Errorf("gaps %+v, want 3 s stopped and 10 ms of exec", r.Gaps)
	}
	if want := []Note{{"stacks", "unknown for 3.00 s: the process was stopped"}}; !slices.Equal(r.Notes, want) {
		t.Errorf("notes %v, want %v", r.Notes, want)
	}
	if len(r.Threads) != 1 || !r.Threads[0].OnCPUAtLeast || *r.Threads[0].OnCPUS != 1 {
		t.Errorf("threads %+v: on_cpu_s is a lower bound", r.Threads)
	}
}

func TestTooShortACellSaysHowToSeeMore(t *testing.T) {
	s := newScene()
	s.Describe(func(r *timeline.Recording) { r.Sampling.Samples = 5 })
	rec := s.Snapshot(5e6)
	d := diagnose.Run(rec)
	r := Build(rec, &d, Options{})
	if want := "Too short to profile: only 5 samples. Run again with -p 0.0001."; r.Headline != want || !r.TooFew || r.HeadlineFinding != nil {
		t.Errorf("headline %q, want %q", r.Headline, want)
	}
}

// A place is named so that it is understood: by the line alone in the recorded
// cell, by cell or file elsewhere.
func TestPlacesInSentences(t *testing.T) {
	rec := training()
	n := newNames(rec, "/home/ann")
	for at, want := range map[diagnose.Place]string{
		{File: cellFile, Line: 3}: "line 3", {File: earlierFile, Line: 3}: "Cell [5]:3", {File: "/home/ann/pkg/data.py", Line: 40}: "data.py:40",
		{}: "", {File: cellFile}: "",
	} {
		if got := n.place(at); got != want {
			t.Errorf("%+v is called %q, want %q", at, got, want)
		}
	}
	rec.Target.Cell, rec.Target.Argv = nil, []string{"python", "train.py"}
	if got, want := newNames(rec, "").place(diagnose.Place{File: "/home/ann/train.py", Line: 3}), "train.py:3"; got != want {
		t.Errorf("a script's line is called %q, want %q", got, want)
	}
}

func TestPrivateThingsAreNotShown(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target.Argv = []string{"/home/ann/v/bin/python", "/home/ann/train.py", "--api-key=abc", "--hf_token", "abc", "--keys-file", "-x"}
		r.Target.Interpreter = "/home/ann/v/bin/python"
	})
	r := Build(b.Snapshot(1), nil, Options{Home: "/home/ann"})
	if got, want := strings.Join(r.Target.Argv, " "), "~/v/bin/python ~/train.py --api-key=*** --hf_token *** --keys-file -x"; got != want {
		t.Errorf("argv %q, want %q", got, want)
	}
	if r.Target.Interpreter != "~/v/bin/python" {
		t.Errorf("interpreter %q", r.Target.Interpreter)
	}
}

func TestTextOfTheTargetIsMadeFit(t *testing.T) {
	s := newScene()
	s.run(second, timeline.StatePython, timeline.Frame{Function: "a\x00b\x1b[31m\xff\u202e", File: "x\ny"})
	f := Build(s.Snapshot(s.at), nil, Options{}).Stacks.Frames[0]
	if f.Function != "a\ufffdb\ufffd[31m\ufffd\ufffd" || f.File != "x\ufffdy" {
		t.Errorf("frame %q in %q", f.Function, f.File)
	}
}

func TestKernelsAreMadeFit(t *testing.T) {
	given := []KernelLane{{Device: 1, Stream: 7, StartS: []float64{0.5}, EndS: []float64{0.75}, Name: []int{0}, Count: []int{1},
		Names: []string{"gemm\x1b[2J\xff\u202e"}}, {Device: 1, Stream: 20}}
	lanes := Build(training(), nil, Options{Kernels: given}).Kernels
	if got, want := lanes[0].Names[0], "gemm\ufffd[2J\ufffd\ufffd"; got != want {
		t.Errorf("name %q, want %q", got, want)
	}
	if given[0].Names[0] == lanes[0].Names[0] {
		t.Error("the lanes given were changed")
	}
	text, err := json.Marshal(lanes)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"device":1,"stream":7,"resolution_s":0,"start_s":[0.5],"end_s":[0.75],"name":[0],"count":[1],"names":["gemm` + "\ufffd[2J\ufffd\ufffd" + `"]},` +
		`{"device":1,"stream":20,"resolution_s":0,"start_s":[],"end_s":[],"name":[],"count":[],"names":[]}]`
	if string(text) != want {
		t.Errorf("lanes\n%s, want\n%s", text, want)
	}
	if text, _ := json.Marshal(Build(training(), nil, Options{})); strings.Contains(string(text), `"kernels"`) {
		t.Error("a report without a trace has kernels")
	}
}

func TestReportsMatchTheSchemaAndReadBack(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	empty := timeline.NewBuilder(timeline.Options{Origin: 1}).Snapshot(0)
	marked := training()
	marked.Output = &timeline.Output{Messages: 3, Bytes: 100}
	d := &diagnose.Diagnosis{
		GPUs:     []diagnose.GPUTime{{Device: 0, Unknown: marked.Duration}},
		Idle:     &diagnose.Idle{Certainty: diagnose.Certainty{R2: 0.9}, Causes: []diagnose.CauseIdle{{Cause: diagnose.NoWork}}, Devices: []diagnose.DeviceIdle{{}}},
		Steps:    []diagnose.Step{{Start: 0, End: second, Busy: second}},
		Regions:  []diagnose.Region{{Name: "epoch", Count: 1, Total: second}},
		Findings: []diagnose.Finding{{ID: diagnose.GPUBusy, Severity: diagnose.Info, Evidence: []diagnose.Interval{{End: 1}}}, {ID: diagnose.GPULost, Severity: diagnose.Limit}},
		Headline: diagnose.Headline{Limits: []int{1}},
	}
	for name, r := range map[string]*Report{
		"empty": Build(empty, nil, Options{}), "training": Build(training(), nil, Options{Version: "1.2.3"}), "full": Build(marked, d, Options{}),
		"kernels": Build(training(), nil, Options{Kernels: []KernelLane{
			{Device: 0, Stream: 7, ResolutionS: 2e-6, StartS: []float64{0.000001234, 1}, EndS: []float64{0.5, 2.000000001}, Name: []int{0, 0}, Count: []int{1, 12}, Names: []string{"k"}},
			{Device: 1, Stream: -1},
		}}),
	} {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var doc any
		json.Unmarshal(text, &doc)
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var back Report
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, _ := json.Marshal(&back)
		if string(again) != string(text) {
			t.Errorf("%s: reads back as something else", name)
		}
	}
}

func TestLinesOfTheUsersOwnModulesAreInTheTable(t *testing.T) {
	s := newScene()
	module := timeline.Frame{Function: "slow", File: "/home/u/learn-pytorch/modx.py", Line: 12, FirstLine: 10}
	helper := timeline.Frame{Function: "helper", File: "/home/u/learn-pytorch/modx.py", Line: 3, FirstLine: 2}
	s.run(1*second, timeline.StatePython, cellLine(1))
	s.run(2*second, timeline.StatePython, cellLine(2), module)
	s.run(3*second, timeline.StateIO, cellLine(2), module, helper, loaderFrame)
	var got []string
	for _, l := range Build(s.Snapshot(6*second), nil, Options{Home: "/home/u"}).CellLines {
		got = append(got, fmt.Sprintf("%s:%d %g of %g", l.File, l.Line, l.SelfS, l.TotalS))
	}
	want := "[~/learn-pytorch/modx.py:3 3 of 3 ~/learn-pytorch/modx.py:12 2 of 5 Cell [7]:1 1 of 1 Cell [7]:2 0 of 5]"
	if fmt.Sprint(got) != want {
		t.Errorf("lines %v, want %s", got, want)
	}
}
