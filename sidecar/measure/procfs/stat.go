package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Stat is what is used of /proc/PID/stat (proc_pid_stat(5)).
type Stat struct {
	Comm         string
	State        byte
	Exiting      bool // it is ending: RSS is what it has not given back yet
	Parent       int
	Session      int
	Minor, Major uint64        // page faults
	Own, Reaped  time.Duration // CPU time of the process, and of children it has waited for
	ReapedMinor  uint64        // minor page faults of these: none where it has waited for no child
	Threads      int
	Start        uint64 // ticks since boot: with the pid, the process's identity
	RSS          uint64 // resident memory, bytes
	Exit         uint64 // wait status of a zombie; 0 where this user may not know it, or it ended well
}

// Zombie recognises a process that has ended and was not waited for yet.
func (s Stat) Zombie() bool { return s.State == 'Z' || s.State == 'X' }

// exiting is PF_EXITING of the kernel's include/linux/sched.h. It is set before the memory is
// given back, and the flags are read after the memory was counted: where it is not set, RSS is
// of the living process.
const exiting = 0x4

var pageSize = uint64(os.Getpagesize())

var errStat = errors.New("a stat file of an unknown form")

// ParseStat reads a stat line. The name may hold spaces and parentheses: the last
// one closes it.
func ParseStat(text []byte) (Stat, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return Stat{}, errStat
	}
	fields := bytes.Fields(text[end+1:])
	const last = 22 - 3 // starttime; fields[0] is field 3
	if len(fields) <= last || len(fields[0]) != 1 {
		return Stat{}, errStat
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
	ticks := func(field int) time.Duration {
		return time.Duration(min(number(field), math.MaxInt64/4/uint64(Tick))) * Tick
	}
	s := Stat{
		Comm: string(text[open+1 : end]), State: fields[0][0], Exiting: number(9)&exiting != 0, Parent: int(number(4)), Session: int(number(6)),
		Minor: number(10), ReapedMinor: number(11), Major: number(12),
		Own: ticks(14) + ticks(15), Reaped: ticks(16) + ticks(17),
		Threads: int(number(20)), Start: number(22),
	}
	const rss, exitCode = 24, 52
	if len(fields) > rss-3 {
		s.RSS = number(rss) * pageSize
	}
	if len(fields) > exitCode-3 {
		s.Exit = number(exitCode)
	}
	if bad != nil {
		return Stat{}, errStat
	}
	return s, nil
}

// CPUTime reads a process's CPU clock: what all its threads have used, dead ones too, in
// nanoseconds, where stat files count ticks. It is the live kernel's, whatever Root is.
func CPUTime(pid int) (time.Duration, error) {
	const schedClock = 2 // CPUCLOCK_SCHED; see clock_getcpuclockid(3)
	used, err := timeline.ReadClock(int32(^pid<<3 | schedClock))
	if err != nil {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(used), nil
}
