package pystack

import (
	"bytes"
	"slices"
	"strings"
)

// While a coroutine awaits, its thread waits in the event loop's selector, and the
// coroutine's frames are on no stack: each lies in its coroutine object, which keeps
// on top of its own stack what it awaits. Of a thread that is in a selector the
// stack is therefore shown as
//
//	… run_forever, _run_once, the coroutine that the loop is run for, … , what that awaits
//
// with the selector's own frame left out: as it is while the coroutine runs, but for
// asyncio's call of the task. Each of the frames is marked as suspended
// (timeline.Frame.Suspended). The coroutine is the one that a recorded cell runs in,
// as its kernel says, or that Runner.run or run_until_complete was called with, which
// the frames of those functions on the same stack show: asyncio.run in a script or a
// thread, a terminal's IPython, anyio on asyncio. Where it awaits a future, a gather,
// a task group or another task, its frames end there: whose fault that is the stacks
// of the tasks show while they run. While another task's code runs, the thread's
// stack shows that code; a loop that is busy itself charges nothing to who awaits.
// Trio's loop is not looked into.

// role is what a function does for an event loop.
type role uint8

const (
	roleOther role = iota
	roleSelect
	roleLoop // runs the loop, maybe in C without a frame for the selector
	roleRun  // and has the coroutine, or a task of it, among its locals
	roleHub  // gevent's loop, which runs in a greenlet of its own
	// roleNotified waits for a condition: it has given the condition's lock away meanwhile, and waits for one that
	// nobody has, in the sense of a lock's holder.
	roleNotified
	roleJoins      // waits for another thread's end
	roleWorks      // runs the function of a future, in a thread of a pool
	roleSharesLock // waits for a semaphore that processes share: multiprocessing's locks, conditions and queues are made of them
)

// roleOf returns it by asyncio's names.
func roleOf(function, file string) role {
	switch {
	case strings.HasSuffix(file, "/selectors.py") && strings.HasSuffix(function, ".select"):
		return roleSelect
	case strings.HasSuffix(file, "/asyncio/base_events.py") && function == "BaseEventLoop.run_forever":
		return roleLoop
	case strings.HasSuffix(file, "/asyncio/runners.py") && function == "Runner.run",
		strings.HasSuffix(function, ".run_until_complete"): // asyncio's or another loop's, such as nest_asyncio's
		return roleRun
	case strings.HasSuffix(file, "/gevent/hub.py") && function == "Hub.run":
		return roleHub
	case strings.HasSuffix(file, "/threading.py") && function == "Condition.wait":
		return roleNotified
	case strings.HasSuffix(file, "/threading.py") && (function == "Thread.join" || function == "Thread._wait_for_tstate_lock"):
		return roleJoins
	case strings.HasSuffix(file, "/concurrent/futures/thread.py") && function == "_WorkItem.run":
		return roleWorks
	case strings.HasSuffix(file, sharedLocks) && (function == "SemLock.__enter__" || function == "Condition.wait"),
		strings.HasSuffix(file, sharedQueues) && (function == "Queue.put" || function == "Queue.get"):
		return roleSharesLock
	}
	return roleOther
}

// ofLoop reports whether it is of an event loop.
func (r role) ofLoop() bool { return r != roleOther && r < roleNotified }

// maxAwaits bounds the coroutines of one chain: of a longer one nothing is shown, as its
// innermost is not known. Of more than keptWhole the outermost and the innermost are kept.
const maxAwaits = 1 << 13

// awaiting is a chain of coroutines that was read, and how to check that it has not
// changed.
type awaiting struct {
	root   uint64
	frames []frame // root first; of a long chain the middle is left out
	elided int     // how many those are
	hub    uint64  // gevent's, that was looked up last …
	main   uint64  // … and the greenlet that its thread began in
	proofs []Range // of each coroutine
	bytes  []byte  // that were in them
}

// loopTop returns the number of t's frames up to the event loop that its thread is
// idle in; 0 if it is not.
func (t *thread) loopTop() int {
	n := len(t.stack)
	switch {
	case n == 0:
		return 0
	case t.stack[n-1].object.role == roleSelect:
		return n - 1
	case t.stack[n-1].object.role.ofLoop():
		return n
	}
	return 0
}

