package report_test

import (
	"math"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Two epochs of ten steps: of 100 ms and 16 samples each, and of 200 ms and 8; the last step of each says nothing of its samples.
func TestThroughputOfEpochs(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	d := &diagnose.Diagnosis{}
	at := timeline.Nanos(0)
	for i := range 20 {
		epoch := i / 10
		s := diagnose.Step{Source: timeline.StepMarked, Start: at, End: at + timeline.Nanos(1+epoch)*100*ms, Batch: timeline.NewBatch(16>>epoch, 0, &epoch)}
		if i%10 == 9 {
			s.Batch.Samples = 0
		}
		at = s.End
		d.Steps = append(d.Steps, s)
	}
	rec := &timeline.Recording{Duration: at, Target: timeline.Target{PID: 7, Argv: []string{"/home/u/train.py"}}}
	r, err := report.Build(rec, d, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-9*want }
	epochs := r.EpochTimes()
	if len(epochs) != 2 {
		t.Fatalf("%d epochs: %+v", len(epochs), epochs)
	}
	for i, want := range []struct{ steps, samples float64 }{{10, 160}, {5, 40}} {
		e := &epochs[i]
		if e.Epoch != i || e.Count != 10 || !near(e.PerSecond(), want.steps) || !near(e.Samples.PerSecond(), want.samples) || e.Tokens.PerSecond() != 0 {
			t.Errorf("epoch %d: %+v, %v steps/s and %v samples/s, want %+v", i, e, e.PerSecond(), e.Samples.PerSecond(), want)
		}
	}
	all := r.StepTimes()
	if want := (9*16 + 9*8.0) / (0.9 + 1.8); !near(all.Samples.PerSecond(), want) {
		t.Errorf("%v samples/s in all, want %v", all.Samples.PerSecond(), want)
	}
}

func TestABatchThatMakesNoSenseIsNone(t *testing.T) {
	before := -1
	if b := timeline.NewBatch(-3, 1<<50, &before); b != (timeline.Batch{}) {
		t.Errorf("%+v", b)
	}
}
