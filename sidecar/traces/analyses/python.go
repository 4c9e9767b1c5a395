package analyses

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
)

// pythonStacks nests the Python frames of a recording.
type pythonStacks struct {
	*nesting
	t     *kineto.Trace
	own   []kineto.Sym // by index of rows: the innermost frame of the user's code from here outwards; 0: none
	filed []kineto.Sym // the same of frames with a file; a built-in method has none
	main  uint32       // the process's main thread
	works uint32       // the thread that the work on other threads is part of
}

// frames are the recording's Python frames; nil if there are none.
func (r *recording) frames() *pythonStacks {
	p := &r.t.Python
	if r.python == nil && p.Len() > 0 {
		r.python = &pythonStacks{
			nesting: nest(p.Start, p.Dur, p.Thread, func(int) bool { return true }), t: r.t,
		}
		r.python.name()
		r.python.main, r.python.works = r.python.mainThread(), r.python.workingThread()
	}
	return r.python
}

// name finds for each frame whose line it is.
func (s *pythonStacks) name() {
	type about struct{ known, hasFile, own bool }
	names := make([]about, s.t.Names.Len())
	s.own, s.filed = make([]kineto.Sym, len(s.rows)), make([]kineto.Sym, len(s.rows))
	for i, row := range s.rows {
		sym := s.t.Python.Name[row]
		if !names[sym].known {
			p, ok := place.Parse(s.t.Text(sym))
			names[sym] = about{true, ok, ok && p.Own()}
		}
		if up := s.parent[i]; up >= 0 {
			s.own[i], s.filed[i] = s.own[up], s.filed[up]
		}
		if names[sym].own {
			s.own[i] = sym
		}
		if names[sym].hasFile {
			s.filed[i] = sym
		}
	}
}

// place is the frame's own line and its innermost one with a file, as
// "file(line): function".
func (s *pythonStacks) place(frame int32) [2]string {
	inner := s.filed[frame]
	if inner == 0 {
		inner = s.t.Python.Name[s.rows[frame]]
	}
	return [2]string{s.t.Text(s.own[frame]), withoutAddress(s.t.Text(inner))}
}

// mainThread is the process's first thread, whose number is the process's, where it ran Python. Where there is none of it, as in
// traces of systems that number threads otherwise, it is workingThread.
func (s *pythonStacks) mainThread() uint32 {
	return s.mostWork(func(thread uint32, _ int) bool { return s.isFirst(thread) })
}

// workingThread is the main thread where it called operators or the runtime, else the thread with Python that called most of them:
// a main thread may do nothing but wait for the one that trains.
func (s *pythonStacks) workingThread() uint32 {
	return s.mostWork(func(thread uint32, work int) bool { return s.isFirst(thread) && work > 0 })
}

// isFirst recognises the first thread of a process.
func (s *pythonStacks) isFirst(thread uint32) bool {
	of := &s.t.Threads[thread]
	return of.PID > 0 && of.PID == of.TID
}

// mostWork is, of the threads with Python, the one that is preferred, then the one with most operators and runtime calls, then the one
// with most Python calls: time says nothing, since a monitor that only waits has long frames. omni_perf's own thread is the last.
func (s *pythonStacks) mostWork(preferred func(thread uint32, work int) bool) uint32 {
	frames, work, ours := make([]int, len(s.t.Threads)), make([]int, len(s.t.Threads)), make([]bool, len(s.t.Threads))
	for _, row := range s.rows {
		thread := s.thread[row]
		frames[thread]++
		ours[thread] = ours[thread] || s.isOurLoop(s.t.Python.Name[row])
	}
	for row, thread := range s.t.Ops.Thread {
		if s.t.Ops.Class[row] == kineto.OpCPU {
			work[thread]++
		}
	}
	for _, thread := range s.t.Calls.Thread {
		work[thread]++
	}
	var threads []uint32
	for thread, n := range frames {
		if n > 0 {
			threads = append(threads, uint32(thread))
		}
	}
	if len(threads) == 0 {
		return 0
	}
	return slices.MinFunc(threads, func(a, b uint32) int {
		return cmp.Or(count(ours[a])-count(ours[b]), count(preferred(b, work[b]))-count(preferred(a, work[a])),
			cmp.Compare(work[b], work[a]), cmp.Compare(frames[b], frames[a]))
	})
}

// isOurLoop recognises the function that the thread of omni_perf's extension runs in.
func (s *pythonStacks) isOurLoop(name kineto.Sym) bool {
	text := s.t.Text(name)
	return strings.Contains(text, "omni_perf/looper.py(") && strings.HasSuffix(text, ": _run")
}
