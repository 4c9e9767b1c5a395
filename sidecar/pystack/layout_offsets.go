package pystack

import (
	"encoding/binary"
	"fmt"
)

const (
	debugCookie     = "xdebugpy"
	debugOffsetsLen = 1024 // more than any version's _Py_DebugOffsets
)

// offsetGroup is one structure of _Py_DebugOffsets: the names of its fields in
// order. Fields are inserted in the middle from one minor version to the next,
// so there is one list for each.
type offsetGroup struct {
	name   string
	fields []string
}

// debugGroups lists the structures after the header (cookie, version,
// free_threaded), from Include/internal/pycore_debug_offsets.h (3.13:
// pycore_runtime.h) of each version.
func debugGroups(v version) []offsetGroup {
	switch {
	case v.is(3, 13):
		return []offsetGroup{
			{"runtime", []string{"size", "finalizing", "interpreters_head"}},
			{"interp", []string{"size", "id", "next", "threads_head", "gc", "imports_modules", "sysdict", "builtins",
				"ceval_gil", "gil", "gil_enabled", "gil_locked", "gil_holder"}},
			{"thread", []string{"size", "prev", "next", "interp", "current_frame", "thread_id", "native_thread_id",
				"datastack_chunk", "status"}},
			{"frame", []string{"size", "previous", "executable", "instr_ptr", "localsplus", "owner"}},
			codeGroup(),
			{"object", []string{"size", "ob_type"}},
			{"type", []string{"size", "tp_name", "tp_repr", "tp_flags"}},
			{"tuple", []string{"size", "ob_item", "ob_size"}},
			{"list", []string{"size", "ob_item", "ob_size"}},
			{"dict", []string{"size", "ma_keys", "ma_values"}},
			{"float", []string{"size", "ob_fval"}},
			{"long", []string{"size", "lv_tag", "ob_digit"}},
			{"bytes", []string{"size", "ob_size", "ob_sval"}},
			{"str", []string{"size", "state", "length", "ascii_size"}},
		}
	case v.is(3, 14):
		return []offsetGroup{
			{"runtime", []string{"size", "finalizing", "interpreters_head"}},
			interpGroup314(),
			{"thread", []string{"size", "prev", "next", "interp", "current_frame", "thread_id", "native_thread_id",
				"datastack_chunk", "status"}},
			frameGroup314(),
			codeGroup("co_tlbc"),
			{"object", []string{"size", "ob_type"}},
			{"type", []string{"size", "tp_name", "tp_repr", "tp_flags"}},
			{"tuple", []string{"size", "ob_item", "ob_size"}},
			{"list", []string{"size", "ob_item", "ob_size"}},
			{"set", []string{"size", "used", "table", "mask"}},
			{"dict", []string{"size", "ma_keys", "ma_values"}},
			{"float", []string{"size", "ob_fval"}},
			{"long", []string{"size", "lv_tag", "ob_digit"}},
			{"bytes", []string{"size", "ob_size", "ob_sval"}},
			{"str", []string{"size", "state", "length", "ascii_size"}},
			{"gc", []string{"size", "collecting"}},
			{"gen", []string{"size", "gi_name", "gi_iframe", "gi_frame_state"}},
		}
	case v.is(3, 15):
		return []offsetGroup{
			{"runtime", []string{"size", "finalizing", "interpreters_head"}},
			interpGroup314(),
			{"thread", []string{"size", "prev", "next", "interp", "current_frame", "base_frame", "last_profiled_frame",
				"last_profiled_frame_seq", "thread_id", "native_thread_id", "datastack_chunk", "status", "holds_gil",
				"gil_requested", "current_exception", "exc_state"}},
			{"err_stackitem", []string{"exc_value"}},
			frameGroup314(),
			codeGroup("co_tlbc"),
			{"object", []string{"size", "ob_type"}},
			{"type", []string{"size", "tp_name", "tp_repr", "tp_flags", "tp_basicsize", "tp_dictoffset"}},
			{"heap_type", []string{"size", "ht_cached_keys"}},
			{"tuple", []string{"size", "ob_item", "ob_size"}},
			{"list", []string{"size", "ob_item", "ob_size"}},
			{"set", []string{"size", "used", "table", "mask"}},
			{"dict", []string{"size", "ma_keys", "ma_values"}},
			{"float", []string{"size", "ob_fval"}},
			{"long", []string{"size", "lv_tag", "ob_digit"}},
			{"bytes", []string{"size", "ob_size", "ob_sval"}},
			{"str", []string{"size", "state", "length", "ascii_size", "compact_size"}},
			{"gc", []string{"size", "collecting", "frame", "generation_stats_size", "generation_stats"}},
			{"gen", []string{"size", "gi_name", "gi_iframe", "gi_frame_state"}},
		}
	}
	return nil
}

