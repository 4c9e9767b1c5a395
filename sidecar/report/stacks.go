package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

func itoa(n int) string { return strconv.Itoa(n) }

// tree is the recording's stack tree with what its frames are.
type tree struct {
	rec   *timeline.Recording
	names *names
	kinds []Kind
	paths [][]timeline.FrameID // by node, root first; filled on demand
	known []bool
}

func newTree(rec *timeline.Recording, names *names) *tree {
	t := &tree{
		rec: rec, names: names,
		kinds: make([]Kind, len(rec.Frames)),
		paths: make([][]timeline.FrameID, len(rec.Nodes)),
		known: make([]bool, len(rec.Nodes)),
	}
	for i, f := range rec.Frames {
		t.kinds[i] = names.kind(f)
	}
	return t
}

// path returns the frames of a stack, outermost first, without those of the import
// system: what it runs are modules, which are called "import scipy.stats".
func (t *tree) path(n timeline.NodeID) []timeline.FrameID {
	if int(n) >= len(t.paths) {
		return nil
	}
	if !t.known[n] {
		var frames []timeline.FrameID
		for at := n; at != timeline.RootNode; at = t.rec.Nodes[at].Parent {
			if frame := t.rec.Nodes[at].Frame; !strings.HasPrefix(t.rec.Frames[frame].File, "<frozen importlib") {
				frames = append(frames, frame)
			}
		}
		slices.Reverse(frames)
		t.paths[n], t.known[n] = frames, true
	}
	return t.paths[n]
}

// compact writes the stacks that the given threads' spans use, and only those.
type compact struct {
	tree   *tree
	out    *Stacks
	frames map[timeline.FrameID]int
	nodes  map[Node]int
	byNode map[timeline.NodeID]int
}

func newCompact(t *tree) *compact {
	return &compact{
		tree: t,
		out: &Stacks{
			Frames: []Frame{},
			Nodes:  []Node{{}},
			Spans: Spans{Thread: []int{}, StartS: []float64{}, EndS: []float64{}, Node: []int{},
				State: []string{}, Truncated: []bool{}},
		},
		frames: make(map[timeline.FrameID]int),
		nodes:  make(map[Node]int),
		byNode: map[timeline.NodeID]int{timeline.RootNode: 0},
	}
}

func (c *compact) node(n timeline.NodeID) int {
	if i, ok := c.byNode[n]; ok {
		return i
	}
	at := 0
	for _, id := range c.tree.path(n) {
		key := Node{Parent: at, Frame: c.frame(id)}
		i, ok := c.nodes[key]
		if !ok {
			i = len(c.out.Nodes)
			c.out.Nodes = append(c.out.Nodes, key)
			c.nodes[key] = i
		}
		at = i
	}
	c.byNode[n] = at
	return at
}

func (c *compact) frame(id timeline.FrameID) int {
	if i, ok := c.frames[id]; ok {
		return i
	}
	f := c.tree.rec.Frames[id]
	i := len(c.out.Frames)
	c.out.Frames = append(c.out.Frames, Frame{
		Function:  c.tree.names.function(f),
		File:      c.tree.names.file(f.File),
		Line:      f.Line,
		FirstLine: f.FirstLine,
		Kind:      c.tree.kinds[id],
	})
	c.frames[id] = i
	return i
}

// thread appends one thread's spans; neighbours that look the same after the
// cut are joined.
func (c *compact) thread(index int, spans []timeline.Span) {
	s := &c.out.Spans
	first := len(s.Thread)
	for _, sp := range spans {
		node, state := c.node(sp.Node), sp.State.String()
		start, end := sp.Start.Seconds(), sp.End.Seconds()
		if n := len(s.Thread); n > first && s.Node[n-1] == node && s.State[n-1] == state &&
			s.Truncated[n-1] == sp.Truncated && s.EndS[n-1] == start {
			s.EndS[n-1] = end
			continue
		}
		s.Thread = append(s.Thread, index)
		s.StartS = append(s.StartS, start)
		s.EndS = append(s.EndS, end)
		s.Node = append(s.Node, node)
		s.State = append(s.State, state)
		s.Truncated = append(s.Truncated, sp.Truncated)
	}
}

// idle tells the states in which a thread does nothing that anybody knows of.
func idle(s timeline.State) bool {
	return s == timeline.StateWaiting || s == timeline.StateOff || s == timeline.StateUnknown
}

// threadOrder sorts the lanes: the cell's thread, the main thread, then the
// busiest.
func threadOrder(threads []timeline.Thread) []int {
	order := make([]int, len(threads))
	busy := make([]timeline.Nanos, len(threads))
	for i, t := range threads {
		order[i] = i
		for _, s := range t.Spans {
			if !idle(s.State) {
				busy[i] += s.End - s.Start
			}
		}
	}
	rank := func(i int) int {
		switch {
		case threads[i].RunsCell:
			return 0
		case threads[i].Main:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(busy[b], busy[a]), cmp.Compare(threads[a].NativeID, threads[b].NativeID))
	})
	return order
}
