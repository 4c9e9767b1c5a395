package cpython

import (
	"encoding/binary"
	"fmt"
	"slices"
)

const (
	debugCookie     = "xdebugpy"
	debugOffsetsLen = 1024 // more than any version's _Py_DebugOffsets
	debugHeaderLen  = 24   // cookie, version, free_threaded
)

// offsetGroup is one structure of _Py_DebugOffsets: CPython's names of its fields in
// order. Fields are inserted in the middle from one minor version to the next, so there
// is one list for each.
type offsetGroup struct {
	structure string
	fields    []string
}

// with is the group with further fields behind one of them.
func (g offsetGroup) with(behind string, fields ...string) offsetGroup {
	i := slices.Index(g.fields, behind) + 1
	g.fields = slices.Insert(slices.Clone(g.fields), i, fields...)
	return g
}

// size stands for a structure's own size, which many groups begin with.
const size = "sizeof"

var (
	groupRuntime = offsetGroup{"_PyRuntimeState", []string{size, "_finalizing", "interpreters.head"}}
	groupInterp  = offsetGroup{"PyInterpreterState", []string{size, "id", "next", "threads.head", "gc", "imports.modules", "sysdict",
		"builtins", "ceval.gil", "_gil", "_gil.enabled", "_gil.locked", "_gil.last_holder"}}
	groupThread = offsetGroup{"PyThreadState", []string{size, "prev", "next", "interp", "current_frame", "thread_id",
		"native_thread_id", "datastack_chunk", "_status"}}
	groupFrame = offsetGroup{"_PyInterpreterFrame", []string{size, "previous", "f_executable", "instr_ptr", "localsplus", "owner"}}
	groupCode  = offsetGroup{"PyCodeObject", []string{size, "co_filename", "co_name", "co_qualname", "co_linetable",
		"co_firstlineno", "co_argcount", "co_localsplusnames", "co_localspluskinds", "co_code_adaptive"}}
	groupObject = offsetGroup{"PyObject", []string{size, "ob_type"}}
	groupType   = offsetGroup{"PyTypeObject", []string{size, "tp_name", "tp_repr", "tp_flags"}}
	groupTuple  = offsetGroup{"PyTupleObject", []string{size, "ob_item", "ob_size"}}
	groupList   = offsetGroup{"PyListObject", []string{size, "ob_item", "ob_size"}}
	groupSet    = offsetGroup{"PySetObject", []string{size, "used", "table", "mask"}}
	groupDict   = offsetGroup{"PyDictObject", []string{size, "ma_keys", "ma_values"}}
	groupFloat  = offsetGroup{"PyFloatObject", []string{size, "ob_fval"}}
	groupLong   = offsetGroup{"PyLongObject", []string{size, "long_value.lv_tag", "long_value.ob_digit"}}
	groupBytes  = offsetGroup{"PyBytesObject", []string{size, "ob_size", "ob_sval"}}
	groupStr    = offsetGroup{"PyASCIIObject", []string{"sizeof PyUnicodeObject", "state", "length", "sizeof PyASCIIObject"}}
	groupGC     = offsetGroup{"_gc_runtime_state", []string{size, "collecting"}}
	groupGen    = offsetGroup{"PyGenObject", []string{size, "gi_name", "gi_iframe", "gi_frame_state"}}
)

// debugGroups lists the structures after the header, from
// Include/internal/pycore_debug_offsets.h (3.13: pycore_runtime.h) of each version.
var debugGroups = map[string][]offsetGroup{
	"3.13": {groupRuntime, groupInterp, groupThread, groupFrame, groupCode, groupObject, groupType, groupTuple, groupList,
		groupDict, groupFloat, groupLong, groupBytes, groupStr},
	"3.14": {groupRuntime, interp314, groupThread, frame314, groupCode.with("co_code_adaptive", "co_tlbc"), groupObject, groupType,
		groupTuple, groupList, groupSet, groupDict, groupFloat, groupLong, groupBytes, groupStr, groupGC, groupGen},
	"3.15": {groupRuntime, interp314,
		groupThread.with("current_frame", "base_frame", "last_profiled_frame", "last_profiled_frame_seq").
			with("_status", "holds_gil", "gil_requested", "current_exception", "exc_state"),
		{"_PyErr_StackItem", []string{"exc_value"}}, frame314, groupCode.with("co_code_adaptive", "co_tlbc"), groupObject,
		groupType.with("tp_flags", "tp_basicsize", "tp_dictoffset"), {"PyHeapTypeObject", []string{size, "ht_cached_keys"}},
		groupTuple, groupList, groupSet, groupDict, groupFloat, groupLong, groupBytes,
		groupStr.with("sizeof PyASCIIObject", "sizeof PyCompactUnicodeObject"),
		groupGC.with("collecting", "frame", "generation_stats_size", "generation_stats"), groupGen},
}

var (
	interp314 = groupInterp.with("threads.head", "threads.main").
			with("_gil.last_holder", "_code_object_generation", "tlbc_generation")
	frame314 = groupFrame.with("owner", "stackpointer", "tlbc_index")
)

// debugHeader is the part of _Py_DebugOffsets that never moves.
type debugHeader struct {
	version      Version
	freeThreaded bool
}

// parseDebugHeader reads the first bytes of _PyRuntime; ok is false when they
// are no _Py_DebugOffsets, as before 3.13.
func parseDebugHeader(b []byte) (h debugHeader, ok bool) {
	if len(b) < debugHeaderLen || string(b[:8]) != debugCookie {
		return h, false
	}
	h.version = versionFromHex(binary.LittleEndian.Uint64(b[8:]))
	h.freeThreaded = binary.LittleEndian.Uint64(b[16:]) != 0
	return h, true
}

// parseDebugOffsets builds the layout from a process's own description.
func parseDebugOffsets(b []byte, v Version) (*Layout, error) {
	groups := debugGroups[v.minor()]
	if groups == nil {
		return nil, fmt.Errorf("no list of fields for %s", v.minor())
	}
	at := offsetsOf(undescribed[v.minor()])
	pos := debugHeaderLen
	for _, g := range groups {
		for _, f := range g.fields {
			name := g.structure + "." + f
			switch {
			case f == size:
				name = size + " " + g.structure
			case len(f) > len(size) && f[:len(size)] == size:
				name = f
			}
			if pos+WordSize > len(b) {
				return nil, fmt.Errorf("_Py_DebugOffsets ends before %s", name)
			}
			offset := binary.LittleEndian.Uint64(b[pos:])
			if offset > 1<<20 {
				return nil, fmt.Errorf("_Py_DebugOffsets has %s at %d", name, offset)
			}
			at[name] = offset
			pos += WordSize
		}
	}
	for _, r := range relatives {
		if _, known := at[r.name]; !known {
			at[r.name] = at[r.of] + uint64(r.distance)
		}
	}
	return layoutOf(v, at)
}