// readAwaiting takes into t.awaiting the frames of what t's event loop waits for;
// cell is the coroutine that the recorded cell runs in, if t runs one. False if there
// is no such thing, or it does not wait.
func (r *reader) readAwaiting(t *thread, cell uint64) bool {
	if hub := t.hub(); hub != nil {
		return r.followGreenlet(&t.awaiting, hub)
	}
	if cell != 0 && r.follow(&t.awaiting, cell, (*reader).readChain) {
		return true
	}
	for i := len(t.stack) - 1; i >= 0; i-- {
		if f := &t.stack[i]; f.object.role == roleRun {
			root, err := r.coroutineOf(f)
			return err == nil && root != 0 && r.follow(&t.awaiting, root, (*reader).readChain)
		}
	}
	return false
}

// follow reads the chain of coroutines, or of a greenlet's frames, from root on. What two reads agree on
// is kept: a chain that was read before is read once more, a new one twice.
func (r *reader) follow(a *awaiting, root uint64, read func(*reader, *awaiting) bool) bool {
	if a.root == root && len(a.frames) > 0 && r.unchanged(a) {
		return true
	}
	for range maxTries {
		before := r.codes.reads
		if a.root = root; !read(r, a) {
			break
		}
		if r.unchanged(a) && r.codes.reads == before {
			return true
		}
	}
	a.frames = a.frames[:0]
	return false
}

// unchanged reports whether the coroutines are as they were and their code is.
func (r *reader) unchanged(a *awaiting) bool {
	p := &r.checks
	p.ranges, p.unverified = append(p.ranges[:0], a.proofs...), p.unverified[:0]
	size := len(a.bytes)
	for i := range a.frames {
		if object := a.frames[i].object; r.codes.stale(object) {
			p.ranges = append(p.ranges, object.Identity.Proof()...)
			p.unverified = append(p.unverified, i)
			size += object.Identity.Size
		}
	}
	b := p.space(size)
	n, err := r.mem.Read(b, p.ranges)
	if err != nil || n < size || !bytes.Equal(b[:len(a.bytes)], a.bytes) {
		return false
	}
	b = b[len(a.bytes):]
	same := true
	for _, i := range p.unverified {
		object := a.frames[i].object
		if object.Identity.Holds(r.l, b) {
			r.codes.confirmed(object)
		} else {
			r.codes.drop(object)
			same = false
		}
		b = b[object.Identity.Size:]
	}
	return same
}

// readChain follows the chain of awaits from a.root by one read after the other.
func (r *reader) readChain(a *awaiting) bool {
	a.frames, a.proofs, a.bytes = a.frames[:0], a.proofs[:0], a.bytes[:0]
	for next := a.root; next != 0; {
		at, err := r.objects.Coroutine(next)
		if err != nil || len(a.frames) == maxAwaits {
			return false
		}
		if at == 0 {
			break
		}
		s, ok, err := r.objects.Suspended(at)
		if err != nil || !ok {
			return false
		}
		f := frame{addr: s.Frame, code: s.Code, instr: s.Instr}
		if f.object, err = r.codes.get(f.code); err != nil {
			return false
		}
		if f.index, ok = f.object.Instruction(r.l, f.instr); !ok {
			return false
		}
		a.frames = append(a.frames, f)
		a.proofs, a.bytes = append(a.proofs, s.Proof), append(a.bytes, s.Was...)
		next = s.Awaits
	}
	a.leaveOutMiddle()
	return len(a.frames) > 0
}

// leaveOutMiddle keeps the ends of a long chain. One in the middle goes on only when the
// innermost has: that one's proof is theirs.
func (a *awaiting) leaveOutMiddle() {
	a.elided = 0
	if len(a.frames) <= keptWhole {
		return
	}
	low, high := keptEnd, len(a.frames)-keptEnd
	begin, end := 0, 0 // of the middle, in bytes
	for i := range high {
		if i < low {
			begin += a.proofs[i].Len
		}
		end += a.proofs[i].Len
	}
	a.elided = high - low
	a.frames, a.proofs, a.bytes = slices.Delete(a.frames, low, high), slices.Delete(a.proofs, low, high), slices.Delete(a.bytes, begin, end)
	a.frames[low].elided = true
}

// coroutineOf returns the coroutine that an event loop is run for by the frame of
// Runner.run or run_until_complete; 0 if that has none yet.
func (r *reader) coroutineOf(f *frame) (uint64, error) {
	for _, name := range []string{"coro", "future"} {
		value, err := r.local(f, name)
		if err != nil {
			return 0, err
		}
		if value != 0 {
			return r.objects.OfTask(value)
		}
	}
	return 0, nil
}
