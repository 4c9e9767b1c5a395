package cpython

import "fmt"

// Layout says where the fields lie that are read, in bytes from the start of their
// structure. It is fixed per build of the interpreter: by a table for 3.11 and 3.12,
// by what the process says of itself from 3.13 on. CPython's names of the fields are
// those that layoutOf takes them by.
type Layout struct {
	Version Version

	Runtime struct {
		InterpretersHead uint64
		GIL              uint64 // the GIL itself (3.11); 0 = it is the interpreter's
	}
	Interp struct {
		Next, ThreadsHead uint64
		GIL               uint64 // a pointer to it; unused where Runtime.GIL is set
		CodeGeneration    uint64 // count of code objects freed; 0 = has none (before 3.14)
		Modules           uint64 // sys.modules
		Collecting        uint64 // an int that is 1 while the garbage collector runs
	}
	Thread struct {
		Next, Interp, NativeID uint64
		Ident                  uint64 // what threading calls so; locks have it of their owner
		Dict                   uint64 // of what C modules keep of it; 0 = not known (from 3.13 on)
		RunningLoop            uint64 // asyncio's; 0 = it is in Dict (before 3.13), or asyncio says where (from 3.14 on)
		Frame                  uint64 // current_frame, or cframe where CFrame.Is is set
		Chunk, Top             uint64
		Size                   uint64 // bytes from the start that hold all of these
	}
	CFrame struct {
		Is    bool   // 3.11, 3.12: Thread.Frame is a _PyCFrame on the C stack
		Frame uint64 // which has the frame here
	}

	Frame struct {
		Code, Previous, Instr, Locals uint64
		Owner                         uint64
		// StackTop is an int32 that is -1 while the frame runs, and else says how much
		// it has on its stack: it has called another. 0 = has none (3.14+).
		StackTop uint64
		// StackPointer is the address of the top of its stack while it does not run; 0 =
		// has none (before 3.14).
		StackPointer uint64
		IsEntry      uint64 // 3.11: 1 in a frame that C code has entered; 0 = has none
		Size         uint64 // bytes up to the locals
		CodeTag      uint64 // bits of the code pointer and of values that are not address
	}
	HasShims   bool // 3.12+: each entry of the interpreter leaves a frame on the C stack
	CallCaches int  // caches between a call's opcode and where a frame's Instr points meanwhile
	Opcodes    Opcodes

	// Generators, coroutines and asynchronous generators begin alike.
	Gen struct {
		Frame           uint64 // of the frame within the object
		State           uint64 // a byte
		Yielded, Awaits int8   // its values for a frame suspended in yield, and in await or yield from …
		Created, Runs   int8   // … and for one that has not begun, and that is on a thread's stack
		Awaited         uint64 // words from the top of a suspended frame's stack down to what it awaits
	}
	// Task is asyncio's, in C; it begins as its futures do.
	Task struct {
		Loop, Callback0, Callbacks uint64
		State                      uint64 // an int32: 0 pending, 1 cancelled, 2 finished
		Waiter, Coro, Name         uint64
		Size                       uint64
	}

	Code struct {
		Filename, Name, Qualname, LineTable uint64
		FirstLine, Instructions             uint64
		FrameSize                           uint64 // in words; 0 = computed (3.11)
		StackSize, LocalsCount              uint64 // of which; the first is used for 3.11 alone
		ExceptionTable                      uint64
		FirstTraceable                      uint64 // in instructions
		Version                             uint64 // 0 = has none (3.11)
		LocalNames                          uint64
	}
	Str struct {
		Length, State, ASCII, Compact uint64 // the last two: where the text begins
	}
	BytesData  uint64
	TupleItems uint64
	TypeName   uint64
	CachedKeys uint64 // of a heap type: the keys that its objects' attributes share
}

// What is the same in every version from 3.11 to 3.15 and no version describes.
// Headers are below Include/.
const (
	WordSize = 8
	// InstrSize is that of a _Py_CODEUNIT: an instruction or a cache (cpython/code.h).
	InstrSize = 2

	objectType = 8  // PyObject.ob_type (object.h)
	varSize    = 16 // PyVarObject.ob_size (object.h)

	ChunkPrevious = 0  // _PyStackChunk.previous (cpython/pystate.h)
	ChunkSize     = 8  // _PyStackChunk.size
	ChunkTop      = 16 // _PyStackChunk.top, written when another chunk is pushed
	ChunkData     = 24 // _PyStackChunk.data
	RootFrame     = 32 // a thread's first frame in its chunk: the first word of data stays unused (Python/pystate.c, push_chunk)

	GILHolder   = 8   // _gil_runtime_state.last_holder (internal/pycore_gil.h)
	GILLocked   = 16  // _gil_runtime_state.locked
	GILSwitches = 24  // _gil_runtime_state.switch_number
	GILCond     = 32  // _gil_runtime_state.cond: the condition variables and mutexes, which waiting threads' futexes lie in
	GILSize     = 224 // on arm64; 208 on amd64, with nothing a thread could wait for behind it
	GILAndMore  = 1024

	OwnerThread = 0 // FRAME_OWNED_BY_THREAD (internal/pycore_frame.h)
	OwnerGen    = 1 // FRAME_OWNED_BY_GENERATOR
	OwnerShim   = 3 // FRAME_OWNED_BY_CSTACK, or _INTERPRETER from 3.14 on; from here up they are no Python frames

	maxHead       = 256 // bytes of a code object's head
	maxStringHead = 64
	MaxThreadSize = 512 // bytes of a thread state that are read at most
	MaxFrameSize  = 128 // of a frame without its locals
)

