package cpython

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// headerProgram is a C program that prints fields' offsets by CPython's own headers. Which of the headers
// of internal/ there are depends on the version.
const headerProgram = `
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_gil.h"
#if PY_VERSION_HEX >= 0x030e0000 // where frames moved to
#include "internal/pycore_interpframe_structs.h"
#include "internal/pycore_genobject.h"
#endif
int main(void) {
%s	return 0;
}
`

// common are the constants that hold for every version.
var common = map[string]uint64{
	"PyObject.ob_type": objectType, "PyVarObject.ob_size": varSize,
	"_PyStackChunk.previous": ChunkPrevious, "_PyStackChunk.size": ChunkSize, "_PyStackChunk.top": ChunkTop, "_PyStackChunk.data": ChunkData,
	"struct _gil_runtime_state.last_holder": GILHolder, "struct _gil_runtime_state.locked": GILLocked,
	"struct _gil_runtime_state.switch_number": GILSwitches, "struct _gil_runtime_state.cond": GILCond,
	"PyDictObject.ma_keys": dictKeys, "PyDictObject.ma_values": dictValues,
	"struct _dictkeysobject.dk_log2_index_bytes": keysIndexLog, "struct _dictkeysobject.dk_kind": keysKind,
	"struct _dictkeysobject.dk_nentries": keysCount, "struct _dictkeysobject.dk_indices": keysIndices,
	"PyCodeObject.co_flags": headKept, "PyFrameObject.f_frame": frameOf,
}

// TestHeaders compares the tables with the headers of the interpreters that are installed with theirs.
func TestHeaders(t *testing.T) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		requirement.Missing(t, requirement.Compiler, "no C compiler here")
	}
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("the tables are of amd64 and arm64")
	}
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		out, err := exec.Command(python.Path, "-I", "-c", "import sysconfig; print(sysconfig.get_path('include'))").Output()
		if err != nil {
			t.Fatal(err)
		}
		include := strings.TrimSpace(string(out))
		if _, err := os.Stat(filepath.Join(include, "internal/pycore_interp.h")); err != nil {
			t.Skipf("this interpreter has no headers in %s", include)
		}
		want := make(map[string]uint64)
		for name, offset := range common {
			want[name] = offset
		}
		for _, f := range append(tables[python.Minor], undescribed[python.Minor]...) {
			if strings.HasPrefix(f.header, "Modules/") { // not in a header; await_test.go in pystack reads tasks
				continue
			}
			if _, err := os.Stat(filepath.Join(include, f.header)); err != nil {
				t.Errorf("%s: there is no header %s", f.name, f.header)
			}
			want[f.name] = f.offset
		}
		for name, got := range compileOffsets(t, compiler, include, want) {
			if got != want[name] {
				t.Errorf("%s is %d by the headers, %d in the table", name, got, want[name])
			}
		}
	})
}

func compileOffsets(t *testing.T, compiler, include string, names map[string]uint64) map[string]uint64 {
	t.Helper()
	var lines strings.Builder
	for name := range names {
		value := "offsetof(" + strings.Replace(name, ".", ", ", 1) + ")"
		if structure, ok := strings.CutPrefix(name, "sizeof "); ok {
			value = "sizeof(" + structure + ")"
		}
		fmt.Fprintf(&lines, "\tprintf(\"%s=%%zu\\n\", %s);\n", name, value)
	}
	folder := t.TempDir()
	source, program := filepath.Join(folder, "offsets.c"), filepath.Join(folder, "offsets")
	if err := os.WriteFile(source, fmt.Appendf(nil, headerProgram, lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler, "-w", "-I", include, "-I", filepath.Join(include, "internal"), source, "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]uint64)
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		var n uint64
		fmt.Sscan(value, &n)
		got[name] = n
	}
	return got
}
