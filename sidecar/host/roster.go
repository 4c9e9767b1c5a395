package host

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// maxProcesses bounds Recording.Processes for targets that start ever new ones.
const maxProcesses = 512

// roster tells the recording which processes there were: what each ran, from when
// to when, and what it used.
type roster struct {
	s     *sampler
	known map[identity]*entry
	// A recording's zero on the clock that processes' starts are told by, ns.
	zero int64
	own  []string // the target's command line
}

// identity outlasts the second use of a pid.
type identity struct {
	pid   int
	start uint64
}

// entry is a process that is listed.
type entry struct {
	process timeline.Process
	comm    string         // by which a program that was executed since is told
	looks   int            // how often it was seen
	first   timeline.Nanos // CPU time when first seen, if it began before the recording
	index   int            // in Recording.Processes
}

func newRoster(s *sampler) *roster {
	var boot unix.Timespec
	zero := int64(0)
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) == nil { // starts are told since boot, sleep included
		zero = boot.Nano() - int64(s.sink.Since(timeline.Monotonic()))
	}
	return &roster{s: s, known: make(map[identity]*entry), zero: zero, own: s.fs.arguments(s.c.pid)}
}

// tell lists what the family's latest look found.
func (r *roster) tell(now timeline.Nanos) {
	var changed []*entry
	for _, pid := range r.s.family.pids() {
		m := r.s.family.members[pid]
		if m == nil {
			continue
		}
		if e, news := r.see(m, now); news {
			changed = append(changed, e)
		}
	}
	for id, e := range r.known {
		if m := r.s.family.members[id.pid]; e.process.End == 0 && (m == nil || m.start != id.start) {
			e.process.End = max(now, 1)
			changed = append(changed, e)
		}
	}
	if len(changed) == 0 {
		return
	}
	r.s.sink.Describe(func(rec *timeline.Recording) {
		rec.Processes = slices.Clone(rec.Processes) // a snapshot may hold the old list
		for _, e := range changed {
			if e.index == len(rec.Processes) {
				rec.Processes = append(rec.Processes, e.process)
			} else if e.index < len(rec.Processes) {
				rec.Processes[e.index] = e.process
			}
		}
	})
}

// see takes up one member; news tells whether anything about it has changed.
func (r *roster) see(m *member, now timeline.Nanos) (e *entry, news bool) {
	id := identity{m.pid, m.start}
	e = r.known[id]
	used := m.own + m.reaped
	if e == nil {
		if len(r.known) >= maxProcesses {
			return nil, false
		}
		e = &entry{index: len(r.known)}
		e.process = timeline.Process{PID: m.pid, Parent: m.parent, Start: r.since(m.start)}
		if e.process.Start < 0 {
			e.first = used
		}
		r.known[id] = e
	}
	before := e.process
	// A process that has just been forked still has its parent's command line, and
	// often its name, too, after it has executed another program.
	const young = 4
	if e.looks++; m.comm != e.comm || e.looks < young && !m.zombie {
		e.comm = m.comm
		e.process.Role = r.role(m)
		e.process.Command = r.command(m)
	}
	e.process.CPU = max(used-e.first, 0)
	if m.zombie && before.End == 0 {
		e.process.End = max(now, 1)
		e.process.Exit = exitOf(m.exit)
	}
	return e, before != e.process
}

// since turns a start, in ticks since boot, into the recording's time.
func (r *roster) since(start uint64) timeline.Nanos {
	return timeline.Nanos(int64(start)*int64(tick) - r.zero)
}

// exitOf reads a wait status (wait(2)): an exit code, or 128 and the signal.
func exitOf(status uint64) *int {
	code := int(status >> 8 & 0xff)
	if signal := int(status & 0x7f); signal != 0 {
		code = 128 + signal
	}
	return &code
}

// workerMarks stand on the command lines of processes that run a part of the
// program which started them: multiprocessing's and loky's.
var workerMarks = []string{"multiprocessing.spawn", "multiprocessing.forkserver", "loky.backend.popen_loky", "--multiprocessing-fork"}

// role tells a worker, which runs a part of the target's program, from another
// program.
func (r *roster) role(m *member) string {
	if m.pid == r.s.c.pid {
		return r.s.c.opts.Role
	}
	if exe := r.s.fs.executable(m.pid); exe == "" || exe != r.s.fs.executable(r.s.c.pid) {
		return "child"
	}
	arguments := r.s.fs.arguments(m.pid)
	if slices.Equal(arguments, r.own) { // forked
		return "worker"
	}
	for _, a := range arguments {
		for _, mark := range workerMarks {
			if strings.Contains(a, mark) {
				return "worker"
			}
		}
	}
	return "child"
}

// command is what a process runs, in one word.
func (r *roster) command(m *member) string {
	if name := commandOf(r.s.fs.arguments(m.pid)); name != "" {
		return name
	}
	return m.comm
}

// helperCommand is what multiprocessing's and loky's process is called that only
// cleans up after others.
const helperCommand = "resource_tracker"

// commandOf names what a command line runs: "pip" of "python -m pip install x".
func commandOf(arguments []string) string {
	if len(arguments) == 0 {
		return ""
	}
	name := strings.TrimPrefix(path.Base(arguments[0]), "-") // a login shell's is "-bash"
	if !strings.HasPrefix(name, "python") && !strings.HasPrefix(name, "pypy") {
		return name
	}
	for i := 1; i < len(arguments); i++ {
		switch a := arguments[i]; {
		case a == "-m" && i+1 < len(arguments) && strings.HasSuffix(arguments[i+1], ".resource_tracker"):
			return helperCommand
		case a == "-m" && i+1 < len(arguments):
			return arguments[i+1]
		case a == "-c" && i+1 < len(arguments) && strings.Contains(arguments[i+1], "resource_tracker"):
			return helperCommand
		case a == "-c", a == "-":
			return name
		case a == "-W", a == "-X":
			i++ // its value
		case !strings.HasPrefix(a, "-"):
			return path.Base(a)
		}
	}
	return name
}
