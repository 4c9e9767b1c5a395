package analyses

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// interval is a part of a trace's time, in ns.
type interval = timeline.IntervalOf[int64]

func between(start, end int64) interval { return interval{Start: start, End: end} }

// union merges spans, which must be sorted by start, into disjoint intervals.
// As HTA does it: touching spans join, and a span of negative length (HTA's
// rounding makes them) keeps it.
func union(spans []span, keep func(*span) bool) []interval {
	var merged []interval
	latest := int64(math.MinInt64)
	for i := range spans {
		s := &spans[i]
		if !keep(s) {
			continue
		}
		end := s.end()
		if s.start > latest {
			merged = append(merged, between(s.start, end))
		} else if last := &merged[len(merged)-1]; end > last.End {
			last.End = end
		}
		latest = max(latest, end)
	}
	return merged
}

// edge is a change of which of several layers are on.
type edge struct {
	at    int64
	delta int // +bit when a layer starts, -bit when it ends
}

// layered sums the time during which each combination of layers is on. Layer i
// is bit i of the key. unit is what each piece is cut down to, in ns.
func layered(unit int64, layers ...[]interval) map[int]int64 {
	var edges []edge
	for i, layer := range layers {
		for _, m := range layer {
			edges = append(edges, edge{m.Start, 1 << i}, edge{m.End, -1 << i})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	sums := map[int]int64{}
	on := 0
	for i, e := range edges {
		on += e.delta
		if on > 0 && i+1 < len(edges) {
			if piece := (edges[i+1].at - e.at) / unit * unit; piece != 0 {
				sums[on] += piece
			}
		}
	}
	return sums
}
