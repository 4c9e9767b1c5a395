package gpu

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// sampleClock finds out which clock a driver stamps its samples with, and
// converts. The zero value is usable once update has seen a sample.
type sampleClock struct {
	bridge   timeline.Bridge
	measured int64 // CLOCK_MONOTONIC of the bridge
	name     string
}

// candidates are the clocks seen in the field; the specification names none.
var candidates = []struct {
	name string
	read timeline.Clock
}{
	{"boot time", timeline.Boottime},
	{"monotonic", timeline.Monotonic},
	{"wall clock", timeline.Realtime},
}

const (
	futureTolerance = int64(5 * time.Millisecond)
	bridgeLifetime  = int64(5 * time.Second) // the wall clock may be set or slewed
)

// update takes the newest sample's time. The clock is the one by which the
// sample is youngest without lying in the future; where two agree, as boot time
// and monotonic do on a machine that never slept, it does not matter.
func (c *sampleClock) update(newest int64) {
	now := timeline.Monotonic()
	if c.name != "" && now-c.measured < bridgeLifetime {
		age := now - c.toMonotonic(newest)
		if age >= -futureTolerance && age < bridgeLifetime {
			return
		}
	}
	best := int64(1<<63 - 1)
	for _, candidate := range candidates {
		bridge := timeline.Measure(timeline.Monotonic, candidate.read)
		age := now - bridge.ToBase(newest)
		if age < -futureTolerance {
			age = -age * 1000 // a last resort: better than none
		}
		if age < best {
			best = age
			c.bridge, c.name, c.measured = bridge, candidate.name, now
		}
	}
}

func (c *sampleClock) toMonotonic(theirs int64) int64 { return c.bridge.ToBase(theirs) }

func (c *sampleClock) fromMonotonic(at int64) int64 { return at - c.bridge.Offset }
