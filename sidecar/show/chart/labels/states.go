package labels

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// States are the states as a user would say them, where there is little room.
var States = [report.NumStates]string{"Python", "native code", "waiting", "input/output", "GIL wait", "no free CPU", "unknown"}

// stateName is the same in full.
func stateName(s report.State) string {
	if s == report.StateGIL {
		return "waiting for the GIL"
	}
	return States[s]
}

// StatePaints are the colours of states in the bars of tables.
var StatePaints = [report.NumStates]scene.Paint{scene.PaintPython, scene.PaintNative, scene.PaintWait, scene.PaintIO, scene.PaintGIL, scene.PaintWait, scene.PaintGap}

// WorthState is the share of a time from which on a state is mentioned.
const WorthState = 0.05

// Split says what a time was spent with, most first: "waiting for the GIL 2.1 s ·
// Python 1.4 s". It is empty where nearly all of it was computing.
func Split(t report.StateTimes) string {
	all, computing := t.Sum(), t.Of(report.State.Computes)
	var states []report.State
	for s, ns := range t {
		if float64(ns) >= WorthState*float64(all) && ns > 0 {
			states = append(states, report.State(s))
		}
	}
	if float64(all-computing) < WorthState*float64(all) {
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
