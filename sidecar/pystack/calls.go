package pystack

import (
	"errors"
	"strings"
)

// Functions that last less than a microsecond change between any two copies: of
// them, copies that agree tell only who calls them. But one copy alone shows a
// frame and what lies behind it within some ten nanoseconds of each other. If the
// frame is in a call, of which it is known that it is one of just the function that
// lies behind, and that one is no remnant of an earlier call, then this is what
// happened at the moment of the copy.

// doing says what a frame does at the moment of a copy.
type doing uint8

const (
	doingUnknown doing = iota
	doesCall           // it has called the Python function that lies behind it
	doesRun            // it runs, or calls C code
)

// runs tells a frame, at a place in the buffer, that runs at the moment of the
// copy: one that has called another has saved its stack pointer. Versions that do
// not mark it never seem to run.
func (r *reader) runs(at uint64) bool {
	return r.l.frame.stackTop != 0 && int32(half(r.buf, at+r.l.frame.stackTop)) < 0
}

// doing looks at a frame at a place in the buffer, which is at an instruction of
// its code.
func (r *reader) doing(at uint64, f *frame) doing {
	if r.runs(at) {
		return doesRun
	}
	switch r.operation(f.object, f.code, f.index) {
	case isCall:
		return doesCall
	case isReturn:
		return doingUnknown // it is about to, or has
	}
	if r.l.frame.stackTop == 0 {
		return doesRun
	}
	return doingUnknown // another instruction that enters Python code, or a return
}

// operation is what an instruction does, as far as it matters here.
type operation uint8

const (
	isOther operation = iota
	isCall            // of a Python function, without C code in between
	isReturn
)

// operation looks at the instruction that a frame is at. It is read once: what it
// is specialized to later does not change what it does.
func (r *reader) operation(object *codeObject, code uint64, index int32) operation {
	if known, ok := object.operations[index]; ok {
		return known
	}
	var opcode [1]byte
	at := int64(index) - int64(r.l.callCaches)
	if at < 0 {
		return isOther
	}
	r.calls++
	if err := readAt(r.mem, code+r.l.code.instructions+instrSize*uint64(at), opcode[:]); err != nil {
		if !errors.Is(err, errUnmapped) {
			r.fault = err
		}
		return isOther
	}
	is := isOther
	if strings.IndexByte(r.l.opcodes.calls, opcode[0]) >= 0 {
		is = isCall
	} else if strings.IndexByte(r.l.opcodes.returns, opcode[0]) >= 0 {
		is = isReturn
	}
	if object.operations == nil {
		object.operations = make(map[int32]operation)
	}
	object.operations[index] = is
	return is
}

// calling is one function calling another, and from which of its instructions.
type calling struct {
	caller, callee *codeObject
	from           int32
}

const (
	maxCalls    = 1 << 14 // kept in mind, and their code objects with them; beyond, they are learnt anew
	enoughCalls = 2       // seen before, for a call to be known
)

// seenCalls counts the calls that copies which agree have shown.
type seenCalls map[calling]uint8

func (c seenCalls) known(call calling) bool { return c[call] >= enoughCalls }

// learnCalls takes in the calls among r.found that the sample before has not shown.
func (r *reader) learnCalls() {
	for i := 1; i < len(r.found); i++ {
		from, to := &r.found[i-1], &r.found[i]
		if from.node != 0 && to.node != 0 {
			continue
		}
		s, offset := r.find(to.addr, r.l.frame.size)
		if s == nil || !s.onDataStack() || !r.direct(s.use(r.before)+offset, from.addr) ||
			r.operation(from.object, from.code, from.index) != isCall {
			continue
		}
		call := calling{from.object, to.object, from.index}
		if n := r.seen[call]; n < enoughCalls {
			if r.seen == nil || len(r.seen) >= maxCalls {
				r.seen = make(seenCalls)
			}
			r.seen[call] = n + 1
		}
	}
}

// direct tells whether the frame at a place in the buffer was called by the frame
// at caller without C code in between.
func (r *reader) direct(at, caller uint64) bool {
	l := r.l
	return r.word(at+l.frame.previous) == caller && r.buf[at+l.frame.owner] == ownerThread &&
		(l.frame.isEntry == 0 || r.buf[at+l.frame.isEntry] == 0)
}

// extend takes up what the copy that was followed shows above the sure frames, and
// tells whether that is all there was at that moment.
func (r *reader) extend(sure int) bool {
	above := r.chain[:len(r.chain)-sure]
	if len(r.found) == 0 || r.found[len(r.found)-1].addr != r.chain[len(above)].addr {
		return false
	}
	for i := range above {
		if above[i].heap { // it does not lie behind its caller
			return false
		}
	}
	l := r.l
	caller := r.found[len(r.found)-1]
	s, offset := r.find(caller.addr, l.frame.size)
	if s == nil {
		return false
	}
	at, next := s.use(r.before)+offset, above[len(above)-1].addr
	for first := true; ; first = false {
		callee, offset := r.find(next, l.frame.size)
		isThere := callee != nil && callee.onDataStack() && r.direct(callee.use(r.before)+offset, caller.addr)
		switch r.doing(at, &caller) {
		case doingUnknown:
			if !first {
				r.found = r.found[:len(r.found)-1] // left there by an earlier call, perhaps
			}
			return false
		case doesRun:
			// It has not called yet; the sure one has returned from what the thread
			// state still told.
			return !first || isThere
		}
		if !isThere {
			return false
		}
		at = callee.use(r.before) + offset
		code, instr := r.word(at+l.frame.code)&^l.codeTag, r.word(at+l.frame.instr)
		object, err := r.codes.get(code)
		if err != nil {
			return false
		}
		index, ok := object.instruction(l, code, instr)
		if !ok {
			return false
		}
		if index < object.firstTraceable {
			return true // still being made: its caller is the leaf
		}
		if !r.seen.known(calling{caller.object, object, caller.index}) {
			return false
		}
		caller = frame{addr: next, code: code, instr: instr, object: object, index: index, isNew: true}
		r.found = append(r.found, caller)
		next = caller.addr + object.frameLen
	}
}

// leafIsLive tells whether the last of r.found, the thread's leaf by its state, can
// be one by its own copies. Programs that go round in just the time between two
// copies can make them agree on a frame that an earlier call has left there; it is
// taken out then.
func (r *reader) leafIsLive() bool {
	n := len(r.found)
	if n == 0 || len(r.chain) == 0 || r.chain[0].addr != r.found[n-1].addr {
		return true
	}
	leaf := &r.found[n-1]
	s, offset := r.find(leaf.addr, r.l.frame.size)
	if s == nil || !s.onDataStack() || r.doing(s.use(r.before)+offset, leaf) != doingUnknown {
		return true
	}
	r.found = r.found[:n-1]
	return false
}
