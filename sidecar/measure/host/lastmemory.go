package host

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v3/mem"
)

// MemoryWatch looks at the memory that a process may use, also when it has ended: its control groups are
// remembered.
type MemoryWatch struct {
	folders []string // of control groups, the process's own first
	proc    string
}

// WatchMemory remembers the control groups of a process that lives.
func WatchMemory(pid int) *MemoryWatch {
	w := &MemoryWatch{proc: "/proc"}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); err == nil {
		w.folders = groupFolders(string(text), "/sys/fs/cgroup")
	}
	return w
}

// Memory is what was used of the memory, and how much there was; 0 is not known.
type Memory struct {
	Group, GroupLimit  int64 // of the control group that allows the least
	Available, Machine int64
	GroupKills, Kills  int64 // processes that the out-of-memory killer has ended so far: of the group, of the machine
}

// Now looks.
func (w *MemoryWatch) Now() (m Memory) {
	if v, err := mem.VirtualMemoryWithContext(context.Background()); err == nil {
		m.Machine, m.Available = int64(min(v.Total, math.MaxInt64)), int64(min(v.Available, math.MaxInt64))
	}
	m.Kills, _ = valueIn(filepath.Join(w.proc, "vmstat"), "oom_kill")
	for _, folder := range w.folders {
		if limit, ok := memoryLimit(folder); ok && (m.GroupLimit == 0 || int64(limit) < m.GroupLimit) {
			m.GroupLimit = int64(limit)
			m.Group = firstOf(folder, "memory.current", "memory.usage_in_bytes")
		}
		if m.GroupKills == 0 {
			for _, name := range []string{"memory.events", "memory.oom_control"} {
				if n, ok := valueIn(filepath.Join(folder, name), "oom_kill"); ok {
					m.GroupKills = n
				}
			}
		}
	}
	return m
}

// valueIn reads a number of a file of lines "name number".
func valueIn(file, name string) (n int64, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) == 2 && fields[0] == name {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// firstOf reads a number that is the content of the first of these files that there is.
func firstOf(folder string, names ...string) int64 {
	for _, name := range names {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err == nil {
			n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			return n
		}
	}
	return 0
}
