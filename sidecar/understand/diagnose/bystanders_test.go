package diagnose

import (
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// CPU time is known by windows. What the thread itself or its children used in another part
// of a window is not what somebody used while it waited.
func TestAWaitIsNotWhatWasUsedBeforeIt(t *testing.T) {
	waits := act{1500 * ms, 9, "", "", timeline.StateWaiting, 0}
	for _, test := range []struct {
		name          string
		before        timeline.State
		all, children float64 // cores, over all 3 s
		want          activity.Cause
	}{
		{"it computed before", timeline.StatePython, 0.6, 0, activity.Waiting},
		{"its children did", timeline.StateWaiting, 0.7, 0.7, activity.Waiting},
		{"a library's threads did all the time", timeline.StatePython, 1.4, 0, activity.Native},
		{"a library's threads did all the time, too", timeline.StatePython, 1.9, 0.4, activity.Native},
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
		d := Run(rec)
		i := slices.IndexFunc(d.Spent, func(s activity.Spent) bool { return s.Place == activity.Place{File: cellFile, Line: 9} })
		if got := d.Spent[i].Cause; got != test.want {
			t.Errorf("%s: the wait is %q, want %q", test.name, got, test.want)
		}
	}
}
