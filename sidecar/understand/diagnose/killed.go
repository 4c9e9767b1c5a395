package diagnose

import (
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// Linux's numbers of signals (signal(7)).
const signalKill = 9

// crashes are the signals that end a process for what its own code did.
var crashes = map[int]bool{4: true, 6: true, 7: true, 8: true, 11: true, 31: true} // SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS

// Crash reports whether a signal is one of those.
func Crash(signal int) bool { return crashes[signal] }

// Killed reports whether a process is a worker that crashed, or that was killed.
func Killed(p *timeline.Process) bool {
	return p.IsWorker() && p.End > 0 && (Crash(p.Signal) || p.Signal == signalKill)
}

// together is within what time the workers of one owner end whom it ends, one after the other.
const together = timeline.Nanos(1e9)

// brokenPools are outcomes of cells whose pool has lost a worker: its owner then ends the others.
var brokenPools = []string{"error: TerminatedWorkerError", "error: BrokenProcessPool"}

// endedByOwner reports whether a worker was killed with all of its owner's that were alive, as joblib does with
// its pool when a task has failed. The system kills one of them, and the cell ends with a broken pool.
func (e *evidence) endedByOwner(killed *timeline.Process) bool {
	if c := e.rec.Target.Cell; c != nil && slices.Contains(brokenPools, c.Outcome) {
		return false
	}
	others := 0
	for i := range e.rec.Processes {
		p := &e.rec.Processes[i]
		switch {
		case p == killed, !p.IsWorker(), p.Parent != killed.Parent, p.Role != killed.Role, p.End > 0 && p.End < killed.End-together:
		case p.Signal != signalKill || p.End > killed.End+together:
			return false
		default:
			others++
		}
	}
	return others > 0
}

// workerKilled finds the first worker that crashed, or that was killed while the program's own code
// ran: by the system, which does so when memory runs out, or by whoever else. A worker that gets
// SIGTERM was asked to end, one that is killed with all others was ended by their owner, and one that is killed
// after the program's end is cleaned up.
func workerKilled(e *evidence) measured {
	first, count := -1, int64(0)
	for i := range e.rec.Processes {
		p := &e.rec.Processes[i]
		if !Killed(p) || p.Signal == signalKill && (e.cleanedUp(p) || e.endedByOwner(p)) {
			continue
		}
		if count++; first < 0 || p.End < e.rec.Processes[first].End {
			first = i
		}
	}
	if first < 0 {
		return nothing
	}
	p := &e.rec.Processes[first]
	f := Finding{
		Process: p, At: p.End, Count: count, Bytes: e.lastMemory(first), Place: e.lastPlace(first), Value: float64(count), Cores: math.NaN(),
		Advice: NativeCrash, Evidence: []timeline.Interval{timeline.Between(max(p.Start, 0), min(p.End, e.rec.Duration))},
	}
	if p.Signal == signalKill {
		f.Advice = KilledForMemory
	}
	return measured{Finding: f, low: f.Value, lost: 1}
}

// followed is within what time the end of a program is seen that an exception about its killed worker ends: both are
// seen by turns, and as late as stacks are read.
const followed = timeline.Nanos(1e8)

// cleanedUp reports whether a worker was killed after the program's own code had ended. A program that an exception
// ended just before the worker's end was seen may have ended because of it, as torch's loader raises at once.
func (e *evidence) cleanedUp(killed *timeline.Process) bool {
	ended := e.ended()
	if e.rec.Processes[0].Raised != nil {
		ended += followed
	}
	return killed.End >= ended
}

// ended is when the program's own code had ended: that of a launcher, with its ranks.
func (e *evidence) ended() timeline.Nanos {
	if e.stacks.About.Launcher || e.leading() != nil {
		return e.rec.Duration
	}
	return e.main.Ended
}

// lastPlace is the line of the user's own that a process's main thread was seen in last; zero where none was.
func (e *evidence) lastPlace(process int) activity.Place {
	own := func(id timeline.FrameID) bool { return e.stacks.Files.Own(e.rec.Frames[id].File) }
	for i := range e.rec.Threads {
		t := &e.rec.Threads[i]
		if t.Process != process || !t.Main {
			continue
		}
		for _, span := range slices.Backward(t.Spans) {
			if id, ok := activity.InnermostOwn(e.rec, span.Node, own); ok {
				f := &e.rec.Frames[id]
				return activity.Place{File: f.File, Line: f.Line}
			}
			if span.Node != timeline.RootNode {
				break
			}
		}
	}
	return activity.Place{}
}

// lastMemory is what a process held when its memory was read last; 0: it was not.
func (e *evidence) lastMemory(process int) int64 {
	t := e.stacks.Track(fmt.Sprintf("process.%d.rss", process))
	if t == nil || len(t.Points) == 0 {
		return 0
	}
	if last := t.Points[len(t.Points)-1].Value; last > 0 {
		return int64(last)
	}
	return 0
}
