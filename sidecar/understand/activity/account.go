package activity

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// MostShare is the share of a time from which on a line has most of it.
const MostShare = 0.5

// NearlyAll is the share of a time from which on one part of it is as good as all.
const NearlyAll = 0.9

// Account is a thread's time in some states.
type Account struct {
	Total     timeline.Nanos
	Place     Place // with most of it
	There     timeline.Nanos
	NextPlace Place          // with the second most …
	Next      timeline.Nanos // … of it
	Visits    int            // how often the thread came to at from another place
	Cause     Cause          // of most of it
	Where     []timeline.Interval
}

// AccountOf sums up the thread's time in states that fit.
func (t *Reading) AccountOf(fits func(Cause) bool) Account {
	return t.AccountUntil(math.MaxInt64, fits)
}

// AccountUntil sums up the thread's time in states that fit, up to an end.
func (t *Reading) AccountUntil(end timeline.Nanos, fits func(Cause) bool) Account {
	var a Account
	places := make(map[Place]timeline.Nanos)
	causes := make(map[Cause]timeline.Nanos)
	visits := make(map[Place]int)
	last, there := Place{}, false
	for _, s := range t.History.Stretches {
		if s.Start >= end {
			break
		}
		s.End = min(s.End, end)
		st := t.History.States[s.State]
		if !fits(st.Cause) {
			there = there && st.Place == last && st.Place != (Place{})
			continue
		}
		length := s.End - s.Start
		a.Total += length
		places[st.Place] += length
		causes[st.Cause] += length
		if st.Place != last || !there {
			visits[st.Place]++
		}
		last, there = st.Place, true
		a.Where = append(a.Where, timeline.Between(s.Start, s.End))
	}
	if len(places) == 0 {
		return a
	}
	a.Place = Most(places, Place.Compare)
	a.There, a.Visits = places[a.Place], visits[a.Place]
	a.Cause = Most(causes, func(x, y Cause) int { return cmp.Compare(x, y) })
	delete(places, a.Place)
	a.NextPlace = Most(places, Place.Compare)
	a.Next = places[a.NextPlace]
	return a
}

// OwnPlace is the account's place where a line of the user's own has it, or where the
// program has none at all: the line of a library is no news to its user.
func (t *Reading) OwnPlace(a Account) (Place, timeline.Nanos) {
	if a.Place == (Place{}) || t.stacks.Files.Own(a.Place.File) || !slices.ContainsFunc(t.stacks.facts, func(f frameFacts) bool { return f.own }) {
		return a.Place, a.There
	}
	return Place{}, 0
}

// Halves reports whether two places have about half of the time each: neither has most.
func (a Account) Halves() bool {
	return a.Place != (Place{}) && a.NextPlace != (Place{}) && float64(a.Next) >= nearlyAsMuch*float64(a.There) &&
		float64(a.There+a.Next) >= NearlyAll*float64(a.Total)
}

// nearlyAsMuch is the share of the most from which on the second most is no less, to a reader.
const nearlyAsMuch = 0.8

// Only makes a condition of some causes.
func Only(list ...Cause) func(Cause) bool {
	return func(c Cause) bool { return slices.Contains(list, c) }
}

const maxEvidence = 32

// Evidence orders intervals by time, joins what touches and keeps the longest of
// them, 32 at most.
func Evidence(list []timeline.Interval) []timeline.Interval {
	return timeline.Longest(timeline.Joined(list), maxEvidence)
}
