package pystack

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// osThread is an operating system thread that has more than one thread state: it has been
// in subinterpreters. It is one thread of the recording, and is where the innermost of its
// states is. The stack of that one is shown above the stack that ran the interpreter.
type osThread struct {
	states []*thread
	outer  *thread // of the main interpreter, or of the one that was made first
	now    *thread // the state that it is in
}

// pair finds the states that belong to one operating system thread.
func (p *Process) pair() {
	interpreters := 0
	for _, g := range p.gils {
		interpreters += len(g.interpreters)
	}
	if interpreters < 2 {
		for _, t := range p.threads {
			t.os = nil
		}
		return
	}
	threads := make(map[int]*osThread)
	for _, g := range p.gils {
		for _, t := range g.threads {
			o := threads[t.nativeID]
			if o == nil {
				o = &osThread{outer: t, now: t}
				threads[t.nativeID] = o
			}
			o.states = append(o.states, t)
			if t.interp == p.mainInterp || o.outer.interp != p.mainInterp { // the list begins with what was made last
				o.outer = t
			}
		}
	}
	for _, o := range threads {
		if len(o.states) == 1 {
			o.states[0].os = nil
			continue
		}
		o.now = o.innermost()
		for _, t := range o.states {
			t.os = o
		}
	}
}

// innermost is the state that the thread is in: an interpreter that runs Python code was
// entered from the main one, and was left when it runs none any more. Of several it is in
// the one that moved last.
func (o *osThread) innermost() *thread {
	best := o.outer
	for _, t := range o.states {
		if t == o.outer || len(t.stack) == 0 || t.session.doubts >= maxDoubts {
			continue
		}
		if best == o.outer || t.session.movedAt > best.session.movedAt {
			best = t
		}
	}
	return best
}

// first is the state that an operating system thread had first.
func (t *thread) first() *thread {
	if t.os == nil {
		return t
	}
	return t.os.outer
}

// maxDoubts is how often the outer state may go on while another one runs code and does not.
const maxDoubts = 3

// doubt counts how often outer went on while t was in the midst of running code, so that
// it cannot be the same thread's: up to 3.12 the state of an interpreter has the id of the
// thread that made the interpreter, whichever runs it. What runs it shows the call.
func (t *thread) doubt(outer *thread) {
	ts := &t.session
	switch moved := outer.session.movedAt; {
	case len(t.stack) == 0:
		ts.doubts = 0
	case moved > ts.movedAt && moved != ts.doubtedAt:
		ts.doubts++
		ts.doubtedAt = moved
	}
}

// readStates reads the other states of t's thread that share its GIL: 3.11 goes from one to
// another without handing it over.
func (s *session) readStates(t *thread, g *gilGroup) error {
	if t == nil || t.os == nil {
		return nil
	}
	for _, other := range t.os.states {
		if other.session.readAt == s.at || !slices.Contains(g.interpreters, other.interp) {
			continue
		}
		if err := s.read(other, g, false); err != nil {
			return err
		}
	}
	return nil
}

// runs is the thread that computes when a state has the GIL: its operating system thread may
// have gone on in another state.
func (g *gilGroup) runs() *thread {
	h := g.holder
	if h != nil && h.os != nil && slices.Contains(g.interpreters, h.os.now.interp) {
		return h.os.now
	}
	return h
}

// isElsewhere reports whether t's operating system thread is in another of its states.
func (t *thread) isElsewhere() bool { return t.os != nil && t.os.now != t }

// known returns the state by which the recording knows t's operating system thread; nil if
// it does not.
func (p *Process) known(t *thread) *thread {
	for _, g := range p.gils {
		if len(p.gils) == 1 && len(g.interpreters) == 1 {
			return nil
		}
		for _, other := range g.threads {
			if other != t && other.nativeID == t.nativeID && (other.session.known || other.session.excluded) {
				return other
			}
		}
	}
	return nil
}

// join has t go on in the lane of another state of its operating system thread.
func (s *session) join(t, other *thread) bool {
	o := &other.session
	o.shared, t.tid = true, other.tid
	t.session = threadSession{known: o.known, excluded: o.excluded, leads: o.leads, id: o.id, shared: true,
		state: timeline.StateUnknown, ran: true, waitsAt: -1, cpuAtStart: o.cpuAtStart, cpuBefore: o.cpuBefore,
		counted: o.counted, cpuAt: o.cpuAt, movedAt: t.session.movedAt}
	return o.known
}

// enter finds the state that t's thread is in, after t was read.
func (s *session) enter(t *thread) {
	if t.os == nil {
		return
	}
	t.doubt(t.os.outer)
	if now := t.os.innermost(); now != t.os.now {
		t.os.now, now.session.probeAt = now, 0
	}
}

// takeLane has t report to a lane that other states have, too; its last report says nothing
// of what the lane shows where another has reported since.
func (s *session) takeLane(t *thread) {
	before := s.lanes[t.session.id]
	if before == t {
		return
	}
	if before != nil && before.session.known {
		s.setState(before, call{state: timeline.StateUnknown})
	}
	s.lanes[t.session.id], t.session.reported = t, false
}

// leaveLane ends a state of a thread that goes on; false if it was the thread's only one.
func (s *session) leaveLane(t *thread) bool {
	other := s.p.known(t)
	if !t.session.known || other == nil {
		return false
	}
	s.setState(t, call{state: timeline.StateUnknown})
	if s.lanes[t.session.id] == t {
		delete(s.lanes, t.session.id)
	}
	t.session = threadSession{}
	if other.os != nil {
		other = other.os.now
	}
	other.session.probeAt = 0
	return true
}

// base is the node that t's stack begins above: where its operating system thread runs an
// interpreter, what runs it.
func (s *session) base(t *thread) timeline.NodeID {
	base := timeline.RootNode
	if outer := t.first(); outer != t && len(outer.stack) > 0 {
		base = outer.session.node
	}
	if base != t.session.base {
		t.forgetNodes(0)
		t.session.base, t.session.cut = base, cut{}
	}
	return base
}

// newInterpreter reports whether an interpreter was made or has ended since the last call.
// Where each has its own GIL, nothing else shows it.
func (s *session) newInterpreter() bool {
	head, err := cpython.ReadWord(s.p.mem, s.p.place.addr+s.p.l.Runtime.InterpretersHead)
	before := s.head
	if s.head = head; err != nil || before == 0 {
		return false
	}
	return head != before
}
