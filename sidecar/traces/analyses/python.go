package analyses

import (
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
)

// pythonStacks nests the Python frames of a recording.
type pythonStacks struct {
	*nesting
	t     *kineto.Trace
	own   []kineto.Sym // by index of rows: the innermost frame of the user's code from here outwards; 0: none
	filed []kineto.Sym // the same of frames with a file; a built-in method has none
	main  uint32       // the thread that runs the training loop
}

// frames are the recording's Python frames; nil if there are none.
func (r *recording) frames() *pythonStacks {
	p := &r.t.Python
	if r.python == nil && p.Len() > 0 {
		r.python = &pythonStacks{
			nesting: nest(p.Start, p.Dur, p.Thread, func(int) bool { return true }), t: r.t,
		}
		r.python.name()
		r.python.main = r.python.mainThread(r)
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

// mainThread is the thread with Python that calls and launches most; monitors
// that only wait have long frames but few.
func (s *pythonStacks) mainThread(r *recording) uint32 {
	weight := make([]int, len(s.t.Threads))
	hasPython := make([]bool, len(s.t.Threads))
	for _, row := range s.rows {
		weight[s.thread[row]]++
		hasPython[s.thread[row]] = true
	}
	for i := range r.calls {
		if row := r.calls[i].row; row >= 0 {
			weight[s.t.Calls.Thread[row]]++
		}
	}
	main, most := uint32(0), -1
	for thread, w := range weight {
		if hasPython[thread] && w > most {
			main, most = uint32(thread), w
		}
	}
	return main
}
