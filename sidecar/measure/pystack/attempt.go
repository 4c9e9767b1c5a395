package pystack

import "github.com/omni-perf/omni-perf/sidecar/measure/cpython"

// attempt is one try to make a thread's stack of the copies of one read: what came of
// it, and what was seen on the way.
type attempt struct {
	r *reader
	t *thread

	outcome verdict
	found   []frame // root first, as far as it is known
	certain int     // of them: on which the copies agree
	err     error   // of a read besides the copies: there is no target any more

	chain  []rawFrame // that the copies show, leaf first
	before bool       // it is of the copy before the thread state, not of that after it
	leaf   uint64     // the thread's frame, by its state
	// What changed under the read: the stack, with generators in it, one of which was
	// another in a copy.
	moved, generators, torn bool

	readsBefore uint64 // codes.reads when it began
}

// attempt decodes the copies, and corrects the plan where it was wrong.
func (r *reader) attempt(t *thread) *attempt {
	a := &r.last
	*a = attempt{r: r, t: t, chain: a.chain[:0], found: a.found[:0], readsBefore: r.codes.reads}
	r.compareWatched(t)
	a.outcome = a.make()
	return a
}

// root is what is known of where a thread's stack ends.
type root struct {
	chunk uint64 // the oldest of its data stack; 0 = it has none
	top   uint64 // datastack_top
	idle  bool   // nothing is on the data stack: it runs no Python code, or a generator only
}

func (a *attempt) make() verdict {
	r, t, l := a.r, a.t, a.r.l
	state := r.buf[r.thread : r.thread+l.Thread.Size]
	if cpython.Word(state, l.Thread.Interp) != t.interp || int(cpython.Word(state, l.Thread.NativeID)) != t.nativeID {
		return threadGone
	}
	top := cpython.Word(state, l.Thread.Top)
	if !r.chunksRight(t, cpython.Word(state, l.Thread.Chunk), top) {
		return planWrong
	}
	if !a.findLeaf(cpython.Word(state, l.Thread.Frame)) {
		return planWrong
	}
	a.noteSeen(cpython.Word(state, l.Thread.Frame), top)
	end := root{top: top}
	if n := len(t.plan.chunks); n > 0 {
		end.chunk = t.plan.chunks[n-1].addr
	}
	end.idle = end.chunk == 0 || top == end.chunk+cpython.RootFrame
	if a.leaf == 0 && end.idle {
		return stackWhole // runs no Python code
	}
	switch result, unknown := a.follow(end); {
	case result == walkUnknown && (r.learn(t, a.leaf) || r.learn(t, unknown)):
		return planWrong
	case result != walkRoot:
		return stackLost
	}
	if len(a.chain) == 0 && !end.idle {
		return stackLost // between two stacks, with nothing of either
	}
	return a.decode()
}

// findLeaf takes the leaf from the thread state's frame; false if the plan lacks the
// _PyCFrame that it lies behind.
func (a *attempt) findLeaf(frame uint64) bool {
	r, l := a.r, a.r.l
	a.leaf = frame
	if !l.CFrame.Is {
		return true
	}
	s, offset := r.find(frame, l.CFrame.Frame+cpython.WordSize)
	if s == nil {
		a.t.plan.addStack(frame, cframeSize)
		return false
	}
	a.leaf = r.word(s.at[0] + offset + l.CFrame.Frame)
	return true
}

// noteSeen keeps what shows cheaply that a thread has not moved on.
func (a *attempt) noteSeen(frame, top uint64) {
	r, l := a.r, a.r.l
	seen := place{frame: frame, top: top, leaf: a.leaf}
	if s, offset := r.find(a.leaf, l.Frame.Size); a.leaf != 0 && s != nil {
		at := s.use(false) + offset
		seen.code, seen.instr = r.word(at+l.Frame.Code), r.word(at+l.Frame.Instr)
	}
	a.t.seen = seen
}

// follow walks the chain of frames in the copy after the thread state, or where that
// shows no whole one in that before it.
func (a *attempt) follow(end root) (result walkEnd, unknown uint64) {
	result, unknown = a.walk(end, false)
	if result == walkRoot {
		return result, 0
	}
	before, also := a.walk(end, true)
	switch {
	case before == walkRoot:
		a.before = true
		return walkRoot, 0
	case result == walkUnknown:
		return walkUnknown, unknown
	}
	return before, also
}
