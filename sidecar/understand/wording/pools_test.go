package wording

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// A share of what workers did is of their own time, not of the wait for them.
func TestSharesOfWorkersAreOfTheirTime(t *testing.T) {
	at := activity.Place{File: "fit.py", Line: 8}
	s := Scope{Place: func(p activity.Place) string {
		if p == at {
			return "line 8"
		}
		return ""
	}}
	for want, c := range map[string]struct {
		count int
		place activity.Place
		work  activity.PoolWork
	}{
		"; they spent 34 % of their time in line 8, 59 % starting up": {4, at, activity.PoolWork{Starting: 0.59, Working: 0.4, AtPlace: 0.85}},
		"; they spent 59 % of their time starting up":                 {4, activity.Place{}, activity.PoolWork{Starting: 0.59, Working: 0.4}},
		"; for 62 % of their time they had no task":                   {4, activity.Place{}, activity.PoolWork{Starved: 0.62, Working: 0.38}},
		"; for 62 % of its time it had no task":                       {1, activity.Place{}, activity.PoolWork{Starved: 0.62, Working: 0.38}},
	} {
		c.work.Role = timeline.RolePoolWorker
		if got := s.work([]activity.Actor{{Count: c.count, Place: c.place, Work: &c.work}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	sleep := activity.Actor{Count: 1, Name: "sleep", Process: true}
	workers := activity.Actor{Count: 2, Place: at, Work: &activity.PoolWork{Role: timeline.RolePoolWorker, Working: 1, AtPlace: 1}}
	if got, want := s.work([]activity.Actor{sleep, workers}), "; the pool workers spent 100 % of their time in line 8"; got != want {
		t.Errorf("%q, want %q: a program beside them did nothing there", got, want)
	}
}
