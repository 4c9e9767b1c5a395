package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v3/common"
	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// tick is the unit of times in stat files: USER_HZ is 100 on every architecture
// Linux still has.
const tick = timeline.Nanos(1e9 / 100)

// procfs reads the files of one /proc. The buffer is reused: one goroutine.
type procfs struct {
	root, sys string
	ctx       context.Context // tells gopsutil the same root
	buf       []byte
}

func newProcfs(root, sys string) procfs {
	env := common.EnvMap{common.HostProcEnvKey: root, common.HostSysEnvKey: sys}
	return procfs{root: root, sys: sys, ctx: context.WithValue(context.Background(), common.EnvKey, env), buf: make([]byte, 4096)}
}

// read returns a file's content, valid until the next read.
func (f *procfs) read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	n := 0
	for {
		m, err := file.Read(f.buf[n:])
		n += m
		if errors.Is(err, io.EOF) {
			return f.buf[:n], nil
		}
		if err != nil {
			return nil, err
		}
		if n == len(f.buf) {
			f.buf = append(f.buf, make([]byte, n)...)
		}
	}
}

func (f *procfs) path(pid int, file string) string {
	return f.root + "/" + strconv.Itoa(pid) + "/" + file
}

// stat is what is used of /proc/PID/stat (proc_pid_stat(5)).
type stat struct {
	comm         string
	state        byte
	parent       int
	minor, major uint64         // page faults
	own, reaped  timeline.Nanos // CPU time of the process, and of children it has waited for
	threads      int
	start        uint64 // ticks since boot: with the pid, the process's identity
	exit         uint64 // wait status of a zombie; 0 where this user may not know it, or it ended well
}

// zombie tells a process that has ended and was not waited for yet.
func (s stat) zombie() bool { return s.state == 'Z' || s.state == 'X' }

func (f *procfs) stat(pid int) (stat, error) {
	text, err := f.read(f.path(pid, "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(text)
}

var errStat = errors.New("a stat file of an unknown form")

// parseStat reads a stat line. The name may hold spaces and parentheses: the last
// one closes it.
func parseStat(text []byte) (stat, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return stat{}, errStat
	}
	fields := bytes.Fields(text[end+1:])
	const last = 22 - 3 // starttime; fields[0] is field 3
	if len(fields) <= last || len(fields[0]) != 1 {
		return stat{}, errStat
	}
	var bad error
	number := func(field int) uint64 {
		n, err := strconv.ParseInt(string(fields[field-3]), 10, 64) // children's times are signed
		if err != nil || n < 0 {
			bad = errors.Join(bad, err)
			return 0
		}
		return uint64(n)
	}
	ticks := func(field int) timeline.Nanos {
		return timeline.Nanos(min(number(field), math.MaxInt64/4/uint64(tick))) * tick
	}
	s := stat{
		comm: string(text[open+1 : end]), state: fields[0][0], parent: int(number(4)),
		minor: number(10), major: number(12),
		own: ticks(14) + ticks(15), reaped: ticks(16) + ticks(17),
		threads: int(number(20)), start: number(22),
	}
	const exitCode = 52
	if len(fields) > exitCode-3 {
		s.exit = number(exitCode)
	}
	if bad != nil {
		return stat{}, errStat
	}
	return s, nil
}

// status is what is used of /proc/PID/status.
type status struct {
	peak                   uint64 // VmHWM, bytes; 0 where there is none (kernel threads, zombies)
	voluntary, involuntary uint64 // context switches, of the main thread alone
	hasSwitches            bool
}

func (f *procfs) status(pid int) (status, error) {
	text, err := f.read(f.path(pid, "status"))
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
func (f *procfs) taskCPU(pid, tid int) (timeline.Nanos, error) {
	use, err := f.taskUse(pid, tid)
	return use.cpu, err
}

// taskUse reads /proc/PID/task/TID/schedstat: time on a CPU, time waiting for one.
func (f *procfs) taskUse(pid, tid int) (threadUse, error) {
	text, err := f.read(f.path(pid, "task/"+strconv.Itoa(tid)+"/schedstat"))
	if err != nil {
		return threadUse{}, err
	}
	return parseSchedstat(text), nil
}

func parseSchedstat(text []byte) threadUse {
	cpu, rest, _ := bytes.Cut(bytes.TrimSpace(text), []byte(" "))
	return threadUse{cpu: timeline.Nanos(firstNumber(cpu)), queued: timeline.Nanos(firstNumber(rest))}
}

// tasks are the ids of a process's threads.
func (f *procfs) tasks(pid int) ([]int, error) {
	d, err := os.Open(f.path(pid, "task"))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	return numbers(names), nil
}

// childrenOf are the processes that a thread has made and not waited for.
func (f *procfs) childrenOf(pid, tid int) ([]int, error) {
	text, err := f.read(f.path(pid, "task/"+strconv.Itoa(tid)+"/children"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, field := range bytes.Fields(text) {
		names = append(names, string(field))
	}
	return numbers(names), nil
}

func numbers(names []string) []int {
	var out []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n > 0 {
			out = append(out, n)
		}
	}
	return out
}

// all are the ids of all processes that can be seen.
func (f *procfs) all() ([]int, error) {
	d, err := os.Open(f.root)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return numbers(names), err
}

// executable is what the process runs; empty when that cannot be seen.
func (f *procfs) executable(pid int) string {
	path, err := os.Readlink(filepath.Join(f.root, strconv.Itoa(pid), "exe"))
	if err != nil {
		return ""
	}
	return path
}

// arguments are the process's command line; nil when it cannot be seen or, of a
// zombie, is gone.
func (f *procfs) arguments(pid int) []string {
	text, err := f.read(f.path(pid, "cmdline"))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(text[:min(len(text), maxCommandLine)]), "\x00"), "\x00")
}

// maxCommandLine bounds how much of a command line is looked at: what runs stands
// at its beginning.
const maxCommandLine = 4096

// processCPU reads a process's CPU clock: all its threads, dead ones too, in
// nanoseconds, for one system call.
func processCPU(pid int) (timeline.Nanos, error) {
	const schedClock = 2 // CPUCLOCK_SCHED; see clock_getcpuclockid(3)
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedClock), &ts); err != nil {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, err)
	}
	return timeline.Nanos(ts.Nano()), nil
}

// ProcessStart tells when a process started, in clock ticks since boot: with the
// pid, its identity. A zombie has ended.
func ProcessStart(pid int) (start uint64, alive bool) {
	fs := procfs{root: "/proc", buf: make([]byte, 512)}
	st, err := fs.stat(pid)
	return st.start, err == nil && !st.zombie()
}
