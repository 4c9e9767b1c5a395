package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
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

// build also takes the way over JSON: what is built reads back as the same.
func build(t *testing.T, rec *timeline.Recording, d *diagnose.Diagnosis, opts Options) *View {
	t.Helper()
	v, err := Build(rec, d, opts)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v.Document)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if back, _ := json.Marshal(again.Document); string(back) != string(text) {
		t.Errorf("reads back as something else:\n%s\n%s", back, text)
	}
	return again
}

func inSeconds(ns int64) float64 { return Seconds(ns) }

func TestLinesOfTheUsersCells(t *testing.T) {
	r := build(t, training(), nil, Options{})
	var got []string
	for _, l := range r.Lines {
		got = append(got, fmt.Sprintf("%s:%d %q self %g total %g", r.FileName(&l.File), l.Line, r.Text(l.File, l.Line), inSeconds(l.SelfNS), inSeconds(l.TotalNS)))
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
	if target := r.Target(); inSeconds(target.ThreadNS) != 14 || inSeconds(target.NoLineNS) != 1 {
		t.Errorf("%g s of the thread, %g s in no line; want 14 and 1", inSeconds(target.ThreadNS), inSeconds(target.NoLineNS))
	}
	if l := r.Lines[0]; inSeconds(l.StateNS[StateIO]) != 6 {
		t.Errorf("line 2 has the states %v; all of it was input/output", l.StateNS)
	}
}

func TestTheLineLaneShowsTheCellWithMostTime(t *testing.T) {
	r := build(t, training(), nil, Options{})
	file, spans := r.LineLane()
	if r.FileName(&file) != "Cell [7]" {
		t.Errorf("lane of %q; Cell [7] holds 7 of 13 s", r.FileName(&file))
	}
	var lines []int
	for _, s := range spans {
		lines = append(lines, s.Line)
	}
	if got, want := fmt.Sprint(lines), "[1 2 3 2 3 2 3 0]"; got != want {
		t.Errorf("lines in order %s, want %s", got, want)
	}
}

func timesOf(r *View) map[string]string {
	times := map[string]string{}
	for _, f := range r.FunctionTimes {
		times[r.FunctionName(f.Function)] = fmt.Sprintf("%g/%g %s", inSeconds(f.SelfNS), inSeconds(f.TotalNS), r.Functions[f.Function].Code)
	}
	return times
}

func TestFunctionTimes(t *testing.T) {
	times := timesOf(build(t, training(), nil, Options{}))
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

func TestACutCalleeIsToldOfItsCaller(t *testing.T) {
	sc := newScene()
	stack := sc.stack(cellLine(1), trainLine(2))
	sc.Set(sc.main, 0, stack, timeline.StatePython, false)
	sc.Set(sc.main, 3*second, stack, timeline.StatePython, true)
	r := build(t, sc.Snapshot(5*second), nil, Options{})
	for _, f := range r.FunctionTimes {
		if r.FunctionName(f.Function) == "train" && (inSeconds(f.SelfNS) != 5 || inSeconds(f.IncompleteNS) != 2) {
			t.Errorf("train: %g s, of which %g s incomplete; want 5 and 2", inSeconds(f.SelfNS), inSeconds(f.IncompleteNS))
		}
	}
	if l := r.Lines[0]; inSeconds(l.SelfNS) != 5 || inSeconds(l.IncompleteNS) != 2 {
		t.Errorf("line %d: %g s, of which %g s incomplete; want 5 and 2", l.Line, inSeconds(l.SelfNS), inSeconds(l.IncompleteNS))
	}
	if l := r.Lines[1]; l.SelfNS != 0 || l.IncompleteNS != 0 {
		t.Errorf("line %d, its caller: %+v, want none of its own", l.Line, l)
	}
	if h := r.History(0); len(h) != 2 || h[0].Incomplete || !h[1].Incomplete {
		t.Errorf("history %+v; the second span was cut", h)
	}
}

func TestTheUsersOwnFunctionsAreKept(t *testing.T) {
	sc := newScene()
	own := timeline.Frame{Function: "quick", File: earlierFile, Line: 2, FirstLine: 1}
	sc.run(second/1000, timeline.StatePython, own)
	for i := range maxFunctions + 50 {
		sc.run(second, timeline.StatePython, cellLine(1),
			timeline.Frame{Function: fmt.Sprint("library", i), File: "/v/lib/python3.12/site-packages/lib.py", Line: 1, FirstLine: i})
	}
	times := timesOf(build(t, sc.Snapshot(sc.at), nil, Options{}))
	if times["quick"] == "" || times["Cell [7]"] == "" || len(times) > maxFunctions+2 {
		t.Errorf("%d functions, quick %q, the cell %q; want the user's beside the longest %d", len(times), times["quick"], times["Cell [7]"], maxFunctions)
	}
}

func TestRecursionCountsOnceInTotalTimes(t *testing.T) {
	sc := newScene()
	fib := timeline.Frame{Function: "fib", File: earlierFile, Line: 2, FirstLine: 1}
	sc.run(2*second, timeline.StatePython, cellLine(1), fib, fib, fib)
	if got, want := timesOf(build(t, sc.Snapshot(sc.at), nil, Options{}))["fib"], "2/2 cell"; got != want {
		t.Errorf("fib has %q, want %q", got, want)
	}
}

func TestUnknownStretchesOfARateAreNull(t *testing.T) {
	r := build(t, training(), nil, Options{})
	text, err := json.Marshal(r.Tracks[0])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"at_us":[7000000,8000000,14000000],"value":[1,null,0.5]`) {
		t.Errorf("track %s", text)
	}
	if got, want := *r.Tracks[0].Mean, (7*1+6*0.5)/13; math.Abs(got-want) > 1e-12 {
		t.Errorf("mean %v over known time, want %v", got, want)
	}
}

func TestDiagnosisIsConverted(t *testing.T) {
	rec := training()
	rec.GPUs = []timeline.GPU{{Index: 0, UUID: "GPU-1", Name: "H100", Source: "GPM", Resolution: 100 * time.Millisecond, OtherProcesses: 1}}
	d := &diagnose.Diagnosis{
		GPUs: []gpuidle.DeviceTime{{Device: 0, Busy: 5 * second, Idle: 8 * second, Unknown: second, Used: true,
			Gaps: []timeline.Interval{{Start: 0, End: 8 * second}}}},
		Idle: &gpuidle.Breakdown{
			Total:     8 * second,
			Certainty: gpuidle.Certainty{Method: gpuidle.ByAverage, R2: math.NaN(), Window: 167 * time.Millisecond},
			Devices: []gpuidle.DeviceBreakdown{{Device: 0, Idle: 8 * second, Certainty: gpuidle.Certainty{R2: math.NaN(), HeldOut: math.NaN()},
				Causes: []gpuidle.CauseTime{{Cause: activity.LoadHere, Bounded: gpuidle.Bounded{Nanos: 8 * second}, Share: 1}}}},
			Causes: []gpuidle.CauseTime{{Cause: activity.LoadHere, Place: activity.Place{File: cellFile, Line: 2}, Share: 1,
				Bounded: gpuidle.Bounded{Nanos: 8 * second, Low: 6 * second, High: 9 * second}}},
			Lines: []gpuidle.LineTime{{Place: activity.Place{File: cellFile, Line: 2}, Nanos: 8 * second}},
		},
		Findings: []diagnose.Finding{{ID: diagnose.GPUWaitsForData, Severity: diagnose.Warning, Cause: activity.Load, Time: 7 * second, Low: 7 * second,
			High: 7 * second, Place: activity.Place{File: cellFile, Line: 2}, PlaceTime: 7 * second}},
	}
	r := build(t, rec, d, Options{})
	if got := r.Devices[0]; got.Name != "H100" || got.BusyNS+got.IdleNS+got.UnknownNS != r.DurationNS || *got.Others != 1 {
		t.Errorf("device %+v: the parts must add up to %d ns", got, r.DurationNS)
	}
	c := r.Idle.Causes[0]
	if c.ID != "data-loading-here" || c.Kind != "starvation" || c.Text != "data loading in this thread" || !strings.Contains(c.Hint, "num_workers") ||
		r.FileName(c.File) != "Cell [7]" || r.LineText(c.File, c.Line) != "for x in loader:" || inSeconds(*c.LowNS) != 6 || inSeconds(*c.HighNS) != 9 || r.Idle.R2 != nil {
		t.Errorf("cause %+v, R² %v", c, r.Idle.R2)
	}
	if name := r.FunctionName(*c.Function); name != "Cell [7]" {
		t.Errorf("the cause is in %q", name)
	}
	if inSeconds(r.Lines[0].IdleNS) != 8 {
		t.Errorf("line %+v carries no idle time", r.Lines[0])
	}
	if want := "The GPU waited 7.0 of 14.0 s for data in line 2."; r.Headline.Text != want || r.Headline.Finding == nil || *r.Headline.Finding != 0 || r.MainFinding().Text != want {
		t.Errorf("headline %+v of %+v, want %q", r.Headline, r.Findings, want)
	}
}

func TestTooShortACellSaysHowToSeeMore(t *testing.T) {
	s := newScene()
	s.Describe(func(r *timeline.Recording) { r.Sampling.Samples = 5 })
	rec := s.Snapshot(5e6)
	d := diagnose.Run(rec)
	r := build(t, rec, &d, Options{})
	if want := "Too short to profile: only 5 samples. Run again with -p 0.0001."; r.Headline.Text != want || r.Headline.Kind != HeadlineTooFew || r.Headline.Finding != nil {
		t.Errorf("headline %+v, want %q", r.Headline, want)
	}
}

// A place is named so that it is understood: by the line alone in the recorded
// cell, by cell or file elsewhere.
func TestPlacesInSentences(t *testing.T) {
	rec := training()
	n := newNames(rec, "/home/ann")
	for at, want := range map[activity.Place]string{
		{File: cellFile, Line: 3}: "line 3", {File: earlierFile, Line: 3}: "Cell [5]:3", {File: "/home/ann/pkg/data.py", Line: 40}: "data.py:40",
		{}: "", {File: cellFile}: "",
	} {
		if got := n.place(at); got != want {
			t.Errorf("%+v is called %q, want %q", at, got, want)
		}
	}
	rec.Target.Cell, rec.Target.Argv = nil, []string{"python", "train.py"}
	if got, want := newNames(rec, "").place(activity.Place{File: "/home/ann/train.py", Line: 3}), "train.py:3"; got != want {
		t.Errorf("a script's line is called %q, want %q", got, want)
	}
}

func TestPrivateThingsAreNotShown(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target.Argv = []string{"/home/ann/v/bin/python", "/home/ann/train.py", "--api-key=abc", "--hf_token", "abc", "--keys-file", "-x"}
		r.Target.Interpreter = "/home/ann/v/bin/python"
	})
	r := build(t, b.Snapshot(1), nil, Options{Home: "/home/ann"})
	if got, want := strings.Join(r.Target().Argv, " "), "~/v/bin/python ~/train.py --api-key=*** --hf_token *** --keys-file -x"; got != want {
		t.Errorf("argv %q, want %q", got, want)
	}
	if r.Target().Interpreter != "~/v/bin/python" {
		t.Errorf("interpreter %q", r.Target().Interpreter)
	}
}

// What a launcher started is in the name, but for a process that runs no file: mp.spawn's are "python".
func TestTheNameOfALauncher(t *testing.T) {
	for command, want := range map[string]string{"train.py": "torchrun train.py", "python": "torchrun", "python3.12": "torchrun", "torchrun": "torchrun", "": "torchrun"} {
		b := &builder{doc: &Document{Processes: []Process{{}, {Command: command}}}}
		started := 1
		if got := b.started("torchrun", &started); got != want {
			t.Errorf("a launcher of %q is called %q, want %q", command, got, want)
		}
	}
}

func TestTextOfTheTargetIsMadeFit(t *testing.T) {
	s := newScene()
	s.run(second, timeline.StatePython, timeline.Frame{Function: "a\x00b\x1b[31m\xff\u202e", File: "x\ny"})
	r := build(t, s.Snapshot(s.at), nil, Options{})
	if f := r.Functions[0]; f.Name != "a\ufffdb\ufffd[31m\ufffd\ufffd" || r.FileName(&f.File) != "x\ufffdy" {
		t.Errorf("function %q in %q", f.Name, r.FileName(&f.File))
	}
}

func TestKernelsAreMadeFit(t *testing.T) {
	given := []KernelLane{{Device: 1, Stream: 7, GapNS: Column{500}, LengthNS: Column{250}, Name: Column{0}, Count: Column{1},
		Names: []string{"gemm\x1b[2J\xff\u202e"}}, {Device: 1, Stream: 20}}
	r := build(t, training(), nil, Options{Kernels: given})
	if got, want := r.Kernels[0].Names[0], "gemm\ufffd[2J\ufffd\ufffd"; got != want {
		t.Errorf("name %q, want %q", got, want)
	}
	if given[0].Names[0] == r.Kernels[0].Names[0] {
		t.Error("the lanes given were changed")
	}
	if d := r.Devices[r.Kernels[0].Device]; d.Number != 1 {
		t.Errorf("the lane is of device %+v", d)
	}
	if text, _ := json.Marshal(build(t, training(), nil, Options{}).Document); strings.Contains(string(text), `"kernels"`) {
		t.Error("a report without a trace has kernels")
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
	r := build(t, s.Snapshot(6*second), nil, Options{Home: "/home/u"})
	for _, l := range r.Lines {
		got = append(got, fmt.Sprintf("%s:%d %g of %g", r.FileName(&l.File), l.Line, Seconds(l.SelfNS), Seconds(l.TotalNS)))
	}
	want := "[~/learn-pytorch/modx.py:3 3 of 3 ~/learn-pytorch/modx.py:12 2 of 5 Cell [7]:1 1 of 1 Cell [7]:2 0 of 5]"
	if fmt.Sprint(got) != want {
		t.Errorf("lines %v, want %s", got, want)
	}
}

func TestAProgramIsNamedByItsCommandLine(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"/usr/bin/python3", "/home/ann/train.py", "--epochs", "3"}, "train.py"},
		{[]string{"python", "-m", "pytest", "tests"}, "-m pytest"},
		{[]string{"python", "-c", "import time\ntime.sleep(3)"}, "python -c"},
		{[]string{"python"}, "standard input"},
		{[]string{"python3.13", "-u"}, "standard input"},
		{[]string{"python3", "-I", "-", "--epochs", "3"}, "standard input"},
		{nil, ""},
		{[]string{"/bin/sh", "./run.sh", "3"}, "run.sh"},
		{[]string{"bash", "-c", "python train.py"}, "bash"},
		{[]string{"env", "SEED=1", "python3", "train.py", "--lr=1"}, "train.py"},
		{[]string{"nohup", "python", "-m", "pytest"}, "-m pytest"},
		{[]string{"env"}, "env"},
		{[]string{"python", "-W", "ignore", "train.py"}, "train.py"},
		{[]string{"python3", "-X", "dev", "-Wignore", "-u", "train.py", "-W", "9"}, "train.py"},
	} {
		if got := programName(c.argv); got != c.want {
			t.Errorf("%q: got %q, want %q", c.argv, got, c.want)
		}
	}
}

// TestTheIntervalIsTheOneThatWasKept is a sampling that its budget slowed down after two seconds of ten.
func TestTheIntervalIsTheOneThatWasKept(t *testing.T) {
	s := newScene()
	s.Describe(func(r *timeline.Recording) {
		r.Sampling.Asked, r.Sampling.Interval = time.Millisecond, time.Millisecond
		r.Sampling.Changes = []timeline.IntervalChange{{From: 2 * second, Interval: 40 * time.Millisecond}}
		r.Sampling.Clamps = []timeline.Clamp{{Option: "interval", Asked: time.Microsecond, Used: time.Millisecond}}
	})
	got := build(t, s.Snapshot(10*second), nil, Options{}).Target().Sampling
	if want := int64(10 * second / (2000 + 200)); math.Abs(float64(got.Interval(int64(10*second))-want)) > 1000 || got.AskedNS != 1e6 || len(got.Kept) != 2 {
		t.Errorf("interval %d ns, asked for %d ns, kept %v; want %d ns", got.Interval(int64(10*second)), got.AskedNS, got.Kept, want)
	}
	if len(got.Clamped) != 1 || got.Clamped[0] != (Clamp{Option: "interval", AskedNS: 1000, KeptNS: 1e6}) {
		t.Errorf("clamped %v", got.Clamped)
	}
}

// TestARestartIsSaid is a cell that a restart of its kernel cut short, the second since they are followed.
func TestARestartIsSaid(t *testing.T) {
	s := newScene()
	rec := s.Snapshot(second)
	rec.Target.Cell = &timeline.Cell{ExecutionCount: 1, File: "c", Outcome: "kernel restarted"}
	rec.Target.Restarts = 2
	r := build(t, rec, nil, Options{})
	if got := r.Target().Cell.Outcome; got != OutcomeRestarted {
		t.Errorf("outcome %q, want %q", got, OutcomeRestarted)
	}
	if len(r.Notes) != 1 || r.Notes[0].ID != "kernel-restarted" || fmt.Sprint(r.Notes[0].Args["restarts"]) != "2" ||
		r.Notes[0].Text != "kernel: restarted 2 times since its cells are followed; they count from 1 again" {
		t.Errorf("notes %+v, want one of two restarts", r.Notes)
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
	r := build(t, s.Snapshot(10*second), nil, Options{})
	if want := []Gap{
		{StartNS: int64(2 * second), EndNS: int64(5 * second), Reason: "stopped", Text: "the process was stopped"},
		{StartNS: int64(6 * second), EndNS: int64(6*second + second/100), Reason: "exec", Text: "the process became another program"},
	}; !slices.Equal(r.Gaps, want) {
		t.Errorf("gaps %+v, want %+v", r.Gaps, want)
	}
	if len(r.Notes) != 1 || r.Notes[0].ID != "stacks-unknown" || r.Notes[0].Text != "stacks: unknown for 3.0 s: the process was stopped" {
		t.Errorf("notes %+v, want one of 3 s", r.Notes)
	}
	if len(r.Threads) != 1 || !r.Threads[0].OnCPUAtLeast || *r.Threads[0].OnCPUNS != int64(second) {
		t.Errorf("threads %+v: on_cpu_ns is a lower bound", r.Threads)
	}
}

func TestFramesLeftOutAreToldAsOne(t *testing.T) {
	sc := newScene()
	down := timeline.Frame{Function: "down", File: earlierFile, Line: 2, FirstLine: 1}
	between := timeline.Frame{Function: "down", File: earlierFile, FirstLine: 1, Elided: 30_000}
	sc.run(2*second, timeline.StatePython, cellLine(1), down, between, down)
	r := build(t, sc.Snapshot(sc.at), nil, Options{})
	var names []string
	for _, frame := range r.Stack(r.History(0)[0].Node, 9) {
		names = append(names, r.FunctionName(r.FunctionOf(frame)))
	}
	if got, want := strings.Join(names, " | "), "Cell [7] | down | … about 30000 frames, most of down | down"; got != want {
		t.Errorf("the stack is shown as %q, want %q", got, want)
	}
}
