package pystack

import "slices"

// While all of gevent's greenlets wait, its hub has the thread: a greenlet that runs the event
// loop and calls nothing else. What the thread's stack shows then is the hub's. The program
// waits where its main greenlet was left, the one that the thread began in, so that its stack is
// shown in place of the hub's: what it calls is sleep, join or a lock of gevent's. What the
// other greenlets wait for their stacks show while they run.
//
// Where a greenlet is of a release whose layout is not recognised, the hub's stack stays.

// hub is the frame of the event loop that a thread is in by gevent's hub; nil where it is not.
func (t *thread) hub() *frame {
	if n := len(t.stack); n > 0 && t.stack[n-1].object.role == roleHub {
		return &t.stack[n-1]
	}
	return nil
}

// followGreenlet reads the frames of the main greenlet of a hub's thread.
func (r *reader) followGreenlet(a *awaiting, hub *frame) bool {
	self, err := r.local(hub, "self")
	if err != nil || self == 0 {
		return false
	}
	if a.hub != self {
		if a.main, err = r.objects.MainGreenlet(self); err != nil {
			return false
		}
		a.hub = self
	}
	return r.follow(a, a.main, (*reader).readGreenlet)
}

// readGreenlet reads the frames of the suspended greenlet a.root, innermost first.
func (r *reader) readGreenlet(a *awaiting) bool {
	a.frames, a.proofs, a.bytes = a.frames[:0], a.proofs[:0], a.bytes[:0]
	s, ok, err := r.objects.SuspendedGreenlet(a.root)
	if err != nil || !ok {
		return false
	}
	for next, steps := s.Frame, 0; next != 0; steps++ {
		link, err := r.objects.Linked(next)
		if err != nil || steps == maxAwaits {
			return false
		}
		if !link.Shim {
			f := frame{addr: next, code: link.Code, instr: link.Instr}
			if f.object, err = r.codes.get(f.code); err != nil {
				return false
			}
			if f.index, ok = f.object.Instruction(r.l, f.instr); !ok {
				return false
			}
			if f.index >= f.object.FirstTraceable {
				a.frames, a.proofs = append(a.frames, f), append(a.proofs, link.Proof)
				a.bytes = append(a.bytes, link.Was...)
			}
		}
		next = link.Previous
	}
	a.rootFirst()
	a.leaveOutMiddle()
	a.proofs, a.bytes = append(a.proofs, s.Proof), append(a.bytes, s.Was...)
	return len(a.frames) > 0
}

// rootFirst reverses the frames, and their proofs, which are all as long.
func (a *awaiting) rootFirst() {
	slices.Reverse(a.frames)
	slices.Reverse(a.proofs)
	if len(a.proofs) == 0 {
		return
	}
	size := a.proofs[0].Len
	for low, high := 0, len(a.bytes)-size; low < high; low, high = low+size, high-size {
		for i := range size {
			a.bytes[low+i], a.bytes[high+i] = a.bytes[high+i], a.bytes[low+i]
		}
	}
}
