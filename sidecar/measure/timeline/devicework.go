package timeline

import (
	"slices"
	"time"
)

// WorkKind is a kind of work that a device does.
type WorkKind uint8

// The kinds of work.
const (
	WorkKernel WorkKind = iota
	WorkCopy            // between host and device, devices, or within one
	WorkMemset
)

// DeviceActivity is one piece of work that a device did, with its begin and end as the device's
// driver knows them.
type DeviceActivity struct {
	Interval       // may reach beyond the recording; one that is empty or ends before it starts is left out
	Device   int   // as its process counts devices (CUDA's ordinal): which GPU.Index that is, package devicework finds out
	Stream   int64 // as the source counts them
	Kind     WorkKind
	Name     string // of a kernel, else what the source calls it
	Launch   Launch
}

// Launch is the host's call that queued a piece of work; the zero value: not known.
type Launch struct {
	Thread int   // native id of the one that called
	At     Nanos // the call's begin
}

// DeviceWork is what devices did for one process, by one source that delivers each piece of work:
// torch.profiler, CUPTI. It takes the place of sampled activity where it is complete.
type DeviceWork struct {
	PID    int    // of the process, as in Recording.Processes
	Source string // "torch.profiler trace", "CUPTI"
	// Index is the GPU.Index of those of the process's devices of which the source knows it; that of others is
	// found by the driver's list of processes.
	Index      map[int]int
	DeviceName string // what the source calls the device, where it knows; all of a process are of one kind
	// Error is how far off all of it may be on the recording's clock; distances within it are exact.
	Error time.Duration
	// Complete are the stretches in which nothing is missing that any device did for the process: where
	// there is no activity in them, the process had none. What was lost, dropped or not recorded is in none.
	Complete   []Interval
	Activities []DeviceActivity // in any order
}

// AddWork adds what devices did. A source may call it several times, each time for other stretches; the
// Builder keeps the slices.
func (b *Builder) AddWork(w DeviceWork) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rec.Work = append(b.rec.Work, w)
}

// cutWork is the work between two times, with the first as its zero.
func cutWork(list []DeviceWork, from, to Nanos) (out []DeviceWork) {
	for _, w := range list {
		w.Complete = shifted(Clip(w.Complete, Interval{from, to}), from)
		var inside []DeviceActivity
		for _, a := range w.Activities {
			if a.Start < to && a.End > from {
				a.Start, a.End = max(a.Start, from)-from, min(a.End, to)-from
				if a.Launch.Thread != 0 {
					a.Launch.At -= from
				}
				inside = append(inside, a)
			}
		}
		if w.Activities = inside; len(inside) > 0 || len(w.Complete) > 0 {
			out = append(out, w)
		}
	}
	return out
}

func shifted(list []Interval, by Nanos) []Interval {
	list = slices.Clone(list)
	for i := range list {
		list[i].Start, list[i].End = list[i].Start-by, list[i].End-by
	}
	return list
}
