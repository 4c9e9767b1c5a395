package activity

import (
	"cmp"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Freed is the time that a line spent with freeing what a function had held that it called: CPython frees a function's
// locals after its frame is gone, when the caller's line is the innermost one again.
type Freed struct {
	Process  int // index in Recording.Processes
	Place    Place
	Function timeline.FrameID // a frame of the function that returned
	Time     timeline.Nanos
	Bytes    int64 // that were given back meanwhile
}

const (
	// leastFreed is the time and the memory from which on a stretch after a return is freeing for sure: an
	// interpreter that computes gives back less.
	leastFreed      = timeline.Nanos(10 * time.Millisecond)
	leastFreedBytes = 1 << 20
	// mostGrown is the share of what was given back that may have been taken meanwhile.
	mostGrown = 0.1
	// betweenSamples is the most that may be between a function's last span and its caller's.
	betweenSamples = timeline.Nanos(3 * time.Millisecond)
	// mostFlat is for how long the memory may stay as it is while objects are freed: an arena is given back when all in it are.
	mostFlat = timeline.Nanos(20 * time.Millisecond)
)

// Freeing finds such times, longest first. They are proven: the line called nothing, right after the function had
// returned to it, and the resident memory of the process shrank all the while and did not grow. A comprehension is no such function:
// what it made is the line's.
func Freeing(rec *timeline.Recording, owner func(*timeline.Thread) int, own func(timeline.FrameID) bool) []Freed {
	type key struct {
		process  int
		place    Place
		function string
		file     string
	}
	sums := make(map[key]*Freed)
	growth := make(map[int][]timeline.Growth) // by process, in order
	for _, g := range rec.Growth {
		growth[g.Process] = append(growth[g.Process], g)
	}
	for i := range rec.Threads {
		t := &rec.Threads[i]
		process := owner(t)
		for k := 1; k < len(t.Spans); k++ {
			from, node := t.Spans[k].Start, t.Spans[k].Node
			callee, returned := returnedTo(rec, t.Spans[k-1].Node, node)
			if !returned || from-t.Spans[k-1].End > betweenSamples {
				continue
			}
			if rec.Frames[callee] == timeline.GarbageCollection || comprehends(rec.Frames[callee].Function) {
				continue // it held nothing, or what the line has itself
			}
			frame := rec.Nodes[node].Frame
			for k+1 < len(t.Spans) && t.Spans[k+1].Node == node && t.Spans[k+1].Start-t.Spans[k].End <= betweenSamples {
				k++
			}
			if !own(frame) {
				continue
			}
			until, bytes := shrankIn(growth[process], from, t.Spans[k].End)
			if until-from < leastFreed || bytes < leastFreedBytes || othersCompute(rec, owner, i, from, until) {
				continue
			}
			f := rec.Frames[callee]
			at := key{process, placeOf(rec, frame), f.Function, f.File}
			if sums[at] == nil {
				sums[at] = &Freed{Process: process, Place: at.place, Function: callee}
			}
			sums[at].Time += until - from
			sums[at].Bytes += bytes
		}
	}
	out := make([]Freed, 0, len(sums))
	for _, f := range sums {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Freed) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), a.Place.Compare(b.Place), cmp.Compare(a.Function, b.Function))
	})
	return out
}

// returnedTo is the function that a stack's innermost line had called in another one.
func returnedTo(rec *timeline.Recording, before, now timeline.NodeID) (callee timeline.FrameID, ok bool) {
	if now == timeline.RootNode {
		return 0, false
	}
	for n := before; n != timeline.RootNode; n = rec.Nodes[n].Parent {
		if rec.Nodes[n].Parent == now {
			return rec.Nodes[n].Frame, true
		}
	}
	return 0, false
}

// shrankIn is until when the memory of a process shrank from the begin of a time on, and by how much; nothing where it also grew.
func shrankIn(growth []timeline.Growth, from, to timeline.Nanos) (until timeline.Nanos, bytes int64) {
	first, _ := slices.BinarySearchFunc(growth, from, func(g timeline.Growth, at timeline.Nanos) int { return cmp.Compare(g.Start, at) })
	until = from
	grown := int64(0)
	for _, g := range growth[first:] {
		if g.End > to || g.Bytes < 0 && g.Start > until+mostFlat {
			break
		}
		if g.Bytes < 0 {
			until, bytes = g.End, bytes-g.Bytes
		} else {
			grown += g.Bytes
		}
	}
	if float64(grown) > mostGrown*float64(bytes) {
		return from, 0
	}
	return until, bytes
}

// othersCompute reports whether other threads of a thread's process did something in a time: they may have freed it.
func othersCompute(rec *timeline.Recording, owner func(*timeline.Thread) int, thread int, from, to timeline.Nanos) bool {
	process, sum := owner(&rec.Threads[thread]), timeline.Nanos(0)
	for i := range rec.Threads {
		t := &rec.Threads[i]
		if i == thread || owner(t) != process {
			continue
		}
		for _, s := range t.Spans[firstSpan(t.Spans, from):] {
			if s.Start >= to {
				break
			}
			if s.State == timeline.StatePython || s.State == timeline.StateNative {
				sum += min(s.End, to) - max(s.Start, from)
			}
		}
	}
	return float64(sum) > mostGrown*float64(to-from)
}
