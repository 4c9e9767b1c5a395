// Package devicework puts what devices were seen doing in place of what was sampled of them.
//
// In flow a recording's timeline.DeviceWork, which torch.profiler or CUPTI delivered, out flow for each device
// when exactly it was busy and in which stretches that is known, the recording with exact activity there in
// place of the driver's samples, and the lanes of its streams. The package knows nothing of who delivered the
// work, and does not diagnose.
package devicework

import (
	"cmp"
	"maps"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Device is what is exactly known of one device.
type Device struct {
	Index int // timeline.GPU.Index
	// Exact are the stretches in which nothing is missing that it did for the recorded processes.
	Exact []timeline.Interval
	Busy  []timeline.Interval // when it worked, in Exact and outside

	work    []piece // by start, none empty, within the recording
	workers []int   // processes for which it worked
	sources []string
}

// piece is an activity on the recording's device.
type piece struct {
	timeline.Interval
	stream int64
	name   string
	launch Launched
}

// Launched is by which process, and by which call of it, a piece of work was queued.
type Launched struct {
	PID int
	timeline.Launch
}

// activeLevel is the sampled activity, in percent, that contradicts a source that saw none.
const activeLevel = 25

// Of finds the devices of which work was delivered, or that are known to have done none, by index.
func Of(rec *timeline.Recording) []Device {
	if len(rec.Work) == 0 {
		return nil
	}
	indexOf := numbering(rec)
	complete := make(map[int][]timeline.Interval) // by process
	byIndex := make(map[int]*Device)
	users := make(map[int]map[int]bool) // device → processes
	uses := func(index, pid int) *Device {
		d := byIndex[index]
		if d == nil {
			d = &Device{Index: index}
			byIndex[index], users[index] = d, make(map[int]bool)
		}
		users[index][pid] = true
		return d
	}
	whole := timeline.Between(0, rec.Duration)
	for i := range rec.Work {
		w := &rec.Work[i]
		complete[w.PID] = timeline.Joined(append(complete[w.PID], timeline.Clip(timeline.Joined(w.Complete), whole)...))
		for _, a := range w.Activities {
			d := uses(indexOf(w, a.Device), w.PID)
			p := piece{timeline.Between(max(a.Start, 0), min(a.End, rec.Duration)), a.Stream, a.Name, Launched{w.PID, a.Launch}}
			if p.Start < p.End {
				d.work = append(d.work, p)
			}
			if !slices.Contains(d.sources, w.Source) {
				d.sources = append(d.sources, w.Source)
			}
			if !slices.Contains(d.workers, w.PID) {
				d.workers = append(d.workers, w.PID)
			}
		}
	}
	for _, g := range rec.GPUs {
		for _, pid := range g.PIDs {
			if _, delivered := complete[pid]; delivered || byIndex[g.Index] != nil {
				uses(g.Index, pid)
			}
		}
	}
	var list []Device
	for _, index := range slices.Sorted(maps.Keys(byIndex)) {
		d := byIndex[index]
		d.Exact = []timeline.Interval{whole}
		for pid := range users[index] {
			d.Exact = timeline.Common(d.Exact, complete[pid])
		}
		slices.SortFunc(d.work, func(a, b piece) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
		for _, p := range d.work {
			d.Busy = append(d.Busy, p.Interval)
		}
		d.Busy = timeline.Joined(d.Busy)
		if len(d.work) == 0 && contradicted(rec, d) {
			continue // its work was not delivered
		}
		list = append(list, *d)
	}
	return list
}

// contradicted reports whether the driver saw a device work where nothing was delivered of it.
func contradicted(rec *timeline.Recording, d *Device) bool {
	at := trackOf(rec, d.Index)
	return at >= 0 && slices.ContainsFunc(rec.Tracks[at].Points, func(p timeline.Point) bool {
		return p.Value > activeLevel && len(timeline.Clip(d.Exact, timeline.Between(p.From, p.At))) > 0
	})
}

// numbering returns what converts a process's numbers of its devices to the recording's. They differ where a
// program may use some devices only (CUDA_VISIBLE_DEVICES): where as many devices did work for the process as the
// driver saw it on, they are the same in the same order.
func numbering(rec *timeline.Recording) func(w *timeline.DeviceWork, device int) int {
	seen, used := make(map[int][]int), make(map[int][]int) // by process
	for _, w := range rec.Work {
		for _, a := range w.Activities {
			if !slices.Contains(seen[w.PID], a.Device) {
				seen[w.PID] = append(seen[w.PID], a.Device)
			}
		}
	}
	for _, g := range rec.GPUs {
		for _, pid := range g.PIDs {
			used[pid] = append(used[pid], g.Index)
		}
	}
	for pid := range seen {
		slices.Sort(seen[pid])
		slices.Sort(used[pid])
	}
	return func(w *timeline.DeviceWork, device int) int {
		if index, known := w.Index[device]; known {
			return index
		}
		if at := slices.Index(seen[w.PID], device); len(seen[w.PID]) == len(used[w.PID]) {
			return used[w.PID][at]
		}
		return device
	}
}
