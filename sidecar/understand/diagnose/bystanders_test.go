package diagnose

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// CPU time is known by windows. What the thread itself or its children used in another part
// of a window is not what somebody used while it waited.
func TestAWaitIsNotWhatWasUsedBeforeIt(t *testing.T) {
	waits := act{1500 * ms, 9, "", "", timeline.StateWaiting, 0}
	for _, test := range []struct {
		name          string
		before        timeline.State
		all, children float64 // cores, over all 3 s
		want          Cause
	}{
		{"it computed before", timeline.StatePython, 0.6, 0, Waiting},
		{"its children did", timeline.StateWaiting, 0.7, 0.7, Waiting},
		{"a library's threads did all the time", timeline.StatePython, 1.4, 0, Native},
		{"a library's threads did all the time, too", timeline.StatePython, 1.9, 0.4, Native},
	} {
		rec := scene{acts: []act{{1500 * ms, 8, "", "", test.before, 0}, waits}, script: true, change: func(b *timeline.Builder) {
			ownCores(test.all, 4)(b)
			if test.children > 0 {
				cores(test.children)(b)
				b.Describe(func(r *timeline.Recording) {
					r.Processes = append(r.Processes, timeline.Process{PID: 2, Role: timeline.RoleChild, End: 1500 * ms})
				})
			}
		}}.record()
		s := newStacks(rec, NewSource(rec, nil))
		c := newBystanders(s, &rec.Threads[0])
		if got := c.waitedFor(hostState{cause: Waiting, at: Place{cellFile, 9}}, []timeline.Interval{timeline.Between(1500*ms, 3*sec)}); got != test.want {
			t.Errorf("%s: the wait is %q, want %q", test.name, got, test.want)
		}
	}
}
