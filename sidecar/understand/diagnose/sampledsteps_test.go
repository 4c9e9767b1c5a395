package diagnose

import (
	"fmt"
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
	for _, m := range sampledSteps(activity.NewStacks(rec, activity.NewSource(rec, nil)), &rec.Threads[0]) {
		if m.Source != timeline.StepSampled || m.End-m.Start != 70*ms {
			t.Errorf("step %+v", m)
		}
		got = append(got, m.End/ms)
	}
	if fmt.Sprint(got) != "[130 200 270]" {
		t.Errorf("steps end at %v ms, want those of the first optimizer but the first step", got)
	}
	rec.Sampling.Interval = 5 * time.Millisecond
	if steps := sampledSteps(activity.NewStacks(rec, activity.NewSource(rec, nil)), &rec.Threads[0]); steps != nil {
		t.Errorf("%d steps of calls of 10 ms that were sampled every 5 ms", len(steps))
	}
}