// ReadLayout chooses the layout by what the runtime at an address says of itself. hex
// is PY_VERSION_HEX where it is known otherwise, file names the interpreter in errors.
func ReadLayout(m Memory, runtime, hex uint64, file string) (*Layout, error) {
	buf := make([]byte, debugOffsetsLen)
	if err := ReadAt(m, runtime, buf); err != nil {
		return nil, fmt.Errorf("reading _PyRuntime of %s: %w", file, err)
	}
	v := versionFromHex(hex)
	if h, ok := parseDebugHeader(buf); ok {
		v = h.version
		if h.freeThreaded {
			return nil, fmt.Errorf("%s is CPython %v without GIL: %w", file, v, ErrFreeThreaded)
		}
		if debugGroups[v.minor()] == nil {
			return nil, unsupported(v)
		}
		l, err := parseDebugOffsets(buf, v)
		if err != nil {
			return nil, fmt.Errorf("%w: CPython %v: %w", ErrUnsupported, v, err)
		}
		return l, nil
	}
	table, ok := tables[v.minor()]
	if !ok {
		return nil, unsupported(v)
	}
	return layoutOf(v, offsetsOf(table))
}

// layoutOf takes a version's offsets by CPython's names of the fields.
func layoutOf(v Version, at map[string]uint64) (*Layout, error) {
	l := &Layout{Version: v, HasShims: v.Minor >= 12, Opcodes: opcodesOf[v.minor()]}
	l.Runtime.InterpretersHead, l.Runtime.GIL = at["_PyRuntimeState.interpreters.head"], at["_PyRuntimeState.ceval.gil"]
	l.Interp.Next, l.Interp.ThreadsHead = at["PyInterpreterState.next"], at["PyInterpreterState.threads.head"]
	l.Interp.GIL, l.Interp.CodeGeneration = at["PyInterpreterState.ceval.gil"], at["PyInterpreterState._code_object_generation"]
	if l.Interp.Collecting = at["PyInterpreterState.gc.collecting"]; l.Interp.Collecting == 0 {
		l.Interp.Collecting = at["PyInterpreterState.gc"] + max(at["_gc_runtime_state.collecting"], at["struct _gc_runtime_state.collecting"])
	}
	l.Interp.Modules = max(at["PyInterpreterState.imports.modules"], at["PyInterpreterState.modules"])

	l.Thread.Next, l.Thread.Interp = at["PyThreadState.next"], at["PyThreadState.interp"]
	l.Thread.NativeID, l.Thread.Frame = at["PyThreadState.native_thread_id"], at["PyThreadState.current_frame"]
	l.Thread.Ident = at["PyThreadState.thread_id"]
	l.Thread.Dict, l.Thread.RunningLoop = at["PyThreadState.dict"], at["_PyThreadStateImpl.asyncio_running_loop"]
	l.Thread.Chunk, l.Thread.Top = at["PyThreadState.datastack_chunk"], at["PyThreadState.datastack_top"]
	if at["PyThreadState.cframe"] != 0 {
		l.CFrame.Is, l.CFrame.Frame, l.Thread.Frame = true, at["_PyCFrame.current_frame"], at["PyThreadState.cframe"]
	}
	l.Thread.Size = max(l.Thread.Top, l.Thread.NativeID, l.Thread.Frame, l.Thread.Interp) + WordSize

	f := &l.Frame
	f.Code, f.Previous, f.Owner = at["_PyInterpreterFrame.f_code"], at["_PyInterpreterFrame.previous"], at["_PyInterpreterFrame.owner"]
	f.Instr, f.Locals = at["_PyInterpreterFrame.prev_instr"], at["_PyInterpreterFrame.localsplus"]
	if v.Minor >= 13 {
		f.Code, f.Instr = at["_PyInterpreterFrame.f_executable"], at["_PyInterpreterFrame.instr_ptr"]
	}
	f.StackTop, f.StackPointer = at["_PyInterpreterFrame.stacktop"], at["_PyInterpreterFrame.stackpointer"]
	f.IsEntry, f.Size = at["_PyInterpreterFrame.is_entry"], f.Locals
	if v.Minor >= 14 {
		f.CodeTag = 3 // of a _PyStackRef (internal/pycore_stackref.h: Py_TAG_BITS)
	}
	l.CallCaches = callCaches[v.minor()]

	l.Gen.Frame, l.Gen.State = at["PyGenObject.gi_iframe"], at["PyGenObject.gi_frame_state"]
	s := suspendedStates[v.minor()]
	l.Gen.Yielded, l.Gen.Awaits, l.Gen.Awaited = s.yielded, s.awaits, s.awaited
	l.Gen.Created, l.Gen.Runs = s.created, s.executing
	k := &l.Task
	k.Loop, k.Callback0, k.Callbacks = at["TaskObj.task_loop"], at["TaskObj.task_callback0"], at["TaskObj.task_callbacks"]
	k.State, k.Waiter, k.Coro = at["TaskObj.task_state"], at["TaskObj.task_fut_waiter"], at["TaskObj.task_coro"]
	k.Name, k.Size = at["TaskObj.task_name"], at["sizeof TaskObj"]

	c := &l.Code
	c.Filename, c.Name, c.Qualname = at["PyCodeObject.co_filename"], at["PyCodeObject.co_name"], at["PyCodeObject.co_qualname"]
	c.LineTable, c.FirstLine = at["PyCodeObject.co_linetable"], at["PyCodeObject.co_firstlineno"]
	c.Instructions, c.FirstTraceable = at["PyCodeObject.co_code_adaptive"], at["PyCodeObject._co_firsttraceable"]
	c.FrameSize, c.Version = at["PyCodeObject.co_framesize"], at["PyCodeObject.co_version"]
	c.StackSize, c.LocalsCount = at["PyCodeObject.co_stacksize"], at["PyCodeObject.co_nlocalsplus"]
	c.LocalNames, c.ExceptionTable = at["PyCodeObject.co_localsplusnames"], at["PyCodeObject.co_exceptiontable"]

	l.Str.Length, l.Str.State = at["PyASCIIObject.length"], at["PyASCIIObject.state"]
	l.Str.ASCII, l.Str.Compact = at["sizeof PyASCIIObject"], at["sizeof PyCompactUnicodeObject"]
	l.BytesData, l.TupleItems = at["PyBytesObject.ob_sval"], at["PyTupleObject.ob_item"]
	l.TypeName, l.CachedKeys = at["PyTypeObject.tp_name"], at["PyHeapTypeObject.ht_cached_keys"]
	return l, l.check()
}

