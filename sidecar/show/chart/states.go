package chart

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// stateWords are the states as a user would say them, where there is little room.
var stateWords = [report.NumStates]string{"Python", "native code", "waiting", "input/output", "GIL wait", "no free CPU", "unknown"}

// stateName is the same in full.
func stateName(s report.State) string {
	if s == report.StateGIL {
		return "waiting for the GIL"
	}
	return stateWords[s]
}

// barPaints are the colours of states in the bars of tables.
var barPaints = [report.NumStates]Paint{PaintPython, PaintNative, PaintWait, PaintIO, PaintGIL, PaintWait, PaintWait}

// worthState is the share of a time from which on a state is mentioned.
const worthState = 0.05

// splitText says what a time was spent with, most first: "waiting for the GIL 2.1 s ·
// Python 1.4 s". It is empty where nearly all of it was computing.
func splitText(t report.StateTimes) string {
	all, computing := t.Sum(), t.Of(report.State.Computes)
	var states []report.State
	for s, ns := range t {
		if float64(ns) >= worthState*float64(all) && ns > 0 {
			states = append(states, report.State(s))
		}
	}
	if float64(all-computing) < worthState*float64(all) {
		return ""
	}
	slices.SortStableFunc(states, func(a, b report.State) int { return cmp.Compare(t[b], t[a]) })
	parts := make([]string, len(states))
	for i, s := range states {
		parts[i] = stateName(s)
		if len(states) > 1 {
			parts[i] += " " + words.Seconds(report.Seconds(t[s]))
		}
	}
	return strings.Join(parts, " · ")
}

// stateBars divides a bar by what the time was spent with, in the order of states; one
// of which nothing is known stays whole.
func stateBars(b Box, t report.StateTimes) []Bar {
	all := float64(t.Sum())
	if !(all > 0) {
		return []Bar{{b, PaintBar}}
	}
	var bars []Bar
	x := b.X0
	for s, ns := range t {
		end := x + float64(ns)/all*(b.X1-b.X0)
		switch n := len(bars) - 1; {
		case n >= 0 && bars[n].Paint == barPaints[s]:
			bars[n].X1 = end
		case end > x:
			bars = append(bars, Bar{Box{x, b.Y0, end, b.Y1}, barPaints[s]})
		}
		x = end
	}
	return bars
}
