package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/batches"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func TestEpochsAreComparedByTheirPace(t *testing.T) {
	d, at := &diagnose.Diagnosis{}, timeline.Nanos(0)
	for i := range 120 { // 12 epochs of 10 steps of 100 ms and 32 samples
		epoch := i / 10
		d.Steps = append(d.Steps, diagnose.Step{Source: timeline.StepMarked, Start: at, End: at + 1e8, Batch: timeline.NewBatch(32, 0, &epoch)})
		at += 1e8
	}
	r, err := report.Build(&timeline.Recording{Duration: at, Target: timeline.Target{PID: 7, Argv: []string{"/home/u/train.py"}}}, d, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := epochsTable(r).rows
	if len(rows) != maxEpochRows+1 {
		t.Fatalf("%d rows, want %d and one of the rest", len(rows), maxEpochRows)
	}
	if first := rows[0]; first.name != "epoch 0" || first.aside != "10 steps" || first.code != "10/s, 320 samples/s, median 0.10 s" {
		t.Errorf("the first row is %+v", first)
	}
	if rest := rows[maxEpochRows]; rest.name != "2 more epochs" || rest.seconds < 1.999 || rest.seconds > 2.001 {
		t.Errorf("the rest is %+v", rest)
	}
	if note := stepsTable(r, 12).note; !strings.Contains(note, "10/s, 320 samples/s, median") {
		t.Errorf("the heading of the steps is %q", note)
	}
	d.Loaders = []batches.Loader{{Loader: timeline.Loader{Batch: 32}, PerStep: 1, Epochs: 12, Steps: 120, Counted: 120}}
	if r, err = report.Build(&timeline.Recording{Duration: at}, d, report.Options{}); err != nil {
		t.Fatal(err)
	}
	if note := stepsTable(r, 12).note; !strings.HasSuffix(note, " · 32 samples a batch, by the DataLoader") {
		t.Errorf("the heading of the steps is %q", note)
	}
	if note := epochsTable(r).note; note != "time in their steps · passes over the DataLoader" {
		t.Errorf("the heading of the epochs is %q", note)
	}
	if at := slices.IndexFunc(r.Tracks, func(t report.Track) bool { return t.ID == report.PaceSamples }); at < 0 || r.Tracks[at].Source != "steps, DataLoader" {
		t.Errorf("the pace's tracks are %+v", r.Tracks)
	}
	if lanes := paceLanes(r, 12); len(lanes) != 1 || lanes[0].short != "320/s" || lanes[0].sources[0][0] != "samples, DataLoader" {
		t.Errorf("the lane of the pace is %+v", lanes)
	}
	d.Loaders[0].Queue = batches.Queue{Readings: 50, Mean: 0.125, Empty: 0.9, Most: 8}
	if r, err = report.Build(&timeline.Recording{Duration: at}, d, report.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := batchesReady(r); got != "0.1 of 8 batches ready in the workers' queue on average, none for 90 % of the time" {
		t.Errorf("of the queue it says %q", got)
	}
	for want, times := range map[string][]timeline.Nanos{
		"a worker took 42 ms for a batch":                 {40e6, 44e6},
		"a worker took 60 ms for a batch, worker 1 80 ms": {40e6, 80e6},
	} {
		d.Loaders[0].Workers, d.Loaders[0].WorkerTimes = 2, times
		if r, err = report.Build(&timeline.Recording{Duration: at}, d, report.Options{}); err != nil {
			t.Fatal(err)
		}
		if got := workersTook(r); got != want {
			t.Errorf("of the workers it says %q, want %q", got, want)
		}
	}
	d.Loaders[0].PerStep = 4
	if r, err = report.Build(&timeline.Recording{Duration: at}, d, report.Options{}); err != nil || samplesBy(r) != "4 batches of 32 samples a step, by the DataLoader" {
		t.Errorf("with gradient accumulation the samples are by %q, %v", samplesBy(r), err)
	}
	d.Loaders = nil
	for i := range d.Steps {
		d.Steps[i].Batch = timeline.Batch{}
	}
	if r, err = report.Build(&timeline.Recording{Duration: at}, d, report.Options{}); err != nil || len(epochsTable(r).rows) != 0 {
		t.Errorf("without numbers: %v, %+v", err, epochsTable(r).rows)
	}
}

// The samples of the second of two trainings are known, which made twice as many steps in a second as the first.
func TestTheHeadingSaysOfHowManyStepsASamplesPaceIs(t *testing.T) {
	d, at := &diagnose.Diagnosis{}, timeline.Nanos(0)
	for i := range 100 {
		s := diagnose.Step{Source: timeline.StepMarked, Start: at, End: at + 2e8}
		if i >= 60 {
			s.End, s.Batch = at+1e8, timeline.NewBatch(32, 0, nil)
		}
		at = s.End
		d.Steps = append(d.Steps, s)
	}
	r, err := report.Build(&timeline.Recording{Duration: at}, d, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if note := stepsTable(r, 16).note; !strings.Contains(note, "100 steps, 6.25/s, 320 samples/s (in 40 of the steps), median") {
		t.Errorf("the heading of the steps is %q", note)
	}
}

// Before each epoch 2 s of a checkpoint and more: the table says that it has them not.
func TestTheHeadingSaysWhatIsInNoEpoch(t *testing.T) {
	d, at := &diagnose.Diagnosis{}, timeline.Nanos(0)
	for i := range 20 {
		epoch := i / 10
		s := diagnose.Step{Source: timeline.StepMarked, Start: at, End: at + 1e8, Batch: timeline.NewBatch(32, 0, &epoch)}
		if i%10 == 0 {
			s.End, s.Phases = s.End+2e9, &diagnose.PhaseTimes{origin.Checkpoint: 2e9}
		}
		at = s.End
		d.Steps = append(d.Steps, s)
	}
	r, err := report.Build(&timeline.Recording{Duration: at, Target: timeline.Target{PID: 7, Argv: []string{"/home/u/train.py"}}}, d, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	epochs := epochsTable(r)
	if epochs.note != "time in their steps, without what was between epochs" {
		t.Errorf("the heading of the epochs is %q", epochs.note)
	}
	for _, row := range epochs.rows {
		if row.code != "10/s, 320 samples/s, median 0.10 s" || row.share != 0.5 {
			t.Errorf("%+v", row)
		}
	}
}

// Of three passes over the validation's batches two are in the first step of the next epoch, and one in none. That 10 ms of the checkpoints are in
// none, too, is not worth a word.
func TestWhatFollowsTheLastStepIsMentioned(t *testing.T) {
	d, at := &diagnose.Diagnosis{}, timeline.Nanos(0)
	for i := range 30 {
		s := diagnose.Step{Source: timeline.StepMarked, Start: at, End: at + 1e8, Phases: &diagnose.PhaseTimes{origin.Forward: 1e8}}
		if i%10 == 0 && i > 0 {
			s.End += 2e9
			s.Phases[origin.Evaluation], s.Phases[origin.Checkpoint] = 1e9, 1e9
		}
		at = s.End
		d.Steps = append(d.Steps, s)
	}
	for phase, total := range map[origin.Phase]timeline.Nanos{origin.Forward: 4e9, origin.Evaluation: 3e9, origin.Checkpoint: 2.01e9} {
		d.Phases = append(d.Phases, diagnose.PhaseTime{Phase: phase, Total: total, Mean: 1e6, Idle: -1})
	}
	r, err := report.Build(&timeline.Recording{Duration: at + 2e9, Target: timeline.Target{PID: 7, Argv: []string{"/home/u/train.py"}}}, d, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shares := 0.0
	for _, row := range stepsTable(r, 9).rows {
		shares += row.share
		if said := strings.HasPrefix(row.code, "1.0 s more in no step · mean of all steps"); said != (row.name == "evaluation") {
			t.Errorf("%s: %q", row.name, row.code)
		}
	}
	if shares < 0.999 || shares > 1.001 {
		t.Errorf("the shares add up to %v", shares)
	}
}
