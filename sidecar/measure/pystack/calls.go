package pystack

import (
	"errors"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// Functions that last less than a microsecond change between any two copies: of
//them, copies that agree show only who calls them. But one copy alone shows a
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

// runs recognises a frame, at a place in the buffer, that runs at the moment of the
// copy: one that has called another has saved its stack pointer. Versions that do
// not mark it never seem to run.
func (r *reader) runs(at uint64) bool {
	return r.l.Frame.StackTop != 0 && int32(cpython.Half(r.buf, at+r.l.Frame.StackTop)) < 0
}

// doing looks at a frame at a place in the buffer, which is at an instruction of
// its code.
func (a *attempt) doing(at uint64, f *frame) doing {
	if a.r.runs(at) {
		return doesRun
	}
	switch a.operation(f.object, f.index) {
	case isCall:
		return doesCall
	case isReturn:
		return doingUnknown // it is about to, or has
	}
	if a.r.l.Frame.StackTop == 0 {
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
func (a *attempt) operation(object *codeObject, index int32) operation {
	if known, ok := object.operations[index]; ok {
		return known
	}
	opcode, err := a.r.objects.Opcode(object.Code, index)
	if err != nil {
		if !errors.Is(err, cpython.ErrUnmapped) {
			a.err = err
		}
		return isOther
	}
	is := isOther
	if strings.IndexByte(a.r.l.Opcodes.Calls, opcode) >= 0 {
		is = isCall
	} else if strings.IndexByte(a.r.l.Opcodes.Returns, opcode) >= 0 {
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

// learnCalls takes in the calls among the frames found that the sample before has not
// shown.
func (a *attempt) learnCalls() {
	r := a.r
	for i := 1; i < len(a.found); i++ {
		from, to := &a.found[i-1], &a.found[i]
		if !from.isNew && !to.isNew {
			continue
		}
		s, offset := r.find(to.addr, r.l.Frame.Size)
		if s == nil || !s.onDataStack() || !r.direct(s.use(a.before)+offset, from.addr) ||
			a.operation(from.object, from.index) != isCall {
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

// direct reports whether the frame at a place in the buffer was called by the frame
// at caller without C code in between.
func (r *reader) direct(at, caller uint64) bool {
	l := r.l
	return r.word(at+l.Frame.Previous) == caller && r.buf[at+l.Frame.Owner] == cpython.OwnerThread &&
		(l.Frame.IsEntry == 0 || r.buf[at+l.Frame.IsEntry] == 0)
}

// extend takes up what the copy that was followed shows above the sure frames, and
// reports whether that is all there was at that moment.
func (a *attempt) extend(sure int) bool {
	r, l := a.r, a.r.l
	above := a.chain[:len(a.chain)-sure]
	if len(a.found) == 0 || a.found[len(a.found)-1].addr != a.chain[len(above)].addr {
		return false
	}
	for i := range above {
		if above[i].heap { // it does not lie behind its caller
			return false
		}
	}
	caller := a.found[len(a.found)-1]
	s, offset := r.find(caller.addr, l.Frame.Size)
	if s == nil {
		return false
	}
	return a.goOn(caller, s.use(a.before)+offset, above[len(above)-1].addr)
}

// goOn takes up what a copy shows above a frame, which is at a place in the buffer; what it
// calls lies at next. It reports whether that is all there was at that moment.
func (a *attempt) goOn(caller frame, at, next uint64) bool {
	r := a.r
	for first := true; ; first = false {
		callee, offset := r.find(next, r.l.Frame.Size)
		isThere := callee != nil && callee.onDataStack() && r.direct(callee.use(a.before)+offset, caller.addr)
		switch a.doing(at, &caller) {
		case doingUnknown:
			if !first {
				a.found = a.found[:len(a.found)-1] // left there by an earlier call, perhaps
			}
			return false
		case doesRun:
			// It has not called yet; the sure one has returned from what the thread
			// state still said.
			return !first || isThere
		}
		if !isThere {
			return false
		}
		at = callee.use(a.before) + offset
		f, known := a.callee(next, at)
		if !known {
			return false
		}
		if f.index < f.object.FirstTraceable {
			return true // still being made: its caller is the leaf
		}
		if !r.seen.known(calling{caller.object, f.object, caller.index}) {
			return false
		}
		caller = f
		a.found = append(a.found, f)
		next = f.addr + f.object.FrameLen
	}
}

// callee decodes the frame at addr, at a place in the buffer. What it runs has been seen
// before, as all known calls have: code of a remnant is not read, it may be freed.
func (a *attempt) callee(addr, at uint64) (f frame, ok bool) {
	l := a.r.l
	f = frame{addr: addr, code: a.r.word(at+l.Frame.Code) &^ l.Frame.CodeTag, instr: a.r.word(at + l.Frame.Instr), isNew: true}
	if f.object = a.r.codes.byAddr[f.code]; f.object == nil {
		return f, false
	}
	f.index, ok = f.object.Instruction(l, f.instr)
	return f, ok
}

// leafIsLive reports whether the last frame found, the thread's leaf by its state, can
// be one by its own copies. Programs that go round in just the time between two
// copies can make them agree on a frame that an earlier call has left there; it is
// taken out then. One that has called something since its state was read is followed
// there, or taken as it was before.
func (a *attempt) leafIsLive() bool {
	n := len(a.found)
	if n == 0 || len(a.chain) == 0 || a.chain[0].addr != a.found[n-1].addr {
		return true
	}
	leaf := &a.found[n-1]
	s, offset := a.r.find(leaf.addr, a.r.l.Frame.Size)
	if s == nil || !s.onDataStack() {
		return true
	}
	at := s.use(a.before) + offset
	switch a.doing(at, leaf) {
	case doesRun:
		return true
	case doesCall: // a Python function since the thread state was read, or it calls C code
		whole := a.goOn(*leaf, at, leaf.addr+leaf.object.FrameLen)
		if len(a.found) > n {
			return whole
		}
		a.asBefore(s.use(true) + offset)
		return true
	}
	a.found = a.found[:n-1]
	a.certain = min(a.certain, n-1)
	return false
}

// asBefore takes the leaf as it was in the copy before the thread state, at a place in the
// buffer, if it ran there: the line that has called something since, within a microsecond,
// would have the time of a short line before that.
func (a *attempt) asBefore(at uint64) {
	leaf := &a.found[len(a.found)-1]
	then := *leaf
	then.instr = a.r.word(at + a.r.l.Frame.Instr)
	var ok bool
	then.index, ok = leaf.object.Instruction(a.r.l, then.instr)
	if then.instr == leaf.instr || !ok || then.index < leaf.object.FirstTraceable || a.doing(at, &then) != doesRun {
		return
	}
	then.node, then.isNew = 0, true
	*leaf = then
}
