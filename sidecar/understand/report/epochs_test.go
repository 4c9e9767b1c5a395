package report_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Three epochs of ten steps of 10 ms; the first step of each has what was before its epoch, too.
func TestWhatIsBetweenEpochsIsOfNone(t *testing.T) {
	const ms = timeline.Nanos(time.Millisecond)
	for name, c := range map[string]struct {
		first   timeline.Nanos // by which the first step of each epoch is longer
		phases  *diagnose.PhaseTimes
		counted timeline.Nanos // of an epoch
		between timeline.Nanos
	}{
		"nothing":                      {0, nil, 100 * ms, 0},
		"a checkpoint and a wait":      {300 * ms, &diagnose.PhaseTimes{origin.Checkpoint: 50 * ms, origin.OtherPhase: 252 * ms, origin.Forward: 8 * ms}, 100 * ms, 300 * ms},
		"evaluation, and a wait":       {300 * ms, &diagnose.PhaseTimes{origin.Evaluation: 200 * ms, origin.OtherPhase: 102 * ms, origin.Forward: 8 * ms}, 100 * ms, 100 * ms},
		"stacks that were not read":    {300 * ms, nil, 100 * ms, 300 * ms},
		"workers that begin anew":      {300 * ms, &diagnose.PhaseTimes{origin.Loading: 302 * ms, origin.Forward: 8 * ms}, 400 * ms, 0},
		"workers, and before a wait":   {300 * ms, &diagnose.PhaseTimes{origin.OtherPhase: 100 * ms, origin.Loading: 202 * ms, origin.Forward: 8 * ms}, 300 * ms, 100 * ms},
		"as little as was hardly read": {7 * ms, &diagnose.PhaseTimes{origin.OtherPhase: 9 * ms, origin.Forward: 8 * ms}, 107 * ms, 0},
	} {
		d, at := &diagnose.Diagnosis{}, timeline.Nanos(0)
		for i := range 30 {
			epoch := i / 10
			s := diagnose.Step{Source: timeline.StepOptimizer, Start: at, End: at + 10*ms, Batch: timeline.NewBatch(16, 0, &epoch)}
			if i%10 == 0 {
				s.End, s.Phases = s.End+c.first, c.phases
			}
			at = s.End
			d.Steps = append(d.Steps, s)
		}
		rec := &timeline.Recording{Duration: at, Target: timeline.Target{PID: 7, Argv: []string{"/home/u/train.py"}}}
		rec.Sampling.Asked, rec.Sampling.Interval = 3*time.Millisecond, 3*time.Millisecond
		r, err := report.Build(rec, d, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		epochs := r.EpochTimes()
		if len(epochs) != 3 {
			t.Fatalf("%s: %d epochs", name, len(epochs))
		}
		for _, e := range epochs {
			if counted := e.TotalNS - e.EvaluationNS; e.Count != 10 || counted != int64(c.counted) || e.Samples.NS != int64(c.counted) || e.BetweenNS != int64(c.between) {
				t.Errorf("%s: epoch %d has %d steps in %v, and %v between, want %v and %v", name, e.Epoch, e.Count, time.Duration(counted), time.Duration(e.BetweenNS), c.counted, c.between)
			}
		}
		if all := r.StepTimes(); all.TotalNS != int64(at) {
			t.Errorf("%s: the steps were changed: %+v", name, all)
		}
	}
}

// A step that is shorter than the time between two readings may seem to be in the evaluation before it: it is a step of its epoch all the same.
func TestAStepWithinAnEvaluationIsCounted(t *testing.T) {
	const us = timeline.Nanos(time.Microsecond)
	d, at := &diagnose.Diagnosis{}, timeline.Nanos(0)
	for i := range 40 {
		epoch := i / 20
		s := diagnose.Step{Source: timeline.StepOptimizer, Start: at, End: at + 400*us, Batch: timeline.NewBatch(16, 0, &epoch)}
		if i == 19 || i == 21 {
			s.Phases = &diagnose.PhaseTimes{origin.Evaluation: 400 * us}
		}
		at = s.End
		d.Steps = append(d.Steps, s)
	}
	r, err := report.Build(&timeline.Recording{Duration: at, Target: timeline.Target{PID: 7, Argv: []string{"/home/u/train.py"}}}, d, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	counts := ""
	for _, e := range r.EpochTimes() {
		counts += fmt.Sprintf("%d of %d samples, ", e.Count, e.Samples.Count)
	}
	if counts != "20 of 320 samples, 20 of 320 samples, " {
		t.Error(counts)
	}
}

// Of two trainings that count from 0 each has what is before its epoch.
func TestEpochsOfSeveralTrainings(t *testing.T) {
	const ms = timeline.Nanos(time.Millisecond)
	d, at := &diagnose.Diagnosis{}, timeline.Nanos(0)
	for i := range 40 {
		epoch := i / 10 % 2
		s := diagnose.Step{Source: timeline.StepMarked, Start: at, End: at + 10*ms, Batch: timeline.NewBatch(0, 0, &epoch)}
		if i%10 == 0 {
			s.End += 500 * ms
		}
		at = s.End
		d.Steps = append(d.Steps, s)
	}
	r, err := report.Build(&timeline.Recording{Duration: at, Target: timeline.Target{PID: 7, Argv: []string{"/home/u/train.py"}}}, d, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.EpochTimes() {
		if e.Count != 20 || e.TotalNS != int64(200*ms) || e.BetweenNS != int64(1000*ms) {
			t.Errorf("%+v", e)
		}
	}
}
