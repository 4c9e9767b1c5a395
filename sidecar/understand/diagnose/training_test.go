package diagnose

import (
	"math"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// trial is a short training whose imports take most of it: so many seconds of loading in its own process and of the rest,
// on a machine with CPUs of which it uses one.
func trial(loading, others timeline.Nanos, cpus float64) *Diagnosis {
	d := Run(scene{acts: []act{
		{7 * sec, 1, "<frozen importlib._bootstrap>", "_find_and_load", timeline.StatePython, 0},
		{loading, 2, dataloaderFile, "_SingleProcessDataLoaderIter._next_data", timeline.StatePython, 0},
		{others, 3, site + "torch/_tensor.py", "Tensor.backward", timeline.StateNative, 0},
	}}.with(func(b *timeline.Builder) {
		b.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindRate, Device: -1, Limit: cpus}).AddWindow(0, 7*sec+loading+others, 1)
	}).record())
	return &d
}

// A training that is a small part of a recording has its own sentence beside the imports', with the share of the training
// and how much of the loading workers could save on the CPUs that are free.
func TestATrainingIsSaidBesideItsImports(t *testing.T) {
	for _, c := range []struct {
		loading, others timeline.Nanos
		cpus            float64
		covered         float64 // 0: it is not said
	}{
		{2 * sec, sec, 2, 0.75},   // 3 s of computing on two CPUs are 1.5 s
		{3 * sec, sec, 2, 2. / 3}, // 4 s are 2
		{2 * sec, sec, 8, 1},      // not shorter than the rest
		{2 * sec, 2 * sec, 1, 0},  // one CPU does one thing at a time
		{2 * sec, sec, 0, 0},      // the number of CPUs is not known
	} {
		d := trial(c.loading, c.others, c.cpus)
		if main, ok := d.Main(); !ok || d.Findings[main].ID != Imports {
			t.Fatalf("the headline is %+v", d.Findings)
		}
		f := findingOfID(t, d, TrainingLoads)
		if want := float64(c.loading) / float64(c.loading+c.others); math.Abs(f.Value-want) > 0.01 || f.Time != c.loading || f.Whole != c.loading+c.others || f.Place.Line != 2 {
			t.Errorf("%+v: %.2f of %v, %v at %+v", c, f.Value, f.Whole, f.Time, f.Place)
		}
		if math.Abs(f.Against-c.covered) > 0.01 {
			t.Errorf("%+v: workers could save %.2f of it", c, f.Against)
		}
	}
	// Where loading is a finding of the whole recording, it is not said twice.
	for _, f := range trial(6*sec, sec, 2).Findings {
		if f.ID == TrainingLoads {
			t.Errorf("beside data-loading there is %+v", f)
		}
	}
}

func findingOfID(t *testing.T, d *Diagnosis, id FindingID) Finding {
	t.Helper()
	for _, f := range d.Findings {
		if f.ID == id {
			return f
		}
	}
	t.Fatalf("no %s among %+v", id, d.Findings)
	return Finding{}
}

// What computes, too, and has a sentence of its own, is named beside the computing that is without it.
func TestComputingIsWithoutImports(t *testing.T) {
	acts := []act{{2 * sec, 1, "<frozen importlib._bootstrap>", "_find_and_load", timeline.StatePython, 0}}
	for i, length := range []timeline.Nanos{5, 3, 3} {
		acts = append(acts, act{length * sec, 2 + i, "", "", timeline.StatePython, 0})
	}
	d := Run(scene{acts: acts}.record())
	if f := findingOfID(t, &d, Computing); len(f.Besides) != 1 || f.Besides[0] != activity.Import || f.Time != 11*sec {
		t.Errorf("%+v", f)
	}
	d = Run(scene{acts: acts[1:]}.record())
	if f := findingOfID(t, &d, Computing); len(f.Besides) > 0 {
		t.Errorf("nothing was imported: %+v", f.Besides)
	}
}
