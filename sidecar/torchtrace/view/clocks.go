package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/torchtrace"
)

// Clock says how to bring a rank's times to the common clock.
type Clock struct {
	Rank   int
	Offset int64 // ns to add to the rank's own time since the epoch
	Error  int64 // ns: spread of the matched collectives around Offset; -1: not matched
	Pairs  int   // collectives matched with the first rank
}

// AlignClocks compares when the same collectives ended: a collective ends on
// all ranks at nearly the same time, whenever each began. The first rank's
// clock is the common one.
func AlignClocks(set *torchtrace.TraceSet) []Clock {
	clocks := make([]Clock, len(set.Traces))
	var reference map[string][]int64
	for i, t := range set.Traces {
		clocks[i] = Clock{Rank: t.Rank, Error: -1}
		ends := collectiveEnds(t)
		if i == 0 {
			reference, clocks[0].Error = ends, 0
			continue
		}
		var differences []int64
		for key, mine := range ends {
			theirs := reference[key]
			if len(theirs) != len(mine) {
				continue // the recordings do not cover the same ones
			}
			for n := range mine {
				differences = append(differences, theirs[n]-mine[n])
			}
		}
		if len(differences) == 0 {
			continue
		}
		slices.Sort(differences)
		clocks[i].Offset = differences[len(differences)/2]
		clocks[i].Pairs = len(differences)
		// Half of all pairs lie within Error of Offset.
		spread := make([]int64, len(differences))
		for n, d := range differences {
			spread[n] = max(d-clocks[i].Offset, clocks[i].Offset-d)
		}
		slices.Sort(spread)
		clocks[i].Error = spread[len(spread)/2]
	}
	return clocks
}

// collectiveEnds lists the ends of a rank's communication kernels since the
// epoch, in order, by what must be the same on all ranks.
func collectiveEnds(t *torchtrace.Trace) map[string][]int64 {
	type one struct {
		end int64
		key string
	}
	var all []one
	d := &t.Device
	for row := range d.Len() {
		name := t.Text(d.Name[row])
		lower := strings.ToLower(name)
		if d.Class[row] != torchtrace.ClassKernel || !strings.Contains(lower, "nccl") && !strings.Contains(lower, "rccl") {
			continue
		}
		key := name
		if c := int(d.Collective[row]); c > 0 && c < len(t.Collectives) {
			about := t.Collectives[c]
			if size := int(about.GroupSize); size > 0 && size < 2 || strings.Contains(lower, "send") || strings.Contains(lower, "recv") {
				continue // no collective of several ranks
			}
			key = fmt.Sprint(name, "\x00", t.Text(about.Group), "\x00", t.Text(about.GroupRanks), "\x00", about.InNelems)
		}
		all = append(all, one{t.UnixNs(d.End(row)), key})
	}
	slices.SortFunc(all, func(a, b one) int { return int(min(1, max(-1, a.end-b.end))) })
	ends := map[string][]int64{}
	for _, o := range all {
		ends[o.key] = append(ends[o.key], o.end)
	}
	return ends
}
