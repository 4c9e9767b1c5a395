package host

import (
	"math"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestWhatIsFree(t *testing.T) {
	const second = timeline.Nanos(time.Second)
	for _, c := range []struct {
		name                       string
		family, limit, busy, total float64 // used within two seconds
		want                       float64
	}{
		{"nobody works", 0, 4, 0, 4, 4},
		{"the target uses two of four", 4, 4, 4, 4, 2},
		{"others use the rest", 4, 4, 8, 4, 0},
		{"its group may use two of 64", 4, 2, 4, 64, 0},
		{"counted in ticks, it is a little more than all", 4.02, 2, 4.02, 2, 0},
	} {
		var s spare
		s.look(second, 10, c.limit, 100, c.total)
		s.look(2*second-1, 10+c.family/2, c.limit, 100+c.busy/2, c.total) // too early to say
		if s.free != min(c.limit, c.total) {
			t.Errorf("%s: %g CPUs are free before it was looked for a second, want all", c.name, s.free)
		}
		s.look(3*second, 10+c.family, c.limit, 100+c.busy, c.total)
		if math.Abs(s.free-c.want) > 1e-9 {
			t.Errorf("%s: %g CPUs are free, want %g", c.name, s.free, c.want)
		}
	}
}
