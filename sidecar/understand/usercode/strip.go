package usercode

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Strip returns the recording of the program alone. What it does not change it shares with rec.
func Strip(rec *timeline.Recording) *timeline.Recording {
	s := newStripper(rec)
	positions := make([]position, len(rec.Nodes))
	for i := 1; i < len(rec.Nodes); i++ {
		n := rec.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(rec.Frames) { // a damaged file
			continue
		}
		positions[i] = s.step(positions[n.Parent], n.Frame)
	}
	out := *rec
	out.Frames, out.Nodes = s.frames, s.nodes
	out.Threads = make([]timeline.Thread, 0, len(rec.Threads))
	from, to := timeline.Nanos(0), rec.Duration
	var runsCell timeline.Thread
	for _, t := range rec.Threads {
		if s.isOurs(t, positions) {
			continue
		}
		if t.RunsCell && s.texts.recorded != "" {
			from, to = bounds(t, positions, rec.Duration)
			runsCell = t
		}
		out.Threads = append(out.Threads, s.thread(t, positions))
	}
	out.Awaits = awaits(rec.Awaits, positions)
	out.Growth = growth(rec.Growth, positions)
	out.Sources = s.sources()
	if c := rec.Target.Cell; c != nil {
		cell := *c
		if t := s.texts.cell.region().text; t != s.texts.cell { // the body of a magic: its cell's lines are shown
			cell.Text = t.source.Text
		}
		cell.File = s.texts.cell.region().text.source.File
		out.Target.Cell = &cell
	}
	if from > 0 || to < rec.Duration {
		left := cut(&out, from, to)
		left.Traceback = inPhase(timeline.PhaseTraceback, runsCell, positions, to)
		left.Figures = inPhase(timeline.PhaseFigures, runsCell, positions, to)
		return left
	}
	return &out
}

// stripper makes the new tree.
type stripper struct {
	texts    *texts
	meanings []meaning // by old FrameID
	frames   []timeline.Frame
	nodes    []timeline.Node
	frameIDs map[timeline.Frame]timeline.FrameID
	nodeIDs  map[timeline.Node]timeline.NodeID
}

func newStripper(rec *timeline.Recording) *stripper {
	s := &stripper{
		texts: newTexts(rec), meanings: make([]meaning, len(rec.Frames)), nodes: make([]timeline.Node, 1, max(len(rec.Nodes), 1)),
		frameIDs: make(map[timeline.Frame]timeline.FrameID), nodeIDs: make(map[timeline.Node]timeline.NodeID),
	}
	files, outdated := origin.New(rec), origin.Outdated(rec)
	for i, f := range rec.Frames {
		if slices.Contains(outdated[f.File], timeline.FunctionStart{Function: f.Function, FirstLine: f.FirstLine}) {
			f.Line, f.FirstLine = 0, 0
		}
		s.meanings[i] = meaningOf(f, files.Of(f.File).Owner, files.Means(f), s.texts)
	}
	return s
}

// frame finds a frame's id in the new tree.
func (s *stripper) frame(f timeline.Frame) timeline.FrameID {
	id, ok := s.frameIDs[f]
	if !ok {
		id = timeline.FrameID(len(s.frames))
		s.frames = append(s.frames, f)
		s.frameIDs[f] = id
	}
	return id
}

// phase is the node of a phase below another.
func (s *stripper) phase(parent timeline.NodeID, phase timeline.Phase) timeline.NodeID {
	return s.node(parent, s.frame(timeline.Frame{Phase: phase}))
}

// child is the node of a frame, as it is shown, below another.
func (s *stripper) child(parent timeline.NodeID, m *meaning) timeline.NodeID {
	if !m.interned {
		m.id, m.interned = s.frame(m.shown), true
	}
	return s.node(parent, m.id)
}

func (s *stripper) node(parent timeline.NodeID, frame timeline.FrameID) timeline.NodeID {
	key := timeline.Node{Parent: parent, Frame: frame}
	node, ok := s.nodeIDs[key]
	if !ok {
		node = timeline.NodeID(len(s.nodes))
		s.nodes = append(s.nodes, key)
		s.nodeIDs[key] = node
	}
	return node
}

