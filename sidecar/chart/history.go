package chart

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/report"
)

// state is what a thread was doing, as an index.
type state uint8

const (
	python state = iota
	native
	waiting
	inIO
	gil
	off
	unknown
	numStates = int(unknown) + 1
)

var stateNames = [numStates]string{"python", "native", "waiting", "io", "gil", "off", "unknown"}

// computes tells the states in which a thread had a CPU.
func (s state) computes() bool { return s == python || s == native }

func stateOf(name string) state {
	for i, n := range stateNames {
		if n == name {
			return state(i)
		}
	}
	return unknown
}

// span is a stretch of one thread's history: end > start, both within the
// report's duration, node a sound index.
type span struct {
	start, end float64
	node       int32
	state      state
}

// historiesOf returns each thread's spans in order of time, without overlap,
// whatever stands in the report.
func historiesOf(r *report.Report, duration float64) [][]span {
	sp := &r.Stacks.Spans
	n := min(len(sp.Thread), len(sp.StartS), len(sp.EndS), len(sp.Node), len(sp.State))
	sizes := make([]int, len(r.Threads))
	for _, t := range sp.Thread[:n] {
		if t >= 0 && t < len(sizes) {
			sizes[t]++
		}
	}
	all := make([][]span, len(r.Threads))
	for t, size := range sizes {
		all[t] = make([]span, 0, size)
	}
	lastName, last := "", unknown
	for i := range n {
		t := sp.Thread[i]
		start, end := max(sp.StartS[i], 0), min(sp.EndS[i], duration)
		if t < 0 || t >= len(all) || !(start < end) { // false for NaN, too
			continue
		}
		if name := sp.State[i]; name != lastName {
			lastName, last = name, stateOf(name)
		}
		node := sp.Node[i]
		if node < 0 || node >= len(r.Stacks.Nodes) {
			node = 0
		}
		all[t] = append(all[t], span{start, end, int32(node), last})
	}
	for t := range all {
		all[t] = inOrder(all[t])
	}
	return all
}

// inOrder sorts spans by start and cuts what overlaps the span before.
func inOrder(spans []span) []span {
	byStart := func(a, b span) int { return cmp.Compare(a.start, b.start) }
	if !slices.IsSortedFunc(spans, byStart) {
		slices.SortStableFunc(spans, byStart)
	}
	kept, end := spans[:0], 0.0
	for _, s := range spans {
		if s.start = max(s.start, end); s.start < s.end {
			kept = append(kept, s)
			end = s.end
		}
	}
	return kept
}

// finite returns v, or 0 where it is no number.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// durationOf returns the report's duration, or what its spans say where it has
// none; always positive.
func durationOf(r *report.Report) float64 {
	d := r.DurationS
	if !(d > 0) || math.IsInf(d, 0) {
		d = 0
		for _, end := range r.Stacks.Spans.EndS {
			if end > d && !math.IsInf(end, 0) {
				d = end
			}
		}
	}
	return min(max(d, 1e-6), 1e10)
}
