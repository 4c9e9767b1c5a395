package cpython

// field is one offset, under CPython's own name of it.
type field struct {
	name   string // structure.field, or "sizeof structure"
	offset uint64
	header string // that has it, below Include/
}

// tables are the offsets of the versions that do not describe them. They hold on amd64
// and arm64: what differs between them in size, the mutexes and condition variables of
// pthreads, lies behind all that is read.
var tables = map[string][]field{
	"3.11": {
		{"_PyRuntimeState.interpreters.head", 40, "internal/pycore_runtime.h"},
		{"_PyRuntimeState.ceval.gil", 360, "internal/pycore_runtime.h"},
		{"PyInterpreterState.next", 0, "internal/pycore_interp.h"},
		{"PyInterpreterState.threads.head", 16, "internal/pycore_interp.h"},
		{"PyInterpreterState.gc.collecting", 848, "internal/pycore_interp.h"},
		{"PyInterpreterState.modules", 888, "internal/pycore_interp.h"},
		{"PyThreadState.next", 8, "cpython/pystate.h"},
		{"PyThreadState.interp", 16, "cpython/pystate.h"},
		{"PyThreadState.cframe", 56, "cpython/pystate.h"},
		{"PyThreadState.dict", 128, "cpython/pystate.h"},
		{"PyThreadState.thread_id", 152, "cpython/pystate.h"},
		{"PyThreadState.native_thread_id", 160, "cpython/pystate.h"},
		{"PyThreadState.datastack_chunk", 296, "cpython/pystate.h"},
		{"PyThreadState.datastack_top", 304, "cpython/pystate.h"},
		{"_PyCFrame.current_frame", 8, "cpython/pystate.h"},
		{"_PyInterpreterFrame.f_code", 32, "internal/pycore_frame.h"},
		{"_PyInterpreterFrame.previous", 48, "internal/pycore_frame.h"},
		{"_PyInterpreterFrame.prev_instr", 56, "internal/pycore_frame.h"},
		{"_PyInterpreterFrame.stacktop", 64, "internal/pycore_frame.h"},
		{"_PyInterpreterFrame.is_entry", 68, "internal/pycore_frame.h"},
		{"_PyInterpreterFrame.owner", 69, "internal/pycore_frame.h"},
		{"_PyInterpreterFrame.localsplus", 72, "internal/pycore_frame.h"},
		{"PyGenObject.gi_frame_state", 75, "cpython/genobject.h"},
		{"PyGenObject.gi_iframe", 80, "cpython/genobject.h"},
		{"PyCodeObject.co_exceptiontable", 40, "cpython/code.h"},
		{"PyCodeObject.co_stacksize", 68, "cpython/code.h"},
		{"PyCodeObject.co_firstlineno", 72, "cpython/code.h"},
		{"PyCodeObject.co_nlocalsplus", 76, "cpython/code.h"},
		{"PyCodeObject.co_localsplusnames", 96, "cpython/code.h"},
		{"PyCodeObject.co_filename", 112, "cpython/code.h"},
		{"PyCodeObject.co_name", 120, "cpython/code.h"},
		{"PyCodeObject.co_qualname", 128, "cpython/code.h"},
		{"PyCodeObject.co_linetable", 136, "cpython/code.h"},
		{"PyCodeObject._co_firsttraceable", 168, "cpython/code.h"},
		{"PyCodeObject.co_code_adaptive", 184, "cpython/code.h"},
		{"PyASCIIObject.length", 16, "cpython/unicodeobject.h"},
		{"PyASCIIObject.state", 32, "cpython/unicodeobject.h"},
		{"sizeof PyASCIIObject", 48, "cpython/unicodeobject.h"},
		{"sizeof PyCompactUnicodeObject", 72, "cpython/unicodeobject.h"},
		{"PyBytesObject.ob_sval", 32, "cpython/bytesobject.h"},
		{"PyTupleObject.ob_item", 24, "cpython/tupleobject.h"},
		{"PyTypeObject.tp_name", 24, "cpython/object.h"},
		{"PyHeapTypeObject.ht_cached_keys", 872, "cpython/object.h"},
		{"TaskObj.task_loop", 16, "Modules/_asynciomodule.c"},
		{"TaskObj.task_callback0", 24, "Modules/_asynciomodule.c"},
		{"TaskObj.task_callbacks", 40, "Modules/_asynciomodule.c"},
		{"TaskObj.task_state", 88, "Modules/_asynciomodule.c"},
		{"TaskObj.task_fut_waiter", 128, "Modules/_asynciomodule.c"},
		{"TaskObj.task_coro", 136, "Modules/_asynciomodule.c"},
		{"TaskObj.task_name", 144, "Modules/_asynciomodule.c"},
		{"sizeof TaskObj", 176, "Modules/_asynciomodule.c"},
	},
	"3.12": {
		{"_PyRuntimeState.interpreters.head", 40, "internal/pycore_runtime.h"},
		{"PyInterpreterState.next", 0, "internal/pycore_interp.h"},
		{"PyInterpreterState.threads.head", 72, "internal/pycore_interp.h"},
		{"PyInterpreterState.gc.collecting", 312, "internal/pycore_interp.h"},
		{"PyInterpreterState.ceval.gil", 384, "internal/pycore_interp.h"},
		{"PyInterpreterState.imports.modules", 944, "internal/pycore_interp.h"},
		{"PyThreadState.next", 8, "cpython/pystate.h"},
		{"PyThreadState.interp", 16, "cpython/pystate.h"},
		{"PyThreadState.cframe", 56, "cpython/pystate.h"},
		{"PyThreadState.dict", 112, "cpython/pystate.h"},
		{"PyThreadState.thread_id", 136, "cpython/pystate.h"},
		{"PyThreadState.native_thread_id", 144, "cpython/pystate.h"},
		{"PyThreadState.datastack_chunk", 232, "cpython/pystate.h"},
		{"PyThreadState.datastack_top", 240, "cpython/pystate.h"},
		{"_PyCFrame.current_frame", 0, "cpython/pystate.h"},
		{"_PyInterpreterFrame.f_code", 0, "internal/pycore_frame.h"},
		{"_PyInterpreterFrame.previous", 8, "internal/pycore_frame.h"},
		{"_PyInterpreterFrame.prev_instr", 56, "internal/pycore_frame.h"},
		{"_PyInterpreterFrame.stacktop", 64, "internal/pycore_frame.h"},
		{"_PyInterpreterFrame.owner", 70, "internal/pycore_frame.h"},
		{"_PyInterpreterFrame.localsplus", 72, "internal/pycore_frame.h"},
		{"PyGenObject.gi_frame_state", 67, "cpython/genobject.h"},
		{"PyGenObject.gi_iframe", 72, "cpython/genobject.h"},
		{"PyCodeObject.co_exceptiontable", 40, "cpython/code.h"},
		{"PyCodeObject.co_firstlineno", 68, "cpython/code.h"},
		{"PyCodeObject.co_nlocalsplus", 72, "cpython/code.h"},
		{"PyCodeObject.co_framesize", 76, "cpython/code.h"},
		{"PyCodeObject.co_version", 92, "cpython/code.h"},
		{"PyCodeObject.co_localsplusnames", 96, "cpython/code.h"},
		{"PyCodeObject.co_filename", 112, "cpython/code.h"},
		{"PyCodeObject.co_name", 120, "cpython/code.h"},
		{"PyCodeObject.co_qualname", 128, "cpython/code.h"},
		{"PyCodeObject.co_linetable", 136, "cpython/code.h"},
		{"PyCodeObject._co_firsttraceable", 176, "cpython/code.h"},
		{"PyCodeObject.co_code_adaptive", 192, "cpython/code.h"},
		{"PyASCIIObject.length", 16, "cpython/unicodeobject.h"},
		{"PyASCIIObject.state", 32, "cpython/unicodeobject.h"},
		{"sizeof PyASCIIObject", 40, "cpython/unicodeobject.h"},
		{"sizeof PyCompactUnicodeObject", 56, "cpython/unicodeobject.h"},
		{"PyBytesObject.ob_sval", 32, "cpython/bytesobject.h"},
		{"PyTupleObject.ob_item", 24, "cpython/tupleobject.h"},
		{"PyTypeObject.tp_name", 24, "cpython/object.h"},
		{"PyHeapTypeObject.ht_cached_keys", 880, "cpython/object.h"},
		{"TaskObj.task_loop", 16, "Modules/_asynciomodule.c"},
		{"TaskObj.task_callback0", 24, "Modules/_asynciomodule.c"},
		{"TaskObj.task_callbacks", 40, "Modules/_asynciomodule.c"},
		{"TaskObj.task_state", 88, "Modules/_asynciomodule.c"},
		{"TaskObj.task_fut_waiter", 128, "Modules/_asynciomodule.c"},
		{"TaskObj.task_coro", 136, "Modules/_asynciomodule.c"},
		{"TaskObj.task_name", 144, "Modules/_asynciomodule.c"},
		{"sizeof TaskObj", 176, "Modules/_asynciomodule.c"},
	},
}

