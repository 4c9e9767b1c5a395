package report_test

import (
	"math"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/batches"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
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

// Between the epochs, and once in the second one, 500 ms of evaluation, which are in the step that ends then.
func TestEvaluationIsNoPartOfAnEpochsPace(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	d := &diagnose.Diagnosis{}
	at := timeline.Nanos(0)
	for i := range 20 {
		epoch := i / 10
		s := diagnose.Step{Source: timeline.StepMarked, Start: at, End: at + 100*ms, Batch: timeline.NewBatch(16, 0, &epoch)}
		if i == 10 || i == 15 {
			s.End += 500 * ms
			s.Phases = &diagnose.PhaseTimes{origin.Evaluation: 500 * ms}
		}
		at = s.End
		d.Steps = append(d.Steps, s)
	}
	r, err := report.Build(&timeline.Recording{Duration: at, Target: timeline.Target{PID: 7, Argv: []string{"/home/u/train.py"}}}, d, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range r.EpochTimes() {
		if e.PerSecond() != 10 || e.Samples.PerSecond() != 160 || e.TotalNS-e.EvaluationNS != 1e9 || e.SlowestNS != 1e8 || e.EvaluationNS != int64(i)*1e9 {
			t.Errorf("epoch %d: %v steps/s, %v samples/s, %+v", i, e.PerSecond(), e.Samples.PerSecond(), e)
		}
	}
	if all := r.StepTimes(); all.PerSecond() != 10 || all.Samples.PerSecond() != 160 {
		t.Errorf("in all: %v steps/s, %v samples/s", all.PerSecond(), all.Samples.PerSecond())
	}
	if all := r.StepTimes(); all.TotalNS != 3e9 || r.Steps[10].EndNS-r.Steps[10].StartNS != 6e8 {
		t.Errorf("the steps were changed: %+v", all)
	}
}

func TestABatchThatMakesNoSenseIsNone(t *testing.T) {
	before := -1
	if b := timeline.NewBatch(-3, 1<<50, &before); b != (timeline.Batch{}) {
		t.Errorf("%+v", b)
	}
}

// Of steps that were not read between those of 16 samples the samples are taken to be 16, but not of an epoch's last one. What
// the program reports of some steps is of these alone.
func TestSamplesOfStepsThatWereNotRead(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	for _, byLoader := range []bool{true, false} {
		d := &diagnose.Diagnosis{}
		at := timeline.Nanos(0)
		for i := range 40 {
			epoch := i / 20
			s := diagnose.Step{Source: timeline.StepOptimizer, Start: at, End: at + 10*ms, Batch: timeline.NewBatch(0, 0, &epoch)}
			if i%5 == 0 { // it is read, which is when a step is slow
				s.End, s.Batch.Samples = s.End+10*ms, 16
			}
			at = s.End
			d.Steps = append(d.Steps, s)
		}
		if byLoader {
			d.Loaders = []batches.Loader{{Loader: timeline.Loader{Batch: 16}, PerStep: 1, Steps: 40, Counted: 8}}
		}
		r, err := report.Build(&timeline.Recording{Duration: at, Target: timeline.Target{PID: 7, Argv: []string{"/home/u/train.py"}}}, d, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all := r.StepTimes()
		steps, want := 8, 16/0.020
		if byLoader {
			steps, want = 38, 38*16/0.46 // but the last one of each epoch
		}
		if got := all.Samples.PerSecond(); all.Samples.Steps != steps || math.Abs(got-want) > 1e-6*want {
			t.Errorf("by a loader: %t: %v samples/s of %d steps, want %v of %d", byLoader, got, all.Samples.Steps, want, steps)
		}
	}
}

// The steps that lead are those of the rank for which the others waited.
func TestTheStragglersStepsLead(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	for _, late := range []int{-1, 0, 1} {
		d, rec := &diagnose.Diagnosis{}, &timeline.Recording{Duration: 1000 * ms, Target: timeline.Target{PID: 7, Argv: []string{"torchrun", "train.py"}}}
		rec.Processes = []timeline.Process{{PID: 7, Role: timeline.RoleScript}}
		for rank := range 2 {
			rec.Processes = append(rec.Processes, timeline.Process{PID: 8 + rank, Parent: 7, Role: timeline.RoleRank, Rank: &rank, Number: &rank})
			d.Ranks = append(d.Ranks, diagnose.Rank{Process: 1 + rank, Number: rank})
			for i := range timeline.Nanos(3 + rank) {
				d.Steps = append(d.Steps, diagnose.Step{Process: 1 + rank, Source: timeline.StepMarked, Start: i * 100 * ms, End: (i + 1) * 100 * ms})
			}
		}
		if late >= 0 {
			d.Findings = []diagnose.Finding{{ID: diagnose.Straggler, Rank: late, Count: 2, Time: 300 * ms, Whole: 400 * ms}}
		}
		r, err := report.Build(rec, d, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if steps, others := r.LeadingSteps(); len(steps) != 3+max(late, 0) || steps[0].Process != 1+max(late, 0) || !others {
			t.Errorf("straggler %d: %d steps of process %d lead, others %v", late, len(steps), steps[0].Process, others)
		}
	}
}

func TestPhasesOfAShortTrainingSayHowWellTheyAreKnown(t *testing.T) {
	for within, want := range map[float64]string{0.029: "", 0.08: "phases: each is known to about 8 % of the training's time, by how often the stacks were read"} {
		rec := &timeline.Recording{Duration: 1e9, Target: timeline.Target{PID: 7, Argv: []string{"/home/u/train.py"}}}
		r, err := report.Build(rec, &diagnose.Diagnosis{PhasesWithin: within}, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, note := range r.Notes {
			if note.ID == report.CoarsePhases {
				got = note.Text
			}
		}
		if got != want {
			t.Errorf("within %g: %q, want %q", within, got, want)
		}
	}
}
