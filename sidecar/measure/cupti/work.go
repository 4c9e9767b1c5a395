package cupti

import (
	"fmt"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Source is what the work of this package is called by.
const Source = "CUPTI"

// mostActivities of one process in one recording: 60 MB.
const mostActivities = 1 << 20

// work is what one process's ring has said in one recording. Times are as the ring has them until delivered.
type work struct {
	clock      timeline.Bridges
	activities []record
	cut        bool       // there were more
	opened     []interval // CLOCK_MONOTONIC; the last one may not have ended
	open       bool
	missing    []interval // CLOCK_MONOTONIC
	lost       []record   // hulls on CUPTI's clock
	left       uint64     // records that were lost or missed
	why        []record
}

type interval = timeline.IntervalOf[int64]

func (w *work) take(r record) {
	switch r.kind {
	case memcpyKind, memsetKind, kernelKind:
		if len(w.activities) < mostActivities {
			w.activities = append(w.activities, r)
			return
		}
		w.cut = true
		w.lost = appendHull(w.lost, r)
	case clockKind:
		w.clock.Add(timeline.BridgeAt{At: int64(r.start), Bridge: timeline.Bridge{Offset: int64(r.end) - int64(r.start), Error: int64(min(r.number, 1<<62))}})
	case openKind:
		if !w.open {
			w.opened = append(w.opened, interval{Start: int64(r.start)})
		}
		w.open = true
	case shutKind:
		w.shut(int64(r.start))
	case lostKind:
		w.left += r.number
		w.lost = append(w.lost, r)
	case missedKind:
		w.left += r.number
		w.missing = append(w.missing, interval{Start: int64(r.start), End: int64(r.end)})
	case whyKind:
		w.why = append(w.why, r)
	}
}

// appendHull lets the last hull contain one more record, or begins with it.
func appendHull(hulls []record, r record) []record {
	if len(hulls) == 0 {
		return []record{{start: r.start, end: r.end}}
	}
	last := &hulls[len(hulls)-1]
	last.start, last.end = min(last.start, r.start), max(last.end, r.end)
	return hulls
}

func (w *work) shut(at int64) {
	if w.open {
		w.opened[len(w.opened)-1].End = at
	}
	w.open = false
}

// deliver returns what devices did, on the recording's clock. until is when the ring was read last, pending
// since when CUPTI has kept a buffer (0: it has none), blind that the ring had no room to say what is missing.
func (w *work) deliver(pid int, until, pending int64, blind bool, since func(int64) timeline.Nanos) (timeline.DeviceWork, bool) {
	if len(w.clock) == 0 {
		return timeline.DeviceWork{}, false
	}
	if w.open {
		if pending > 0 {
			until = min(until, pending)
		}
		w.shut(until)
	}
	d := timeline.DeviceWork{PID: pid, Source: Source, Error: time.Duration(w.clock.Error())}
	on := func(theirs uint64) timeline.Nanos { return since(w.clock.ToBase(int64(theirs & (1<<63 - 1)))) }
	for _, r := range w.activities {
		d.Activities = append(d.Activities, timeline.DeviceActivity{
			Interval: timeline.Interval{Start: on(r.start), End: on(r.end)},
			Device:   int(r.device), Stream: int64(r.stream), Kind: workKind(r.kind), Name: nameOf(r),
		})
	}
	if blind {
		return d, true
	}
	var missing []timeline.Interval
	for _, m := range w.missing {
		missing = append(missing, timeline.Between(since(m.Start), since(m.End)))
	}
	for _, r := range w.lost {
		missing = append(missing, timeline.Between(on(r.start), on(r.end)))
	}
	for _, o := range w.opened {
		if o.End > o.Start {
			d.Complete = append(d.Complete, timeline.Interval{Start: since(o.Start), End: since(o.End)})
		}
	}
	d.Complete = timeline.Without(timeline.Joined(d.Complete), timeline.Joined(missing))
	return d, true
}

func workKind(k kind) timeline.WorkKind {
	switch k {
	case memcpyKind:
		return timeline.WorkCopy
	case memsetKind:
		return timeline.WorkMemset
	}
	return timeline.WorkKernel
}

// copies are CUpti_ActivityMemcpyKind's names, as torch.profiler writes them.
var copies = [...]string{1: "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"}

func nameOf(r record) string {
	switch {
	case r.kind == memsetKind:
		return "Memset"
	case r.kind == memcpyKind && r.copy > 0 && int(r.copy) < len(copies):
		return "Memcpy " + copies[r.copy]
	case r.kind == memcpyKind:
		return "Memcpy"
	case r.name == "":
		return fmt.Sprintf("kernel on stream %d", r.stream)
	}
	return r.name
}
