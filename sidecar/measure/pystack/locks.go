package pystack

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A thread that waits for a threading.Lock or RLock waits for the thread that has it. Which lock it is, is on the
// waiting thread's stack: the lock whose semaphore the kernel says that the thread is blocked at, or, of interpreters
// whose locks are mutexes, the one that the call at the top of the stack is of and that is waited for. Who has it, an
// RLock says itself. Of a Lock it is the one thread with a frame in a with statement that has entered it, by the values
// that such a statement keeps on the frame's stack: the table of exception handlers proves how many these are. A lock
// that was taken by acquire() alone, and one of a condition that is waited for, has nobody that could be named. A thread
// that joins another has that one's Thread object in its frame.

// locks is what is known of who has the locks that are waited for.
type locks struct {
	held    map[uint64]held // by the lock's address
	waiting []*thread       // for locks
	at      int64           // when who has these was last looked at
	spent   time.Duration   // CPU time, looking for them
	named   objectSet       // what is waited for of a thread that is known
}

// objectSet is a set of what threads wait for.
type objectSet [4]uint64

func (s *objectSet) add(id timeline.ObjectID)      { s[id/64] |= 1 << (id % 64) }
func (s *objectSet) has(id timeline.ObjectID) bool { return s[id/64]>>(id%64)&1 != 0 }

// held says who was found to have a lock.
type held struct {
	by    *thread // nil: nobody is known
	at    int64   // when
	entry entry   // of a lock that is no RLock: what shows it
}

// entry is a value on the stack of a frame that shows that its thread is in a with statement of a lock.
type entry struct {
	lock        uint64
	frame       uint64
	object      *codeObject
	slot, value uint64 // the number of the value
}

// lockWait is which lock a thread was found to wait for, and by what.
type lockWait struct {
	frame, instr, futex uint64
	by                  frameValue
	lock                cpython.Lock
	listed              bool // in locks.waiting
}

// frameValue is one of the values of a frame, and where it is.
type frameValue struct{ at, value uint64 }

const (
	// Looking for locks' holders may use so much of a CPU.
	locksShare = 0.003
	locksFirst = 20 * time.Millisecond
	// heldFor is for how long an answer is used for other threads that wait for the same lock.
	heldFor = int64(4 * time.Millisecond)

	maxHeld        = 1 << 10
	maxLockFrames  = 1 << 12 // on the stacks that are looked at for one lock
	maxFrameRead   = 4 << 10 // bytes of each
	maxOwners      = 512     // threads whose idents are read for one
	maxWaiterStack = 64      // values of a waiting thread's frame, from the top of its stack
	topOfStack     = 6       // values there that a call is made of
)

// lockOf is the lock, or what is made of locks, that a thread waits for which is blocked at futex; 0: that is not known.
func (s *session) lockOf(t *thread, futex uint64) timeline.ObjectID {
	w, n := &t.session.lock, len(t.stack)
	if n == 0 || t.session.truncated || t.session.idle || s.locks.dear(s.at-s.begun) {
		w.lock = cpython.Lock{}
		return 0
	}
	began := timeline.ThreadCPU()
	defer func() { s.locks.spent += timeline.ThreadCPU() - began }()
	switch t.stack[n-1].object.role {
	case roleNotified, roleSharesLock:
		w.lock = cpython.Lock{}
		return s.notified(t)
	case roleJoins:
		w.lock = cpython.Lock{}
		return s.joined(&t.stack[n-1])
	}
	if !s.p.reader.findLock(w, &t.stack[n-1], futex) {
		return 0
	}
	if !w.listed {
		w.listed = true
		s.locks.waiting = append(s.locks.waiting, t)
	}
	return s.held(t)
}

// joined is the thread whose end a frame of threading's waits for; 0: that is not known.
func (s *session) joined(f *frame) timeline.ObjectID {
	r := s.p.reader
	of, err := r.local(f, "self")
	if err != nil || of == 0 {
		return 0
	}
	if of, err = r.objects.Attribute(of, "_native_id"); err != nil {
		return 0
	}
	id := r.objects.SmallInt(of)
	if id == 0 {
		return 0
	}
	for _, t := range s.p.threads {
		if t.nativeID != id {
			continue
		}
		if on := s.ofThread("join", timeline.ObjectThread, t.first()); on != 0 {
			return on
		}
	}
	return 0
}

// ofThread is what is waited for of a thread; 0 where the recording does not have it.
func (s *session) ofThread(call string, kind timeline.ObjectKind, t *thread) timeline.ObjectID {
	if !t.session.known || t.session.excluded {
		return 0
	}
	on := s.sink.Object(timeline.Object{Call: call, Kind: kind, Holder: t.session.id})
	s.locks.named.add(on)
	return on
}

