package timeline

import (
	"math"
	"slices"
	"time"
)

// Slice returns the part of a recording between two times, with its own zero:
// the report of a cell that ran inside another's recording. Frames and Nodes
// are shared with r.
func (r *Recording) Slice(from, to Nanos) *Recording {
	from, to = max(from, 0), min(to, r.Duration)
	out := *r
	out.Origin += int64(from)
	out.StartedAt = r.StartedAt.Add(time.Duration(from))
	out.Duration = max(to-from, 0)
	index := out.sliceProcesses(r.Processes, from, to)
	place := func(process int) int { // of what has something to show
		if process < len(index) {
			return max(index[process], 0)
		}
		return process
	}
	out.Tracks = cutTracks(r.Tracks, from, to, place)
	threads := out.sliceThreads(r.Threads, from, to, place)
	kept := func(index []int) func(int) int {
		return func(i int) int {
			if i < 0 || i >= len(index) {
				return -1
			}
			return index[i]
		}
	}
	out.Subject, out.Pools = r.Subject.slice(kept(index), kept(threads)), slicePools(r.Pools, kept(index))
	out.Objects = renumbered(r.Objects, kept(threads))
	out.GPUs = cutGPUs(r.GPUs, from, to)
	out.Gaps = cutGaps(r.Gaps, from, to)
	out.Awaits = cutAwaits(r.Awaits, from, to, place)
	out.Growth = cutGrowth(r.Growth, from, to, place)
	out.Work = cutWork(r.Work, from, to)
	out.Loaders, out.Batches = cutLoaders(r.Loaders, place), cutReadings(r.Batches, from, to, (*LoaderReading).at)
	out.Queues = cutReadings(r.Queues, from, to, (*QueueReading).at)
	for i := range r.Processes {
		if i < len(index) && index[i] >= 0 {
			m := &out.Processes[index[i]].Memory
			m.Growth = m.Growth.slice(r.Growth, i, from, to)
		}
	}
	out.Sampling.cut(from, to)
	out.Marks = cutMarks(r.Marks, from, to, place)
	return &out
}

func cutTracks(list []Track, from, to Nanos, place func(int) int) (out []Track) {
	for _, t := range list {
		t.Points = cutPoints(t.Points, from, to)
		t.Peak = peak(t.Points)
		t.Process = place(t.Process)
		if len(t.Points) > 0 || t.Ended != "" {
			out = append(out, t)
		}
	}
	return out
}

// sliceThreads keeps those of which something is known between two times, and shows for each its new index, -1 for
// those left out.
func (r *Recording) sliceThreads(all []Thread, from, to Nanos, place func(int) int) (index []int) {
	r.Threads, index = nil, make([]int, len(all))
	for i, t := range all {
		t.Spans = cut(t.Spans, from, to)
		t.Process = place(t.Process)
		if index[i] = -1; len(t.Spans) > 0 {
			index[i] = len(r.Threads)
			r.Threads = append(r.Threads, t)
		}
	}
	return index
}

// cutGPUs leaves out losses after the end, and errors before and after.
func cutGPUs(list []GPU, from, to Nanos) []GPU {
	out := slices.Clone(list)
	for i := range out {
		if g := &out[i]; g.Lost > to {
			g.Lost = 0
		} else if g.Lost > 0 {
			g.Lost = max(g.Lost-from, 1)
		}
		var xids []Xid
		for _, x := range out[i].Xids {
			if x.At >= from && x.At <= to {
				xids = append(xids, Xid{x.At - from, x.Code})
			}
		}
		out[i].Xids = xids
	}
	return out
}

func cutMarks(list []Mark, from, to Nanos, place func(int) int) (out []Mark) {
	for _, m := range list {
		if m.End > from && m.Start < to {
			m.Start, m.End = max(m.Start, from)-from, min(m.End, to)-from
			m.Process = place(m.Process)
			out = append(out, m)
		}
	}
	return out
}

// cut makes the intervals those between two times.
func (s *Sampling) cut(from, to Nanos) {
	var changes []IntervalChange
	for _, c := range s.Changes {
		switch {
		case c.From <= from:
			s.Interval = c.Interval
		case c.From < to:
			changes = append(changes, IntervalChange{c.From - from, c.Interval})
		}
	}
	s.Changes = changes
}

// cutGaps also ends the gaps that last, at to.
func cutGaps(gaps []Gap, from, to Nanos) []Gap {
	var out []Gap
	for _, g := range gaps {
		if g.End == openEnd {
			g.End = to
		}
		g.Start, g.End = max(g.Start, from)-from, min(g.End, to)-from
		if g.Start < g.End {
			out = append(out, g)
		}
	}
	return out
}

// sliceProcesses keeps those that lived between two times, the target in any case, and
// shows for each its new index, -1 for those left out.
func (r *Recording) sliceProcesses(all []Process, from, to Nanos) (index []int) {
	r.Processes, index = nil, make([]int, len(all))
	for i, p := range all {
		if index[i] = -1; i > 0 && (p.Start >= to || p.End != 0 && p.End <= from) {
			continue
		}
		p.Start -= from
		if p.End != 0 {
			p.End = max(min(p.End, to)-from, 1)
		}
		for _, at := range []*Nanos{&p.Stacks.Last, &p.Stacks.Gone} {
			if *at != 0 {
				*at = max(min(*at, to)-from, 1)
			}
		}
		index[i] = len(r.Processes)
		r.Processes = append(r.Processes, p)
	}
	for i := range r.Processes {
		if p := &r.Processes[i]; p.ParentIndex >= 0 && p.ParentIndex < len(index) {
			p.ParentIndex = index[p.ParentIndex]
		}
	}
	return index
}

func cut(spans []Span, from, to Nanos) []Span {
	var out []Span
	for _, s := range spans {
		s.Start, s.End = max(s.Start, from)-from, min(s.End, to)-from
		if s.Start < s.End {
			out = append(out, s)
		}
	}
	return out
}

// cutPoints keeps a rate's window that reaches over an edge, cut to the edge, and
// of a gauge also the nearest readings outside, moved to the edges: the last
// figures are read a moment after the cell's end.
func cutPoints(points []Point, from, to Nanos) []Point {
	var out []Point
	for i, p := range points {
		if gauge := p.From == p.At; gauge {
			staleAtStart := p.At < from && (i+1 == len(points) || points[i+1].At <= from)
			lateAtEnd := p.At > to && i > 0 && points[i-1].At >= to
			if !staleAtStart && !lateAtEnd {
				at := min(max(p.At, from), to) - from
				out = append(out, Point{From: at, At: at, Value: p.Value})
			}
			continue
		}
		p.From, p.At = max(p.From, from)-from, min(p.At, to)-from
		if p.From < p.At {
			out = append(out, p)
		}
	}
	return out
}

func peak(points []Point) float64 {
	top := math.NaN()
	for _, p := range points {
		if !math.IsNaN(p.Value) && !(p.Value <= top) {
			top = p.Value
		}
	}
	return top
}
