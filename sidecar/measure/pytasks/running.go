package pytasks

import (
	"fmt"
	"os"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
)

// A loop that runs is asyncio's "running loop" of a thread. An attribute of the loop, _thread_id, would say it, too, but not of
// uvloop's, and not of a process that was forked within a loop: it has a copy of the loop and of its tasks, which no thread of
// its own runs.
//
// Where it is, by version:
//   - 3.11: the thread's dictionary has a PyRunningLoopHolder of Modules/_asynciomodule.c, with the loop and the number of the
//     process that has set it;
//   - 3.12: the thread's dictionary has it;
//   - 3.13: _PyThreadStateImpl.asyncio_running_loop;
//   - 3.14 and later: where .AsyncioDebug says.

const (
	runningName = "__asyncio_running_event_loop__"
	holderLoop  = 16 // PyRunningLoopHolder.rl_loop
	holderPID   = 24 // … and rl_pid, an int
)

// runningLoops returns the loops that run, and the main interpreter's threads.
func (r *Reader) runningLoops(f *found) (running map[uint64]bool, threads []uint64, err error) {
	slot := max(r.l.Thread.Dict, r.l.Thread.RunningLoop)
	if f.lists != nil {
		slot = f.lists.runningLoop
	}
	running = make(map[uint64]bool)
	thread, err := cpython.ReadWord(r.mem, f.interp+r.l.Interp.ThreadsHead)
	for n := 0; err == nil && thread != 0 && n < maxThreads; n++ {
		loop, e := cpython.ReadWord(r.mem, thread+slot)
		if e != nil {
			break // it has ended
		}
		if threads = append(threads, thread); loop != 0 && r.l.Version.Minor < 13 {
			if loop, err = r.held(loop); err != nil {
				return nil, nil, err
			}
		}
		if loop != 0 {
			running[loop] = true
		}
		thread, err = cpython.ReadWord(r.mem, thread+r.l.Thread.Next)
	}
	return running, threads, nil
}

// held returns the running loop of a thread by its dictionary; 0: it has none.
func (r *Reader) held(dict uint64) (uint64, error) {
	loop, err := r.lookup(dict, runningName)
	if err != nil || loop == 0 {
		return 0, err
	}
	if r.l.Version.Minor == 11 {
		var holder [holderPID + cpython.WordSize]byte
		if err := cpython.ReadAt(r.mem, loop, holder[:]); err != nil {
			return 0, err
		}
		if r.pid != 0 && int(cpython.Half(holder[:], holderPID)) != r.ownPID() {
			return 0, nil // it was forked since
		}
		loop = cpython.Word(holder[:], holderLoop)
	}
	if r.objects.TypeName(loop) == "NoneType" {
		return 0, nil
	}
	return loop, nil
}

// ownPID is what the process calls itself.
func (r *Reader) ownPID() int {
	if r.inside == 0 {
		r.inside = r.pid
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.pid)); err == nil {
			if ids := procfs.NamespaceIDs(status); len(ids) > 0 {
				r.inside = ids[len(ids)-1]
			}
		}
	}
	return r.inside
}
