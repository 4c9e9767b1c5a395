package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A machineWatch sees how busy the machine is, with us and without.
type machineWatch struct {
	start  cpuTimes
	before float64 // share of all cores that was busy in the second before
}

// cpuTimes are sums over all cores since boot, in ticks of /proc/stat.
type cpuTimes struct{ busy, stolen, total float64 }

func watchMachine() machineWatch {
	before := busySecond()
	return machineWatch{readCPUTimes(), before}
}

// busySecond waits a second and shows how busy the others kept the machine.
func busySecond() float64 {
	start := readCPUTimes()
	time.Sleep(time.Second)
	return readCPUTimes().since(start).busyShare()
}

func (t cpuTimes) since(start cpuTimes) cpuTimes {
	return cpuTimes{t.busy - start.busy, t.stolen - start.stolen, t.total - start.total}
}

func (t cpuTimes) busyShare() float64 { return t.busy / max(t.total, 1) }

// end describes the machine and what it did since the watch began.
func (w machineWatch) end() Machine {
	m := Machine{CPU: cpuModel(), Cores: runtime.NumCPU(), Kernel: kernelRelease()}
	during := readCPUTimes().since(w.start)
	m.Stolen = during.stolen / max(during.total, 1)
	m.Others = max(w.before, busySecond())
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
