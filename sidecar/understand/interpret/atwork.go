package interpret

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// AtWork reports of each thread of a recording whether it does its process's work: the main thread; or, where
// the user's own code runs in other threads for longer, these. A worker of Dask runs its tasks in threads,
// while its main thread waits in an event loop.
func AtWork(rec *timeline.Recording) []bool { return newReader(rec).atWork() }

// worthThread is the share of the own code of the thread with most of it from which on another works too.
const worthThread = 0.05

func (r *reader) atWork() []bool {
	own := make([]timeline.Nanos, len(r.rec.Threads))
	mains, others := make(map[int]timeline.Nanos), make(map[int]timeline.Nanos) // by process: the most of one thread
	for i, t := range r.rec.Threads {
		for _, s := range t.Spans {
			if stack := r.stack(s.Node); stack.line.Own && !r.isStart(t, stack) {
				own[i] += s.End - s.Start
			}
		}
		if t.Main {
			mains[t.Process] = max(mains[t.Process], own[i])
		} else {
			others[t.Process] = max(others[t.Process], own[i])
		}
	}
	out := make([]bool, len(r.rec.Threads))
	for i, t := range r.rec.Threads {
		inThreads := others[t.Process] > mains[t.Process]
		out[i] = t.Main != inThreads && (t.Main || float64(own[i]) >= worthThread*float64(others[t.Process]))
	}
	return out
}

// isStart reports whether a stack of a worker is from before its own first function: multiprocessing prepares
// the process, and imports the main module again where it was spawned.
func (r *reader) isStart(t timeline.Thread, s stack) bool {
	return t.Main && !s.started && (r.started()[t.Process] || s.boots && r.rec.Processes[t.Process].Role == timeline.RoleWorker)
}

// started are the processes of which the first function is known.
func (r *reader) started() map[int]bool {
	if r.begun != nil {
		return r.begun
	}
	r.begun = make(map[int]bool)
	for _, t := range r.rec.Threads {
		if t.Main && t.Process > 0 {
			for _, s := range t.Spans {
				if r.stack(s.Node).started {
					r.begun[t.Process] = true
					break
				}
			}
		}
	}
	return r.begun
}

// startsProcess reports whether a frame is the first function of a worker.
func (r *reader) startsProcess(f timeline.FrameID) bool { return r.means[f]&origin.StartsProcess != 0 }