// undescribed are the offsets that _Py_DebugOffsets leaves out. Where one is not listed here
// it follows from another that the version describes: relatives.
var undescribed = map[string][]field{
	"3.13": {
		{"_PyThreadStateImpl.asyncio_running_loop", 304, "internal/pycore_tstate.h"},
		{"struct _gc_runtime_state.collecting", 200, "internal/pycore_gc.h"},
		{"_PyInterpreterFrame.stacktop", 64, "internal/pycore_frame.h"},
		{"PyGenObject.gi_frame_state", 67, "cpython/genobject.h"},
		{"PyGenObject.gi_iframe", 72, "cpython/genobject.h"},
		{"PyCodeObject.co_exceptiontable", 40, "cpython/code.h"},
		{"PyCodeObject.co_nlocalsplus", 72, "cpython/code.h"},
		{"PyCodeObject.co_framesize", 76, "cpython/code.h"},
		{"PyCodeObject.co_version", 92, "cpython/code.h"},
		{"PyHeapTypeObject.ht_cached_keys", 880, "cpython/object.h"},
		{"TaskObj.task_loop", 16, "Modules/_asynciomodule.c"},
		{"TaskObj.task_callback0", 24, "Modules/_asynciomodule.c"},
		{"TaskObj.task_callbacks", 40, "Modules/_asynciomodule.c"},
		{"TaskObj.task_state", 96, "Modules/_asynciomodule.c"},
		{"TaskObj.task_fut_waiter", 112, "Modules/_asynciomodule.c"},
		{"TaskObj.task_coro", 120, "Modules/_asynciomodule.c"},
		{"TaskObj.task_name", 128, "Modules/_asynciomodule.c"},
		{"sizeof TaskObj", 144, "Modules/_asynciomodule.c"},
	},
	"3.14": {
		{"PyCodeObject.co_exceptiontable", 40, "cpython/code.h"},
		{"PyCodeObject.co_nlocalsplus", 72, "cpython/code.h"},
		{"PyCodeObject.co_framesize", 76, "cpython/code.h"},
		{"PyCodeObject.co_version", 92, "cpython/code.h"},
		{"PyHeapTypeObject.ht_cached_keys", 880, "cpython/object.h"},
		{"TaskObj.task_loop", 16, "Modules/_asynciomodule.c"},
		{"TaskObj.task_callback0", 24, "Modules/_asynciomodule.c"},
		{"TaskObj.task_callbacks", 40, "Modules/_asynciomodule.c"},
		{"TaskObj.task_state", 104, "Modules/_asynciomodule.c"},
		{"TaskObj.task_fut_waiter", 120, "Modules/_asynciomodule.c"},
		{"TaskObj.task_coro", 128, "Modules/_asynciomodule.c"},
		{"TaskObj.task_name", 136, "Modules/_asynciomodule.c"},
		{"sizeof TaskObj", 168, "Modules/_asynciomodule.c"},
	},
	"3.15": {
		{"PyCodeObject.co_exceptiontable", 40, "cpython/code.h"},
		{"PyCodeObject.co_nlocalsplus", 72, "cpython/code.h"},
		{"PyCodeObject.co_framesize", 76, "cpython/code.h"},
		{"PyCodeObject.co_version", 92, "cpython/code.h"},
		{"TaskObj.task_loop", 16, "Modules/_asynciomodule.c"},
		{"TaskObj.task_callback0", 24, "Modules/_asynciomodule.c"},
		{"TaskObj.task_callbacks", 40, "Modules/_asynciomodule.c"},
		{"TaskObj.task_state", 104, "Modules/_asynciomodule.c"},
		{"TaskObj.task_fut_waiter", 120, "Modules/_asynciomodule.c"},
		{"TaskObj.task_coro", 128, "Modules/_asynciomodule.c"},
		{"TaskObj.task_name", 136, "Modules/_asynciomodule.c"},
		{"sizeof TaskObj", 168, "Modules/_asynciomodule.c"},
	},
}

