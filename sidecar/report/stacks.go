package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

func itoa(n int) string { return strconv.Itoa(n) }

// tree is the recording's stack tree with the notebook's own frames cut off.
type tree struct {
	rec   *timeline.Recording
	names *names
	kinds []Kind
	// shown[n] is the first frame of node n's path that is shown: the length of
	// the cut prefix.
	paths [][]timeline.FrameID // root first, prefix cut off; filled on demand
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

// path returns the frames of a stack as they are shown, outermost first.
func (t *tree) path(n timeline.NodeID) []timeline.FrameID {
	if int(n) >= len(t.paths) {
		return nil
	}
	if !t.known[n] {
		var frames []timeline.FrameID
		for at := n; at != timeline.RootNode; at = t.rec.Nodes[at].Parent {
			frames = append(frames, t.rec.Nodes[at].Frame)
		}
		slices.Reverse(frames)
		t.paths[n], t.known[n] = frames[t.plumbing(frames):], true
	}
	return t.paths[n]
}

// plumbing is the number of outer frames that are not the user's: what the
// kernel runs above a cell, the event loop above a cell's tasks, and the
// machinery that starts a script.
func (t *tree) plumbing(frames []timeline.FrameID) int {
	if t.names.cell == "" {
		return t.scriptPlumbing(frames)
	}
	loop := 0
	for i, id := range frames {
		f := t.rec.Frames[id]
		if f.File == t.names.cell {
			return i
		}
		if strings.HasSuffix(f.Function, "_run_once") && strings.HasSuffix(f.File, "/base_events.py") {
			loop = i + 1
		}
		if i == 0 && !isKernel(f.File) {
			return 0 // a thread of the user's own
		}
	}
	n := loop
	for n < len(frames) && isKernel(t.rec.Frames[frames[n]].File) {
		if isOurs(t.rec.Frames[frames[n]].File) {
			return len(frames) // the extension at work around the cell
		}
		n++
	}
	return n
}

// internal tells the threads of the notebook's own machinery: all they ever ran,
// below what starts a thread, is the kernel's or ours.
func (t *tree) internal(th timeline.Thread) bool {
	if t.names.cell == "" || th.RunsCell || len(th.Spans) == 0 {
		return false
	}
	for _, s := range th.Spans {
		if !t.startsInKernel(s.Node) {
			return false
		}
	}
	return true
}

// startsInKernel tells whether the outermost frame of a stack, below those that
// start a thread, is of the kernel; the empty stack says nothing against it.
func (t *tree) startsInKernel(n timeline.NodeID) bool {
	outermost := timeline.NodeID(0)
	for at := n; at != timeline.RootNode; at = t.rec.Nodes[at].Parent {
		if f := t.rec.Frames[t.rec.Nodes[at].Frame]; !strings.HasSuffix(f.File, "/threading.py") || outermost == 0 {
			outermost = at
		}
	}
	return outermost == 0 || isKernel(t.rec.Frames[t.rec.Nodes[outermost].Frame].File)
}

func (t *tree) scriptPlumbing(frames []timeline.FrameID) int {
	n := 0
	for n < len(frames) && strings.HasPrefix(t.rec.Frames[frames[n]].File, "<frozen runpy>") {
		n++
	}
	return n
}

// isOurs tells the extension's files.
func isOurs(file string) bool { return strings.Contains(file, "/omni_perf/") }

// isKernel tells the files that run a cell without being the user's.
func isKernel(file string) bool {
	for _, part := range []string{"/ipykernel_launcher.py", "/ipykernel/", "/IPython/", "/traitlets/", "/tornado/",
		"<frozen runpy>", "/asyncio/", "/anyio/", "/bin/ipython", "/bin/jupyter"} {
		if strings.Contains(file, part) {
			return true
		}
	}
	return isOurs(file)
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
