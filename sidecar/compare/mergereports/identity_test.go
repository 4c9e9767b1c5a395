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
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// launcherReport is that of the program that started ranks 0 and 1 of rankedReport, and a
// third one that nobody recorded by itself. It began half a second before the machine's
// first second, and sees a rank's main thread in one stack.
func launcherReport(t testing.TB) *report.View {
	t.Helper()
	const origin = second / 2
	b := timeline.NewBuilder(timeline.Options{Origin: int64(origin) + 1, StartedAt: time.Unix(1000, 0).Add(time.Duration(origin))})
	zero, one, two, killed := 0, 1, 2, 137
	at := func(seconds float64) timeline.Nanos { return timeline.Nanos(seconds*1e9) - origin }
	rank := func(number *int, starts float64) timeline.Process {
		return timeline.Process{PID: 50 + *number, Parent: 40, Role: timeline.RoleRank, Number: number, Rank: number, Command: "train.py", Start: at(starts) + 9e6}
	}
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 40, Argv: []string{"torchrun", "/u/train.py"}}
		r.Processes = []timeline.Process{{PID: 40, ParentIndex: -1, Role: timeline.RoleScript, Command: "torchrun"}, rank(&zero, 1), rank(&one, 1.125), rank(&two, 1)}
		r.Processes[2].End, r.Processes[2].Signal, r.Processes[2].Exit = at(11.5), 9, &killed
		r.Host.BootID = "boot"
	})
	for place := range 4 {
		pid := []int{40, 50, 51, 52}[place]
		id := b.Thread(timeline.Thread{PID: pid, Process: place, NativeID: pid, Name: "MainThread", Main: true, RunsCell: place == 0, OnCPU: -1})
		b.Set(id, at(1.2), b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/u/train.py", Line: 1})), timeline.StateNative, false)
		b.End(id, at(11))
	}
	for place := 1; place < 4; place++ {
		b.Mark(timeline.Mark{Kind: "step", Process: place, Start: at(2), End: at(3), Source: timeline.StepOptimizer})
	}
	cpu := b.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindRate, Unit: "cores", Device: -1, PID: 40})
	cpu.AddWindow(0, at(12), 3)
	return viewOf(t, b.Snapshot(at(12)))
}

func TestAProcessInSeveralReportsIsOne(t *testing.T) {
	in := []*report.View{launcherReport(t), rankedReport(t, 0, 1, 4, "boot", false), rankedReport(t, 1, 1.125, 9, "boot", false)}
	r, err := Merge(in, names)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, p := range r.Processes {
		parent, end := -1, "alive"
		if p.Parent != nil {
			parent = r.Processes[*p.Parent].PID
		}
		if p.EndNS != nil {
			end = fmt.Sprint(report.Seconds(*p.EndNS))
		}
		threads, spans, steps := 0, 0, 0
		for k, th := range r.Threads {
			if th.Process == i {
				threads++
				spans += len(r.History(k))
			}
		}
		for _, s := range r.Steps {
			if s.Process == i {
				steps++
			}
		}
		got = append(got, fmt.Sprintf("%s %d of %d, %s: %d threads, %d spans, %d steps", p.Text, p.PID, parent, end, threads, spans, steps))
	}
	want := []string{
		"rank 0 50 of 40, alive: 1 threads, 20 spans, 10 steps",
		"ffmpeg 80 of 50, 1.5: 0 threads, 0 spans, 0 steps",
		"rank 1 51 of 40, 11: 1 threads, 20 spans, 10 steps",
		"ffmpeg 81 of 51, 1.625: 0 threads, 0 spans, 0 steps",
		"torchrun 40 of -1, alive: 1 threads, 1 spans, 0 steps",
		"rank 2 52 of 40, alive: 1 threads, 1 spans, 1 steps",
	}
	if !slices.Equal(got, want) {
		t.Errorf("processes\n%q\nwant\n%q", got, want)
	}
	if len(r.Ranks) != 3 || r.Ranks[0].Steps != 10 || r.Ranks[2].Steps != 1 {
		t.Errorf("ranks %+v", r.Ranks)
	}
	if leading, others := r.LeadingSteps(); len(leading) != 10 || leading[0].Process != 0 || !others {
		t.Errorf("leading steps %+v", leading)
	}
	// What the ranks used is in what the launcher and its children used.
	if cpu := r.HostTrack("cpu"); cpu == nil || math.Abs(*cpu.Mean-3) > 0.01 {
		t.Errorf("the CPU track is %+v", cpu)
	}
}

// A shell script that was recorded from outside, and whose program has a report of its own:
// the latter has it. Without, the script's does.
func TestTheProgramOfAShellScript(t *testing.T) {
	const origin = second / 2
	b := timeline.NewBuilder(timeline.Options{Origin: int64(origin) + 1, StartedAt: time.Unix(1000, 0).Add(time.Duration(origin))})
	zero := 0
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 40, Argv: []string{"sh", "train.sh"}}
		r.Processes = []timeline.Process{
			{PID: 40, ParentIndex: -1, Role: timeline.RoleScript, Command: "sh"},
			{PID: 50, Parent: 40, Role: timeline.RoleRank, Number: &zero, Rank: &zero, Command: "train.py", Start: second - origin + 9e6},
		}
		r.Host.BootID = "boot"
	})
	id := b.Thread(timeline.Thread{PID: 50, Process: 1, NativeID: 50, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
	b.Set(id, second, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/u/train.py", Line: 1})), timeline.StateWaiting, false)
	b.End(id, 11*second)
	shell := viewOf(t, b.Snapshot(11*second))
	alone, err := Merge([]*report.View{shell, rankedReport(t, 1, 1.125, 9, "boot", false)}, names)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(alone.Targets, func(target report.Target) bool {
		return alone.Processes[target.Process].PID == 40 && alone.Processes[target.Runs()].PID == 50
	}) {
		t.Errorf("the script's program is missing: %+v", alone.Targets)
	}
	both, err := Merge([]*report.View{shell, rankedReport(t, 0, 1, 4, "boot", false)}, names)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range both.Targets {
		if p := both.Processes[target.Runs()]; p.PID != both.Processes[target.Process].PID {
			t.Errorf("%s: process %d is there twice", target.Name, p.PID)
		}
	}
}

func TestTwoReportsOfOneProcessAtOneTimeAreRefused(t *testing.T) {
	a, b := rankedReport(t, 0, 1, 4, "boot", false), rankedReport(t, 0, 1, 4, "boot", false)
	if _, err := Merge([]*report.View{a, b}, names); !errors.Is(err, errTwice) {
		t.Errorf("merged: %v", err)
	}
	// One after the other they are two stretches of its life.
	later := rankedReport(t, 0, 20, 4, "boot", false)
	later.Processes[0].StartNS = -int64(19 * second)
	if r, err := Merge([]*report.View{rankedReport(t, 0, 1, 4, "boot", false), later}, names); err != nil || len(r.Targets) != 2 {
		t.Errorf("two cells: %v", err)
	}
}

func TestEachRanksStepsAreThere(t *testing.T) {
	r, err := Merge(four(t, true), names)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, s := range r.Steps {
		counts[r.Processes[s.Process].Text]++
	}
	if fmt.Sprint(counts) != "map[rank 0:10 rank 1:10 rank 2:10 rank 3:10]" {
		t.Errorf("steps %v", counts)
	}
	f := r.MainFinding()
	if f == nil || f.ID != string(diagnose.Straggler) || f.Args["late_steps"] == nil {
		t.Errorf("finding %+v", f)
	}
}