// thread is a thread with its history in the new tree; neighbours that look the same now are joined.
func (s *stripper) thread(t timeline.Thread, positions []position) timeline.Thread {
	t.Internal = s.texts.recorded != "" && !t.RunsCell && s.isKernels(t, positions)
	spans := make([]timeline.Span, 0, len(t.Spans))
	for _, span := range t.Spans {
		span.Node = at(positions, span.Node).shown
		if n := len(spans); n > 0 && span.GoesOn(&spans[n-1]) {
			spans[n-1].End = span.End
			continue
		}
		spans = append(spans, span)
	}
	t.Spans = spans
	return t
}

// awaits are the stacks of coroutines in the new tree, without those that are the notebook's own.
func awaits(all []timeline.Await, positions []position) (out []timeline.Await) {
	for _, a := range all {
		if a.Node = at(positions, a.Node).shown; a.Node != timeline.RootNode {
			out = append(out, a)
		}
	}
	return out
}

// growth has its stacks in the new tree.
func growth(all []timeline.Growth, positions []position) []timeline.Growth {
	out := make([]timeline.Growth, len(all))
	for i, g := range all {
		g.Before, g.After = at(positions, g.Before).shown, at(positions, g.After).shown
		out[i] = g
	}
	return out
}

func at(positions []position, node timeline.NodeID) position {
	if int(node) < len(positions) {
		return positions[node]
	}
	return position{}
}

// isOurs recognises the threads of our extension: all they ever ran, below what starts a thread, is its code.
func (s *stripper) isOurs(t timeline.Thread, positions []position) bool {
	return startsIn(t, positions, func(p position) bool { return p.starts == ours })
}

// isKernels recognises the threads of the notebook's own machinery. A process that was forked has the
// stack of its owner below its own work, and so the kernel's.
func (s *stripper) isKernels(t timeline.Thread, positions []position) bool {
	return t.Process == 0 && startsIn(t, positions, func(p position) bool { return p.starts == ours || p.starts == kernel || p.starts == runner })
}

// startsIn reports whether all stacks of a thread do, but for those that have no frame below threading's.
func startsIn(t timeline.Thread, positions []position, where func(position) bool) bool {
	known := false
	for _, span := range t.Spans {
		p := at(positions, span.Node)
		if p.known && !where(p) {
			return false
		}
		known = known || p.known
	}
	return known
}

// bounds are the cell's own start and end in the history of the thread that runs it: from where our
// extension's call at its start has returned, to where an exception came out of it that was then
// formatted.
func bounds(t timeline.Thread, positions []position, duration timeline.Nanos) (from, to timeline.Nanos) {
	to = duration
	for _, span := range t.Spans {
		if at(positions, span.Node).mode != hidden {
			break
		}
		from = span.End
	}
	if from >= duration { // it was over before anything of it was seen
		return 0, duration
	}
	call := timeline.RootNode // the line of the magic that printed it and then had a little to do
	behind := timeline.Nanos(0)
	for _, span := range slices.Backward(t.Spans) {
		p := at(positions, span.Node)
		line, returns := p.returning(span.End - span.Start)
		switch {
		case p.phase == timeline.PhaseTraceback && (call == timeline.RootNode || call == p.after):
			to = max(span.Start, from)
		case returns && to == duration && (call == timeline.RootNode || call == line):
			call = line
		case p.mode == program && !p.inCell && to == duration && behind+span.End-span.Start <= ending:
			behind += span.End - span.Start
		case p.phase == timeline.PhaseTraceback, p.phase == timeline.PhaseNone && (p.inCell || p.mode == program || p.mode == called):
			return from, to
		}
	}
	return from, to
}

// ending is what the kernel calls of Python's own library at most when a cell is over, as to have its output sent: where
// nothing of ours is in it the recording ends when it says that it is idle.
const ending = timeline.Nanos(30e6)

// brief is what returning from a call takes at most, with all that is freed then.
const brief = timeline.Nanos(10e6)

// returning recognises stacks that may be all that follows on a magic's work, and the line it was called in:
// those of the magic itself, and for a moment those of the line.
func (p position) returning(length timeline.Nanos) (line timeline.NodeID, ok bool) {
	switch {
	case p.mode == magic:
		return p.after, true
	case p.mode == program && p.top:
		return p.shown, length < brief
	}
	return timeline.RootNode, false
}

// sources are the cells' texts under the names that the frames have now.
func (s *stripper) sources() []timeline.Source {
	out := make([]timeline.Source, 0, len(s.texts.all))
	for _, t := range s.texts.all {
		if t.within == nil {
			out = append(out, t.source)
		}
	}
	return out
}
