package diagnose

import (
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// loopIn has a child process whose loop waits for so many tasks at a line for some time, or is blocked for it in another line.
func loopIn(process, tasks int, kind timeline.AwaitKind, until timeline.Nanos) func(*timeline.Builder) {
	return both(child("serve", "worker"), func(b *timeline.Builder) {
		node := func(function, file string, line int, suspended bool) timeline.NodeID {
			return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: function, File: file, Line: line, FirstLine: 1, Suspended: suspended}))
		}
		main := b.Thread(timeline.Thread{PID: 50 + process, Process: process, NativeID: 50 + process, Main: true, OnCPU: -1})
		if kind == timeline.AwaitsTurn {
			b.Set(main, 0, node("checksum", cellFile, 3, false), timeline.StatePython, false)
		} else {
			b.Set(main, 0, node("EpollSelector.select", "/usr/lib/python3.12/selectors.py", 1, false), timeline.StateWaiting, false)
		}
		b.AddAwaits(process, 0, until, kind, map[timeline.NodeID]int{node("fetch", cellFile, 4, true): tasks}, map[timeline.NodeID]int{})
	})
}

// Loops of child processes are findings where the program waits for them and has none itself; they come after what it waits for.
func TestLoopsOfChildProcesses(t *testing.T) {
	joins := act{2 * sec, 8, "/usr/lib/python3.12/subprocess.py", "Popen.wait", timeline.StateWaiting, 0}
	waits, blocked := loopIn(1, 20, timeline.AwaitsOther, 19*sec/10), loopIn(2, 7, timeline.AwaitsTurn, 9*sec/5)
	for name, c := range map[string]struct {
		scene scene
		id    FindingID
		pid   int // 0: it is of the program's own loop, or there is none
		more  int // other processes in which it is so, too
	}{
		"tasks of a child wait":  {scene{acts: []act{joins}, change: waits}, TasksWait, 51, 0},
		"in two it is so":        {scene{acts: []act{joins}, change: both(waits, loopIn(2, 5, timeline.AwaitsOther, sec))}, TasksWait, 51, 1},
		"a child's is blocked":   {scene{acts: []act{joins}, change: both(child("idle", "worker"), blocked)}, LoopBlocked, 52, 0},
		"the program computes":   {scene{acts: []act{one(3, "", "", timeline.StatePython, 0), one(4, "", "", timeline.StatePython, 0)}, change: waits}, "", 0, 0},
		"its own loop has tasks": {scene{acts: []act{selecting, selecting}, change: both(tasksAt(timeline.AwaitsOther, 4, 18, 1, 0, 2*sec), waits)}, TasksWait, 0, 0},
	} {
		list := Run(c.scene.record()).Findings
		i := slices.IndexFunc(list, func(f Finding) bool { return f.ID == TasksWait || f.ID == LoopBlocked })
		if i < 0 || c.id == "" {
			if (i < 0) != (c.id == "") {
				t.Errorf("%s: %v", name, ids(list))
			}
			continue
		}
		f, more := list[i], 0
		for _, a := range f.Actors {
			more += a.Count
		}
		if f.ID != c.id || (f.Process != nil) != (c.pid != 0) || c.pid != 0 && f.Process.PID != c.pid || more != c.more {
			t.Errorf("%s: %+v", name, f)
		}
		if c.pid != 0 && (i == 0 || list[0].Process != nil) {
			t.Errorf("%s: it comes first: %v", name, ids(list))
		}
	}
}
