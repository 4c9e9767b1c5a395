package mergereports

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/straggler"
)

// rendezvous are the stretches that a rank was in collectives in which nobody leaves before
// everybody has come, by its machine's clock, and how exactly their ends are known.
type rendezvous struct {
	met     []timeline.Interval
	exactly int64 // how far off a begin or end may be: the sampling's interval
}

// meeting is what the collectives of two machines say about their clocks.
type meeting struct {
	offset, bound int64
	known         bool
}

// together are the beginnings of the names of collectives that end nowhere before they have begun everywhere.
var together = []string{"all_reduce", "allreduce", "barrier", "monitored_barrier", "all_gather", "allgather", "reduce_scatter", "all_to_all", "alltoall"}

func waitsForAll(c straggler.Collective) bool {
	return slices.ContainsFunc(together, func(name string) bool { return strings.HasPrefix(string(c), name) })
}

// rendezvousOf are those of a report's target.
func rendezvousOf(r *report.View) rendezvous {
	out := rendezvous{exactly: max(r.Target().Sampling.Interval(r.DurationNS), r.Target().Sampling.ResolutionNS)}
	begin := timeline.Nanos(clockOf(r))
	for _, lane := range lanesOf(r) {
		if lane.Process != r.Target().Process {
			continue
		}
		last := straggler.None
		for _, s := range lane.Spans {
			switch n := len(out.met); {
			case !waitsForAll(s.In):
			case last == s.In && n > 0 && out.met[n-1].End == begin+s.Start:
				out.met[n-1].End = begin + s.End
			default:
				out.met = append(out.met, timeline.Between(begin+s.Start, begin+s.End))
			}
			last = s.In
		}
	}
	return out
}

// fewest is how many meetings say something.
const fewest = 3

// leaving is how long it takes until all have left a collective that one has left: the last
// message on the network, and a CPU to go on with.
const leaving = int64(20e6)

// meetings relates two clocks by the collectives of their ranks. All leave one together, within
// leaving; or, where that contradicts what was seen, at least nobody leaves before everybody has
// entered: for an entry at a by one clock and a leave at b by the other, b + offset ≥ a, both
// ways and for each pair of ranks. What that leaves of all offsets is an interval.
//
// Where the wall clocks leave no doubt which collectives are the same, those are paired, and
// ones that were too short to be seen on one side are left out; else they are counted.
func meetings(here, there []rendezvous, wall, doubt int64) meeting {
	near := func(a, b []timeline.Interval) []pair { return nearest(a, b, wall, doubt) }
	for _, apart := range []int64{leaving, 1 << 60} {
		for _, pairs := range []func(a, b []timeline.Interval) []pair{near, counted} {
			if m := meet(here, there, pairs, apart); m.known {
				return m
			}
		}
	}
	return meeting{}
}

// pair is one collective on two ranks, each by its own clock.
type pair struct{ here, there timeline.Interval }

// limits are what one collective leaves of all offsets.
type limits struct{ at, low, high int64 }

// drift is by how much two clocks get apart, at most: what crystals have, and what NTP corrects.
const drift = 100e-6

// meet relates two clocks by pairs of collectives, of which all leave one within apart of each
// other; not known where they contradict each other.
//
// The offset may change from one collective to the next by drift: it is looked for at each of
// them, within what all others leave of it there, and the bound contains all of these.
func meet(here, there []rendezvous, pairs func(a, b []timeline.Interval) []pair, apart int64) meeting {
	var list []limits
	for _, a := range here {
		for _, b := range there {
			slack := a.exactly + b.exactly
			for _, p := range pairs(a.met, b.met) {
				low, high, ends := int64(p.here.Start-p.there.End), int64(p.here.End-p.there.Start), int64(p.here.End-p.there.End)
				list = append(list, limits{int64(p.here.End), max(low, ends-apart) - slack, min(high, ends+apart) + slack})
			}
		}
	}
	if len(list) < fewest {
		return meeting{}
	}
	return within(list)
}

// within is the offset that all limits leave, where each holds at its own time and the clocks drift in between.
func within(list []limits) meeting {
	slices.SortFunc(list, func(a, b limits) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(list); i++ {
		list[i].narrow(list[i-1])
	}
	for i := len(list) - 2; i >= 0; i-- {
		list[i].narrow(list[i+1])
	}
	low, high, gap := list[0].low, list[0].high, int64(0)
	for i, l := range list {
		if l.low > l.high {
			return meeting{}
		}
		low, high = min(low, l.low), max(high, l.high)
		if i > 0 {
			gap = max(gap, l.at-list[i-1].at)
		}
	}
	return meeting{offset: low + (high-low)/2, bound: (high-low+1)/2 + int64(drift*float64(gap)), known: true}
}

// narrow takes in what the limits at another time leave.
func (l *limits) narrow(other limits) {
	moved := int64(drift * math.Abs(float64(l.at-other.at)))
	l.low, l.high = max(l.low, other.low-moved), min(l.high, other.high+moved)
}

// counted pairs the first with the first, and so on, if there are as many.
func counted(a, b []timeline.Interval) (pairs []pair) {
	if len(a) != len(b) {
		return nil
	}
	for i := range a {
		pairs = append(pairs, pair{a[i], b[i]})
	}
	return pairs
}

// nearest pairs those that end together by the wall clocks; none where these leave a doubt.
func nearest(a, b []timeline.Interval, wall, doubt int64) (pairs []pair) {
	if gap := int64(min(shortestGap(a), shortestGap(b))); 2*doubt > gap {
		return nil
	}
	at := 0
	for _, one := range a {
		end := int64(one.End) - wall
		for at < len(b) && int64(b[at].End) < end-doubt {
			at++
		}
		if at < len(b) && int64(b[at].End) <= end+doubt {
			pairs = append(pairs, pair{one, b[at]})
		}
	}
	return pairs
}

// shortestGap is the time between the ends of two collectives that follow each other, at least.
func shortestGap(met []timeline.Interval) timeline.Nanos {
	shortest := timeline.Nanos(1 << 62)
	for i := 1; i < len(met); i++ {
		shortest = min(shortest, met[i].End-met[i-1].End)
	}
	return shortest
}