// relatives are fields that lie at a fixed distance from one that the version describes.
var relatives = []struct {
	name, of string
	distance int64
	header   string
}{
	{"PyThreadState.thread_id", "PyThreadState.native_thread_id", -8, "cpython/pystate.h"},
	{"PyThreadState.datastack_top", "PyThreadState.datastack_chunk", 8, "cpython/pystate.h"},
	{"PyCodeObject._co_firsttraceable", "PyCodeObject.co_code_adaptive", -16, "cpython/code.h"}, // before co_extra, the last pointer
	{"sizeof PyCompactUnicodeObject", "sizeof PyASCIIObject", 16, "cpython/unicodeobject.h"},    // utf8_length and utf8
}

func offsetsOf(table []field) map[string]uint64 {
	at := make(map[string]uint64, len(table))
	for _, f := range table {
		at[f.name] = f.offset
	}
	return at
}

// suspendedStates are the values of gi_frame_state (internal/pycore_frame.h) that show
// a suspended frame, FRAME_SUSPENDED and FRAME_SUSPENDED_YIELD_FROM where it is one of
// its own, and how many words below its stack's top is what it awaits (_PyGen_yf in
// Objects/genobject.c); and one that has not begun, FRAME_CREATED, or runs, FRAME_EXECUTING.
var suspendedStates = map[string]struct {
	yielded, awaits    int8
	awaited            uint64
	created, executing int8
}{
	"3.11": {-1, -1, 1, -2, 0},
	"3.12": {-1, -1, 1, -2, 0},
	"3.13": {-2, -1, 1, -3, 0},
	"3.14": {-2, -1, 1, -3, 0},
	"3.15": {1, 2, 2, 0, 4},
}

