package pystack

import (
	"bytes"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// placesEvery is the least time between two questions on which CPUs the read threads run.
	placesEvery = int64(10 * 1e6)
	// mostPlaces bounds the threads that are asked for at a time: a question is 4 µs.
	mostPlaces = 4
	// crowdedTicks missed at once are a sign that the CPUs left to the sampler have other work;
	// crowdedFor it may then run anywhere.
	crowdedTicks = 3
	crowdedFor   = int64(1e9)
	// shortSlice is how long the sampling thread asks to run at a time. From Linux 6.12 on a
	// thread with a short slice is preferred when it wakes up; 0.1 ms is the shortest possible.
	shortSlice = 100_000
)

// apart keeps the sampling thread off the CPUs of the threads that it reads: on the CPU of
// its target it would run when that stops, and see it waiting. Where no other CPU is allowed,
// or the system refuses, the thread runs anywhere. It belongs to a locked thread.
type apart struct {
	allowed unix.CPUSet // of the thread, when it began
	kept    unix.CPUSet // as it is now
	asked   int64       // CLOCK_MONOTONIC of the last question
	crowded int64       // CLOCK_MONOTONIC until which it may run anywhere
	off     bool        // the system refuses, or there is one CPU only
	affinity
}

// affinity is the part of the system that says where the calling thread may run.
type affinity interface {
	get(*unix.CPUSet) error
	set(*unix.CPUSet) error
	slice(nanoseconds uint64)
}

// ownThread is the affinity of the calling thread.
type ownThread struct{}

func (ownThread) get(set *unix.CPUSet) error { return unix.SchedGetaffinity(0, set) }
func (ownThread) set(set *unix.CPUSet) error { return unix.SchedSetaffinity(0, set) }

// slice asks for another length of the scheduler's slice, 0 for the usual one. Kernels
// before 6.12 ignore it.
func (ownThread) slice(nanoseconds uint64) {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return
	}
	attr.Runtime = nanoseconds
	_ = unix.SchedSetAttr(0, attr, 0)
}

// newApart readies the calling thread, until end.
func newApart(own affinity) *apart {
	a := &apart{affinity: own}
	if a.get(&a.allowed) != nil || a.allowed.Count() < 2 {
		a.off = true
	}
	a.kept = a.allowed
	a.slice(shortSlice)
	return a
}

// end lets the thread run as before.
func (a *apart) end() {
	a.slice(0)
	if a.kept != a.allowed {
		_ = a.set(&a.allowed)
	}
}

// due reports whether the CPUs of the read threads are to be asked for.
func (a *apart) due(at int64) bool {
	if a.off || at < a.crowded || at-a.asked < placesEvery {
		return false
	}
	a.asked = at
	return true
}

// missed notes that so many ticks were missed at a time. Kept to CPUs that are busy, the
// sampler would wait for them, and take their share of the CPUs from its target.
func (a *apart) missed(ticks, at int64) {
	if ticks >= crowdedTicks && !a.off {
		a.crowded = at + crowdedFor
		a.leave(nil)
	}
}

// leave moves the thread off some CPUs, if others are left.
func (a *apart) leave(cpus []int) {
	free := a.allowed
	for _, cpu := range cpus {
		free.Clear(cpu)
	}
	if free.Count() == 0 {
		free = a.allowed
	}
	if free == a.kept {
		return
	}
	if a.set(&free) != nil {
		a.off = true
		_ = a.set(&a.allowed)
		free = a.allowed
	}
	a.kept = free
}

// cpus are those on which the threads ran last that have or had a GIL, or compute, mostPlaces
// at most.
func (s *session) cpus(known []int) []int {
	asked := 0
	for _, g := range s.p.gils {
		for _, t := range g.threads {
			if asked == mostPlaces {
				return known
			}
			if t != g.holder && !t.session.state.Runnable() || t.tid == 0 {
				continue
			}
			asked++
			if cpu := s.p.kernel.cpu(t.tid); cpu >= 0 {
				known = append(known, cpu)
			}
		}
	}
	return known
}

// mostCPUs have a place in a unix.CPUSet.
const mostCPUs = 8 * int(unsafe.Sizeof(unix.CPUSet{}))

// cpuField is the place of "processor" in /proc/PID/task/TID/stat behind the state's letter,
// which is field 3 (proc_pid_stat(5)).
const cpuField = 39 - 3

func (k *procKernel) cpu(tid int) int {
	b, err := k.read(procFile{tid, fileStat})
	if err != nil {
		return -1
	}
	return parseCPU(b)
}

// parseCPU reads the CPU that a thread ran on last; -1 unknown.
func parseCPU(b []byte) int {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return -1
	}
	fields := bytes.Fields(b[i+1:])
	if len(fields) <= cpuField {
		return -1
	}
	cpu, err := strconv.Atoi(string(fields[cpuField]))
	if err != nil || cpu < 0 || cpu >= mostCPUs {
		return -1
	}
	return cpu
}