// dear reports whether the locks' share of the time has been spent.
func (l *locks) dear(so int64) bool {
	return l.spent > locksFirst+time.Duration(locksShare*float64(so))
}

// held is the lock that a thread waits for, as something that somebody has, as far as that is known.
func (s *session) held(t *thread) timeline.ObjectID {
	if h := s.holder(t.session.lock.lock); h != nil && h != t {
		if on := s.ofThread("lock", timeline.ObjectLock, h); on != 0 {
			return on
		}
	}
	return s.sink.Object(timeline.Object{Call: "lock", Kind: timeline.ObjectLock, Holder: -1})
}

// lookAtLocks asks again who has the locks that are waited for: that changes without a trace in those that wait.
func (s *session) lookAtLocks() {
	if l := &s.locks; len(l.waiting) == 0 || s.at-l.at < probeLock || l.dear(s.at-s.begun) {
		return
	}
	began := timeline.ThreadCPU()
	kept := s.locks.waiting[:0]
	for _, t := range s.locks.waiting {
		ts := &t.session
		if ts.state != timeline.StateWaiting || ts.leaf != leafLock || ts.lock.lock.Addr == 0 || s.p.threads[t.addr] != t {
			ts.lock.listed = false
			continue
		}
		kept = append(kept, t)
		if on := s.held(t); on != ts.on && !t.isElsewhere() {
			ts.on = on
			s.report(t)
		}
	}
	clear(s.locks.waiting[len(kept):])
	s.locks.waiting, s.locks.at = kept, s.at
	s.locks.spent += timeline.ThreadCPU() - began
}

// findLock finds the lock that a thread with f as its innermost frame is blocked for; w is what was found before.
func (r *reader) findLock(w *lockWait, f *frame, futex uint64) bool {
	if w.frame == f.addr && w.instr == f.instr && w.futex == futex && w.lock.Addr != 0 {
		value, err := cpython.ReadWord(r.mem, w.by.at)
		if lock, ok := r.objects.Again(w.lock); err == nil && value == w.by.value && ok && r.objects.WaitedFor(lock, futex) {
			return true
		}
	}
	w.frame, w.instr, w.futex, w.lock = f.addr, f.instr, futex, cpython.Lock{}
	for _, v := range r.called(f) {
		if lock, ok := r.objects.Lock(v.value &^ r.l.Frame.CodeTag); ok && r.objects.WaitedFor(lock, futex) {
			w.by, w.lock = v, lock
			return true
		}
	}
	return false
}

// called are the values of a frame among which what it has called is, the uppermost on its stack first. Up to 3.13
// nothing shows where the stack of a running frame ends, and they are all that it has room for.
func (r *reader) called(f *frame) (values []frameValue) {
	l := r.l
	size := min(f.object.FrameLen, l.Frame.Locals+cpython.WordSize*(f.object.Locals+maxWaiterStack))
	if size > maxFrameRead || size < l.Frame.Locals {
		return nil
	}
	buf := make([]byte, size)
	if cpython.ReadAt(r.mem, f.addr, buf) != nil || cpython.Word(buf, l.Frame.Code)&^l.Frame.CodeTag != f.code || cpython.Word(buf, l.Frame.Instr) != f.instr {
		return nil
	}
	bottom, top := l.Frame.Locals, size
	if l.Frame.StackPointer != 0 {
		stack := l.Frame.Locals + cpython.WordSize*f.object.Locals
		if top = cpython.Word(buf, l.Frame.StackPointer) - f.addr; top <= stack || top > size {
			return nil
		}
		bottom = max(stack, top-min(top, topOfStack*cpython.WordSize))
	}
	for at := top; at >= bottom+cpython.WordSize; at -= cpython.WordSize {
		values = append(values, frameValue{f.addr + at - cpython.WordSize, cpython.Word(buf, at-cpython.WordSize)})
	}
	return values
}

// holder is the thread that has a lock; nil: that is not known.
func (s *session) holder(lock cpython.Lock) *thread {
	known, ok := s.locks.held[lock.Addr]
	if ok && s.at-known.at < heldFor {
		return known.by
	}
	if s.locks.held == nil || len(s.locks.held) >= maxHeld {
		s.locks.held = make(map[uint64]held)
	}
	found := held{at: s.at}
	if known.by != nil && s.p.threads[known.by.addr] != known.by {
		known.by = nil // it has ended
	}
	if lock.Recursive {
		now, _ := s.p.reader.objects.Again(lock)
		found.by = s.owner(now.Owner, known.by)
	} else if known.by != nil && s.p.reader.isIn(known.by, known.entry) {
		found.by, found.entry = known.by, known.entry
	} else {
		found.by, found.entry = s.entered(lock.Addr)
	}
	s.locks.held[lock.Addr] = found
	return found.by
}

