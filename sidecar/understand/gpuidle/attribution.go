package gpuidle

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// segment is a stretch within a measured window in which the host's activity did not
// change, with the part of it the device is held to have been idle.
type segment struct {
	start, end timeline.Nanos
	idle       timeline.Nanos
	state      int
	window     int // index into attribution.windows
}

// attribution divides a device's idle time over the states of its host.
type attribution struct {
	history  *activity.History
	windows  []window
	segments []segment // in order; what no window covers is not in them
	idle     timeline.Nanos
}

// quantum is the resolution of the window's activity: NVML rounds to whole percents.
func (w window) quantum() float64 {
	if w.grain == sampled {
		return 0.005
	}
	return 0
}

// attribute divides every window's idle time exactly. With a model the activity
// inside a window follows it; without, it is even.
func attribute(h *activity.History, windows []window, model *activityModel) *attribution {
	a := &attribution{history: withQueued(h), windows: windows}
	at := cursor{h: h}
	if model != nil {
		at.profile = model.profile
	}
	var pieces []piece
	for i, w := range windows {
		idle := w.idle()
		switch pieces = pieces[:0]; w.grain {
		case queued: // whatever the host did meanwhile
			pieces = append(pieces, piece{start: w.from, end: w.at, state: len(h.States)})
		case exact:
			pieces = at.cut(pieces, w)
			for i := range pieces {
				pieces[i].activity = w.busy
			}
		default:
			pieces = at.cut(pieces, w)
			fitMean(pieces, w.busy)
		}
		divide(pieces, idle)
		a.idle += idle
		for _, p := range pieces {
			a.segments = append(a.segments, segment{p.start, p.end, p.idle, p.state, i})
		}
	}
	return a
}

// withQueued is the history with one more state, that of the gaps between queued kernels, which the host is never in.
func withQueued(h *activity.History) *activity.History {
	return &activity.History{States: append(slices.Clip(h.States), activity.Activity{Cause: activity.Queued}), Stretches: h.Stretches}
}

// piece is a part of a window with one host state and one assumed activity.
type piece struct {
	start, end timeline.Nanos
	state      int
	activity   float64 // 0..1
	idle       timeline.Nanos
}

// cursor walks a host's stretches and a device's levels forward in time.
type cursor struct {
	h       *activity.History
	stretch int
	profile []level // empty: activity is even within a window
	level   int
}

// cut cuts a window where the host's state or the device's activity changes.
// Outside the profile the window's mean is assumed, and work where the host
// waits for the device.
func (c *cursor) cut(pieces []piece, w window) []piece {
	for t := w.from; t < w.at; {
		for c.stretch+1 < len(c.h.Stretches) && c.h.Stretches[c.stretch].End <= t {
			c.stretch++
		}
		for c.level < len(c.profile) && c.profile[c.level].end <= t {
			c.level++
		}
		p := piece{start: t, end: w.at, state: c.h.Stretches[c.stretch].State, activity: w.busy}
		if c.h.States[p.state].Cause == activity.Sync {
			p.activity = 1
		}
		if end := c.h.Stretches[c.stretch].End; end > t {
			p.end = min(p.end, end)
		}
		if c.level < len(c.profile) {
			if l := c.profile[c.level]; l.start <= t {
				p.activity = l.activity
				p.end = min(p.end, l.end)
			} else {
				p.end = min(p.end, l.start)
			}
		}
		pieces = append(pieces, p)
		t = p.end
	}
	return pieces
}

// fitMean shifts the pieces' activities until their mean is the measured one.
// The shift is in log-odds: what is surely busy or surely idle stays so, what is
// in between gives way.
func fitMean(pieces []piece, mean float64) {
	const edge = 1e-3 // keeps the log-odds finite
	total := 0.0
	odds := make([]float64, len(pieces))
	for i, p := range pieces {
		total += float64(p.end - p.start)
		g := min(max(p.activity, edge), 1-edge)
		odds[i] = math.Log(g / (1 - g))
	}
	low, high := -40.0, 40.0
	for range 60 {
		shift := (low + high) / 2
		sum := 0.0
		for i, p := range pieces {
			sum += float64(p.end-p.start) / (1 + math.Exp(-odds[i]-shift))
		}
		if sum < mean*total {
			low = shift
		} else {
			high = shift
		}
	}
	for i := range pieces {
		pieces[i].activity = 1 / (1 + math.Exp(-odds[i]-(low+high)/2))
	}
}

// divide gives every piece its part of the idle time; the parts add up exactly
// and none is longer than its piece.
func divide(pieces []piece, idle timeline.Nanos) {
	weight := 0.0
	for _, p := range pieces {
		weight += (1 - p.activity) * float64(p.end-p.start)
	}
	given, sum := timeline.Nanos(0), 0.0
	for i := range pieces {
		p := &pieces[i]
		if weight > 0 {
			sum += (1 - p.activity) * float64(p.end-p.start)
			share := timeline.Nanos(math.Round(float64(idle)*(sum/weight))) - given
			p.idle = min(max(share, 0), p.end-p.start, idle-given)
		}
		given += p.idle
	}
	for i := range pieces { // what rounding left
		more := min(idle-given, pieces[i].end-pieces[i].start-pieces[i].idle)
		pieces[i].idle += more
		given += more
	}
}

