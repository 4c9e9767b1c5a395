package gpuidle

import (
	"math"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// What the certainty rests on. docs/gpu-idle.md shows how the errors grow below.
const (
	goodFit       = 0.90 // R² from which a regression is taken at its word
	goodHeldOut   = 0.80 // and on windows it did not see
	usefulHeldOut = 0.20 // below, it is worse than spreading evenly
	exactBounds   = 0.01 // of the idle time: nothing is left for a model, as with exact kernel times
	tightBounds   = 0.05 // of the idle time: the windows alone separate the causes
	minRepeats    = 8
	minPerRate    = 8     // windows for every rate the regression finds
	maxSpread     = 0.015 // standard error of a state's idle time, of all idle time
	leastWidth    = 0.07  // of the idle time: no model is held to be nearer than that
)

// halfWidth is how far the idle time of a kind of cause may be off under a model, as
// a share of all of it: four standard errors, or what a wrong model does. That is a
// third of the variance it does not explain, where every window lies within one
// turn of the loop; where windows hold several turns, it is as much of that variance
// as the windows leave open. The figures were found by simulation
// (TestANamedFirstCauseIsNeverWrong, and ten times as many recordings once).
func (a *attribution) halfWidth(m *activityModel) float64 {
	unexplained := 1 - m.heldOut
	if turn, ok := a.turn(); ok && typicalWindow(a.windows) <= turn {
		unexplained /= 3
	} else {
		unexplained *= 2 * a.ambiguity()
	}
	return max(leastWidth, 4*m.spread/max(a.idleShare(), 1e-3), unexplained)
}

// tighten brings the bounds of a device's rows nearer where a model allows.
func (d *DeviceBreakdown) tighten(width timeline.Nanos) {
	for i := range d.Causes {
		d.Causes[i].tighten(width)
	}
	for i := range d.Kinds {
		d.Kinds[i].each(func(b *Bounded) { b.tighten(width) })
	}
}

// enough reports whether there are windows enough for what was found from them.
func (m *activityModel) enough() bool { return m.rows >= minPerRate*len(m.rate) }

// trusted reports whether the regression may be taken at its word, where the
// device was idle for this share of the time.
func (m *activityModel) trusted(idleShare float64) bool {
	return m.r2 >= goodFit && m.heldOut >= goodHeldOut && m.enough() &&
		m.spread <= maxSpread*idleShare
}

// idleShare is the share of the measured time that was idle.
func (a *attribution) idleShare() float64 {
	measured := timeline.Nanos(0)
	for _, seg := range a.segments {
		measured += seg.end - seg.start
	}
	return float64(a.idle) / math.Max(float64(measured), 1)
}

// onlySampled are the windows that are known by their mean alone.
func onlySampled(windows []window) []window {
	return slices.DeleteFunc(slices.Clone(windows), func(w window) bool { return w.grain != sampled })
}

// typicalWindow is the median length of the sampled windows; 0 without any.
func typicalWindow(windows []window) time.Duration {
	windows = onlySampled(windows)
	lengths := make([]timeline.Nanos, len(windows))
	for i, w := range windows {
		lengths[i] = w.at - w.from
	}
	return time.Duration(timeline.Median(lengths))
}

// ambiguity is how much of the idle time the windows leave open to which state
// it belongs: half the bounds' widths, as a share.
func (a *attribution) ambiguity() float64 {
	if a.idle == 0 {
		return 0
	}
	low, high := a.bounds(a.byState(), len(a.history.States))
	width := timeline.Nanos(0)
	for i := range low {
		width += high[i] - low[i]
	}
	return float64(width) / 2 / float64(a.idle)
}

// repeats counts how often the state with most idle time came back after
// another; a change for less than 5 ms does not count.
func (a *attribution) repeats() int { return a.returns(timeline.Nanos(5 * time.Millisecond)) }

// turn is how long the loop takes, by the state with most idle time; false where
// that does not come back. Changes that flicker make it shorter, never longer.
func (a *attribution) turn() (time.Duration, bool) {
	n := a.returns(timeline.Nanos(2 * time.Millisecond))
	if n < 2 {
		return 0, false
	}
	stretches := a.history.Stretches
	return time.Duration(stretches[len(stretches)-1].End-stretches[0].Start) / time.Duration(n), true
}

// returns counts how often the state with most idle time came back after others
// had been there for as long as away.
func (a *attribution) returns(away timeline.Nanos) int {
	sums := make([]timeline.Nanos, len(a.history.States))
	for _, seg := range a.segments {
		sums[seg.state] += seg.idle
	}
	top := 0
	for i := range sums {
		if sums[i] > sums[top] {
			top = i
		}
	}
	count, left := 0, timeline.Nanos(math.MinInt64)
	for _, st := range a.history.Stretches {
		if st.State != top {
			continue
		}
		if count == 0 || st.Start-left >= away {
			count++
		}
		left = st.End
	}
	return count
}

func lessCertain(a, b Certainty) bool {
	rank := map[Method]int{ByExact: 4, ByWindows: 3, ByRepetition: 2, ByAbsence: 1, ByAverage: 0}
	if rank[a.Method] != rank[b.Method] {
		return rank[a.Method] < rank[b.Method]
	}
	return a.R2 < b.R2
}
