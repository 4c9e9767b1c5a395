package gpuidle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/devicework"
)

// Device is one GPU: what was measured of it, and how its idle time is divided.
type Device struct {
	Index   int
	windows []window // in order, not overlapping
	// kernelWait is the gap up to which an exact one is queued.
	kernelWait time.Duration
	sampling   *timeline.Sampling // of the stacks
	Time       DeviceTime
	shares     *attribution // nil unless used
	Idle       DeviceBreakdown
}

// KernelWait is the gap up to which a device is held to have had the work after it queued: between two kernels
// that were launched long before it takes 1 to 5 µs, with a copy or another stream between them up to some 20,
// while the host needs 5 to 10 µs for each launch alone, and as much for the operator around it. HTA has the same.
const KernelWait = 30 * time.Microsecond

// Devices collects what is known of each GPU's activity, by index. Gaps below kernelWait are between queued kernels;
// 0: KernelWait.
func Devices(rec *timeline.Recording, kernelWait time.Duration) []*Device {
	if kernelWait <= 0 {
		kernelWait = KernelWait
	}
	byIndex := make(map[int]*Device)
	get := func(index int) *Device {
		d := byIndex[index]
		if d == nil {
			d = &Device{Index: index, sampling: &rec.Sampling}
			byIndex[index] = d
		}
		return d
	}
	for _, g := range rec.GPUs {
		get(g.Index)
	}
	for i := range rec.Tracks {
		if t := &rec.Tracks[i]; t.ID == fmt.Sprintf("gpu%d.util", t.Device) {
			get(t.Device).windows = readWindows(t.Points, rec.Duration)
		}
	}
	for _, known := range devicework.Of(rec) {
		d := get(known.Index)
		d.kernelWait = kernelWait
		d.windows = withExact(d.windows, known, timeline.Nanos(kernelWait))
	}
	list := make([]*Device, 0, len(byIndex))
	for _, d := range byIndex {
		d.sumUp(rec)
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *Device) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

// withExact puts a device's exact windows in place of the measured ones, where they are known.
func withExact(measured []window, d devicework.Device, kernelWait timeline.Nanos) []window {
	var list []window
	for _, w := range measured {
		for _, p := range devicework.Outside([]timeline.Point{{From: w.from, At: w.at, Value: w.busy}}, d.Exact) {
			list = append(list, window{from: p.From, at: p.At, busy: p.Value})
		}
	}
	for _, stretch := range d.Exact {
		at, worked := stretch.Start, false
		for _, busy := range timeline.Clip(d.Busy, stretch) {
			if gap := (window{from: at, at: busy.Start, grain: exact}); gap.at > gap.from {
				if worked && gap.at-gap.from < kernelWait {
					gap.grain = queued
				}
				list = append(list, gap)
			}
			list = append(list, window{from: busy.Start, at: busy.End, busy: 1, grain: exact})
			at, worked = busy.End, true
		}
		if stretch.End > at {
			list = append(list, window{from: at, at: stretch.End, grain: exact})
		}
	}
	slices.SortFunc(list, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	return list
}

func readWindows(points []timeline.Point, duration timeline.Nanos) []window {
	var list []window
	last := timeline.Nanos(0)
	for _, p := range points {
		from, at := max(p.From, last), min(p.At, duration)
		if math.IsNaN(p.Value) || from >= at {
			continue
		}
		list = append(list, window{from: from, at: at, busy: min(max(p.Value/100, 0), 1)})
		last = at
	}
	return list
}

const (
	activeLevel = 0.03 // a window with more activity holds GPU work
	unseenLevel = 0.25 // the same where no process at all is listed: less may be a desktop
	gapLevel    = 0.10 // a window with less counts as a gap
	maxGaps     = 256
)

// sumUp adds up busy, idle and unknown time, and decides whether the device
// was used by the program.
func (d *Device) sumUp(rec *timeline.Recording) {
	t := DeviceTime{Device: d.Index, Unknown: rec.Duration}
	var gaps []timeline.Interval
	active, level := false, activeLevel
	if unseen(rec, d.Index) {
		level = unseenLevel
	}
	for _, w := range d.windows {
		length := w.at - w.from
		busy := timeline.Nanos(math.Round(w.busy * float64(length)))
		t.Busy += busy
		t.Idle += length - busy
		t.Unknown -= length
		active = active || w.busy > level
		if w.busy <= gapLevel {
			gaps = append(gaps, timeline.Between(w.from, w.at))
		}
	}
	gaps = timeline.Joined(gaps)
	t.Gaps, t.GapCount = timeline.Longest(gaps, maxGaps), len(gaps)
	t.Used = active && !foreign(rec, d.Index)
	d.Time = t
}

// foreign reports whether only other programs' processes were seen on a device.
func foreign(rec *timeline.Recording, index int) bool {
	for _, g := range rec.GPUs {
		if g.Index == index {
			return g.OtherProcesses > 0 && len(g.PIDs) == 0 && othersMatched(rec)
		}
	}
	return false
}

// unseen reports whether the driver listed no process at all on a device. In some
// containers it never does, so that alone is no proof that nothing runs there.
func unseen(rec *timeline.Recording, index int) bool {
	for _, g := range rec.GPUs {
		if g.Index == index {
			return g.OtherProcesses == 0 && len(g.PIDs) == 0
		}
	}
	return false
}

// othersMatched is true where the driver's process numbers could be matched at
// all: on some device a process of the target was seen.
func othersMatched(rec *timeline.Recording) bool {
	for _, g := range rec.GPUs {
		if len(g.PIDs) > 0 {
			return true
		}
	}
	return false
}

// FirstWork is when the device first had something to do; 0 if from the start.
func (d *Device) FirstWork() timeline.Nanos {
	for _, w := range d.windows {
		if w.busy > activeLevel {
			return w.from
		}
	}
	return 0
}

// working are the windows from the first with work to the last. Before and after
// them the device was idle, whatever the host did: a model that predicts that has
// shown nothing of what it knows about the loop.
func (d *Device) working() []window {
	busy := func(w window) bool { return w.busy > activeLevel }
	first := slices.IndexFunc(d.windows, busy)
	if first < 0 {
		return nil
	}
	last := len(d.windows) - 1
	for !busy(d.windows[last]) {
		last--
	}
	return d.windows[first : last+1]
}

// During visits the parts of some intervals in which the device's activity was measured, with
// the part of them that it was idle.
func (d *Device) During(where []timeline.Interval, visit func(i int, measured, idle timeline.Nanos)) {
	for _, seg := range d.shares.segments {
		length := seg.end - seg.start
		timeline.Overlap(where, seg.start, seg.end, func(i int, part timeline.Nanos) {
			visit(i, part, timeline.Nanos(float64(seg.idle)*(float64(part)/float64(length))))
		})
	}
}

// IsMeasured reports whether anything is known of the device's activity.
func (d *Device) IsMeasured() bool { return len(d.windows) > 0 }

// IsDivided reports whether the program used the device and its idle time was divided.
func (d *Device) IsDivided() bool { return d.Time.Used && d.shares != nil }
