package activity

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Blocked is for how long threads of a process were blocked in a system call on one object, by the innermost line of the
// user's own on their stacks.
type Blocked struct {
	Process  int // index in Recording.Processes
	Place    Place
	Function timeline.FrameID // a frame there
	Object   timeline.ObjectID
	Time     timeline.Nanos // summed over threads
	Main     timeline.Nanos // of it, of the thread that runs the cell, or of the process's main thread
	Longest  timeline.Nanos
	Times    int
}

// BlockedOn sums up what threads were blocked on, the longest first. owner is the process that a thread is charged to.
func BlockedOn(rec *timeline.Recording, owner func(*timeline.Thread) int, own func(timeline.FrameID) bool) []Blocked {
	type key struct {
		process int
		place   Place
		object  timeline.ObjectID
	}
	sums := make(map[key]*Blocked)
	for i := range rec.Threads {
		t := &rec.Threads[i]
		var goesOn *Blocked // the span before was of this one
		var end, since timeline.Nanos
		for _, span := range t.Spans {
			if span.On == 0 || int(span.On) >= len(rec.Objects) || t.Internal {
				continue
			}
			frame, known := InnermostOwn(rec, span.Node, own)
			if !known {
				continue
			}
			f := &rec.Frames[frame]
			k := key{owner(t), Place{File: f.File, Line: f.Line}, span.On}
			sum := sums[k]
			if sum == nil {
				sum = &Blocked{Process: k.process, Place: k.place, Function: frame, Object: span.On}
				sums[k] = sum
			}
			if sum != goesOn || span.Start > end {
				since = span.Start
				sum.Times++
			}
			goesOn, end = sum, span.End
			sum.Time += span.End - span.Start
			if t.Main || t.RunsCell {
				sum.Main += span.End - span.Start
			}
			sum.Longest = max(sum.Longest, end-since)
		}
	}
	out := make([]Blocked, 0, len(sums))
	for _, sum := range sums {
		out = append(out, *sum)
	}
	slices.SortFunc(out, func(a, b Blocked) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Place.File, b.Place.File),
			cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Object, b.Object))
	})
	return out
}
