package activity

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// AwaitLine is a line of the user's own at which tasks of event loops waited.
type AwaitLine struct {
	Process  int // index in Recording.Processes
	Place    Place
	Function timeline.FrameID    // a frame there
	Waiting  timeline.Nanos      // sum over the tasks
	Some     timeline.Nanos      // for which at least one waited there
	Most     int                 // at once
	Ready    timeline.Nanos      // sum over the tasks that awaited nothing any more there: the loop was busy with others
	Where    []timeline.Interval // Some
	Changes  []TasksAtOnce       // each time their number changed
	Alone    []timeline.Interval // the part of Where in which one task waited there
	Begun    int                 // awaits that began while no other task waited there, as far as readings show
	Node     timeline.NodeID     // the stack with most of Waiting
}

// InTurn reports whether for most of the time in which any task waited there it was one.
func (a *AwaitLine) InTurn() bool { return 2*timeline.Total(a.Alone) > a.Some }

// TasksAtOnce is how many tasks waited from a time on.
type TasksAtOnce struct {
	From  timeline.Nanos
	Tasks int
}

// MostWithin is how many tasks at most waited at once within intervals that are in order.
func (a *AwaitLine) MostWithin(where []timeline.Interval) (most int) {
	for i, c := range a.Changes {
		until := timeline.Nanos(math.MaxInt64)
		if i+1 < len(a.Changes) {
			until = a.Changes[i+1].From
		}
		for len(where) > 0 && where[0].End <= c.From {
			where = where[1:]
		}
		if len(where) > 0 && where[0].Start < until {
			most = max(most, c.Tasks)
		}
	}
	return most
}

// Mean is how many tasks waited while any did.
func (a *AwaitLine) Mean() float64 {
	if a.Some <= 0 {
		return 0
	}
	return float64(a.Waiting) / float64(a.Some)
}

type awaitKey struct {
	process int
	place   Place
}

// change is that tasks begin or cease to wait.
type change struct {
	at            timeline.Nanos
	windows, most int
	begun         int
}

// Awaits sums up where tasks of event loops waited, each by the innermost line of the user's own
// among its coroutines, the longest waiting first. Tasks that run none of them are left out: a
// notebook kernel and many libraries have some of their own.
func Awaits(rec *timeline.Recording, own func(timeline.FrameID) bool) []AwaitLine {
	byLine := func(key awaitKey, _ timeline.NodeID) awaitsTogether { return awaitsTogether{awaitKey: key} }
	out := awaitsOf(rec, own, byLine, func(a *timeline.Await) bool { return a.Kind != timeline.AwaitsTurn })
	ready := make(map[awaitKey]timeline.Nanos)
	for _, a := range awaitsOf(rec, own, byLine, isReady) {
		ready[awaitKey{a.Process, a.Place}] = a.Waiting
	}
	for i := range out {
		out[i].Ready = ready[awaitKey{out[i].Process, out[i].Place}]
	}
	return out
}

func isReady(a *timeline.Await) bool { return a.Kind == timeline.AwaitsTurn }

// awaitsTogether is what awaits are summed up by: a line, and where that matters whether it sleeps.
type awaitsTogether struct {
	awaitKey
	sleeps bool
}

// awaitsOf sums up the awaits that count, together where they have the same key.
func awaitsOf(rec *timeline.Recording, own func(timeline.FrameID) bool, together func(awaitKey, timeline.NodeID) awaitsTogether, counts func(*timeline.Await) bool) []AwaitLine {
	lines := make(map[awaitsTogether]*AwaitLine)
	changes := make(map[awaitsTogether][]change)
	most := make(map[awaitsTogether]timeline.Nanos)
	for _, a := range rec.Awaits {
		if !counts(&a) {
			continue
		}
		frame, ok := InnermostOwn(rec, a.Node, own)
		if !ok {
			continue
		}
		f := rec.Frames[frame]
		key := together(awaitKey{a.Process, Place{f.File, f.Line}}, a.Node)
		line := lines[key]
		if line == nil {
			line = &AwaitLine{Process: a.Process, Place: key.place, Function: frame}
			lines[key] = line
		}
		there := timeline.Nanos(0)
		for _, w := range a.Windows {
			there += w.Waiting
			changes[key] = append(changes[key], change{w.Start, 1, w.Most, w.Begun}, change{w.End, -1, -w.Most, 0})
		}
		line.Waiting += there
		if there > most[key] {
			most[key], line.Node = there, a.Node
		}
	}
	out := make([]AwaitLine, 0, len(lines))
	for key, line := range lines {
		line.sum(changes[key])
		if line.Waiting > 0 {
			out = append(out, *line)
		}
	}
	slices.SortFunc(out, func(a, b AwaitLine) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), a.Place.Compare(b.Place), cmp.Compare(a.Process, b.Process))
	})
	return out
}

// InnermostOwn is the innermost frame of the user's own on a stack.
func InnermostOwn(rec *timeline.Recording, node timeline.NodeID, own func(timeline.FrameID) bool) (timeline.FrameID, bool) {
	for node != timeline.RootNode && int(node) < len(rec.Nodes) {
		n := rec.Nodes[node]
		if int(n.Frame) < len(rec.Frames) && rec.Frames[n.Frame].Line > 0 && own(n.Frame) {
			return n.Frame, true
		}
		if n.Parent >= node { // a damaged file: parents come first
			break
		}
		node = n.Parent
	}
	return 0, false
}

// sum takes in when tasks began and ceased to wait. Windows that touch are one stretch.
func (a *AwaitLine) sum(changes []change) {
	slices.SortFunc(changes, func(x, y change) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(y.windows, x.windows)) // begins first
	})
	windows, most, begun, from := 0, 0, 0, timeline.Nanos(0)
	for i, c := range changes {
		if windows == 0 {
			from = c.at
		}
		windows, most, begun = windows+c.windows, most+c.most, begun+c.begun
		if i+1 == len(changes) || changes[i+1].at > c.at { // all that changed then
			a.Most = max(a.Most, most)
			a.Changes = append(a.Changes, TasksAtOnce{c.at, most})
			if most == 1 && i+1 < len(changes) {
				a.Alone = append(a.Alone, timeline.Between(c.at, changes[i+1].at))
				a.Begun += begun
			}
			begun = 0
		}
		if windows == 0 && c.at > from {
			a.Some += c.at - from
			a.Where = append(a.Where, timeline.Between(from, c.at))
		}
	}
	a.Alone = timeline.Joined(a.Alone)
}