// bounds is how long the device can have been idle in each of n groups of host
// states, whatever it did inside its windows: in a window with busy time B and idle
// time I, a group that lasted T was idle for at least T−B and at most min(T, I).
func (a *attribution) bounds(group []int, n int) (low, high []timeline.Nanos) {
	low, high = make([]timeline.Nanos, n), make([]timeline.Nanos, n)
	spent := make([]timeline.Nanos, n)
	for i := 0; i < len(a.segments); {
		first, at := i, a.segments[i].window
		for ; i < len(a.segments) && a.segments[i].window == at; i++ {
			seg := a.segments[i]
			spent[group[seg.state]] += seg.end - seg.start
		}
		w := a.windows[at]
		length := float64(w.at - w.from)
		busy := timeline.Nanos(length * min(w.busy+w.quantum(), 1))
		idle := timeline.Nanos(length * min(1-w.busy+w.quantum(), 1))
		for _, seg := range a.segments[first:i] {
			g := group[seg.state]
			if t := spent[g]; t > 0 {
				low[g] += max(t-busy, 0)
				high[g] += min(t, idle)
				spent[g] = 0
			}
		}
	}
	return low, high
}

// byState is the group of every state alone.
func (a *attribution) byState() []int {
	group := make([]int, len(a.history.States))
	for i := range group {
		group[i] = i
	}
	return group
}

const (
	maxCauses  = 40
	smallShare = 0.005
)

// causes sums the segments up by cause and place, most first.
func (a *attribution) causes() []CauseTime {
	sums := make([]timeline.Nanos, len(a.history.States))
	for _, seg := range a.segments {
		sums[seg.state] += seg.idle
	}
	index := make(map[activity.Activity]int)
	row := make([]int, len(a.history.States))
	var list []CauseTime
	for state, nanos := range sums {
		key := a.history.States[state]
		if float64(nanos) < smallShare*float64(a.idle) {
			key.Place = activity.Place{} // too small for a row of its own
		}
		i, ok := index[key]
		if !ok {
			i = len(list)
			index[key] = i
			list = append(list, CauseTime{Cause: key.Cause, Place: key.Place})
		}
		row[state] = i
		list[i].Nanos += nanos
	}
	low, high := a.bounds(row, len(list))
	evidence := make([][]segment, len(list))
	for _, seg := range a.segments {
		if seg.idle*2 >= seg.end-seg.start {
			evidence[row[seg.state]] = append(evidence[row[seg.state]], seg)
		}
	}
	for i := range list {
		list[i].Low, list[i].High, list[i].Evidence = low[i], high[i], longest(evidence[i])
	}
	list = slices.DeleteFunc(list, func(c CauseTime) bool { return c.Nanos == 0 })
	list = foldRest(list)
	finishCauses(list, a.idle)
	return list
}

// finishCauses orders rows, computes their shares and keeps bounds around them.
func finishCauses(list []CauseTime, idle timeline.Nanos) {
	slices.SortStableFunc(list, func(x, y CauseTime) int { return cmp.Compare(y.Nanos, x.Nanos) })
	for i := range list {
		c := &list[i]
		if idle > 0 {
			c.Share = float64(c.Nanos) / float64(idle)
		}
		c.within(idle)
	}
}

// foldRest sums the rows beyond maxCauses up by cause.
func foldRest(list []CauseTime) []CauseTime {
	slices.SortStableFunc(list, func(x, y CauseTime) int { return cmp.Compare(y.Nanos, x.Nanos) })
	if len(list) <= maxCauses {
		return list
	}
	kept, rest := list[:maxCauses:maxCauses], list[maxCauses:]
	for _, c := range rest {
		c.Place = activity.Place{}
		kept = mergeCause(kept, c)
	}
	return kept
}

// mergeCause adds a row to the one of the same cause and place, or appends it.
func mergeCause(list []CauseTime, c CauseTime) []CauseTime {
	for i := range list {
		o := &list[i]
		if o.Cause == c.Cause && o.Place == c.Place {
			o.add(c.Bounded)
			o.Evidence = activity.Evidence(append(o.Evidence, c.Evidence...))
			return list
		}
	}
	return append(list, c)
}

// longest joins neighbouring segments and keeps the longest of the intervals.
func longest(segments []segment) []timeline.Interval {
	var list []timeline.Interval
	for _, seg := range segments {
		list = append(list, timeline.Between(seg.start, seg.end))
	}
	return activity.Evidence(list)
}
