package diagnose

import (
	"fmt"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// ddp is a launcher of ranks that train for ten steps of a second: each works for so many
// tenths of a step in its own line, then waits in backward() for the others.
func ddp(work ...int) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		for rank, tenths := range work {
			number, place := rank, 0
			b.Describe(func(r *timeline.Recording) {
				place = len(r.Processes)
				r.Processes = append(r.Processes, timeline.Process{PID: 50 + rank, Parent: 1, Role: timeline.RoleRank, Rank: &number, Number: &number})
			})
			id := b.Thread(timeline.Thread{PID: 50 + rank, Process: place, NativeID: 50 + rank, Main: true})
			own := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: 2 + rank}))
			step := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: 7}))
			backward := b.Child(step, b.Frame(timeline.Frame{Function: "_engine_run_backward", File: site + "torch/autograd/graph.py", Line: 1}))
			for at := timeline.Nanos(0); at < 10*sec; at += sec {
				b.Set(id, at, own, timeline.StateNative, false)
				if tenths < 10 {
					b.Set(id, at+timeline.Nanos(tenths)*sec/10, backward, timeline.StateWaiting, false)
				}
				b.Mark(timeline.Mark{Kind: "step", Start: at, End: at + sec, Process: place, Source: timeline.StepOptimizer})
			}
		}
	}
}

// launching is what a launcher does: it waits.
var launching = []act{{10 * sec, 8, "/usr/lib/python3.12/subprocess.py", "Popen.wait", timeline.StateWaiting, 0}}

func TestRanksAreCompared(t *testing.T) {
	rec := scene{acts: launching, script: true, change: ddp(4, 9, 4, 4)}.record()
	d := Run(rec)
	if len(d.Ranks) != 4 {
		t.Fatalf("ranks %+v", d.Ranks)
	}
	for i, r := range d.Ranks {
		tenths := []int{4, 9, 4, 4}[i]
		want := fmt.Sprintf("[{backward %d}]", int64(10-tenths)*int64(sec))
		if r.Number != i || r.Steps != 10 || r.Step != sec || r.Computing != timeline.Nanos(tenths)*sec || fmt.Sprint(r.Collectives) != want {
			t.Errorf("rank %d: %+v, want %s in collectives", i, r, want)
		}
	}
	main, ok := d.Main()
	if f := d.Findings[main]; !ok || f.ID != Straggler || f.Rank != 1 || f.Count != 4 || f.Place.Line != 3 || f.Time != 5*sec || f.Collective != "backward" {
		t.Errorf("the headline is %+v", f)
	}
}

// Shares of a rank add up: what it computes within a collective is the collective's.
func TestComputingInACollectiveIsCountedOnce(t *testing.T) {
	spinning := func(b *timeline.Builder) {
		for rank := range 2 {
			b.Describe(func(r *timeline.Recording) {
				r.Processes = append(r.Processes, timeline.Process{PID: 50 + rank, Parent: 1, Role: timeline.RoleRank, Rank: &rank, Number: &rank})
			})
			id := b.Thread(timeline.Thread{PID: 50 + rank, Process: 1 + rank, NativeID: 50 + rank, Main: true})
			own := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: 8}))
			b.Set(id, 0, own, timeline.StateNative, false)
			b.Set(id, 4*sec, b.Child(own, b.Frame(timeline.Frame{Function: "all_reduce", File: c10d, Line: 1})), timeline.StateNative, false)
		}
	}
	for _, r := range Run(scene{acts: launching, script: true, change: spinning}.record()).Ranks {
		in := timeline.Nanos(0)
		for _, part := range r.Collectives {
			in += part.Time
		}
		if r.Computing != 4*sec || in != 6*sec || r.Known != 10*sec {
			t.Errorf("rank %d: %v computing and %v in collectives of %v", r.Number, r.Computing, r.Collectives, r.Known)
		}
	}
}

// What others wait for a rank that has failed is no imbalance of the ranks: the finding about that is of the time before.
func TestTheWaitForAFailedRankIsNoImbalance(t *testing.T) {
	for name, c := range map[string]struct {
		fails, found bool
	}{"all live": {false, true}, "one fails": {true, false}} {
		leaves := func(b *timeline.Builder) {
			for rank := range 2 {
				process, exit := timeline.Process{PID: 50 + rank, Parent: 1, Role: timeline.RoleRank, Rank: &rank, Number: &rank}, raisedCode
				if rank == 1 && c.fails {
					process.Exit, process.End = &exit, 9*sec
				}
				b.Describe(func(r *timeline.Recording) { r.Processes = append(r.Processes, process) })
				id := b.Thread(timeline.Thread{PID: 50 + rank, Process: 1 + rank, NativeID: 50 + rank, Main: true})
				own := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: 2}))
				reduce := b.Child(own, b.Frame(timeline.Frame{Function: "all_reduce", File: c10d, Line: 1}))
				b.Set(id, 0, own, timeline.StateNative, false)
				b.Set(id, 4*sec, reduce, timeline.StateWaiting, false)
				if rank == 1 {
					b.Set(id, 5*sec, own, timeline.StatePython, false)
				}
			}
		}
		d := Run(scene{acts: launching, script: true, change: leaves}.record())
		if got := slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.ID == WaitsForRanks || f.ID == Straggler }); got != c.found {
			t.Errorf("%s: found %v, want %v: %+v", name, got, c.found, ids(d.Findings))
		}
	}
}

