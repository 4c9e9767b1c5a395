package gpuidle

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Idle windows before the first work and after the last show nothing of the loop.
func TestAModelIsFittedToTheWindowsWithWork(t *testing.T) {
	var d Device
	for i, busy := range []float64{0, 0, 0.01, 0.5, 0, 0.9, 0.02, 0} {
		d.windows = append(d.windows, window{from: timeline.Nanos(i), at: timeline.Nanos(i + 1), busy: busy})
	}
	got := d.working()
	if len(got) != 3 || got[0].from != 3 || got[2].from != 5 {
		t.Errorf("got %v, want windows 3 to 5", got)
	}
	d.windows = d.windows[:2]
	if got := d.working(); len(got) != 0 {
		t.Errorf("got %v of a device that never worked", got)
	}
}
