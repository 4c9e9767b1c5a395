package gpuidle

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// halved splits every state into an early and a late part, at half its median
// stay. A device that works off what was launched at a state's beginning is busy
// early and idle late; one rate for the whole state would miss that.
func halved(h *activity.History) *activity.History {
	stays := make([][]timeline.Nanos, len(h.States))
	for _, s := range h.Stretches {
		stays[s.State] = append(stays[s.State], s.End-s.Start)
	}
	out := &activity.History{States: slices.Clone(h.States)}
	half := make([]timeline.Nanos, len(h.States))
	late := make([]int, len(h.States))
	for i := range h.States {
		late[i] = i
		if len(stays[i]) >= minRepeats {
			slices.Sort(stays[i])
			half[i] = stays[i][len(stays[i])/2] / 2
			late[i] = len(out.States)
			out.States = append(out.States, h.States[i])
		}
	}
	for _, s := range h.Stretches {
		middle := min(s.End, s.Start+half[s.State])
		out.Add(s.Start, middle, s.State)
		out.Add(middle, s.End, late[s.State])
	}
	return out
}