// On a GPU nobody waits for the gradients in backward(): what the thread waits for there is
// the autograd engine's own thread.
func TestBackwardOfAGPUIsNoCollective(t *testing.T) {
	rec := scene{acts: []act{training}, times: 10, gpus: 1, change: ddp(4, 9)}.record()
	for _, r := range Run(rec).Ranks {
		if len(r.Collectives) != 0 {
			t.Errorf("rank %d: %v", r.Number, r.Collectives)
		}
	}
}

// DataParallel copies the network to each GPU one after the other, then runs the copies in
// threads: the GPUs wait for the copying, in the line that called the model.
func TestDataParallelsSerialCopies(t *testing.T) {
	const parallel = site + "torch/nn/parallel/"
	copies := []act{
		{300 * ms, 3, parallel + "replicate.py", "replicate", timeline.StatePython, 0},
		{100 * ms, 3, parallel + "scatter_gather.py", "scatter", timeline.StatePython, 0},
		{600 * ms, 3, parallel + "parallel_apply.py", "parallel_apply", timeline.StateWaiting, 90},
	}
	d := Run(scene{acts: copies, times: 20, gpus: 2, other: 1}.record())
	main, ok := d.Main()
	if !ok || d.Findings[main].Place.Line != 3 {
		t.Fatalf("the headline is %+v of %v", d.Headline, ids(d.Findings))
	}
	inCopies := timeline.Nanos(0)
	for _, c := range d.Idle.Causes {
		if c.Place.Line == 3 && (c.Cause == activity.Launch || c.Cause == activity.Python) {
			inCopies += c.Nanos
		}
	}
	if share := float64(inCopies) / float64(d.Idle.Total); share < 0.75 { // 0.4 of 0.46 s a step and GPU
		t.Errorf("%.2f of the idle time is charged to the copies: %+v", share, d.Idle.Causes)
	}
}

// Other ranks are nobody's children: a rank that waits in backward() does not wait for a
// child process.
func TestOtherRanksAreNoChildren(t *testing.T) {
	for place := range 2 {
		rec := scene{acts: launching, script: true, change: ddp(4, 9)}.record()
		s := activity.NewStacks(rec, activity.NewSource(rec, nil))
		lanes, threads := rankLanes(s)
		whole := []timeline.Interval{timeline.Between(0, 10*sec)}
		if c := activity.NewBystanders(s, threads[place]); len(lanes) != 2 || c.HasChildren(whole) || len(c.ProcessesDuring(whole)) != 0 {
			t.Errorf("rank %d has children", place)
		}
		if c := activity.NewBystanders(s, &rec.Threads[0]); !c.HasChildren(whole) {
			t.Error("the launcher has no children")
		}
	}
}

// What a launcher does while its ranks train, and its own imports, are of no concern.
func TestALauncherIsExplainedByItsFirstRank(t *testing.T) {
	imports := []act{{6 * sec, 0, "<frozen importlib._bootstrap>", "_find_and_load", timeline.StatePython, 0}, {4 * sec, 0, "/usr/lib/python3.12/subprocess.py", "Popen.wait", timeline.StateWaiting, 0}}
	born := func(b *timeline.Builder) {
		b.Describe(func(r *timeline.Recording) {
			for i := range r.Processes[1:] {
				r.Processes[1+i].Start, r.Processes[1+i].End = sec/2, 9*sec
			}
		})
	}
	rec := scene{acts: imports, script: true, change: both(ddp(9, 9), born)}.record()
	d := Run(rec)
	main, ok := d.Main()
	if f := d.Findings[main]; !ok || f.ID != OneLine || !f.OfRank || f.Rank != 0 || f.Place.Line != 2 || f.Whole != 8500*ms {
		t.Errorf("the headline is %+v", f)
	}
	for _, f := range d.Findings {
		if f.ID == Imports || f.ID == SlowStartUp || f.ID == SlowExit {
			t.Errorf("%s of %v is reported, too: %+v", f.ID, f.Time, f)
		}
	}
	// A program of the user's own that starts ranks is explained itself.
	own := []act{{6 * sec, 7, "", "", timeline.StatePython, 0}, {4 * sec, 8, "/usr/lib/python3.12/subprocess.py", "Popen.wait", timeline.StateWaiting, 0}}
	d = Run(scene{acts: own, script: true, change: ddp(9, 9)}.record())
	if main, ok := d.Main(); !ok || d.Findings[main].OfRank || d.Findings[main].Place.Line != 7 {
		t.Errorf("the headline is %+v", d.Findings)
	}
}
