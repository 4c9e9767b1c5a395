package mergereports

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/rankstrip"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

const second = timeline.Nanos(time.Second)

// viewOf is the report of a recording.
func viewOf(t testing.TB, rec *timeline.Recording) *report.View {
	t.Helper()
	d := diagnose.Run(rec)
	v, err := report.Build(rec, &d, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// rankedReport is the report of one rank of four, recorded by itself: it began so many seconds
// after the machine, and works for so many tenths of each of its ten steps.
func rankedReport(t testing.TB, number int, begins float64, tenths int, boot string, gpu bool) *report.View {
	t.Helper()
	b := timeline.NewBuilder(timeline.Options{Origin: int64(begins*1e9) + 1, StartedAt: time.Unix(1000, 0).Add(time.Duration(begins * 1e9))})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 50 + number, Argv: []string{"python", "/u/train.py"}, Rank: &timeline.Rank{Global: number, Local: number, Node: 0, World: 4}}
		r.Processes = []timeline.Process{
			{PID: 50 + number, ParentIndex: -1, Role: timeline.RoleScript, Command: "train.py"},
			{PID: 80 + number, Parent: 50 + number, Role: timeline.RoleChild, Command: "ffmpeg", End: second},
		}
		r.Host.BootID = boot
		for i := range 2 {
			if gpu {
				g := timeline.GPU{Index: i, UUID: fmt.Sprint("GPU-", i), Name: "Test GPU"}
				if i == number {
					g.PIDs = []int{50 + number}
				}
				r.GPUs = append(r.GPUs, g)
			}
		}
	})
	id := b.Thread(timeline.Thread{PID: 50 + number, NativeID: 50 + number, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
	own := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/u/train.py", Line: 2 + number, FirstLine: 1}))
	step := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/u/train.py", Line: 9, FirstLine: 1}))
	reduce := b.Child(step, b.Frame(timeline.Frame{Function: "all_reduce", File: "/v/site-packages/torch/distributed/distributed_c10d.py", Line: 3}))
	for at := timeline.Nanos(0); at < 10*second; at += second {
		b.Set(id, at, own, timeline.StatePython, false)
		b.Set(id, at+timeline.Nanos(tenths)*second/10, reduce, timeline.StateWaiting, false)
		b.Mark(timeline.Mark{Kind: "step", Start: at, End: at + second, Source: timeline.StepMarked})
	}
	cpu := b.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindRate, Unit: "cores", Device: -1, PID: 50 + number})
	cpu.AddWindow(0, 10*second, 0.5)
	if gpu {
		for i := range 2 {
			busy := b.Track(timeline.TrackSpec{ID: fmt.Sprintf("gpu%d.util", i), Kind: timeline.KindRate, Unit: "%", Device: i})
			busy.AddWindow(0, 4*second, 100)
			busy.AddWindow(4*second, 10*second, 0)
		}
	}
	return viewOf(t, b.Snapshot(10*second))
}

func four(t *testing.T, gpu bool) []*report.View {
	return []*report.View{
		rankedReport(t, 2, 1.25, 4, "boot", gpu), rankedReport(t, 0, 1, 4, "boot", gpu), rankedReport(t, 3, 1, 4, "boot", gpu), rankedReport(t, 1, 1.125, 9, "boot", gpu),
	}
}

var names = []string{"a.json", "b.json", "c.json", "d.json"}

func TestRanksOfOneMachineAreOnOneAxis(t *testing.T) {
	in := four(t, false)
	r, err := Merge(in, names)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.DurationNS, int64(10.25*1e9); got != want {
		t.Errorf("it lasts %d ns, want %d", got, want)
	}
	var got []string
	for i, target := range r.Targets {
		p := r.Processes[target.Process]
		got = append(got, fmt.Sprintf("%s from %g with %d spans from %g", p.Text, report.Seconds(p.StartNS), len(r.History(i)), report.Seconds(r.History(i)[0].Start)))
	}
	want := "[rank 0 from 0 with 20 spans from 0 rank 1 from 0.125 with 20 spans from 0.125 rank 2 from 0.25 with 20 spans from 0.25 rank 3 from 0 with 20 spans from 0]"
	if fmt.Sprint(got) != want {
		t.Errorf("targets %v\nwant    %s", got, want)
	}
	if len(r.Ranks) != 4 || r.Ranks[1].Rank != 1 || r.Processes[r.Ranks[1].Process].Text != "rank 1" || r.Ranks[1].ComputingNS != 9e9 {
		t.Errorf("ranks %+v", r.Ranks)
	}
	if len(r.Files) != len(in[0].Files) || len(r.Functions) != len(in[0].Functions) {
		t.Errorf("%d files and %d functions of one program, each has %d and %d", len(r.Files), len(r.Functions), len(in[0].Files), len(in[0].Functions))
	}
	if f := r.MainFinding(); f == nil || f.ID != string(diagnose.Straggler) || *f.Line != 3 || r.Headline.Text != f.Text {
		t.Errorf("the headline is %+v", r.Headline)
	}
	if r.Subject.Process != r.Ranks[1].Process || r.Threads[*r.Subject.Thread].Process != r.Ranks[1].Process {
		t.Errorf("the flame chart is not of the rank that the headline names: %+v", r.Subject)
	}
	// Of each second 0.6: from when ranks 0 and 3 are there to when they go on.
	if want := "The other 3 ranks waited 6.0 of 9.8 s for rank 1 in all_reduce, in each of its 10 steps; rank 1 was 8.9 s longer in train.py:3 than they were."; r.Headline.Text != want {
		t.Errorf("headline %q\nwant     %q", r.Headline.Text, want)
	}
	if cpu := r.HostTrack("cpu"); cpu == nil || math.Abs(*cpu.Mean-2*10/10.25) > 0.02 {
		t.Errorf("the sum of the CPU tracks is %+v", cpu)
	}
	if in[0].Processes[0].Text == "rank 2" || in[0].Spans.GapUS[0] != 0 {
		t.Error("a report that went in has changed")
	}
}

