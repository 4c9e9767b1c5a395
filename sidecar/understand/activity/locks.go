package activity

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// nearlyAll is the share of a wait that must be for one thread, for it to be named.
const nearlyAll = 0.8

// AwaitedDuring is the thread that the thread waited for in some intervals, and what that did meanwhile: the one that had
// the locks, of timeline.ObjectLock, or whose end was waited for, of timeline.ObjectThread. ok is false where it was none of
// them nearly all of the time.
func (c *Bystanders) AwaitedDuring(where []timeline.Interval, kind timeline.ObjectKind) (a Actor, ok bool) {
	if c.self == nil {
		return a, false
	}
	had := make(map[timeline.ThreadID]timeline.Nanos)
	waits := make(map[timeline.ThreadID][]timeline.Interval)
	for _, s := range c.self.Spans {
		if s.On == 0 || int(s.On) >= len(c.s.Rec.Objects) || c.s.Rec.Objects[s.On].Kind != kind {
			continue
		}
		holder := c.s.Rec.Objects[s.On].Holder
		timeline.Overlap(where, s.Start, s.End, func(i int, part timeline.Nanos) {
			had[holder] += part
			waits[holder] = append(waits[holder], timeline.Between(max(where[i].Start, s.Start), min(where[i].End, s.End)))
		})
	}
	for holder, time := range had {
		if float64(time) < nearlyAll*float64(timeline.Total(where)) || holder < 0 || int(holder) >= len(c.s.Rec.Threads) {
			continue
		}
		for _, t := range c.threads {
			if t.Thread == &c.s.Rec.Threads[holder] {
				return c.holds(t, waits[holder]), true
			}
		}
	}
	return a, false
}

// holds is a thread with where it was most of some intervals, and what it mostly did there: if only waited, too.
func (c *Bystanders) holds(t bystander, where []timeline.Interval) Actor {
	a := Actor{Count: 1, Name: commonName([]string{t.Name}), Start: t.Spans[0].Start, End: t.Spans[len(t.Spans)-1].End}
	places, did := make(map[Place]timeline.Nanos), make(map[Activity]timeline.Nanos)
	t.history.During(where, func(st Activity, part timeline.Nanos) {
		places[st.Place] += part
		did[st] += part
		if st.Cause.Computes() {
			a.CPU += part
		}
	})
	a.Place = Most(places, Place.Compare)
	for st := range did {
		if st.Place != a.Place {
			delete(did, st)
		}
	}
	a.Cause = Most(did, func(x, y Activity) int { return strings.Compare(string(x.Cause), string(y.Cause)) }).Cause
	return a
}
