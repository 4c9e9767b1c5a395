package timeline

import (
	"cmp"
	"slices"
)

// Recent returns what Snapshot and Slice do of the time from an instant on, with the
// frames and stacks alone that were seen in it: what it costs goes with that time, not
// with the time before. The spans that are in progress are not on the grid of a recording
// that was thinned, so that the last stack of each thread is the one it has now. Notes,
// sources and peaks of the whole are left out.
func (b *Builder) Recent(from, at Nanos) *Recording {
	b.mu.Lock()
	defer b.mu.Unlock()
	from = min(max(from, 0), at)
	rec := b.rec
	rec.Origin += int64(from)
	rec.StartedAt = rec.StartedAt.Add(from.Duration())
	rec.Duration = at - from
	rec.Sampling.Changes = slices.Clone(b.rec.Sampling.Changes)
	rec.Sampling.Clamps = slices.Clone(b.rec.Sampling.Clamps)
	rec.Sampling.cut(from, at)
	rec.Resolution = max(b.grid.step.Duration(), rec.Sampling.Taken(rec.Duration))
	rec.Gaps = cutGaps(b.rec.Gaps, from, at)
	rec.GPUs = slices.Clone(b.rec.GPUs)
	rec.Notes, rec.Sources = nil, nil
	index := rec.sliceProcesses(b.rec.Processes, from, at)
	place := func(process int) int { // of what has something to show
		if process < len(index) {
			return max(index[process], 0)
		}
		return process
	}
	rec.Marks = nil
	for _, m := range b.rec.Marks {
		if m.End > from && m.Start < at {
			m.Start, m.End, m.Process = max(m.Start, from)-from, min(m.End, at)-from, place(m.Process)
			rec.Marks = append(rec.Marks, m)
		}
	}
	tree := subtree{of: b.stacks, nodes: []Node{{}}, nodeIDs: map[NodeID]NodeID{RootNode: RootNode}, frameIDs: make(map[FrameID]FrameID)}
	rec.Threads = nil
	for i, t := range b.threads {
		t.Spans = b.lists[i].recent(from, at)
		if len(t.Spans) == 0 {
			continue
		}
		for j := range t.Spans {
			t.Spans[j].Node = tree.node(t.Spans[j].Node)
		}
		t.Process = place(t.Process)
		rec.Threads = append(rec.Threads, t)
	}
	rec.Frames, rec.Nodes = tree.frames, tree.nodes
	rec.Tracks = nil
	for _, t := range b.tracks {
		track := t.Track
		track.Process = place(track.Process)
		track.Points = recentPoints(t.Points, from, at)
		track.Peak = peak(track.Points)
		if len(track.Points) > 0 || track.Ended != "" {
			rec.Tracks = append(rec.Tracks, track)
		}
	}
	return &rec
}

// recent are the thread's spans since an instant, in its time.
func (l *spanList) recent(from, at Nanos) []Span {
	first, _ := slices.BinarySearchFunc(l.closed, from, func(s Span, t Nanos) int { return cmp.Compare(s.End, t+1) })
	spans := append(cut(l.closed[first:], from, at), cut(l.window.sofar(), from, at)...)
	if open := *l; open.alive {
		if last, ok := open.end(at); ok {
			if n := len(spans); n > 0 {
				last.Start = max(last.Start, spans[n-1].End+from)
			}
			spans = append(spans, cut([]Span{last}, from, at)...)
		}
	}
	return spans
}

// recentPoints are those since an instant, in its time; of a gauge also the value that it had then.
func recentPoints(points []Point, from, at Nanos) []Point {
	first, _ := slices.BinarySearchFunc(points, from, func(p Point, t Nanos) int { return cmp.Compare(p.At, t) })
	return cutPoints(points[max(first-1, 0):], from, at)
}

// subtree is the part of a tree of stacks that was asked for.
type subtree struct {
	of       *stacks
	frames   []Frame
	nodes    []Node
	frameIDs map[FrameID]FrameID
	nodeIDs  map[NodeID]NodeID
}

// node takes a stack over, its callers first.
func (s *subtree) node(old NodeID) NodeID {
	if id, ok := s.nodeIDs[old]; ok {
		return id
	}
	n := s.of.nodes[old]
	parent := s.node(n.Parent)
	frame, ok := s.frameIDs[n.Frame]
	if !ok {
		frame = FrameID(len(s.frames))
		s.frames = append(s.frames, s.of.frames[n.Frame])
		s.frameIDs[n.Frame] = frame
	}
	id := NodeID(len(s.nodes))
	s.nodes = append(s.nodes, Node{Parent: parent, Frame: frame})
	s.nodeIDs[old] = id
	return id
}
