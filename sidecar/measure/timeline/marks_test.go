package timeline

import (
	"fmt"
	"testing"
	"time"
)

func TestLeadingMarks(t *testing.T) {
	mark := func(process int, source MarkSource, at Nanos) Mark {
		return Mark{Kind: "step", Process: process, Source: source, Start: at - 1, End: at}
	}
	rec := &Recording{Marks: []Mark{
		mark(3, StepMarked, 1), mark(2, StepOptimizer, 2), mark(2, StepMarked, 3), mark(2, StepOptimizer, 4), mark(2, StepMarked, 5), mark(4, StepMarked, 6),
		{Kind: "region", Name: "load", Process: 2}, {Kind: "region", Name: "other", Process: 3},
	}}
	var got []string
	for _, m := range rec.LeadingMarks() {
		got = append(got, fmt.Sprint(m.Kind, m.Name, m.End))
	}
	if want := "[step3 step5 regionload0]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if (&Recording{}).LeadingMarks() != nil {
		t.Error("marks of a recording without any")
	}
}

func TestSampledSteps(t *testing.T) {
	const ms = Nanos(time.Millisecond)
	b := NewBuilder(Options{Origin: 1})
	id := b.Thread(Thread{RunsCell: true})
	node := func(function, file string) NodeID {
		return b.Child(b.Child(RootNode, b.Frame(Frame{Function: "train", File: "train.py"})), b.Frame(Frame{Function: function, File: file}))
	}
	forward, adam := node("forward", "model.py"), node("Adam.step", "/v/torch/optim/adam.py")
	inAdam := b.Child(adam, b.Frame(Frame{Function: "_multi_tensor_adam", File: "/v/torch/optim/adam.py"}))
	other, schedule := node("SGD.step", "/v/torch/optim/sgd.py"), node("StepLR.step", "/v/torch/optim/lr_scheduler.py")
	at := Nanos(0)
	do := func(n NodeID, length Nanos) { b.Set(id, at, n, StatePython, false); at += length }
	for range 4 {
		do(forward, 50*ms)
		do(adam, 2*ms)
		do(inAdam, 8*ms)
		do(schedule, 5*ms)
		do(other, 5*ms)
	}
	rec := b.Snapshot(at)
	var got []Nanos
	for _, m := range rec.SampledSteps(rec.MainThread()) {
		if m.Source != StepSampled || m.End-m.Start != 70*ms {
			t.Errorf("step %+v", m)
		}
		got = append(got, m.End/ms)
	}
	if fmt.Sprint(got) != "[130 200 270]" {
		t.Errorf("steps end at %v ms, want those of the first optimizer but the first step", got)
	}
	rec.Sampling.Interval = 5 * time.Millisecond
	if steps := rec.SampledSteps(rec.MainThread()); steps != nil {
		t.Errorf("%d steps of calls of 10 ms that were sampled every 5 ms", len(steps))
	}
}