func TestEachGPUIsToldByWhoUsedIt(t *testing.T) {
	in := four(t, true)
	r, err := Merge(in, names)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Devices) != 2 || len(r.Idle.Devices) != 2 {
		t.Fatalf("devices %+v", r.Devices)
	}
	for i, d := range r.Devices {
		if !d.Used || len(d.Processes) != 1 || r.Processes[d.Processes[0]].Text != fmt.Sprint("rank ", d.Number) || d.BusyNS != 4e9 || d.IdleNS != 6e9 {
			t.Errorf("device %d is %+v", i, d)
		}
	}
	count := 0
	for _, track := range r.Tracks {
		if track.Device != nil {
			count++
		}
	}
	if count != 2 {
		t.Errorf("%d tracks of 2 devices", count)
	}
}

func TestOneReportStaysAsItIs(t *testing.T) {
	in := rankedReport(t, 0, 3, 4, "boot", true)
	r, err := Merge([]*report.View{in}, names[:1])
	if err != nil {
		t.Fatal(err)
	}
	if r.DurationNS != in.DurationNS || !slices.Equal(r.Spans.Node, in.Spans.Node) || r.Idle.IdleNS != in.Idle.IdleNS || !r.StartedAt.Equal(in.StartedAt) {
		t.Errorf("%+v", r.Document)
	}
}

// The most that was resident may lie between two readings of its track.
func TestThePeakOfMemoryIsThatOfTheProcess(t *testing.T) {
	in := rankedReport(t, 0, 3, 4, "boot", false)
	process, mean, most, peak := in.Target().Process, 9e6, 12e6, int64(63e6)
	in.Processes[process].PeakMemoryBytes = &peak
	in.Tracks = append(in.Tracks, report.Track{
		ID: "rss", Kind: report.Gauge, Unit: "B", Process: &process, AtUS: report.Column{5e6, 10e6}, Value: report.Figures{6e6, 12e6}, Mean: &mean, Peak: &most,
	})
	r, err := Merge([]*report.View{in}, names[:1])
	if err != nil {
		t.Fatal(err)
	}
	if got := r.HostTrack("rss"); got == nil || *got.Peak != 63e6 || r.Name != in.Name {
		t.Errorf("%q: the peak of %q is %v", r.Name, got.ID, *got.Peak)
	}
}

func TestWhatDoesNotFitTogetherIsRefused(t *testing.T) {
	if _, err := Merge([]*report.View{rankedReport(t, 0, 1, 4, "", false)}, names); !errors.Is(err, ErrNoClock) {
		t.Errorf("no boot id: %v", err)
	}
	if _, err := Merge(nil, nil); err == nil {
		t.Error("nothing was merged")
	}
	if _, err := Merge([]*report.View{rankedReport(t, 0, 1, 4, "boot", false), rankedReport(t, 1, 1e8, 4, "boot", false)}, names); !errors.Is(err, errTooLong) {
		t.Errorf("years apart: %v", err)
	}
}

// Steps of reports that do not have it get their time in collectives from the stacks, so that their ranks can be compared.
func TestReportsOfOlderVersionsAreComparedByOwnTime(t *testing.T) {
	in := four(t, false)
	for _, r := range in {
		for i := range r.Steps {
			if ns := r.Steps[i].CollectiveNS; ns == nil || *ns <= 0 {
				t.Fatalf("step %d was in collectives for %v", i, ns)
			}
			r.Steps[i].CollectiveNS = nil
		}
	}
	r, err := Merge(in, names)
	if err != nil {
		t.Fatal(err)
	}
	strip := rankstrip.Of(r, rankstrip.Bounds{Rows: 8, Cells: 100})
	if strip == nil || strip.ByLength {
		t.Fatalf("strip %+v", strip)
	}
	if got := strip.Slowest(); got == nil || got.Number != 1 || got.Longest != 10 || got.More != int64(second)/2 {
		t.Errorf("the slowest is %+v, want rank 1 in each of 10 steps, by half a second", got)
	}
}
