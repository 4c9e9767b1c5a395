package pystack

import (
	"bytes"
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
// asyncio's call of the task. That the frames are suspended stands in each of them
// (timeline.Frame.Suspended). The coroutine is the one that a recorded cell runs in,
// as its kernel says, or that Runner.run or run_until_complete was called with, which
// the frames of those functions on the same stack tell: asyncio.run in a script or a
// thread, a terminal's IPython, anyio on asyncio. Where it awaits a future, a gather,
// a task group or another task, its frames end there: whose fault that is the stacks
// of the tasks tell while they run. While another task's code runs, the thread's
// stack shows that code; a loop that is busy charges nothing to who awaits. Trio's
// loop is not looked into.

// role tells a function that runs an event loop.
type role uint8

const (
	roleOther role = iota
	roleSelect
	roleLoop // runs the loop, maybe in C without a frame for the selector
	roleRun  // and has the coroutine, or a task of it, among its locals
)

// roleOf tells it by asyncio's names.
func roleOf(function, file string) role {
	switch {
	case strings.HasSuffix(file, "/selectors.py") && strings.HasSuffix(function, ".select"):
		return roleSelect
	case strings.HasSuffix(file, "/asyncio/base_events.py") && function == "BaseEventLoop.run_forever":
		return roleLoop
	case strings.HasSuffix(file, "/asyncio/runners.py") && function == "Runner.run",
		strings.HasSuffix(function, ".run_until_complete"): // asyncio's or another loop's, such as nest_asyncio's
		return roleRun
	}
	return roleOther
}

const (
	maxAwaits     = 256     // coroutines of one chain
	maxAwaitFrame = 1 << 10 // bytes from a coroutine to the top of its stack that are compared each time
)

// awaiting is a chain of coroutines that was read, and how to tell that it has not
// changed.
type awaiting struct {
	root   uint64
	frames []frame // root first
	links  []Range // of each coroutine: from its type to what it awaits
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
	case t.stack[n-1].object.role != roleOther:
		return n
	}
	return 0
}

// readAwaiting takes into t.awaiting the frames of what t's event loop waits for;
// cell is the coroutine that the recorded cell runs in, if t runs one. False if there
// is no such thing, or it does not wait.
func (r *reader) readAwaiting(t *thread, cell uint64) bool {
	if cell != 0 && r.follow(&t.awaiting, cell) {
		return true
	}
	for i := len(t.stack) - 1; i >= 0; i-- {
		if f := &t.stack[i]; f.object.role == roleRun {
			root, err := r.coroutineOf(f)
			return err == nil && root != 0 && r.follow(&t.awaiting, root)
		}
	}
	return false
}

// follow reads the chain of coroutines from root on. What two reads have in common
// stands: a chain that was read before is read once more, a new one twice.
func (r *reader) follow(a *awaiting, root uint64) bool {
	if a.root == root && len(a.frames) > 0 && r.unchanged(a) {
		return true
	}
	for range maxTries {
		before := r.codes.reads
		if a.root = root; !r.readChain(a) {
			break
		}
		if r.unchanged(a) && r.codes.reads == before {
			return true
		}
	}
	a.frames = a.frames[:0]
	return false
}

// unchanged tells whether the coroutines are as they were and their code is.
func (r *reader) unchanged(a *awaiting) bool {
	r.proofs, r.unproven = append(r.proofs[:0], a.links...), r.unproven[:0]
	size := len(a.bytes)
	for i := range a.frames {
		if object := a.frames[i].object; r.codes.stale(object) {
			r.proofs = append(r.proofs, object.identity.proof[:object.identity.n]...)
			r.unproven = append(r.unproven, i)
			size += object.identity.size
		}
	}
	b := r.proofSpace(size)
	r.calls++
	n, err := r.mem.Read(b, r.proofs)
	if err != nil || n < size || !bytes.Equal(b[:len(a.bytes)], a.bytes) {
		return false
	}
	b = b[len(a.bytes):]
	same := true
	for _, i := range r.unproven {
		object := a.frames[i].object
		if object.identity.holds(r.l, b) {
			r.codes.confirmed(object)
		} else {
			delete(r.codes.byAddr, object.addr)
			same = false
		}
		b = b[object.identity.size:]
	}
	return same
}

// readChain follows the chain of awaits from a.root by one read after the other.
func (r *reader) readChain(a *awaiting) bool {
	a.frames, a.links, a.bytes = a.frames[:0], a.links[:0], a.bytes[:0]
	l := r.l
	for at := a.root; len(a.frames) < maxAwaits; {
		next, err := r.coroutine(at)
		if err != nil || next == 0 {
			return err == nil && len(a.frames) > 0
		}
		at = next
		head := make([]byte, l.gen.frame+l.frame.size)
		r.calls++
		if readAt(r.mem, at, head) != nil {
			return false
		}
		state := int8(head[l.gen.state])
		if state != l.gen.yielded && state != l.gen.awaits {
			return false // it runs, has not begun or has ended
		}
		f := frame{addr: at + l.gen.frame, code: word(head, l.gen.frame+l.frame.code) &^ l.codeTag, instr: word(head, l.gen.frame+l.frame.instr)}
		if f.object, err = r.codes.get(f.code); err != nil {
			return false
		}
		var ok bool
		if f.index, ok = f.object.instruction(l, f.code, f.instr); !ok {
			return false
		}
		a.frames = append(a.frames, f)
		top := r.awaitedAt(f.addr, head[l.gen.frame:])
		isAwait := state == l.gen.awaits
		if isAwait && l.gen.yielded == l.gen.awaits {
			isAwait = r.resumesAwait(f.instr)
		}
		if !isAwait || top <= at || top-at > maxAwaitFrame {
			a.keep(at+objectType, head[objectType:])
			if !isAwait {
				return true
			}
		} else {
			whole := make([]byte, top+wordSize-at-objectType)
			r.calls++
			if readAt(r.mem, at+objectType, whole) != nil {
				return false
			}
			a.keep(at+objectType, whole)
		}
		if at, err = readWord(r.mem, top); err != nil {
			return false
		}
		at &^= l.codeTag
	}
	return true
}

