package program

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
)

// cellNames returns the co_filename ipykernel gives to a cell: a hash of its text
// in a folder of the process (ipykernel/compiler.py), unless IPYKERNEL_CELL_NAME
// names all cells.
func cellNames(pid int) func(code string) string {
	env := environment(pid)
	if fixed := env["IPYKERNEL_CELL_NAME"]; fixed != "" {
		return func(string) string { return fixed }
	}
	tmp := "/tmp"
	for _, name := range []string{"TMPDIR", "TEMP", "TMP"} { // as tempfile.gettempdir() has it
		if env[name] != "" {
			tmp = env[name]
			break
		}
	}
	folder := filepath.Join(tmp, fmt.Sprintf("ipykernel_%d", ownPID(pid)))
	return func(code string) string {
		return filepath.Join(folder, strconv.FormatUint(uint64(murmur2(code, 0xC70F6907)), 10)+".py")
	}
}

func environment(pid int) map[string]string {
	proc := procfs.New("/proc")
	env := make(map[string]string)
	for _, entry := range proc.Environment(pid) { // unreadable: as if empty
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

// ownPID is the id the process has in its own pid namespace.
func ownPID(pid int) int {
	proc := procfs.New("/proc")
	status, err := proc.Read(proc.Path(pid, "status"))
	if ids := procfs.NamespaceIDs(status); err == nil && len(ids) > 0 {
		return ids[len(ids)-1]
	}
	return pid
}

// murmur2 is Austin Appleby's MurmurHash2 for 32 bits, which ipykernel names
// cells by.
func murmur2(text string, seed uint32) uint32 {
	const m = 0x5bd1e995
	data := []byte(text)
	h := seed ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := binary.LittleEndian.Uint32(data) * m
		k = (k ^ k>>24) * m
		h = h*m ^ k
	}
	var tail uint32
	for i, b := range data {
		tail |= uint32(b) << (8 * i)
	}
	if len(data) > 0 {
		h = (h ^ tail) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
