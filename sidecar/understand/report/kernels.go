package report

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/devicework"
)

// lanesOf are the lanes of what devices did, within the recording.
func lanesOf(rec *timeline.Recording) (out []KernelLane) {
	for _, l := range devicework.Lanes(rec, devicework.MaxBlocks) {
		k := KernelLane{
			Device: l.Device, Stream: l.Stream, ResolutionNS: int64(l.Resolution), Names: l.Names,
			GapNS: Column{}, LengthNS: Column{}, Name: Column{}, Count: Column{},
		}
		at := timeline.Nanos(0)
		for i := range l.Start {
			k.GapNS, k.LengthNS = append(k.GapNS, int64(l.Start[i]-at)), append(k.LengthNS, int64(l.End[i]-l.Start[i]))
			k.Name, k.Count = append(k.Name, int64(l.Name[i])), append(k.Count, int64(l.Count[i]))
			at = l.End[i]
		}
		out = append(out, k)
	}
	return out
}