func (a *awaiting) keep(addr uint64, b []byte) {
	a.links = append(a.links, Range{addr, len(b)})
	a.bytes = append(a.bytes, b...)
}

// awaitedAt is the address of the place on a suspended frame's stack that holds what
// it awaits.
func (r *reader) awaitedAt(addr uint64, head []byte) uint64 {
	l := r.l
	if l.frame.stackPointer != 0 {
		return word(head, l.frame.stackPointer) - l.frame.awaited*wordSize
	}
	return addr + l.frame.locals + uint64(half(head, l.frame.stackTop))*wordSize - l.frame.awaited*wordSize
}

// resumesAwait tells a frame that is suspended by await or yield from, and not by
// yield, where its state does not tell: the instruction after it, RESUME, does.
func (r *reader) resumesAwait(instr uint64) bool {
	var next [2 * instrSize]byte
	r.calls++
	return readAt(r.mem, instr, next[:]) == nil && next[instrSize+1] >= 2
}

// coroutine returns the object with a frame that stands behind an awaited object:
// itself, or what wraps it; 0 where there is none, as of a future.
func (r *reader) coroutine(at uint64) (uint64, error) {
	if at < 4096 || at%wordSize != 0 {
		return 0, nil
	}
	for range 2 {
		var head [wrappedAt + wordSize]byte
		r.calls++
		if err := readAt(r.mem, at, head[:]); err != nil {
			return 0, err
		}
		switch r.typeName(word(head[:], objectType)) {
		case "coroutine", "generator", "async_generator":
			return at, nil
		case "coroutine_wrapper", "async_generator_asend", "async_generator_athrow":
			at = word(head[:], wrappedAt)
		default:
			return 0, nil
		}
	}
	return 0, nil
}

// typeName returns tp_name of a type; empty if it cannot be read.
func (r *reader) typeName(typ uint64) string {
	if name, ok := r.types[typ]; ok {
		return name
	}
	var text [64]byte
	at, err := readWord(r.mem, typ+r.l.typeName)
	if err != nil {
		return ""
	}
	n, err := r.mem.Read(text[:], []Range{{at, len(text)}})
	if n == 0 && err == nil { // it lies at the end of what is mapped
		n, err = r.mem.Read(text[:], []Range{{at, 8}})
	}
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(string(text[:n]), "\x00")
	if r.types == nil || len(r.types) >= maxTypes {
		r.types = make(map[uint64]string)
	}
	r.types[typ] = name
	return name
}

// coroutineOf returns the coroutine that an event loop is run for by the frame of
// Runner.run or run_until_complete; 0 if that has none yet.
func (r *reader) coroutineOf(f *frame) (uint64, error) {
	for _, name := range []string{"coro", "future"} {
		index, ok, err := r.local(f.object, name)
		if err != nil || !ok {
			continue
		}
		value, err := readWord(r.mem, f.addr+r.l.frame.locals+wordSize*uint64(index))
		if err != nil {
			return 0, err
		}
		return r.ofTask(value &^ r.l.codeTag)
	}
	return 0, nil
}

// ofTask returns the coroutine of a task; what is no task is returned as it is.
func (r *reader) ofTask(object uint64) (uint64, error) {
	if object == 0 {
		return 0, nil
	}
	typ, err := readWord(r.mem, object+objectType)
	if err != nil {
		return 0, err
	}
	switch r.typeName(typ) {
	case "_asyncio.Task":
		return readWord(r.mem, object+r.l.taskCoro)
	case "Task": // asyncio's own in Python, as nest_asyncio uses it
		return r.attribute(object, "_coro")
	}
	return object, nil
}

// local returns the number of a local variable.
func (r *reader) local(object *codeObject, name string) (int, bool, error) {
	if index, ok := object.locals[name]; ok {
		return index, index >= 0, nil
	}
	tuple, err := readWord(r.mem, object.addr+r.l.code.localNames)
	if err != nil {
		return 0, false, err
	}
	count, err := readWord(r.mem, tuple+varSize)
	if err != nil {
		return 0, false, err
	}
	found := -1
	for i := range min(count, maxKeys) {
		at, err := readWord(r.mem, tuple+r.l.tupleItems+i*wordSize)
		if err != nil {
			return 0, false, err
		}
		if text, err := readString(r.mem, r.l, at); err == nil && text == name {
			found = int(i)
			break
		}
	}
	if object.locals == nil {
		object.locals = make(map[string]int)
	}
	object.locals[name] = found
	return found, found >= 0, nil
}