// callCaches is INLINE_CACHE_ENTRIES_CALL (internal/pycore_opcode.h) of the versions
// in which prev_instr points to the last cache of a call that has entered a frame.
var callCaches = map[string]int{"3.11": 4, "3.12": 3}

// Opcodes are those that show what a frame is doing.
type Opcodes struct {
	Calls   string // CALL, CALL_KW (3.13+), and what they are specialized or instrumented to where they call a Python function
	Returns string // likewise; not needed where a frame's StackTop shows it
}

// opcodesOf has them by version, from opcode_ids.h (3.13+: Include/opcode_ids.h;
// before: Include/opcode.h, Include/internal/pycore_opcode.h). calls_test.go in
// pystack compares them with the interpreters' own.
var opcodesOf = map[string]Opcodes{
	"3.11": {Calls: "\xab\x16\x17\x18"},
	"3.12": {Calls: "\xab\xf1\x17\x18\x1c"},
	"3.13": {Calls: "\x35\x39\xa3\xa4\xb1\xb2\xf4\xf5"},
	"3.14": {Calls: "\x34\x37\x90\x91\x97\x99\xa1\xa2\xfa\xfb", Returns: "\x22\x23\xf6"},
	"3.15": {Calls: "\x32\x35\x91\x92\x9a\x9c\xa4\xa5\xf9\xfa", Returns: "\x20\x21\xf5"},
}
