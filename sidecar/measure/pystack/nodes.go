package pystack

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Of a stack of more frames than keptWhole the outermost and the innermost are kept:
// each recursion goes its own way, and the tree of stacks is bounded.
const (
	keptWhole = 400
	keptEnd   = 150
)

// node interns a stack. Frames that are the same as in the last sample still
// carry their node.
func (s *session) node(t *thread) timeline.NodeID {
	stack, base := t.stack, s.base(t)
	gap := slices.IndexFunc(stack, func(f frame) bool { return f.elided })
	if gap < 0 && len(stack) <= keptWhole {
		if t.session.cut.high > 0 {
			t.forgetNodes(t.session.cut.high)
			t.session.cut = cut{}
		}
		return s.nodeAbove(base, stack)
	}
	low, high := min(keptEnd, len(stack)), max(len(stack)-keptEnd, 0)
	elided := high - low
	if gap >= 0 {
		last := gap // there may be one in the data stack and one among generators
		for i := gap + 1; i < len(stack); i++ {
			if stack[i].elided {
				last = i
			}
		}
		low, high = min(low, gap), max(high, last)
		elided = high - low + t.framesElided()
	}
	now := cut{below: s.nodeAbove(base, stack[:low]), high: high, amid: stack[min((low+high)/2, len(stack)-1)].object, elided: roundToDigit(elided)}
	if now.node = t.session.cut.node; now != t.session.cut {
		// From here on the frames stand elsewhere in the tree than at the last sample.
		t.forgetNodes(low)
		now.node = s.elision(now.below, stack[low:high], stack[high:], now.elided)
		t.session.cut = now
	}
	return s.nodeAbove(now.node, stack[high:])
}

// cut is where the middle of a stack is left out.
type cut struct {
	below  timeline.NodeID // the frames below it
	high   int             // how many of the stack's frames are not above it; 0: nothing is left out
	amid   *codeObject     // of a frame between
	elided int             // about how many that are
	node   timeline.NodeID // what stands for them
}

// forgetNodes has the frames from depth on interned anew.
func (t *thread) forgetNodes(depth int) {
	for i := depth; i < len(t.stack); i++ {
		t.stack[i].node = 0
	}
}

// nodeAbove interns frames above a stack.
func (s *session) nodeAbove(parent timeline.NodeID, frames []frame) timeline.NodeID {
	same := true
	for i := range frames {
		f := &frames[i]
		if same && f.node != 0 {
			parent = f.node
			continue
		}
		same = false
		f.node = s.child(parent, f, false)
		parent = f.node
	}
	return parent
}

// framesElided estimates how many frames of a deep recursion were not read.
func (t *thread) framesElided() int {
	sum := uint64(0)
	for i := range t.stack {
		sum += t.stack[i].object.FrameLen
	}
	return int(t.plan.elided()*uint64(len(t.stack))/max(sum, 1)) + t.plan.passed.frames
}

// elision interns what stands for the frames that are left out of a stack: the
// function that is the most frequent among those between, or above them, and how
// many there are.
func (s *session) elision(parent timeline.NodeID, between, above []frame, count int) timeline.NodeID {
	if len(between) == 0 {
		between = above[:min(len(above), keptEnd/2)]
	}
	counts := make(map[*codeObject]int)
	var most *codeObject
	for i := 0; i < len(between); i += 1 + len(between)/keptEnd {
		object := between[i].object
		if counts[object]++; most == nil || counts[object] > counts[most] {
			most = object
		}
	}
	if most == nil {
		return parent
	}
	return s.sink.Child(parent, s.sink.Frame(timeline.Frame{
		Function: most.Function, File: most.File, FirstLine: int(most.FirstLine), Elided: count}))
}

// roundToDigit rounds a count to the nearest that has one digit, and zeros.
func roundToDigit(count int) int {
	unit := 1
	for count/unit >= 10 {
		unit *= 10
	}
	return max((count+unit/2)/unit*unit, 1)
}

// below is the node of a stack's first frames.
func (s *session) below(t *thread, top int) timeline.NodeID {
	if node := t.stack[top-1].node; node != 0 {
		return node
	}
	return s.nodeAbove(s.base(t), t.stack[:top])
}

// awaitingNode interns the frames of what a loop waits for above the stack parent: of coroutines,
// which are suspended, or of a greenlet, whose stack is as while it runs.
func (s *session) awaitingNode(parent timeline.NodeID, a *awaiting, suspended bool) timeline.NodeID {
	frames := a.frames
	for i := range frames {
		if frames[i].elided {
			parent = s.elision(parent, nil, frames[i:], roundToDigit(a.elided))
		}
		parent = s.child(parent, &frames[i], suspended)
	}
	return parent
}

func (s *session) child(parent timeline.NodeID, f *frame, suspended bool) timeline.NodeID {
	key := nodeKey{parent, f.object, f.object.Line(f.index), suspended}
	node, ok := s.nodes[key]
	if !ok {
		node = s.sink.Child(parent, s.sink.Frame(timeline.Frame{
			Function: f.object.Function, File: f.object.File,
			Line: int(key.line), FirstLine: int(f.object.FirstLine), Suspended: suspended}))
		s.nodes[key] = node
	}
	return node
}