func interpGroup314() offsetGroup {
	return offsetGroup{"interp", []string{"size", "id", "next", "threads_head", "threads_main", "gc", "imports_modules",
		"sysdict", "builtins", "ceval_gil", "gil", "gil_enabled", "gil_locked", "gil_holder",
		"code_object_generation", "tlbc_generation"}}
}

func frameGroup314() offsetGroup {
	return offsetGroup{"frame", []string{"size", "previous", "executable", "instr_ptr", "localsplus", "owner",
		"stackpointer", "tlbc_index"}}
}

func codeGroup(more ...string) offsetGroup {
	return offsetGroup{"code", append([]string{"size", "filename", "name", "qualname", "linetable", "firstlineno",
		"argcount", "localsplusnames", "localspluskinds", "co_code_adaptive"}, more...)}
}

// debugHeader is the part of _Py_DebugOffsets that never moves.
type debugHeader struct {
	version      version
	freeThreaded bool
}

// parseDebugHeader reads the first bytes of _PyRuntime; ok is false when they
// are no _Py_DebugOffsets, as before 3.13.
func parseDebugHeader(b []byte) (h debugHeader, ok bool) {
	if len(b) < 24 || string(b[:8]) != debugCookie {
		return h, false
	}
	h.version = versionFromHex(binary.LittleEndian.Uint64(b[8:]))
	h.freeThreaded = binary.LittleEndian.Uint64(b[16:]) != 0
	return h, true
}

