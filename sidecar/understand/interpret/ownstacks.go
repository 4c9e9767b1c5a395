package interpret

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// withOwnStacks returns the recording in which the stacks of workers begin with what the worker ran.
// A forked process has its owner's stack below its own, and a spawned one the line that starts it: neither is
// what it spends its time with.
func withOwnStacks(rec *timeline.Recording) *timeline.Recording {
	begins := beginnings(rec)
	if begins == nil {
		return rec
	}
	out := *rec
	out.Nodes = slices.Clone(rec.Nodes)
	c := &cutter{rec: &out, begins: begins, known: [2]map[timeline.NodeID]timeline.NodeID{{}, {}}, added: addStacks(&out)}
	out.Threads = slices.Clone(rec.Threads)
	fork := c.targetIsFork()
	for i := range out.Threads {
		t := &out.Threads[i]
		t.Spans = c.spans(t.Spans, t.Process > 0 || fork)
	}
	return &out
}

// targetIsFork reports whether the target is a worker itself, as one that was attached to: whatever its main thread did
// was within the call by which its owner has forked it.
func (c *cutter) targetIsFork() bool {
	seen := false
	for i := range c.rec.Threads {
		t := &c.rec.Threads[i]
		if !t.Main || t.Process > 0 || c.rec.Target.Cell != nil {
			continue
		}
		for _, s := range t.Spans {
			if s.Node == timeline.RootNode {
				continue
			}
			if seen = true; !c.inFork(s.Node) {
				return false
			}
		}
	}
	return seen
}

// inFork reports whether a stack has a frame that forks, with what it called.
func (c *cutter) inFork(node timeline.NodeID) bool {
	for n, leaf := node, true; n != timeline.RootNode && int(n) < len(c.rec.Nodes); n, leaf = c.rec.Nodes[n].Parent, false {
		at := c.rec.Nodes[n]
		if int(at.Frame) >= len(c.begins) || at.Parent >= n { // a damaged file
			return false
		}
		if !leaf && c.begins[at.Frame] == atFork {
			return true
		}
	}
	return false
}

// beginning is what a frame says of where a worker's own stack begins.
type beginning uint8

const (
	within beginning = iota
	atStart
	atFork // in a worker; in its owner it is a call as others are
)

// beginnings returns for each frame whether a worker's own stack begins with it; nil where none does.
func beginnings(rec *timeline.Recording) []beginning {
	files := origin.New(rec)
	var out []beginning
	for i, f := range rec.Frames {
		is := within
		switch means := files.Means(f); {
		case means&origin.StartsProcess != 0:
			is = atStart
		case means&origin.Forks != 0:
			is = atFork
		default:
			continue
		}
		if out == nil {
			out = make([]beginning, len(rec.Frames))
		}
		out[i] = is
	}
	return out
}

// cutter adds the stacks without what is below a worker's own.
type cutter struct {
	rec    *timeline.Recording
	begins []beginning                            // by FrameID
	known  [2]map[timeline.NodeID]timeline.NodeID // what a stack is without it, in the target and in what it started
	added  *addedStacks
}

// spans are a thread's with its own stacks; descends means that its process was started within the recording.
func (c *cutter) spans(spans []timeline.Span, descends bool) []timeline.Span {
	shared := true
	for i, s := range spans {
		node := c.own(s.Node, descends)
		if node == s.Node {
			continue
		}
		if shared {
			spans, shared = slices.Clone(spans), false
		}
		spans[i].Node = node
	}
	return spans
}

// own is a stack from the innermost frame on with which a worker's own begins.
func (c *cutter) own(node timeline.NodeID, descends bool) timeline.NodeID {
	known := c.known[0]
	if descends {
		known = c.known[1]
	}
	if cut, done := known[node]; done {
		return cut
	}
	var path []timeline.FrameID // leaf first, to where the worker's own begins
	begins := false
	for n := node; n != timeline.RootNode && int(n) < len(c.rec.Nodes) && !begins; n = c.rec.Nodes[n].Parent {
		at := c.rec.Nodes[n]
		if int(at.Frame) >= len(c.begins) || at.Parent >= n { // a damaged file
			break
		}
		path = append(path, at.Frame)
		begins = c.begins[at.Frame] == atStart || descends && c.begins[at.Frame] == atFork
	}
	cut := node
	if begins {
		cut = timeline.RootNode
		for _, frame := range slices.Backward(path) {
			cut = c.added.child(cut, frame)
		}
	}
	known[node] = cut
	return cut
}

// addedStacks are those that a recording had not before, each once.
type addedStacks struct {
	rec   *timeline.Recording // whose nodes are its own
	known map[timeline.Node]timeline.NodeID
}

func addStacks(rec *timeline.Recording) *addedStacks {
	return &addedStacks{rec: rec, known: make(map[timeline.Node]timeline.NodeID)}
}

func (s *addedStacks) child(parent timeline.NodeID, frame timeline.FrameID) timeline.NodeID {
	key := timeline.Node{Parent: parent, Frame: frame}
	node, known := s.known[key]
	if !known {
		node = timeline.NodeID(len(s.rec.Nodes))
		s.rec.Nodes = append(s.rec.Nodes, key)
		s.known[key] = node
	}
	return node
}
