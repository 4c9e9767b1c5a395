package diagnose

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

func TestSampledSteps(t *testing.T) {
	const ms = timeline.Nanos(time.Millisecond)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	id := b.Thread(timeline.Thread{RunsCell: true})
	node := func(function, file string) timeline.NodeID {
		return b.Child(b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "train", File: "train.py"})), b.Frame(timeline.Frame{Function: function, File: file}))
	}
	forward, adam := node("forward", "model.py"), node("Adam.step", "/v/site-packages/torch/optim/adam.py")
	inAdam := b.Child(adam, b.Frame(timeline.Frame{Function: "_multi_tensor_adam", File: "/v/site-packages/torch/optim/adam.py"}))
	other, schedule := node("SGD.step", "/v/site-packages/torch/optim/sgd.py"), node("StepLR.step", "/v/site-packages/torch/optim/lr_scheduler.py")
	at := timeline.Nanos(0)
	do := func(n timeline.NodeID, length timeline.Nanos) {
		b.Set(id, at, n, timeline.StatePython, false)
		at += length
	}
	for range 4 {
		do(forward, 50*ms)
		do(adam, 2*ms)
		do(inAdam, 8*ms)
		do(schedule, 5*ms)
		do(other, 5*ms)
	}
	rec := b.Snapshot(at)
	var got []timeline.Nanos
	steps, _ := sampledSteps(activity.NewStacks(rec, activity.NewSource(rec, nil)), &rec.Threads[0])
	for _, m := range steps {
		if m.Source != timeline.StepSampled || m.End-m.Start != 70*ms {
			t.Errorf("step %+v", m)
		}
		got = append(got, m.End/ms)
	}
	if fmt.Sprint(got) != "[130 200 270]" {
		t.Errorf("steps end at %v ms, want those of the first optimizer but the first step", got)
	}
	rec.Sampling.Interval = 5 * time.Millisecond
	if steps, sure := sampledSteps(activity.NewStacks(rec, activity.NewSource(rec, nil)), &rec.Threads[0]); steps != nil || sure {
		t.Errorf("%d steps of calls of 10 ms that were sampled every 5 ms", len(steps))
	}
}

// Two ranks in lockstep make 80 steps of 30 ms. What is found are these, or nothing and that it is unknown.
func TestSampledStepsOfRanks(t *testing.T) {
	const ms = timeline.Nanos(time.Millisecond)
	for _, c := range []struct {
		optimizer, every timeline.Nanos
		want             []int // by rank
	}{
		{optimizer: 6 * ms, every: ms, want: []int{79, 79}},
		{optimizer: 6 * ms, every: 10 * ms},
		{optimizer: 13 * ms, every: 10 * ms},
		{optimizer: 24 * ms, every: 10 * ms},
	} {
		d := Run(ranksReadEvery(c.every, 30*ms, c.optimizer, 80))
		got := make([]int, 2)
		for _, s := range d.Steps {
			got[s.Process-1]++
		}
		if c.want == nil && (len(d.Steps) > 0 || !d.StepsUnknown) {
			t.Errorf("an optimizer of %v read every %v: %v steps, unknown: %v, want none and that they are unknown", c.optimizer.Duration(), c.every.Duration(), got, d.StepsUnknown)
		}
		if c.want != nil && (!slices.Equal(got, c.want) || d.StepsUnknown) {
			t.Errorf("an optimizer of %v read every %v: %v steps, unknown: %v, want %v", c.optimizer.Duration(), c.every.Duration(), got, d.StepsUnknown, c.want)
		}
	}
}

// ranksReadEvery records two ranks, by turns, where the recording's own interval is 1 ms.
func ranksReadEvery(every, step, optimizer timeline.Nanos, steps int) *timeline.Recording {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	train := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "train", File: "train.py", Line: 3}))
	adam := b.Child(train, b.Frame(timeline.Frame{Function: "Adam.step", File: "/v/site-packages/torch/optim/adam.py", Line: 9}))
	end := step * timeline.Nanos(steps)
	for rank := range 2 {
		id := b.Thread(timeline.Thread{PID: 101 + rank, Process: 1 + rank, Main: true})
		at := timeline.Nanos(rank+1) * every / 3
		for ; at < end; at += every {
			node := train
			if at%step >= step-optimizer {
				node = adam
			}
			b.Set(id, at, node, timeline.StatePython, false)
		}
	}
	rec := b.Snapshot(end)
	rec.Sampling.Interval = time.Millisecond
	rec.Processes = []timeline.Process{{PID: 100, Role: timeline.RoleScript}}
	for rank := range 2 {
		rec.Processes = append(rec.Processes, timeline.Process{
			PID: 101 + rank, Parent: 100, Role: timeline.RoleRank, Rank: &rank, Stacks: timeline.StackReading{Reason: timeline.StacksRead, Interval: every.Duration()},
		})
	}
	return rec
}
