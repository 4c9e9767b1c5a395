package activity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// GPUMemoryLine is a line of the user's own while which ran the memory of a process on a GPU grew.
type GPUMemoryLine struct {
	Device    int // timeline.GPU.Index
	Process   int // index in Recording.Processes
	Place     Place
	Function  timeline.FrameID // a frame there
	Grown     int64            // bytes
	Uncertain int64            // of them, those of a time in which other lines computed, too
}

// GPUMemorySum is what a process's memory on a GPU did in all.
type GPUMemorySum struct {
	Device, Process int
	Resolution      time.Duration // between two readings
	Whole           bool          // the figure is the whole device's, which no other process used
	Grown, Unplaced int64         // bytes; those that grew while no line of the user's own ran
	Released, Peak  int64
}

// GPUMemory charges what the memory of a process on a GPU grew by between two of the driver's figures to the lines of
// the user's own that computed meanwhile, by their time. Only where one process of the target uses the device:
// the driver's figures of several cannot be told apart here. Where no other process uses it the whole
// device's figure is taken, which is read more often than that of its processes.
func GPUMemory(rec *timeline.Recording, owner func(*timeline.Thread) int, own func(timeline.FrameID) bool) ([]GPUMemoryLine, []GPUMemorySum) {
	type key struct {
		device, process int
		place           Place
	}
	lines := make(map[key]*GPUMemoryLine)
	var sums []GPUMemorySum
	for _, g := range rec.GPUs {
		process := slices.IndexFunc(rec.Processes, func(p timeline.Process) bool { return len(g.PIDs) == 1 && p.PID == g.PIDs[0] })
		track, whole := memoryTrack(rec, &g)
		if process < 0 || track == nil {
			continue
		}
		sum := GPUMemorySum{Device: g.Index, Process: process, Resolution: max(track.Resolution, track.Step), Whole: whole}
		last := timeline.Point{Value: math.NaN()}
		for _, p := range track.Points {
			change := p.Value - last.Value
			from := last.At
			if last = p; !isNumber(p.Value) {
				continue
			}
			sum.Peak = max(sum.Peak, int64(p.Value))
			switch {
			case !(math.Abs(change) < math.MaxInt64/4), change == 0:
				continue
			case change < 0:
				sum.Released -= int64(change)
				continue
			}
			sum.Grown += int64(change)
			times, all := computing(rec, process, owner, own, from, p.At)
			if all == 0 {
				sum.Unplaced += int64(change)
				continue
			}
			left := int64(change)
			for i, t := range times {
				part := int64(change * (float64(t.time) / float64(all)))
				if i == len(times)-1 {
					part = left
				}
				left -= part
				k := key{g.Index, process, t.place}
				if lines[k] == nil {
					lines[k] = &GPUMemoryLine{Device: g.Index, Process: process, Place: t.place, Function: t.frame}
				}
				lines[k].Grown += part
				if len(times) > 1 {
					lines[k].Uncertain += part
				}
			}
		}
		if sum.Grown > 0 || sum.Released > 0 {
			sums = append(sums, sum)
		}
	}
	out := make([]GPUMemoryLine, 0, len(lines))
	for _, l := range lines {
		if l.Grown > 0 {
			out = append(out, *l)
		}
	}
	slices.SortFunc(out, func(a, b GPUMemoryLine) int {
		return cmp.Or(cmp.Compare(b.Grown, a.Grown), cmp.Compare(a.Device, b.Device), a.Place.Compare(b.Place), cmp.Compare(a.Process, b.Process))
	})
	return out, sums
}

// memoryTrack is the finest track of what the target's processes have of a device, and whether it is the device's own.
func memoryTrack(rec *timeline.Recording, g *timeline.GPU) (found *timeline.Track, whole bool) {
	name := fmt.Sprintf("gpu%d.mem.self", g.Index)
	if whole = g.OtherProcesses == 0; whole {
		name = fmt.Sprintf("gpu%d.mem", g.Index)
	}
	for i := range rec.Tracks {
		if t := &rec.Tracks[i]; t.ID == name && t.Device == g.Index {
			return t, whole
		}
	}
	return nil, whole
}

func isNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// lineTime is for how long a line of the user's own computed.
type lineTime struct {
	place Place
	frame timeline.FrameID
	time  timeline.Nanos
}

// computing is for how long the lines of the user's own computed in a process and a time, most first. Where none
// did, those count that waited: for the device, perhaps.
func computing(rec *timeline.Recording, process int, owner func(*timeline.Thread) int, own func(timeline.FrameID) bool, from, to timeline.Nanos) (list []lineTime, all timeline.Nanos) {
	for _, counts := range []func(timeline.State) bool{timeline.State.Computes, func(s timeline.State) bool { return s != timeline.StateUnknown }} {
		times := make(map[Place]*lineTime)
		for i := range rec.Threads {
			t := &rec.Threads[i]
			if t.Internal || owner(t) != process {
				continue
			}
			for _, s := range t.Spans[firstSpan(t.Spans, from):] {
				if s.Start >= to {
					break
				}
				length := min(s.End, to) - max(s.Start, from)
				frame, known := InnermostOwn(rec, s.Node, own)
				if length <= 0 || !known || !counts(s.State) {
					continue
				}
				at := placeOf(rec, frame)
				if times[at] == nil {
					times[at] = &lineTime{place: at, frame: frame}
				}
				times[at].time += length
				all += length
			}
		}
		if all > 0 {
			for _, t := range times {
				list = append(list, *t)
			}
			slices.SortFunc(list, func(a, b lineTime) int { return cmp.Or(cmp.Compare(b.time, a.time), a.place.Compare(b.place)) })
			return list, all
		}
	}
	return nil, 0
}
