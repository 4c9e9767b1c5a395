package host

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v3/common"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// tick is the unit of times in stat files.
const tick = timeline.Nanos(procfs.Tick)

// files reads what is of interest here of one /proc and /sys. One goroutine.
type files struct {
	procfs.FS
	sys string
	ctx context.Context // shows gopsutil the same root
}

func newFiles(root, sys string) files {
	env := common.EnvMap{common.HostProcEnvKey: root, common.HostSysEnvKey: sys}
	return files{procfs.New(root), sys, context.WithValue(context.Background(), common.EnvKey, env)}
}

// status is what is used of /proc/PID/status.
type status struct {
	peak                   uint64 // VmHWM, bytes; 0 where there is none (kernel threads, zombies)
	voluntary, involuntary uint64 // context switches, of the main thread alone
	hasSwitches            bool
}

func (f *files) status(pid int) (status, error) {
	text, err := f.Read(f.Path(pid, "status"))
	if err != nil {
		return status{}, err
	}
	return parseStatus(text), nil
}

func parseStatus(text []byte) status {
	var s status
	for line := range bytes.Lines(text) {
		name, rest, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		switch string(name) {
		case "VmHWM":
			s.peak = firstNumber(rest) << 10
		case "voluntary_ctxt_switches":
			s.voluntary, s.hasSwitches = firstNumber(rest), true
		case "nonvoluntary_ctxt_switches":
			s.involuntary = firstNumber(rest)
		}
	}
	return s
}

// firstNumber is the first field as a number; 0 when it is none or absurd.
func firstNumber(text []byte) uint64 {
	fields := bytes.Fields(text)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseUint(string(fields[0]), 10, 53)
	if err != nil {
		return 0
	}
	return n
}

// taskCPU is the CPU time of one thread.
func (f *files) taskCPU(pid, tid int) (timeline.Nanos, error) {
	use, err := f.taskUse(pid, tid)
	return use.cpu, err
}

// taskName is what a thread calls itself; empty where that is the name of the process.
func (f *files) taskName(pid, tid int) string {
	name, err := f.Read(f.Path(pid, "task/"+strconv.Itoa(tid)+"/comm"))
	if err != nil {
		return ""
	}
	text := strings.ToValidUTF8(string(bytes.TrimSpace(name)), "\uFFFD")
	if whole, err := f.Read(f.Path(pid, "comm")); err == nil && string(bytes.TrimSpace(whole)) == text {
		return ""
	}
	return text
}

// taskUse reads /proc/PID/task/TID/schedstat: time on a CPU, time waiting for one.
func (f *files) taskUse(pid, tid int) (threadUse, error) {
	text, err := f.Read(f.Path(pid, "task/"+strconv.Itoa(tid)+"/schedstat"))
	if err != nil {
		return threadUse{}, err
	}
	return parseSchedstat(text), nil
}

func parseSchedstat(text []byte) threadUse {
	cpu, rest, _ := bytes.Cut(bytes.TrimSpace(text), []byte(" "))
	return threadUse{cpu: timeline.Nanos(firstNumber(cpu)), queued: timeline.Nanos(firstNumber(rest))}
}