// check refuses offsets no build of CPython can have, so that a wrong parse is
// found here and not as wrong stacks.
func (l *Layout) check() error {
	for _, f := range []struct {
		name       string
		value, max uint64
	}{
		{"thread state", l.Thread.Size, MaxThreadSize},
		{"thread frame", l.Thread.Frame, l.Thread.Size - WordSize},
		{"native thread id", l.Thread.NativeID, l.Thread.Size - WordSize},
		{"frame", l.Frame.Size, MaxFrameSize},
		{"frame owner", l.Frame.Owner, l.Frame.Size - 1},
		{"frame stack top", l.Frame.StackTop, l.Frame.Size - 4},
		{"frame stack pointer", l.Frame.StackPointer, l.Frame.Size - WordSize},
		{"frame instruction", l.Frame.Instr, l.Frame.Size - WordSize},
		{"frame code", l.Frame.Code, l.Frame.Size - WordSize},
		{"frame previous", l.Frame.Previous, l.Frame.Size - WordSize},
		{"generator frame", l.Gen.Frame, 256},
		{"generator state", l.Gen.State, l.Gen.Frame - 1},
		{"task", l.Task.Size, 512},
		{"code instructions", l.Code.Instructions, maxHead},
		{"code names", max(l.Code.Filename, l.Code.Name, l.Code.Qualname, l.Code.LineTable), l.Code.Instructions - WordSize},
		{"code first line", l.Code.FirstLine, l.Code.Instructions - 4},
		{"code version", l.Code.Version, l.Code.Instructions - 4},
		{"string", l.Str.ASCII, maxStringHead},
		{"string fields", max(l.Str.State, l.Str.Length), l.Str.ASCII - WordSize},
		{"tuple items", l.TupleItems, 64},
	} {
		if f.value > f.max || f.value == 0 && f.name == "code instructions" {
			return fmt.Errorf("%s at %d of at most %d", f.name, f.value, f.max)
		}
	}
	return nil
}
