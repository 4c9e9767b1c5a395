package gpu

import (
	"os"
	"strconv"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
)

// namespaceIDs returns every number a process of ours goes by: its own as we
// see it and those in the pid namespaces nested inside ours. NVML reports one
// of them, which one depends on driver and call.
func namespaceIDs(pid int) []int {
	ids := []int{pid}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return ids // gone: its number may still be listed
	}
	return append(ids, procfs.NamespaceIDs(status)...)
}

// usage is what the target's processes, and others, have of a device.
type usage struct {
	pids   []int // of the target, in our numbering
	bytes  uint64
	known  bool // bytes is the sum of figures, none missing
	others int
}

// match distinguishes the target's processes from others on a device.
func match(listed []Process, ours []int, ids func(int) []int) usage {
	owner := make(map[int]int)
	for _, pid := range ours {
		for _, id := range ids(pid) {
			if _, taken := owner[id]; !taken || id == pid {
				owner[id] = pid
			}
		}
	}
	u := usage{known: true}
	for _, p := range listed {
		pid, ok := owner[p.PID]
		if !ok {
			u.others++
			continue
		}
		u.pids = append(u.pids, pid)
		u.bytes += p.Bytes
		u.known = u.known && p.Bytes > 0
	}
	return u
}