// parseDebugOffsets builds the layout from a process's own description.
func parseDebugOffsets(b []byte, v version) (*layout, error) {
	groups := debugGroups(v)
	if groups == nil {
		return nil, fmt.Errorf("no list of fields for %d.%d", v.major, v.minor)
	}
	offsets := make(map[string]uint64)
	pos := 24
	for _, g := range groups {
		for _, f := range g.fields {
			if pos+8 > len(b) {
				return nil, fmt.Errorf("_Py_DebugOffsets ends before %s.%s", g.name, f)
			}
			offset := binary.LittleEndian.Uint64(b[pos:])
			if offset > 1<<20 {
				return nil, fmt.Errorf("_Py_DebugOffsets has %s.%s at %d", g.name, f, offset)
			}
			offsets[g.name+"."+f] = offset
			pos += 8
		}
	}
	l := &layout{version: v, hasShims: true, instrIsNow: true}
	l.runtime.interpretersHead = offsets["runtime.interpreters_head"]
	l.interp.next, l.interp.threadsHead = offsets["interp.next"], offsets["interp.threads_head"]
	l.interp.gil, l.interp.codeGeneration = offsets["interp.ceval_gil"], offsets["interp.code_object_generation"]
	l.thread.prev, l.thread.next = offsets["thread.prev"], offsets["thread.next"]
	l.thread.interp, l.thread.frame = offsets["thread.interp"], offsets["thread.current_frame"]
	l.thread.id, l.thread.nativeID = offsets["thread.thread_id"], offsets["thread.native_thread_id"]
	l.thread.chunk, l.thread.gilRequested = offsets["thread.datastack_chunk"], offsets["thread.gil_requested"]
	l.thread.top = l.thread.chunk + wordSize // no version tells; the same in all of them
	l.thread.size = l.thread.top + wordSize
	l.frame.code, l.frame.previous = offsets["frame.executable"], offsets["frame.previous"]
	l.frame.instr, l.frame.owner = offsets["frame.instr_ptr"], offsets["frame.owner"]
	l.frame.locals, l.frame.size = offsets["frame.localsplus"], offsets["frame.localsplus"]
	l.code.filename, l.code.name = offsets["code.filename"], offsets["code.name"]
	l.code.qualname, l.code.lineTable = offsets["code.qualname"], offsets["code.linetable"]
	l.code.firstLine, l.code.instructions = offsets["code.firstlineno"], offsets["code.co_code_adaptive"]
	l.code.frameSize, l.code.version = 76, codeVersion
	l.code.firstTraceable = l.code.instructions - 16 // before co_extra, the last pointer
	l.str.length, l.str.state, l.str.ascii = offsets["str.length"], offsets["str.state"], offsets["str.ascii_size"]
	l.str.compact = l.str.ascii + 16 // PyCompactUnicodeObject adds utf8_length and utf8
	l.bytesData, l.typeName = offsets["bytes.ob_sval"], offsets["type.tp_name"]
	l.cachedKeys = 880
	l.opcodes = opcodesOf[v.minor]
	l.code.localNames, l.tupleItems = offsets["code.localsplusnames"], offsets["tuple.ob_item"]
	l.frame.awaited, l.gen.yielded, l.gen.awaits = 1, -2, -1
	if v.minor == 13 {
		l.frame.stackTop = l.frame.instr + wordSize
		l.gen.frame, l.gen.state, l.taskCoro = 72, 67, 120
	}
	if v.minor >= 14 {
		l.codeTag = 3 // the low bits of a _PyStackRef
		l.frame.stackPointer = offsets["frame.stackpointer"]
		l.gen.frame, l.gen.state, l.taskCoro = offsets["gen.gi_iframe"], offsets["gen.gi_frame_state"], 128
	}
	if v.minor >= 15 {
		l.frame.awaited, l.gen.yielded, l.gen.awaits = 2, 1, 2
	}
	if keys, ok := offsets["heap_type.ht_cached_keys"]; ok {
		l.cachedKeys = keys
	}
	return l, l.check()
}

// check refuses offsets no build of CPython can have, so that a wrong parse is
// found here and not as wrong stacks.
func (l *layout) check() error {
	for _, f := range []struct {
		name       string
		value, max uint64
	}{
		{"thread state", l.thread.size, maxThreadLen},
		{"thread frame", l.thread.frame, l.thread.size - wordSize},
		{"native thread id", l.thread.nativeID, l.thread.size - wordSize},
		{"frame", l.frame.size, 128},
		{"frame owner", l.frame.owner, l.frame.size - 1},
		{"frame stack top", l.frame.stackTop, l.frame.size - 4},
		{"frame stack pointer", l.frame.stackPointer, l.frame.size - wordSize},
		{"generator frame", l.gen.frame, 256},
		{"generator state", l.gen.state, l.gen.frame - 1},
		{"tuple items", l.tupleItems, 64},
		{"task coroutine", l.taskCoro, 512},
		{"frame instruction", l.frame.instr, l.frame.size - wordSize},
		{"frame code", l.frame.code, l.frame.size - wordSize},
		{"frame previous", l.frame.previous, l.frame.size - wordSize},
		{"code instructions", l.code.instructions, maxCodeSize},
		{"code names", max(l.code.filename, l.code.name, l.code.qualname, l.code.lineTable), l.code.instructions - wordSize},
		{"code first line", l.code.firstLine, l.code.instructions - 4},
		{"string", l.str.ascii, maxStringHead},
		{"string fields", max(l.str.state, l.str.length), l.str.ascii - wordSize},
	} {
		if f.value > f.max || f.value == 0 && f.name == "code instructions" {
			return fmt.Errorf("%s at %d of at most %d", f.name, f.value, f.max)
		}
	}
	return nil
}
