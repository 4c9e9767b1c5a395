package view

import "github.com/omni-perf/omni-perf/sidecar/torchtrace"

// Clock says how to bring a rank's times to the common clock, the lowest rank's.
type Clock struct {
	Rank    int
	Offset  int64 // ns to add to the rank's own time since the epoch
	Matched bool  // by collectives shared with other ranks; else Offset is 0
}

// AlignClocks compares when the same collectives ended: a collective ends on
// all ranks at nearly the same time, whenever each began.
func AlignClocks(set *torchtrace.TraceSet) []Clock {
	ahead := set.Offsets()
	clocks := make([]Clock, len(set.Traces))
	for i, t := range set.Traces {
		offset, ok := ahead[t.Rank]
		clocks[i] = Clock{Rank: t.Rank, Offset: -offset, Matched: ok}
	}
	return clocks
}
