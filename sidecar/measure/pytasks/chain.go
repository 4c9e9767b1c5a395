package pytasks

import (
	"strconv"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// kind is what an object of a chain is, by its type.
type kind uint8

const (
	kindOther kind = iota
	kindTask
	kindFuture  // that is not a task
	kindGather  // a future that is done when some tasks are
	kindFrame   // a coroutine, generator or asynchronous generator: it has a frame
	kindWrapper // stands for another object, at wrapped
)

const (
	wrapped     = 16  // PyCoroWrapper.cw_coroutine, PyAsyncGenASend.ags_gen and the like (Objects/genobject.c), anextawaitable.wrapped (Objects/iterobject.c)
	typeBase    = 256 // PyTypeObject.tp_base (cpython/object.h)
	maxBases    = 16
	maxKinds    = 4096
	maxCodes    = 1 << 14
	maxChain    = 256     // objects of a chain that are followed
	maxLinks    = 1 << 20 // of all chains of a read
	stackWindow = 160     // bytes of a frame's locals and stack that are read with it
	maxStack    = 1 << 14
)

// kindOf returns the kind of an object by the address of its type.
func (r *Reader) kindOf(typ, object uint64) kind {
	if k, ok := r.kinds[typ]; ok {
		return k
	}
	k := kindOther
	switch r.objects.TypeName(object) {
	case "coroutine", "generator", "async_generator":
		k = kindFrame
	case "coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable":
		k = kindWrapper
	default:
		k = r.futureKind(typ)
	}
	if len(r.kinds) >= maxKinds {
		clear(r.kinds)
	}
	r.kinds[typ] = k
	return k
}

// futureKind recognises asyncio's C types of tasks and futures and the classes made of them: others,
// such as asyncio's own in Python, do not have their fields.
func (r *Reader) futureKind(typ uint64) kind {
	first := kindFuture
	for n := range maxBases {
		var name [16]byte
		at, err := cpython.ReadWord(r.mem, typ+r.l.TypeName)
		if err != nil || typ == 0 {
			return kindOther
		}
		if err := cpython.ReadAt(r.mem, at, name[:]); err == nil {
			if string(name[:14]) == "_asyncio.Task\x00" {
				return kindTask
			}
			if string(name[:]) == "_asyncio.Future\x00" {
				return first
			}
			if n == 0 && string(name[:]) == "_GatheringFuture"[:16] {
				first = kindGather
			}
		}
		if typ, err = cpython.ReadWord(r.mem, typ+typeBase); err != nil {
			return kindOther
		}
	}
	return kindOther
}

// code is a code object, and what the instructions looked at resume.
type code struct {
	*cpython.Code
	awaits map[int32]bool // suspended at this instruction: by await, not by yield
}

// link is a coroutine of a chain that is suspended.
type link struct {
	addr, codeAddr, instr, next uint64
	state                       int8
	object                      *code
	index                       int32
}

// chain is what a task's coroutine awaits, and so on.
type chain struct {
	links   []link
	runs    bool // the task's own coroutine is on a thread's stack
	created bool // it has not begun
	ready   bool // the future that the task awaits is done
	tasks   bool // that future is a task, or is done when some tasks are
	cut     bool // what follows the last link is not sure
	next    uint64
	length  int // objects followed, wrappers included
}

// taskWords are the fields of a task.
type taskWords struct{ loop, waiter, coro, name uint64 }

// chains are those of all tasks, and what is used to read them.
type chains struct {
	tasks  []taskWords
	chains []*chain
	spare  []*chain

	active []int
	addrs  []uint64
	owner  []owner
}

// owner is the link that an object was read for.
type owner struct{ chain, link int }

func (w *chains) reset() {
	w.tasks, w.chains = w.tasks[:0], w.chains[:0]
}

func (w *chains) add(t taskWords) {
	n := len(w.chains)
	if n == len(w.spare) {
		w.spare = append(w.spare, &chain{})
	}
	c := w.spare[n]
	*c = chain{links: c.links[:0], next: t.coro}
	w.tasks, w.chains = append(w.tasks, t), append(w.chains, c)
}

// follow reads the chains of all tasks, breadth first: one call for each level.
func (r *Reader) follow(w *chains) error {
	size := int(r.l.Gen.Frame+r.l.Frame.Size) + stackWindow
	for read := 0; ; read += len(w.active) {
		w.active, w.addrs = w.active[:0], w.addrs[:0]
		for i, c := range w.chains {
			if c.next != 0 {
				w.active, w.addrs = append(w.active, i), append(w.addrs, c.next)
			}
		}
		if len(w.active) == 0 {
			return nil
		}
		if err := r.batch.read(w.addrs, size); err != nil {
			return err
		}
		for k, i := range w.active {
			c := w.chains[i]
			if c.length++; c.length > maxChain || read > maxLinks {
				c.next, c.cut = 0, true
				continue
			}
			b := r.batch.of(k, size)
			if b == nil {
				b = r.alone(w.addrs[k], size)
			}
			r.step(c, w.addrs[k], b)
		}
	}
}

// alone reads as much as there is of an object that lies at the end of what is mapped.
func (r *Reader) alone(addr uint64, size int) []byte {
	for ; size >= int(wrapped+cpython.WordSize); size /= 2 {
		b := make([]byte, size)
		if cpython.ReadAt(r.mem, addr, b) == nil {
			return b
		}
	}
	return nil
}

// step takes the object at addr into a chain, of which b was read.
func (r *Reader) step(c *chain, addr uint64, b []byte) {
	c.next = 0
	if b == nil {
		c.cut = c.cut || len(c.links) == 0
		return
	}
	switch r.kindOf(cpython.Word(b, objectType), addr) {
	case kindWrapper:
		c.next = cpython.Word(b, wrapped)
	case kindFrame:
		r.stepFrame(c, addr, b)
	default: // a future, or an iterator that is not looked into
		c.cut = c.cut || len(c.links) == 0
	}
}

// stepFrame takes an object with a frame.
func (r *Reader) stepFrame(c *chain, addr uint64, b []byte) {
	l := r.l
	if len(b) < int(l.Gen.Frame+l.Frame.Size) {
		c.cut = true
		return
	}
	state := int8(b[l.Gen.State])
	frame := b[l.Gen.Frame:]
	k := link{addr: addr, state: state, codeAddr: cpython.Word(frame, l.Frame.Code) &^ l.Frame.CodeTag, instr: cpython.Word(frame, l.Frame.Instr)}
	first := len(c.links) == 0
	switch {
	case state == l.Gen.Runs:
		c.runs, c.cut = first, !first
		return
	case state == l.Gen.Created && first:
		c.created = true
	case state != l.Gen.Yielded && state != l.Gen.Awaits:
		c.cut = true
		return
	}
	var ok bool
	if k.object, ok = r.code(k.codeAddr); !ok {
		c.cut = true
		return
	}
	if k.index, ok = k.object.Instruction(l, k.instr); !ok {
		c.cut = true
		return
	}
	if k.state == l.Gen.Awaits && r.suspendedByAwait(&k) {
		k.next = r.awaited(addr, frame)
	}
	c.links = append(c.links, k)
	c.next = k.next
}

// suspendedByAwait reports whether a frame awaits, and does not yield, where its state
// does not show it: the next instruction, RESUME, has an argument of 2 or 3 then.
func (r *Reader) suspendedByAwait(k *link) bool {
	if r.l.Gen.Yielded != r.l.Gen.Awaits {
		return true
	}
	if awaits, ok := k.object.awaits[k.index]; ok {
		return awaits
	}
	var next [2 * cpython.InstrSize]byte
	if cpython.ReadAt(r.mem, k.instr, next[:]) != nil {
		return false
	}
	awaits := next[cpython.InstrSize+1]&3 >= 2
	if k.object.awaits == nil {
		k.object.awaits = make(map[int32]bool)
	}
	k.object.awaits[k.index] = awaits
	return awaits
}

// awaited returns what the frame of the object at addr awaits: on top of its stack.
func (r *Reader) awaited(addr uint64, frame []byte) uint64 {
	l := r.l
	at := addr + l.Gen.Frame
	top := at + l.Frame.Locals + uint64(cpython.Half(frame, l.Frame.StackTop))*cpython.WordSize
	if l.Frame.StackPointer != 0 {
		top = cpython.Word(frame, l.Frame.StackPointer)
	}
	top -= l.Gen.Awaited * cpython.WordSize
	if top < at || top-at > maxStack {
		return 0
	}
	value := cpython.Word(frame, top-at)
	if top-at+cpython.WordSize > uint64(len(frame)) {
		var err error
		if value, err = cpython.ReadWord(r.mem, top); err != nil {
			return 0
		}
	}
	return value &^ l.Frame.CodeTag
}

// code returns a code object as it was when it was last looked at.
func (r *Reader) code(addr uint64) (*code, bool) {
	if c, ok := r.codes[addr]; ok {
		return c, true
	}
	read, err := r.objects.Code(addr)
	if err != nil {
		return nil, false
	}
	if len(r.codes) >= maxCodes {
		clear(r.codes)
	}
	c := &code{Code: read}
	r.codes[addr] = c
	return c, true
}

// confirm reads the coroutines of all chains once more. Of each chain it keeps the part, from
// the task's own coroutine on, that has not changed: freed memory is soon used again.
func (r *Reader) confirm(w *chains) error {
	size := int(r.l.Gen.Frame+r.l.Frame.Size) + stackWindow
	w.addrs, w.owner = w.addrs[:0], w.owner[:0]
	used := make(map[uint64]*code)
	for i, c := range w.chains {
		for k := range c.links {
			w.addrs, w.owner = append(w.addrs, c.links[k].addr), append(w.owner, owner{i, k})
			used[c.links[k].codeAddr] = c.links[k].object
		}
	}
	if err := r.batch.read(w.addrs, size); err != nil {
		return err
	}
	replaced := r.replaced(used)
	for n, o := range w.owner {
		c := w.chains[o.chain]
		if o.link >= len(c.links) {
			continue // the chain was cut before
		}
		b := r.batch.of(n, size)
		if b == nil {
			b = r.alone(w.addrs[n], size)
		}
		if k := &c.links[o.link]; !r.unchanged(k, b) || replaced[k.codeAddr] {
			c.links, c.cut, c.runs = c.links[:o.link], true, false
		}
	}
	return nil
}

func (r *Reader) unchanged(k *link, b []byte) bool {
	l := r.l
	if len(b) < int(l.Gen.Frame+l.Frame.Size) || int8(b[l.Gen.State]) != k.state {
		return false
	}
	frame := b[l.Gen.Frame:]
	if cpython.Word(frame, l.Frame.Code)&^l.Frame.CodeTag != k.codeAddr || cpython.Word(frame, l.Frame.Instr) != k.instr {
		return false
	}
	return k.next == 0 || r.awaited(k.addr, frame) == k.next
}

// readWaiters finds the tasks whose future is done. A task keeps it until its loop goes on with
// the task, which takes as long as the loop is busy with others.
func (r *Reader) readWaiters(w *chains) error {
	size := int(r.l.Task.State) + stateSize // a task is a future: its fields are where a future's are
	w.addrs = w.addrs[:0]
	for i := range w.tasks {
		w.addrs = append(w.addrs, w.tasks[i].waiter)
	}
	if err := r.batch.read(w.addrs, size); err != nil {
		return err
	}
	for i, c := range w.chains {
		b := r.batch.of(i, size)
		if b == nil {
			continue
		}
		switch k := r.kindOf(cpython.Word(b, objectType), w.addrs[i]); k {
		case kindTask, kindGather:
			c.tasks = true
			c.ready = cpython.Half(b, r.l.Task.State) != pending
		case kindFuture:
			c.ready = cpython.Half(b, r.l.Task.State) != pending
		}
	}
	return nil
}

// replaced returns the code objects that have become others since they were read.
func (r *Reader) replaced(used map[uint64]*code) map[uint64]bool {
	out := make(map[uint64]bool)
	for addr, c := range used {
		if !r.objects.Holds(&c.Identity) {
			out[addr] = true
			delete(r.codes, addr)
		}
	}
	return out
}

// taskNumber is the name that a task has until it is given one.
func taskNumber(n int) string { return "Task-" + strconv.Itoa(n) }
