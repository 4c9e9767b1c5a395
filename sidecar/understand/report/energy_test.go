package report

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// The energy of a device is what it counted between the first figure and the last, where these are most of the recording.
func TestEnergyOfADevice(t *testing.T) {
	const s = timeline.Nanos(time.Second)
	for name, c := range map[string]struct {
		points []timeline.Point
		want   float64 // -1: none
	}{
		"all of it":      {[]timeline.Point{{At: 0, Value: 100}, {At: s, Value: 350}, {At: 2 * s, Value: 700}}, 600},
		"half of it":     {[]timeline.Point{{At: s, Value: 100}, {At: 2 * s, Value: 700}}, -1},
		"once":           {[]timeline.Point{{At: 0, Value: 100}}, -1},
		"it began again": {[]timeline.Point{{At: 0, Value: 100}, {At: 2 * s, Value: 5}}, -1},
	} {
		v, err := Build(grew(func(b *timeline.Builder) {
			b.Describe(func(r *timeline.Recording) { r.GPUs = []timeline.GPU{{Index: 0, UUID: "GPU-1", OtherProcesses: -1}} })
			w := b.Track(timeline.TrackSpec{ID: "gpu0.energy", Kind: timeline.KindGauge, Unit: "J", Device: 0})
			for _, p := range c.points {
				w.Add(p.At, p.Value)
			}
		}), nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := -1.0
		if joules := v.Devices[0].EnergyJ; joules != nil {
			got = *joules
		}
		if got != c.want {
			t.Errorf("%s: %v J, want %v", name, got, c.want)
		}
	}
}
