package host

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v3/mem"
	"golang.org/x/sys/unix"
)

// Limits is what a process can have at most.
type Limits struct {
	Cores  float64 // CPUs it may run on, or its control group's share
	Memory float64 // bytes: the machine's, or its control group's limit; 0 unknown
}

// readLimits looks at the CPU affinity, the machine and the control groups.
func readLimits(fs *files, pid int) Limits {
	l := Limits{Cores: cores()}
	var set unix.CPUSet
	if fs.Root == "/proc" && unix.SchedGetaffinity(pid, &set) == nil && set.Count() > 0 {
		l.Cores = float64(set.Count())
	}
	if v, err := mem.VirtualMemoryWithContext(fs.ctx); err == nil {
		l.Memory = float64(v.Total)
	}
	text, err := os.ReadFile(fs.Path(pid, "cgroup"))
	if err != nil {
		return l
	}
	for _, dir := range groupFolders(string(text), filepath.Join(fs.sys, "fs/cgroup")) {
		if cores, ok := cpuLimit(dir); ok {
			l.Cores = min(l.Cores, cores)
		}
		if bytes, ok := memoryLimit(dir); ok && (l.Memory == 0 || bytes < l.Memory) {
			l.Memory = bytes
		}
	}
	return l
}

// groupFolders lists the folders of a process's control groups, the outer ones
// too: each may limit. text is /proc/PID/cgroup (cgroups(7)). A container sees its
// own group as the root of what is mounted, whatever its path is said to be.
func groupFolders(text, root string) []string {
	var out []string
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || strings.Contains(parts[1], "/") || !strings.HasPrefix(parts[2], "/") {
			continue // nor does a folder's name, made of the controllers', lead out of the root
		}
		var mounts []string
		switch controllers := parts[1]; {
		case controllers == "":
			mounts = []string{root, filepath.Join(root, "unified")}
		case strings.Contains(controllers, "cpu") && !strings.Contains(controllers, "cpuset"):
			mounts = []string{filepath.Join(root, controllers), filepath.Join(root, "cpu")}
		case controllers == "memory":
			mounts = []string{filepath.Join(root, "memory")}
		}
		for _, mount := range mounts {
			for group := path.Clean(parts[2]); ; group = path.Dir(group) {
				out = append(out, filepath.Join(mount, group))
				if group == "/" {
					break
				}
			}
		}
	}
	return out
}

func cpuLimit(dir string) (cores float64, ok bool) {
	if text, err := os.ReadFile(filepath.Join(dir, "cpu.max")); err == nil { // version 2: "QUOTA PERIOD" or "max PERIOD"
		fields := strings.Fields(string(text))
		if len(fields) != 2 {
			return 0, false
		}
		return ratio(fields[0], fields[1])
	}
	quota, err1 := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us")) // version 1: -1 is none
	period, err2 := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
	if err1 != nil || err2 != nil {
		return 0, false
	}
	return ratio(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

func ratio(quota, period string) (float64, bool) {
	q, err1 := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	r := q / p
	return r, err1 == nil && err2 == nil && q > 0 && p > 0 && !math.IsInf(r, 0) && !math.IsNaN(r)
}

func memoryLimit(dir string) (bytes float64, ok bool) {
	for _, name := range []string{"memory.max", "memory.limit_in_bytes"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		return float64(n), err == nil && n < 1<<60 // "max", or version 1's largest number
	}
	return 0, false
}
