package criticalpath

import "slices"

// Change is what is different in a replay. The zero value is the recording.
type Change struct {
	// Less is by how much each activity is shorter, ns; nil: by nothing.
	Less []int64
	// Without are the delays that are none.
	Without [Delays]bool
	// Usual is that every delay is the one that is usual of its kind, if it was longer.
	Usual bool
}

// Replay is how long it takes from the begin until the last activity has ended, ns, if every activity starts as soon as what it waits
// for allows.
func (g *Graph) Replay(c Change) int64 {
	ends := make([]int64, len(g.Activities))
	latest := int64(0)
	for i := range g.Activities {
		start := int64(-1 << 62)
		for _, w := range g.of(i) {
			at, delay := int64(0), w.delay
			if w.on >= 0 {
				at = ends[w.on]
			}
			switch {
			case c.Without[w.kind]:
				delay = min(delay, 0)
			case c.Usual && w.edge >= launch:
				delay = min(delay, g.usual[w.edge])
			}
			start = max(start, at+delay)
		}
		length := g.Activities[i].Length()
		if c.Less != nil {
			length = max(0, length-c.Less[i])
		}
		ends[i] = max(start, 0) + length
		latest = max(latest, ends[i])
	}
	return latest
}

// Recorded is how long it took, ns.
func (g *Graph) Recorded() (length int64) {
	for i := range g.Activities {
		length = max(length, g.Activities[i].End-g.Start)
	}
	return length
}

// Stretch is a part of the critical path.
type Stretch struct {
	Start, End int64
	Activity   int32 // index into Graph.Activities; of a delay the one that was delayed
	Delay      Delay // NoDelay: the activity itself
}

// Path is the critical path, by time: from the begin to the end of the last activity without a gap. Each stretch is what the next one
// waited for longest.
func (g *Graph) Path() []Stretch {
	if len(g.Activities) == 0 {
		return nil
	}
	at := 0
	for i := range g.Activities {
		if g.Activities[i].End >= g.Activities[at].End {
			at = i
		}
	}
	var path []Stretch
	until := g.Activities[at].End
	add := func(from int64, activity int, delay Delay) {
		if from < until {
			path = append(path, Stretch{from, until, int32(activity), delay})
			until = from
		}
	}
	for i := int32(at); i >= 0; {
		a := &g.Activities[i]
		last := g.last(int(i))
		from := g.Start
		if last.on >= 0 {
			from = g.Activities[last.on].End
		}
		add(max(a.Start, from), int(i), NoDelay)
		add(from, int(i), last.kind)
		i = last.on
	}
	slices.Reverse(path)
	return path
}

// last is what an activity waited for longest.
func (g *Graph) last(i int) wait {
	for _, w := range g.of(i) {
		if w.kind != NoDelay {
			return w
		}
	}
	return g.of(i)[0]
}
