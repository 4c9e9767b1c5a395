package cpython

// wrapped is where an object that only stands for one with a frame has it:
// PyCoroWrapper.cw_coroutine, PyAsyncGenASend.ags_gen, PyAsyncGenAThrow.agt_gen
// (Objects/genobject.c).
const wrapped = 16

// maxSuspended bounds the bytes, from a coroutine to the top of its stack, that
// Suspended.Proof covers.
const maxSuspended = 1 << 10

// Suspended is the frame of a generator, coroutine or asynchronous generator that is
// suspended. It lies within the object, on no thread's stack.
type Suspended struct {
	Frame, Code, Instr uint64
	// Awaits is the object that it awaits or yields from; 0 for none.
	Awaits uint64
	// Proof holds what Was in it while the frame is suspended where it is.
	Proof Range
	Was   []byte
}

// Suspended reads the frame of such an object; ok is false if it is not suspended: it
// runs, has not begun or has ended.
func (o *Objects) Suspended(at uint64) (s Suspended, ok bool, err error) {
	l := o.layout
	head := make([]byte, l.Gen.Frame+l.Frame.Size)
	if err := ReadAt(o.mem, at, head); err != nil {
		return s, false, err
	}
	state := int8(head[l.Gen.State])
	if state != l.Gen.Yielded && state != l.Gen.Awaits {
		return s, false, nil
	}
	frame := head[l.Gen.Frame:]
	s = Suspended{Frame: at + l.Gen.Frame, Code: Word(frame, l.Frame.Code) &^ l.Frame.CodeTag, Instr: Word(frame, l.Frame.Instr)}
	s.Proof, s.Was = Range{at + objectType, len(head) - objectType}, head[objectType:]
	awaits := state == l.Gen.Awaits
	if awaits && l.Gen.Yielded == l.Gen.Awaits {
		if awaits, err = o.resumesAwait(s.Instr); err != nil {
			return s, false, err
		}
	}
	if !awaits {
		return s, true, nil
	}
	top := s.Frame + l.Frame.Locals + uint64(Half(frame, l.Frame.StackTop))*WordSize
	if l.Frame.StackPointer != 0 {
		top = Word(frame, l.Frame.StackPointer)
	}
	top -= l.Gen.Awaited * WordSize
	if top > at && top-at <= maxSuspended {
		s.Proof.Len = int(top + WordSize - s.Proof.Addr)
		s.Was = make([]byte, s.Proof.Len)
		if err := ReadAt(o.mem, s.Proof.Addr, s.Was); err != nil {
			return s, false, err
		}
	}
	s.Awaits, err = ReadWord(o.mem, top)
	s.Awaits &^= l.Frame.CodeTag
	return s, true, err
}

// resumesAwait returns a frame that is suspended by await or yield from, and not by
// yield, where its state does not show: the argument of the next instruction, RESUME,
// is 2 or 3 then (Python/bytecodes.c).
func (o *Objects) resumesAwait(instr uint64) (bool, error) {
	var next [2 * InstrSize]byte
	err := ReadAt(o.mem, instr, next[:])
	return next[InstrSize+1] >= 2, err
}

// Coroutine returns the object with a frame that an awaited object wraps:
// or the object itself; 0 where there is none, as of a future.
func (o *Objects) Coroutine(at uint64) (uint64, error) {
	for range 2 {
		if !mayBeObject(at) {
			return 0, nil
		}
		switch o.TypeName(at) {
		case "coroutine", "generator", "async_generator":
			return at, nil
		case "coroutine_wrapper", "async_generator_asend", "async_generator_athrow":
			var err error
			if at, err = ReadWord(o.mem, at+wrapped); err != nil {
				return 0, err
			}
		default:
			return 0, nil
		}
	}
	return 0, nil
}

// OfTask returns the coroutine of an asyncio task; what is no task is returned as it is.
func (o *Objects) OfTask(object uint64) (uint64, error) {
	if object == 0 {
		return 0, nil
	}
	switch o.TypeName(object) {
	case "_asyncio.Task":
		return ReadWord(o.mem, object+o.layout.Task.Coro)
	case "Task": // asyncio's own in Python, as nest_asyncio uses it
		return o.Attribute(object, "_coro")
	}
	return object, nil
}
