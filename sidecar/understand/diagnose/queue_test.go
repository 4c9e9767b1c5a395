package diagnose

import (
	"math"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestQueueLevels(t *testing.T) {
	q := &launchQueue{work: []float64{30e6, 0, 0, 5e6}, perVisit: true, drains: []bool{false, false, true, false}}
	got := q.levels([]visit{
		{0, 10 * ms, 0},        // launches 30 ms of work in 10: 20 are left
		{10 * ms, 15 * ms, 1},  // the device goes on
		{15 * ms, 50 * ms, 1},  // and is done after 15 of these 35
		{50 * ms, 60 * ms, 3},  // 5 ms of work, run as they come: half busy
		{60 * ms, 70 * ms, 0},  // 20 left
		{70 * ms, 85 * ms, 2},  // waited for: busy, then empty
		{85 * ms, 100 * ms, 1}, // nothing
	}, nil)
	want := []level{
		{0, 10 * ms, 1}, {10 * ms, 15 * ms, 1}, {15 * ms, 30 * ms, 1}, {30 * ms, 50 * ms, 0}, {50 * ms, 60 * ms, 0.5},
		{60 * ms, 70 * ms, 1}, {70 * ms, 85 * ms, 1}, {85 * ms, 100 * ms, 0},
	}
	if len(got) != len(want) {
		t.Fatalf("levels %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("level %d: %v, want %v", i, got[i], want[i])
		}
	}
	var means []float64
	meanLevels(got, []window{{0, 20 * ms, 0}, {20 * ms, 60 * ms, 0}}, func(_ window, mean float64) { means = append(means, mean) })
	if means[0] != 1 || math.Abs(means[1]-15.0/40) > 1e-9 {
		t.Errorf("means %v, want 1 and 0.375", means)
	}
}

// A device that works off what was launched, for about as long at every step
// however long the host takes: a rate per state is off by up to ten points here.
func TestQueueOfLaunchedWork(t *testing.T) {
	resolved := 0
	for _, workJitter := range []float64{0.01, 0.05} {
		for _, window := range []timeline.Nanos{100, 167, 500} {
			for seed := range int64(3) {
				rec, truth := simulation{
					seed: seed, length: 60_000 * ms, phases: trainingStep(), jitter: 0.25, workJitter: workJitter, window: window * ms, queue: true,
				}.run()
				d := Run(rec).Idle.Devices[0]
				worst := largestError(byLine(d.Causes), truth)
				t.Logf("%d ms windows, work ± %.0f %%: %.1f points off, %s", window, 100*workJitter, worst, d.Certainty.Method)
				checkBounds(t, d.Causes, truth)
				if d.Certainty.Method != ByRepetition {
					continue
				}
				resolved++
				if worst > 3 {
					t.Errorf("%d ms windows, seed %d: %.1f points off and called %q", window, seed, worst, d.Certainty.Method)
				}
			}
		}
	}
	if resolved < 12 {
		t.Errorf("only %d of 18 recordings were resolved", resolved)
	}
}

func TestVisitsJoinInterruptions(t *testing.T) {
	h := &host{states: make([]hostState, 3), stretches: []stretch{{0, 10 * ms, 0}, {10 * ms, 11 * ms, 2}, {11 * ms, 20 * ms, 0}, {20 * ms, 30 * ms, 1}, {30 * ms, 40 * ms, 2}}}
	got := (&unknowns{of: []int{0, 1, 2}, shared: 2}).visits(h)
	want := []visit{{0, 20 * ms, 0}, {20 * ms, 30 * ms, 1}, {30 * ms, 40 * ms, 2}}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("visits %v, want %v", got, want)
	}
}
