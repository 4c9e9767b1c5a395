package profiler

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestHowLateARecordingMayBegin(t *testing.T) {
	for _, c := range []struct {
		late, length time.Duration
		want         bool
	}{
		{5 * time.Millisecond, 20 * time.Millisecond, false},  // as under on
		{40 * time.Millisecond, 450 * time.Millisecond, true}, // its chart has 0.41 s
		{40 * time.Millisecond, 10 * time.Second, false},
		{60 * time.Millisecond, 10 * time.Second, true},
	} {
		if got := BeganLate(c.late, c.length); got != c.want {
			t.Errorf("%v of %v: %v, want %v", c.late, c.length, got, c.want)
		}
	}
}

func TestARecordingIsNotLaterThanItsCellIsLong(t *testing.T) {
	var rec timeline.Recording
	MarkLate(&rec, 600*time.Millisecond, 500*time.Millisecond) // a new sidecar was ready when the cell was over
	if rec.Late != timeline.Nanos(500*time.Millisecond) || len(rec.Notes) != 1 {
		t.Errorf("%v, %v", rec.Late, rec.Notes)
	}
}
