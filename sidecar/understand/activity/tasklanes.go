package activity

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// TaskLane is what the tasks of a coroutine did over time: how many on average, in each of some equal parts of the
// recording.
type TaskLane struct {
	Process  int
	Function timeline.FrameID // a frame of the coroutine: the outermost of the user's own in a task
	Waiting  []float64        // tasks that awaited something
	Ready    []float64        // … that had nothing to await any more, or had not begun
	Running  []float64        // … that a thread ran, or that kept it waiting
}

// TaskLanes are the coroutines of the user's own that tasks were made of, those with the most time first.
func TaskLanes(rec *timeline.Recording, own func(timeline.FrameID) bool, parts int) (out []TaskLane) {
	if len(rec.Awaits) == 0 || rec.Duration <= 0 {
		return nil
	}
	l := laneMaker{rec: rec, own: own, part: rec.Duration/timeline.Nanos(parts) + 1, parts: parts, lanes: make(map[laneKey]*TaskLane)}
	for _, a := range rec.Awaits {
		root, ok := l.outermost(a.Node, func(id timeline.FrameID) bool { return own(id) })
		if !ok {
			continue
		}
		lane := l.of(a.Process, root)
		into := lane.Waiting
		if a.Kind == timeline.AwaitsTurn {
			into = lane.Ready
		}
		for _, w := range a.Windows {
			l.add(into, w.Start, w.End, float64(w.Waiting)/float64(w.End-w.Start))
		}
	}
	for _, t := range rec.Threads {
		l.running(&t)
	}
	for _, lane := range l.lanes {
		out = append(out, *lane)
	}
	sum := func(lane TaskLane) (all float64) {
		for _, list := range [][]float64{lane.Waiting, lane.Ready, lane.Running} {
			for _, v := range list {
				all += v
			}
		}
		return all
	}
	slices.SortFunc(out, func(a, b TaskLane) int {
		return cmp.Or(cmp.Compare(sum(b), sum(a)), cmp.Compare(a.Function, b.Function), cmp.Compare(a.Process, b.Process))
	})
	return out
}

// laneMaker sums up.
type laneMaker struct {
	rec   *timeline.Recording
	own   func(timeline.FrameID) bool
	part  timeline.Nanos
	parts int
	lanes map[laneKey]*TaskLane
}

// laneKey is a coroutine by where its function begins, and by its name: a cell begins in its first line, and so may the
// first function in it.
type laneKey struct {
	awaitKey
	function string
}

func (l *laneMaker) of(process int, root timeline.FrameID) *TaskLane {
	key := l.key(process, root)
	lane := l.lanes[key]
	if lane == nil {
		lane = &TaskLane{Process: process, Function: root, Waiting: make([]float64, l.parts), Ready: make([]float64, l.parts), Running: make([]float64, l.parts)}
		l.lanes[key] = lane
	}
	return lane
}

func (l *laneMaker) key(process int, frame timeline.FrameID) laneKey {
	f := l.rec.Frames[frame]
	return laneKey{awaitKey{process, Place{f.File, f.FirstLine}}, f.Function}
}

// add takes in that so many tasks did something for a time.
func (l *laneMaker) add(into []float64, start, end timeline.Nanos, tasks float64) {
	for at := max(start, 0); at < end; {
		i := int(at / l.part)
		if i >= len(into) {
			return
		}
		next := min(end, timeline.Nanos(i+1)*l.part)
		length := min(l.part, l.rec.Duration-timeline.Nanos(i)*l.part)
		into[i] += tasks * float64(next-at) / float64(max(length, 1))
		at = next
	}
}

// running takes in the times in which a thread ran a coroutine that has a lane.
func (l *laneMaker) running(t *timeline.Thread) {
	known := make(map[timeline.NodeID]*TaskLane)
	for _, span := range t.Spans {
		lane, asked := known[span.Node]
		if !asked {
			if n := int(span.Node); n > 0 && n < len(l.rec.Nodes) && !l.suspended(l.rec.Nodes[n].Frame) {
				if frame, ok := l.outermost(span.Node, func(id timeline.FrameID) bool { return l.own(id) && l.lanes[l.key(t.Process, id)] != nil }); ok {
					lane = l.lanes[l.key(t.Process, frame)]
				}
			}
			known[span.Node] = lane
		}
		if lane != nil {
			l.add(lane.Running, span.Start, span.End, 1)
		}
	}
}

func (l *laneMaker) suspended(frame timeline.FrameID) bool {
	return int(frame) < len(l.rec.Frames) && l.rec.Frames[frame].Suspended
}

// outermost is the outermost frame of a stack that fits.
func (l *laneMaker) outermost(node timeline.NodeID, fits func(timeline.FrameID) bool) (frame timeline.FrameID, ok bool) {
	for node != timeline.RootNode && int(node) < len(l.rec.Nodes) {
		n := l.rec.Nodes[node]
		if int(n.Frame) < len(l.rec.Frames) && fits(n.Frame) {
			frame, ok = n.Frame, true
		}
		if n.Parent >= node { // a damaged file: parents come first
			break
		}
		node = n.Parent
	}
	return frame, ok
}