// owner is the thread that has an ident, which is perhaps the one that had the lock before.
func (s *session) owner(ident uint64, perhaps *thread) *thread {
	if ident == 0 {
		return nil
	}
	if perhaps != nil && s.ident(perhaps) == ident {
		return perhaps
	}
	read := 0
	for _, t := range s.p.threads {
		if read++; read > maxOwners {
			return nil
		}
		if s.ident(t) != ident {
			continue
		}
		if t.os != nil {
			return t.os.now
		}
		return t
	}
	return nil
}

// ident is a thread's, as threading has it; 0: it cannot be read.
func (s *session) ident(t *thread) uint64 {
	ident, err := cpython.ReadWord(s.p.mem, t.addr+s.p.l.Thread.Ident)
	if err != nil {
		return 0
	}
	return ident
}

// entered is the one thread that has entered a lock by a with statement; nil: none is known to have, or several.
func (s *session) entered(lock uint64) (found *thread, by entry) {
	frames := 0
	for _, t := range s.p.threads {
		if t.isElsewhere() {
			continue
		}
		if frames += len(t.stack); frames > maxLockFrames {
			return nil, entry{}
		}
		e, ok := s.p.reader.entryOf(t, lock)
		if !ok {
			continue
		}
		if found != nil {
			return nil, entry{}
		}
		found, by = t, e
	}
	return found, by
}

// entryOf finds the with statement by which a thread has a lock; ok is false if it is in none, or waits for a condition
// of that lock: it has given it away then.
func (r *reader) entryOf(t *thread, lock uint64) (e entry, ok bool) {
	for i := len(t.stack) - 1; i >= 0; i-- {
		f := &t.stack[i]
		if f.object.role == roleNotified {
			condition, err := r.local(f, "self")
			if of, ok := r.objects.Lock(condition); err != nil || !ok || of.Addr == lock {
				return e, false
			}
		}
		for _, e := range r.entries(f) {
			if e.lock == lock {
				return e, true
			}
		}
	}
	return e, false
}

// entries are the with statements of locks that a frame is in.
func (r *reader) entries(f *frame) (out []entry) {
	l, handlers := r.l, r.handlers(f.object)
	if handlers.Kept(f.index) == 0 || f.replaced {
		return nil
	}
	base := l.Frame.Locals + cpython.WordSize*f.object.Locals
	size := min(f.object.FrameLen, maxFrameRead)
	if base > size {
		return nil
	}
	buf := make([]byte, size)
	if cpython.ReadAt(r.mem, f.addr, buf) != nil {
		return nil
	}
	stack := make([]uint64, r.kept(f.object, buf[:l.Frame.Size]))
	for i := range stack {
		stack[i] = cpython.Word(buf, base+cpython.WordSize*uint64(i))
	}
	r.objects.Entered(stack, func(i int, lock cpython.Lock) {
		out = append(out, entry{lock: lock.Addr, frame: f.addr, object: f.object, slot: uint64(i), value: stack[i]})
	})
	return out
}

// kept is how many values a frame has on its stack at least, if it is one of that code; 0 if not.
func (r *reader) kept(code *codeObject, head []byte) int {
	if cpython.Word(head, r.l.Frame.Code)&^r.l.Frame.CodeTag != code.Addr {
		return 0
	}
	index, ok := code.Instruction(r.l, cpython.Word(head, r.l.Frame.Instr))
	if !ok {
		return 0
	}
	return r.handlers(code).Kept(index)
}

// isIn reports whether a thread is still in a with statement.
func (r *reader) isIn(t *thread, e entry) bool {
	l, on := r.l, false
	for i := range t.stack {
		f := &t.stack[i]
		if on = on || f.addr == e.frame && f.object == e.object; on && f.object.role == roleNotified {
			return false // whose condition it waits for is another question
		}
	}
	if !on {
		return false
	}
	size := int(l.Frame.Size)
	buf := make([]byte, size+cpython.WordSize)
	slot := cpython.Range{Addr: e.frame + l.Frame.Locals + cpython.WordSize*(e.object.Locals+e.slot), Len: cpython.WordSize}
	n, err := r.mem.Read(buf, []Range{{Addr: e.frame, Len: size}, slot})
	return err == nil && n == len(buf) && cpython.Word(buf, uint64(size)) == e.value && r.kept(e.object, buf[:size]) > int(e.slot)
}

// handlers are those of a code object, read when they are first asked for.
func (r *reader) handlers(c *codeObject) cpython.Handlers {
	if c.handlers == nil {
		read, err := r.objects.Handlers(c.Code)
		if err != nil {
			return nil
		}
		c.handlers = &read
	}
	return *c.handlers
}
