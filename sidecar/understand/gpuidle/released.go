package gpuidle

import (
	"slices"
	"sort"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// seenOff is by how much a change may be put too late or too early, in sampling intervals: it is put half-way between
// two ticks, of which one may be late.
const seenOff = 0.55

// released is the history of a host that waits for its device while the device works: where it is found in a call that
// waits until shortly after the work has ended, and no tick saw it there after that, the call ended with the
// work; and where it is found in one shortly before work begins, the call began with that. Without this, what is
// between two such calls loses a quarter of an interval each time, as the part of a change that is put to one side of
// the work's edge lies in the work, and the part that is put to the other side in the gap.
func released(h *activity.History, windows []window, every func(timeline.Nanos) timeline.Nanos) *activity.History {
	if !slices.ContainsFunc(windows, isGap) {
		return h
	}
	out := &activity.History{States: h.States}
	waits := func(i int) bool {
		return i >= 0 && i < len(h.Stretches) && h.States[h.Stretches[i].State].Cause == activity.Sync
	}
	for i, st := range h.Stretches {
		start, end := st.Start, st.End
		if n := len(out.Stretches); n > 0 {
			start = out.Stretches[n-1].End
		}
		if waits(i) != waits(i+1) && i+1 < len(h.Stretches) {
			if gap, ok := gapAround(windows, end); ok {
				edge := gap.from // where the work before it ended
				if waits(i + 1) {
					edge = gap.at // where the work after it began
				}
				off := max(edge-end, end-edge)
				if edge > start && edge < h.Stretches[i+1].End && float64(off) <= seenOff*float64(every(end)) {
					end = edge
				}
			}
		}
		out.Add(start, end, st.State)
	}
	return out
}

// gapAround is the exact window without work in which a time lies, between two with work.
func gapAround(windows []window, at timeline.Nanos) (window, bool) {
	i := sort.Search(len(windows), func(i int) bool { return windows[i].at >= at })
	if i == 0 || i+1 >= len(windows) || windows[i].from > at {
		return window{}, false
	}
	w, before, after := windows[i], windows[i-1], windows[i+1]
	return w, isGap(w) && isWork(before) && isWork(after) && before.at == w.from && after.from == w.at
}

func isGap(w window) bool  { return w.grain == exact && w.busy == 0 }
func isWork(w window) bool { return w.grain == exact && w.busy == 1 }
