package analyses

import (
	"cmp"
	"math"
	"slices"
)

// interval is a stretch of time, [start, end) in ns.
type interval struct{ start, end int64 }

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
			merged = append(merged, interval{s.start, end})
		} else if last := &merged[len(merged)-1]; end > last.end {
			last.end = end
		}
		latest = max(latest, end)
	}
	return merged
}

// length of all intervals together.
func length(merged []interval) (sum int64) {
	for _, m := range merged {
		sum += m.end - m.start
	}
	return sum
}

// overlap of two lists of disjoint intervals in time order.
func overlap(a, b []interval) (sum int64) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if both := min(a[i].end, b[j].end) - max(a[i].start, b[j].start); both > 0 {
			sum += both
		}
		if a[i].end < b[j].end {
			i++
		} else {
			j++
		}
	}
	return sum
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
			edges = append(edges, edge{m.start, 1 << i}, edge{m.end, -1 << i})
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

// clip cuts intervals down to what lies within a window.
func clip(merged []interval, window interval) []interval {
	first, _ := slices.BinarySearchFunc(merged, window.start, func(m interval, at int64) int { return cmp.Compare(m.end, at) })
	var inside []interval
	for _, m := range merged[first:] {
		if m.start >= window.end {
			break
		}
		if c := (interval{max(m.start, window.start), min(m.end, window.end)}); c.start < c.end {
			inside = append(inside, c)
		}
	}
	return inside
}
