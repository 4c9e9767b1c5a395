package report

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// tree is the recording's stack tree. Of its frames and nodes the document gets
// those that are asked for.
type tree struct {
	rec     *timeline.Recording
	codes   *codeBook
	imports []bool               // by frame: it is the import system's
	paths   [][]timeline.FrameID // by node, root first; filled on demand
	known   []bool

	frames frameBook
	nodes  nodeBook
}

func newTree(rec *timeline.Recording, codes *codeBook) *tree {
	imports := make([]bool, len(rec.Frames))
	for i, f := range rec.Frames {
		imports[i] = codes.names.origins.Means(f)&origin.Imports != 0
	}
	return &tree{
		rec: rec, codes: codes, imports: imports,
		paths:  make([][]timeline.FrameID, len(rec.Nodes)),
		known:  make([]bool, len(rec.Nodes)),
		frames: frameBook{out: Frames{Function: Column{}, Line: Column{}}, ids: make(map[frameKey]int64)},
		nodes: nodeBook{
			out: Nodes{Parent: Column{0}, Frame: Column{0}}, ids: make(map[nodeKey]int64),
			byNode: map[timeline.NodeID]int64{timeline.RootNode: 0},
		},
	}
}

type frameKey struct {
	function, line int
}

// frameBook is the frames of the document.
type frameBook struct {
	out Frames
	ids map[frameKey]int64
}

type nodeKey struct{ parent, frame int64 }

// nodeBook is the nodes of the document.
type nodeBook struct {
	out    Nodes
	ids    map[nodeKey]int64
	byNode map[timeline.NodeID]int64
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
			if frame := t.rec.Nodes[at].Frame; !t.imports[frame] {
				frames = append(frames, frame)
			}
		}
		slices.Reverse(frames)
		t.paths[n], t.known[n] = frames, true
	}
	return t.paths[n]
}

// node returns a stack's index in the document.
func (t *tree) node(n timeline.NodeID) int64 {
	if i, ok := t.nodes.byNode[n]; ok {
		return i
	}
	at := int64(0)
	for _, id := range t.path(n) {
		key := nodeKey{at, t.frame(id)}
		i, ok := t.nodes.ids[key]
		if !ok {
			i = int64(len(t.nodes.out.Parent))
			t.nodes.out.Parent = append(t.nodes.out.Parent, key.parent)
			t.nodes.out.Frame = append(t.nodes.out.Frame, key.frame)
			t.nodes.ids[key] = i
		}
		at = i
	}
	t.nodes.byNode[n] = at
	return at
}

func (t *tree) frame(id timeline.FrameID) int64 {
	key := frameKey{t.codes.functionOf(id), max(t.rec.Frames[id].Line, 0)}
	i, ok := t.frames.ids[key]
	if !ok {
		i = int64(len(t.frames.out.Function))
		t.frames.out.Function = append(t.frames.out.Function, int64(key.function))
		t.frames.out.Line = append(t.frames.out.Line, int64(key.line))
		t.frames.ids[key] = i
	}
	return i
}

// microseconds rounds an instant. Every boundary is rounded by itself, so that sums
// of lengths do not drift.
func microseconds(n timeline.Nanos) int64 { return (int64(n) + 500) / 1000 }

// spanWriter writes the histories of threads, one after the other.
type spanWriter struct {
	tree *tree
	out  Spans
}

func newSpanWriter(t *tree) *spanWriter {
	n := 0
	for _, th := range t.rec.Threads {
		n += len(th.Spans)
	}
	return &spanWriter{t, Spans{
		First: make(Column, 0, len(t.rec.Threads)+1), GapUS: make(Column, 0, n), LengthUS: make(Column, 0, n),
		Node: make(Column, 0, n), State: make(Column, 0, n), Incomplete: Column{},
	}}
}

// thread appends one thread's spans. Neighbours that look the same after import
// frames were left out are joined; one shorter than half a microsecond has no
// length and is left out.
func (w *spanWriter) thread(spans []timeline.Span) {
	s := &w.out
	first := len(s.Node)
	s.First = append(s.First, int64(first))
	end, cut := int64(0), false // of the span written last
	for _, sp := range spans {
		from, to := microseconds(sp.Start), microseconds(sp.End)
		if to <= from {
			continue
		}
		node, state := w.tree.node(sp.Node), int64(stateOf(sp.State))
		if n := len(s.Node); n > first && s.Node[n-1] == node && s.State[n-1] == state && cut == sp.Truncated && end == from {
			s.LengthUS[n-1] += to - from
			end = to
			continue
		}
		if cut = sp.Truncated; cut {
			s.Incomplete = append(s.Incomplete, int64(len(s.Node)))
		}
		s.GapUS, s.LengthUS = append(s.GapUS, from-end), append(s.LengthUS, to-from)
		s.Node, s.State = append(s.Node, node), append(s.State, state)
		end = to
	}
}

// spans closes the columns.
func (w *spanWriter) spans() Spans {
	w.out.First = append(w.out.First, int64(len(w.out.Node)))
	return w.out
}

// threadOrder sorts the lanes: the cell's thread, the target's main thread, its others,
// then those of other processes, of each kind the busiest first.
func (b *builder) threadOrder() []int {
	threads := b.rec.Threads
	order := make([]int, len(threads))
	busy := make([]timeline.Nanos, len(threads))
	for i, t := range threads {
		order[i] = i
		for _, s := range t.Spans {
			if !stateOf(s.State).Idle() {
				busy[i] += s.End - s.Start
			}
		}
	}
	rank := func(i int) int {
		t := &threads[i]
		switch {
		case i == b.about.Thread:
			return -1
		case slices.Contains(b.about.Runs, i):
			return 0
		case b.owner(t.Process, t.PID) != b.program:
			return 3
		case t.Main:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(busy[b], busy[a]), cmp.Compare(threads[a].NativeID, threads[b].NativeID))
	})
	return order
}
