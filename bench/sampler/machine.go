package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// A machineWatch sees how busy the machine is beside us.
type machineWatch struct{ before cpuTimes }

// cpuTimes are sums over all cores since boot, in ticks of /proc/stat.
type cpuTimes struct{ busy, stolen, total float64 }

func watchMachine() machineWatch { return machineWatch{readCPUTimes()} }

// end describes the machine and what it did since the watch began. Busy includes what was measured.
func (w machineWatch) end() Machine {
	m := Machine{CPU: cpuModel(), Cores: runtime.NumCPU(), Kernel: kernelRelease()}
	now := readCPUTimes()
	if total := now.total - w.before.total; total > 0 {
		m.Busy = (now.busy - w.before.busy) / total
		m.Stolen = (now.stolen - w.before.stolen) / total
	}
	return m
}

func readCPUTimes() cpuTimes {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTimes{}
	}
	// cpu user nice system idle iowait irq softirq steal
	var user, nice, system, idle, iowait, irq, softirq, steal float64
	fmt.Sscanf(string(text), "cpu %f %f %f %f %f %f %f %f", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal)
	busy := user + nice + system + irq + softirq
	return cpuTimes{busy: busy, stolen: steal, total: busy + idle + iowait + steal}
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}

// fullVersion asks an interpreter for its version, down to the micro version.
func fullVersion(python string) string {
	out, err := exec.Command(python, "-I", "-c", "import platform; print(platform.python_version())").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
