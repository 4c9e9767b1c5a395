package report

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/devicework"
)

// lanesOf are the lanes of what devices did, within the recording.
func (b *builder) lanesOf() (out []KernelLane) {
	for _, l := range devicework.Lanes(b.rec, devicework.MaxBlocks) {
		k := KernelLane{
			Device: l.Device, Stream: l.Stream, ResolutionNS: int64(l.Resolution), Names: l.Names,
			GapNS: Column{}, LengthNS: Column{}, Name: Column{}, Count: Column{},
		}
		at, known := timeline.Nanos(0), false
		for i := range l.Start {
			k.GapNS, k.LengthNS = append(k.GapNS, int64(l.Start[i]-at)), append(k.LengthNS, int64(l.End[i]-l.Start[i]))
			k.Name, k.Count = append(k.Name, int64(l.Name[i])), append(k.Count, int64(l.Count[i]))
			at = l.End[i]
			delay, thread := b.launch(l.Launched[i], l.Start[i])
			known = known || thread >= 0
			k.LaunchNS, k.Launcher = append(k.LaunchNS, delay), append(k.Launcher, thread)
		}
		if !known {
			k.LaunchNS, k.Launcher = nil, nil
		}
		out = append(out, k)
	}
	return out
}

// launch is how long before its begin a piece of work was queued, and by which thread; -1: not known.
func (b *builder) launch(l devicework.Launched, start timeline.Nanos) (delay, thread int64) {
	process, known := b.byPID[l.PID]
	index, listed := b.byThread[[2]int{process, l.Thread}]
	if l.Thread == 0 || !known || !listed || l.At < 0 || l.At > start {
		return -1, -1
	}
	return int64(start - l.At), int64(index)
}
