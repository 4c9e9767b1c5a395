package pystack

import "fmt"

// layout says where the fields lie that a sampler reads, in bytes from the
// start of their structure. It is fixed per build of the interpreter: by a
// table for 3.11 and 3.12, by what the process says of itself
// (_Py_DebugOffsets) from 3.13 on.
type layout struct {
	version version

	runtime struct{ interpretersHead uint64 }
	interp  struct {
		next, threadsHead uint64
		gil               uint64 // pointer to the GIL; unused where gilInRuntime is set
		codeGeneration    uint64 // 0 = has none (before 3.14)
	}
	gilInRuntime uint64 // the GIL's place in _PyRuntime (3.11); 0 = by interp.gil
	thread       struct {
		prev, next, interp uint64
		id, nativeID       uint64
		frame              uint64 // current_frame, or cframe where viaCFrame is set
		chunk, top         uint64
		size               uint64 // bytes from the start that hold all of these
		gilRequested       uint64 // 0 = has none (before 3.15)
	}
	viaCFrame   bool   // 3.11, 3.12: frame is a _PyCFrame on the C stack
	cframeFrame uint64 // _PyCFrame.current_frame

	frame struct {
		code, previous, instr, locals uint64
		owner                         uint64
		// stackTop is an int32 that is -1 while the frame runs, and else says how much
		// it has on its stack: it has called another. 0 = not to be relied on (3.14+).
		stackTop uint64
		isEntry  uint64 // 3.11: 1 in a frame that C code has entered; 0 = has none
		// stackPointer is the address of the top of its stack while it does not run; 0 =
		// has none, stackTop tells (before 3.14).
		stackPointer uint64
		awaited      uint64 // a suspended frame has what it awaits this many words below the top
		size         uint64 // bytes up to the locals
	}
	callCaches int // caches between a call's opcode and where a frame's instr stands meanwhile
	opcodes    opcodes
	hasShims   bool   // 3.12+: each entry of the interpreter leaves a frame on the C stack
	codeTag    uint64 // bits of a frame's code pointer that are not address
	instrIsNow bool   // 3.13+: instr is the instruction itself, not the one before the next

	// Generators, coroutines and asynchronous generators begin alike (PyGenObject).
	gen struct {
		frame           uint64 // gi_iframe
		state           uint64 // gi_frame_state, a byte
		yielded, awaits int8   // its values for a frame suspended in yield, and in await or yield from
	}

	code struct {
		filename, name, qualname, lineTable uint64
		firstLine, instructions             uint64
		frameSize                           uint64 // co_framesize in words; 0 = computed (3.11)
		stackSize, nLocalsPlus              uint64
		firstTraceable                      uint64 // _co_firsttraceable, in instructions
		version                             uint64 // co_version; 0 = has none (3.11)
		localNames                          uint64 // co_localsplusnames
	}
	str struct {
		length, state, ascii, compact uint64
	}
	bytesData  uint64 // PyBytesObject.ob_sval
	typeName   uint64 // PyTypeObject.tp_name
	cachedKeys uint64 // PyHeapTypeObject.ht_cached_keys
	tupleItems uint64 // PyTupleObject.ob_item
	taskCoro   uint64 // TaskObj.task_coro of _asyncio
}

// Parts that are the same in every version from 3.11 to 3.15 and that no
// version tells about itself.
const (
	objectType    = 8  // PyObject.ob_type
	varSize       = 16 // PyVarObject.ob_size
	chunkPrev     = 0  // _PyStackChunk.previous
	chunkSize     = 8  // _PyStackChunk.size
	chunkData     = 24 // _PyStackChunk.data
	rootFrame     = 32 // a thread's first frame: the first word of data stays unused
	gilHolder     = 8  // _gil_runtime_state.last_holder
	gilLocked     = 16
	gilSwitches   = 24
	gilAndMore    = 1024 // bytes from a GIL to the last word that is read with it, at most
	gilCond       = 32   // the condition variables and mutexes, which waiting threads' futexes lie in
	gilSize       = 224  // on arm64; 208 on amd64, with nothing a thread could wait for behind it
	ownerThread   = 0
	ownerGen      = 1
	ownerObject   = 2
	ownerShim     = 3 // CSTACK, or INTERPRETER from 3.14 on; everything from here up is no Python frame
	wordSize      = 8
	instrSize     = 2  // bytes of an instruction or cache slot
	codeVersion   = 92 // PyCodeObject.co_version (3.12+)
	wrappedAt     = 16 // PyCoroWrapper.cw_coroutine, PyAsyncGenASend.ags_gen, PyAsyncGenAThrow.agt_gen
	maxTypes      = 4096
	maxCodeSize   = 256 // bytes of a code object's head that are read
	maxStringHead = 64
	maxThreadLen  = 512 // bytes of a thread state that are read at most
)

