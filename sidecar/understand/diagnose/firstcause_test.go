package diagnose

import (
	"fmt"
	"math"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// kindsOfLines are the kinds of cause of trainingStep's phases.
var kindsOfLines = map[int]activity.Kind{1: activity.Starvation, 2: activity.Copying, 3: activity.Launching, 5: activity.Launching, 6: activity.Synchronisation, 8: activity.Host}

// A first cause that is named is the first cause, whatever the device is like and
// however long its windows are, and what every kind of cause costs lies within its
// bounds. The first cause is named where it is clearly the first and the windows are
// no longer than the steps.
func TestANamedFirstCauseIsNeverWrong(t *testing.T) {
	named, undecided, total := 0, 0, 0
	for _, step := range []timeline.Nanos{10, 25, 130} {
		for _, window := range []timeline.Nanos{20, 103, 1000} {
			for _, device := range []struct {
				name string
				sim  simulation
			}{
				{"follows at once", simulation{}},
				{"follows by 10 ms", simulation{lag: 10 * ms}},
				{"follows by 30 ± 15 ms", simulation{lag: 30 * ms, lagJitter: 15 * ms}},
				{"works off a queue", simulation{queue: true}},
			} {
				for _, jitter := range []float64{0.02, 0.25} {
					if jitter < 0.1 && device.sim.lagJitter > 0 {
						continue // seen with more
					}
					sim := device.sim
					sim.seed, sim.length, sim.phases, sim.window, sim.jitter = int64(step*window), 8000*ms, scaled(step*ms), window*ms, jitter
					rec, truth := sim.run()
					kinds, idle := make(map[activity.Kind]timeline.Nanos), timeline.Nanos(0)
					for line, n := range truth {
						kinds[kindsOfLines[line]] += n
						idle += n
					}
					what := fmt.Sprintf("steps of %d ms, windows of %d ms, the device %s, jitter %g", step, window, device.name, jitter)
					d := Run(rec)
					total++
					i, ok := d.Main()
					if !ok {
						t.Errorf("%s: no main finding", what)
						continue
					}
					f := d.Findings[i]
					first := activity.Most(kinds, func(a, b activity.Kind) int { return 0 })
					second := timeline.Nanos(0)
					for kind, n := range kinds {
						if kind != first {
							second = max(second, n)
						}
					}
					for _, k := range d.Idle.Kinds {
						if slack := idle / 50; k.Low-slack > kinds[k.Kind] || k.High+slack < kinds[k.Kind] {
							t.Errorf("%s: %s is bounded by %.3f and %.3f s, and has %.3f s", what, k.Kind, k.Low.Seconds(), k.High.Seconds(), kinds[k.Kind].Seconds())
						}
					}
					if f.ID == GPUIdleUndecided {
						if undecided++; window <= step && float64(kinds[first]-second) >= 0.2*float64(idle) {
							t.Errorf("%s: %s has %.0f %% of the idle time, the next %.0f %%, and nothing is named", what, first,
								100*float64(kinds[first])/float64(idle), 100*float64(second)/float64(idle))
						}
						continue
					}
					kind := f.Kind
					if f.ID == SyncInLoop || kind == "" && f.Cause != "" {
						kind = f.Cause.Kind()
					}
					if kind == "" {
						continue
					}
					named++
					if off := kinds[first] - kinds[kind]; math.Abs(float64(off)) > 0.01*float64(idle) {
						t.Errorf("%s: names %s with %.0f %% of the idle time, %s has %.0f %%", what, kind,
							100*float64(kinds[kind])/float64(idle), first, 100*float64(kinds[first])/float64(idle))
					}
				}
			}
		}
	}
	t.Logf("%d recordings: %d named, %d undecided", total, named, undecided)
}
