package gpuidle

import (
	"math"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

const ms = timeline.Nanos(1e6)

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
	meanLevels(got, []window{{from: 0, at: 20 * ms}, {from: 20 * ms, at: 60 * ms}}, func(_ window, mean float64) { means = append(means, mean) })
	if means[0] != 1 || math.Abs(means[1]-15.0/40) > 1e-9 {
		t.Errorf("means %v, want 1 and 0.375", means)
	}
}

func TestVisitsJoinInterruptions(t *testing.T) {
	h := &activity.History{States: make([]activity.Activity, 3)}
	for _, stay := range []visit{{0, 10 * ms, 0}, {10 * ms, 11 * ms, 2}, {11 * ms, 20 * ms, 0}, {20 * ms, 30 * ms, 1}, {30 * ms, 40 * ms, 2}} {
		h.Add(stay.start, stay.end, stay.column)
	}
	got := (&unknowns{of: []int{0, 1, 2}, shared: 2}).visits(h)
	want := []visit{{0, 20 * ms, 0}, {20 * ms, 30 * ms, 1}, {30 * ms, 40 * ms, 2}}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("visits %v, want %v", got, want)
	}
}
