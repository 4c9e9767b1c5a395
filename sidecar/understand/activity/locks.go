package activity

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// nearlyAll is the share of a wait for which the threads that it was for must be known, for them to be named.
const nearlyAll = 0.8

// AwaitedDuring are the threads that the thread waited for in some intervals, and what they did meanwhile, those that did the
// same at the same place together, the ones first that were waited for longest: those that had the locks, of
// timeline.ObjectLock, or whose end was waited for, of timeline.ObjectThread. It is empty where they were not known nearly all
// of the time, and has one alone where it was for that nearly all of it.
func (c *Bystanders) AwaitedDuring(where []timeline.Interval, kind timeline.ObjectKind) []Actor {
	if c.self == nil {
		return nil
	}
	waits := make(map[timeline.ThreadID][]timeline.Interval)
	for _, s := range c.self.Spans {
		if s.On == 0 || int(s.On) >= len(c.s.Rec.Objects) || c.s.Rec.Objects[s.On].Kind != kind {
			continue
		}
		holder := c.s.Rec.Objects[s.On].Holder
		timeline.Overlap(where, s.Start, s.End, func(i int, _ timeline.Nanos) {
			waits[holder] = append(waits[holder], timeline.Between(max(where[i].Start, s.Start), min(where[i].End, s.End)))
		})
	}
	known := timeline.Nanos(0)
	groups := make(map[Activity]*Actor)
	names := make(map[Activity][]string)
	for _, t := range c.threads {
		for holder, during := range waits {
			if holder < 0 || int(holder) >= len(c.s.Rec.Threads) || t.Thread != &c.s.Rec.Threads[holder] {
				continue
			}
			a := c.holds(t, during)
			known += a.Awaited
			did := Activity{a.Cause, a.Place}
			names[did] = append(names[did], t.Name)
			if sum := groups[did]; sum != nil {
				sum.Count, sum.CPU, sum.Awaited = sum.Count+1, sum.CPU+a.CPU, sum.Awaited+a.Awaited
				sum.Start, sum.End = min(sum.Start, a.Start), max(sum.End, a.End)
				continue
			}
			groups[did] = &a
		}
	}
	if known == 0 || float64(known) < nearlyAll*float64(timeline.Total(where)) {
		return nil
	}
	var list []Actor
	for did, a := range groups {
		a.Name = commonName(names[did])
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b Actor) int { return cmp.Or(cmp.Compare(b.Awaited, a.Awaited), byWork(a, b)) })
	length := float64(timeline.Total(where))
	if float64(list[0].Awaited) >= nearlyAll*length {
		return list[:1]
	}
	return slices.DeleteFunc(list, func(a Actor) bool { return float64(a.Awaited) < minActive*length })
}

// holds is a thread with where it was most of some intervals, and what it mostly did there: if only waited, too.
func (c *Bystanders) holds(t bystander, where []timeline.Interval) Actor {
	a := Actor{Count: 1, Awaited: timeline.Total(where), Start: t.Spans[0].Start, End: t.Spans[len(t.Spans)-1].End}
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