// opcodes are those that tell what a frame is doing.
type opcodes struct {
	calls   string // CALL, CALL_KW (3.13+), and what they are specialized or instrumented to where they call a Python function
	returns string // likewise; not needed where a frame's stackTop tells
}

// opcodesOf has them by minor version.
var opcodesOf = map[int]opcodes{
	11: {calls: "\xab\x16\x17\x18"},
	12: {calls: "\xab\xf1\x17\x18\x1c"},
	13: {calls: "\x35\x39\xa3\xa4\xb1\xb2\xf4\xf5"},
	14: {calls: "\x34\x37\x90\x91\x97\x99\xa1\xa2\xfa\xfb", returns: "\x22\x23\xf6"},
	15: {calls: "\x32\x35\x91\x92\x9a\x9c\xa4\xa5\xf9\xfa", returns: "\x20\x21\xf5"},
}

// version is major, minor, micro of the interpreter.
type version struct{ major, minor, micro int }

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.micro) }

// versionFromHex decodes PY_VERSION_HEX.
func versionFromHex(hex uint64) version {
	return version{int(hex>>24) & 0xff, int(hex>>16) & 0xff, int(hex>>8) & 0xff}
}

func (v version) is(major, minor int) bool { return v.major == major && v.minor == minor }

// layoutTable returns the layout of versions that do not describe themselves.
// It holds on amd64 and arm64: what differs between them in size, the mutexes
// and condition variables of pthreads, lies behind all that is read.
func layoutTable(v version) (*layout, bool) {
	switch {
	case v.is(3, 11):
		l := layout311()
		l.version = v
		return l, true
	case v.is(3, 12):
		l := layout312()
		l.version = v
		return l, true
	}
	return nil, false
}

func layout311() *layout {
	l := &layout{gilInRuntime: 360, viaCFrame: true, cframeFrame: 8}
	l.runtime.interpretersHead = 40
	l.interp.next, l.interp.threadsHead = 0, 16
	l.thread.prev, l.thread.next, l.thread.interp = 0, 8, 16
	l.thread.id, l.thread.nativeID, l.thread.frame = 152, 160, 56
	l.thread.chunk, l.thread.top, l.thread.size = 296, 304, 312
	l.frame.code, l.frame.previous, l.frame.instr = 32, 48, 56
	l.frame.owner, l.frame.locals, l.frame.size = 69, 72, 72
	l.frame.stackTop, l.frame.isEntry = 64, 68
	l.frame.awaited = 1
	l.gen.frame, l.gen.state, l.gen.yielded, l.gen.awaits = 80, 75, -1, -1
	l.callCaches, l.opcodes = 4, opcodesOf[11]
	l.code.filename, l.code.name, l.code.qualname, l.code.lineTable = 112, 120, 128, 136
	l.code.firstLine, l.code.instructions = 72, 184
	l.code.stackSize, l.code.nLocalsPlus, l.code.firstTraceable, l.code.localNames = 68, 76, 168, 96
	l.str.length, l.str.state, l.str.ascii, l.str.compact = 16, 32, 48, 72
	l.bytesData, l.typeName, l.cachedKeys, l.tupleItems, l.taskCoro = 32, 24, 872, 24, 136
	return l
}

func layout312() *layout {
	l := &layout{viaCFrame: true, cframeFrame: 0, hasShims: true}
	l.runtime.interpretersHead = 40
	l.interp.next, l.interp.threadsHead, l.interp.gil = 0, 72, 384
	l.thread.prev, l.thread.next, l.thread.interp = 0, 8, 16
	l.thread.id, l.thread.nativeID, l.thread.frame = 136, 144, 56
	l.thread.chunk, l.thread.top, l.thread.size = 232, 240, 248
	l.frame.code, l.frame.previous, l.frame.instr = 0, 8, 56
	l.frame.owner, l.frame.locals, l.frame.size = 70, 72, 72
	l.frame.stackTop, l.frame.awaited = 64, 1
	l.gen.frame, l.gen.state, l.gen.yielded, l.gen.awaits = 72, 67, -1, -1
	l.callCaches, l.opcodes = 3, opcodesOf[12]
	l.code.filename, l.code.name, l.code.qualname, l.code.lineTable = 112, 120, 128, 136
	l.code.firstLine, l.code.instructions, l.code.frameSize, l.code.firstTraceable = 68, 192, 76, 176
	l.code.version, l.code.localNames = codeVersion, 96
	l.str.length, l.str.state, l.str.ascii, l.str.compact = 16, 32, 40, 56
	l.bytesData, l.typeName, l.cachedKeys, l.tupleItems, l.taskCoro = 32, 24, 880, 24, 136
	return l
}
