package program

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/host"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
)

// deaths are the signals by which nobody asks a program to end.
var deaths = []unix.Signal{unix.SIGKILL, unix.SIGSEGV, unix.SIGABRT, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGSYS}

// Of the last stacks so many are said.
const (
	saidThreads = 4
	saidFrames  = 8
)

// memoryBefore is the memory that a program may use, as it was before.
type memoryBefore struct {
	watch  *host.MemoryWatch
	before host.Memory
}

func watchMemory(pid int) memoryBefore {
	w := host.WatchMemory(pid)
	return memoryBefore{w, w.Now()}
}

// sayDied says how a program died: in which line, with how much memory, and what its threads did then. Nothing of one
// that ended otherwise.
func (m memoryBefore) sayDied(messages io.Writer, rec *timeline.Recording, r *report.View, watched bool) {
	if r == nil {
		return
	}
	p := &r.Processes[r.Target().Process]
	if p.EndNS == nil || p.ExitCode == nil {
		return
	}
	signal := unix.Signal(*p.ExitCode - 128)
	if !slices.Contains(deaths, signal) {
		return
	}
	now := m.watch.Now()
	name := r.Target().Name
	if watched {
		name = fmt.Sprintf("process %d", p.PID)
	}
	place, ago := r.DiedIn(int(signal))
	d := wording.Died{
		Program: name, Watched: watched, Exit: p.ExitCode, Signal: int(signal), IntoS: timeline.Nanos(*p.EndNS).Seconds(), Place: place,
		SeenS: rec.TargetSeenBefore().Seconds() + ago.Seconds(), Hint: !watched && !slices.Contains(rec.Target.Argv, "faulthandler"),
		Resident: r.LastResident(), Group: now.Group, GroupLimit: now.GroupLimit, Machine: now.Machine, Available: now.Available,
		GroupKills: now.GroupKills - m.before.GroupKills, Kills: now.Kills - m.before.Kills,
	}
	d.GPU, d.Xid = r.LastXid()
	fmt.Fprintf(messages, "omni-perf: %s\n", d.Sentence())
	for i, s := range r.LastStacks() {
		if i == saidThreads {
			break
		}
		s.Frames = s.Frames[:min(len(s.Frames), saidFrames)]
		fmt.Fprint(messages, "    "+strings.ReplaceAll(strings.TrimSuffix(s.String(), "\n"), "\n", "\n    ")+"\n")
	}
}
