package pystack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// Interpreter is what another reader of the same process needs: the layout and place of
// its CPython, and a Memory of its own, for one goroutine at a time.
type Interpreter struct {
	PID     int
	Layout  *cpython.Layout
	Runtime uint64 // address of _PyRuntime
	Memory  cpython.Memory
}

// Interpreter describes the process's CPython to another reader.
func (p *Process) Interpreter() Interpreter {
	return Interpreter{PID: p.pid, Layout: p.l, Runtime: p.place.addr, Memory: &liveMemory{pid: p.pid}}
}

// AsyncioDebug returns the address of what asyncio's C code says of its structures from
// CPython 3.14 on, in the library _asyncio or, where asyncio is built in, in the program;
// 0 if it is not loaded.
func (i Interpreter) AsyncioDebug() (uint64, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", i.PID))
	if err != nil {
		return 0, procError(err)
	}
	files := parseMaps(string(maps))
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", i.PID))
	exe = strings.TrimSuffix(exe, " (deleted)")
	var candidates []mappedFile
	for _, f := range files {
		if strings.HasPrefix(filepath.Base(f.path), "_asyncio.") {
			candidates = append(candidates, f)
		}
	}
	for _, f := range append(candidates, orderCandidates(files, exe)...) {
		if addr := sectionAddr(i.PID, f, exe, asyncioSection); addr != 0 {
			return addr, nil
		}
	}
	return 0, nil
}
