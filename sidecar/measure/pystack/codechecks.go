package pystack

import (
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

const (
	// maxWatched bounds the code objects that are compared by the call that copies the
	// stack; further ones take a call of their own.
	maxWatched = 32
	// compareEvery is for how long a code object of a stack is trusted after it was
	// compared, however often the stack is read.
	compareEvery = 100 * time.Microsecond
	// calm is for how many attempts no code object must have been found to be another one, for a frame that is in its
	// place to prove what was read of its code: a program that makes code objects one after the other, in microseconds,
	// calls each in the same place.
	calm = 32
)

// codeChecks compares the code objects of a stack with what is known of them. Those of
// the last sample that are doubtful are read by the call that copies the stack, behind
// the copies.
type codeChecks struct {
	watching         []watched
	verified         []*codeObject // of them: those that are what they were
	recentlyVerified bool          // none is: they were compared a moment ago
	unverified       []int         // of an attempt's frames: those that take a read of their own …
	asked            []*codeObject // … and their code objects
	newcomers        []int         // and those whose code objects were read after the copies
	ranges           []Range       // that reads these, and its buffer
	buf              []byte
}

// watched is a code object of the last sample's stack that is read with the copies.
type watched struct {
	depth int    // in thread.stack
	at    uint64 // position in the buffer
}

// space is a buffer for a read of its own.
func (p *codeChecks) space(size int) []byte {
	if cap(p.buf) < size {
		p.buf = make([]byte, 2*size)
	}
	return p.buf[:size]
}

// watch adds to the ranges of a read what code objects of t's last stack are
// compared by.
func (r *reader) watch(t *thread) {
	p := &r.checks
	p.watching, p.verified = p.watching[:0], p.verified[:0]
	if p.recentlyVerified = !t.unsure && !r.codes.counts && r.times.end.Sub(t.compared) < compareEvery; p.recentlyVerified {
		return
	}
	turn := -1
	if n := uint64(len(t.stack)); n > 0 && !r.codes.counts {
		turn = int(t.plan.sample % n)
	}
	pos := len(r.buf)
	for depth := range t.stack {
		object := t.stack[depth].object
		if depth != turn && !t.unsure && !r.codes.doubtful(object) {
			continue
		}
		if p.watches(t, object) {
			continue
		}
		if len(p.watching) == maxWatched {
			break
		}
		p.watching = append(p.watching, watched{depth, uint64(pos)})
		r.ranges = append(r.ranges, object.Identity.Proof()...)
		pos += object.Identity.Size
	}
	r.resize(uint64(pos))
}

// isVerified reports whether a frame's code object was compared with the copies.
func (r *reader) isVerified(f *frame) bool {
	return f.verified == r.number || slices.Contains(r.checks.verified, f.object)
}

// watches reports whether a code object is watched already: recursions have many frames of one.
func (p *codeChecks) watches(t *thread, object *codeObject) bool {
	return slices.ContainsFunc(p.watching, func(w watched) bool { return t.stack[w.depth].object == object })
}

// compareWatched takes note of which code objects that were read with the copies
// are what they were. What it means is seen when the frame is known to be on the
// stack: freed memory keeps what it held for a while.
func (r *reader) compareWatched(t *thread) {
	for _, w := range r.checks.watching {
		f := &t.stack[w.depth]
		if f.object.Identity.Holds(r.l, r.buf[min(w.at, uint64(len(r.buf))):]) {
			f.verified = r.number
			r.checks.verified = append(r.checks.verified, f.object)
		} else {
			f.replaced = true
		}
	}
	r.checks.watching = r.checks.watching[:0]
}

// confirm compares the code objects of the frames found that may be others by now and
// were not read with the copies, all in one read. Only what was known before the
// copies were made and is still the same after them is sure, and what was read since by a
// frame that is still in its place, so that it has kept it: false says that it must
// be tried again, now that what is there is known. The certain frames are sure to be
// on the stack, so that their code is no freed one.
func (a *attempt) confirm() bool {
	r, p := a.r, &a.r.checks
	p.ranges, p.unverified, p.asked, p.newcomers = p.ranges[:0], p.unverified[:0], p.asked[:0], p.newcomers[:0]
	size := 0
	same := r.codes.reads == a.readsBefore || a.mayKeep()
	for i := range a.found {
		f := &a.found[i]
		switch {
		case f.object.read > a.readsBefore && same:
			if !slices.ContainsFunc(p.newcomers, func(other int) bool { return a.found[other].object == f.object }) {
				p.newcomers = append(p.newcomers, i)
			}
		case f.verified == r.number:
			if i < a.certain {
				r.codes.confirmed(f.object)
			}
		case a.t.unsure, f.isNew && r.codes.stale(f.object), !p.recentlyVerified && r.codes.doubtful(f.object):
			if slices.Contains(p.verified, f.object) || slices.Contains(p.asked, f.object) {
				continue
			}
			p.asked = append(p.asked, f.object)
			p.ranges = append(p.ranges, f.object.Identity.Proof()...)
			p.unverified = append(p.unverified, i)
			size += f.object.Identity.Size
		}
	}
	frame := int(r.l.Frame.Size)
	for _, i := range p.newcomers {
		p.ranges = append(p.ranges, Range{Addr: a.found[i].addr, Len: frame})
		size += frame
	}
	if len(p.ranges) > 0 {
		rest := p.space(size)
		n, err := r.mem.Read(rest, p.ranges)
		if err != nil {
			a.err = err
			return false
		}
		rest = rest[:n]
		for _, i := range p.unverified {
			f := &a.found[i]
			id := &f.object.Identity
			if !id.Holds(r.l, rest) {
				same = false
				a.replace(f.object)
			} else if i < a.certain {
				r.codes.confirmed(f.object)
			}
			rest = rest[min(id.Size, len(rest)):]
		}
		for _, i := range p.newcomers {
			same = same && a.isInPlace(&a.found[i], rest)
			rest = rest[min(frame, len(rest)):]
		}
	}
	if same {
		a.t.unsure = false
		if !p.recentlyVerified {
			a.t.compared = r.times.end
		}
	}
	return same
}

// mayKeep reports whether a frame that is in its place proves what was read of its code after the copies. In 3.11, where
// no number distinguishes code objects, it does not: more samples had another one's than without that.
func (a *attempt) mayKeep() bool {
	r := a.r
	return r.l.Code.Version != 0 && !a.t.unsure && r.number-r.replacedAt > calm
}

// isInPlace reports whether a frame that was read again is the one of the copies.
func (a *attempt) isInPlace(f *frame, now []byte) bool {
	r, l := a.r, a.r.l
	s, offset := r.find(f.addr, l.Frame.Size)
	if s == nil || len(now) < int(l.Frame.Size) {
		return false
	}
	then := r.buf[s.use(a.before)+offset:]
	return now[l.Frame.Owner] == then[l.Frame.Owner] &&
		cpython.Word(now, l.Frame.Code) == cpython.Word(then, l.Frame.Code) &&
		cpython.Word(now, l.Frame.Previous) == cpython.Word(then, l.Frame.Previous)
}

// isAnother reports whether a code object was replaced, by a read of its own.
func (r *reader) isAnother(object *codeObject) bool {
	id := &object.Identity
	b := r.checks.space(id.Size)
	n, err := r.mem.Read(b, id.Proof())
	return err == nil && !id.Holds(r.l, b[:n])
}

// replace takes in what has taken a code object's address. Others may have been
// replaced, too.
func (a *attempt) replace(old *codeObject) {
	a.t.unsure, a.r.replacedAt = true, a.r.number
	a.r.codes.drop(old)
	for i := range a.t.stack {
		if a.t.stack[i].object == old {
			a.t.stack[i].replaced = true
		}
	}
	_, _ = a.r.codes.get(old.Addr)
}
