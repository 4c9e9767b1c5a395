package closeup

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// layer is what kind of record a call is; of those that begin and end together a lower
// one called the higher.
type layer uint8

const (
	python layer = iota
	annotation
	operator
	runtimeCall
	waitingCall // a runtime call that waits for the device
)

// call is one record of a thread.
type call struct {
	start, end int64
	layer      layer
	name       kineto.Sym
}

// thread is what one host thread did in a window.
type thread struct {
	index   uint32 // of Trace.Threads
	calls   []call // callers first
	busy    int64  // in anything at all
	stepped bool   // the step was annotated in it
}

// threadsIn are the threads that have records in a window, cut to it, the one that the
// step's own code ran in first, then by their time. The annotation of a step is the
// window itself and is left out; so are threads that stood still in it: what waits for
// its next task all the time is recorded as one long call.
func threadsIn(t *kineto.Trace, from, to int64) []thread {
	calls := map[uint32][]call{}
	add := func(index uint32, l layer, start, dur int64, name kineto.Sym) {
		if end := start + max(0, dur); max(start, from) < min(end, to) {
			calls[index] = append(calls[index], call{start, end, l, name})
		}
	}
	stepped := map[uint32]bool{}
	for row, start := range t.Python.Start {
		add(t.Python.Thread[row], python, start, t.Python.Dur[row], t.Python.Name[row])
	}
	for row, start := range t.Ops.Start {
		switch t.Ops.Class[row] {
		case kineto.OpCPU:
			add(t.Ops.Thread[row], operator, start, t.Ops.Dur[row], t.Ops.Name[row])
		case kineto.OpAnnotation:
			if analyses.IsStep(t.Text(t.Ops.Name[row])) {
				stepped[t.Ops.Thread[row]] = true
			} else {
				add(t.Ops.Thread[row], annotation, start, t.Ops.Dur[row], t.Ops.Name[row])
			}
		}
	}
	for row, start := range t.Calls.Start {
		l := runtimeCall
		if analyses.Waits(t.Text(t.Calls.Name[row])) {
			l = waitingCall
		}
		add(t.Calls.Thread[row], l, start, t.Calls.Dur[row], t.Calls.Name[row])
	}
	var list []thread
	for index, c := range calls {
		nest(c)
		for i := range c {
			c[i].start, c[i].end = max(c[i].start, from), min(c[i].end, to)
		}
		if !slices.ContainsFunc(c, func(c call) bool { return c.start > from || c.end < to }) {
			continue
		}
		c = c[around(c, from, to):]
		th := thread{index: index, calls: c, stepped: stepped[index]}
		end := from
		for _, c := range c {
			th.busy += max(0, c.end-max(c.start, end))
			end = max(end, c.end)
		}
		list = append(list, th)
	}
	slices.SortFunc(list, func(a, b thread) int {
		if a.stepped != b.stepped {
			if a.stepped {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.busy, a.busy), cmp.Compare(a.index, b.index))
	})
	return list
}

// around counts the callers of everything in a window that another call of the whole window hides: the rows of an
// interpreter's start, of a launcher and of the program's main function say nothing of a step, and push what it called down.
// The innermost call that goes on all the time stays, as the root of the others.
func around(calls []call, from, to int64) int {
	n := 0
	for n < len(calls) && calls[n].layer == python && calls[n].start <= from && calls[n].end >= to {
		n++
	}
	return max(n-1, 0)
}

// nest sorts whole calls so that a caller comes before what it called.
func nest(calls []call) {
	slices.SortStableFunc(calls, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.layer, b.layer))
	})
}

// state is what a thread does inside of a call and of nothing that it called.
func (l layer) state() timeline.State {
	switch l {
	case python, annotation:
		return timeline.StatePython
	case waitingCall:
		return timeline.StateWaiting
	}
	return timeline.StateNative
}

// code is whose code a call is that is in no file.
func (l layer) code(name string) report.Code {
	switch {
	case l == annotation && analyses.FetchesData(name):
		return report.CodeData
	case l == annotation:
		return report.CodeUser
	case l == runtimeCall, l == waitingCall:
		return report.CodeDevice
	case l == operator, strings.HasPrefix(name, moduleCall):
		return report.CodeFramework
	}
	return report.CodeOther
}

// history writes a thread's calls as changes of its stack.
func (w *writer) history(id timeline.ThreadID, calls []call) {
	type open struct {
		end  int64
		node timeline.NodeID
		call call
	}
	var stack []open
	set := func(at int64) {
		if len(stack) == 0 {
			w.b.Set(id, timeline.Nanos(at-w.from), timeline.RootNode, timeline.StateUnknown, false)
			return
		}
		top := &stack[len(stack)-1]
		w.b.Set(id, timeline.Nanos(at-w.from), top.node, top.call.layer.state(), false)
	}
	// What has ended by at; the callers of what ends together are never seen alone.
	leave := func(at int64) {
		for len(stack) > 0 && stack[len(stack)-1].end <= at {
			end := stack[len(stack)-1].end
			for len(stack) > 0 && stack[len(stack)-1].end <= end {
				stack = stack[:len(stack)-1]
			}
			set(end)
		}
	}
	set(w.from)
	for _, c := range calls {
		leave(c.start)
		parent, end := timeline.RootNode, c.end
		if len(stack) > 0 {
			top := &stack[len(stack)-1]
			parent, end = top.node, min(end, top.end) // records that overlap without nesting
		}
		stack = append(stack, open{end, w.b.Child(parent, w.frame(c)), c})
		set(c.start)
	}
	leave(w.to)
}

// frame interns what was called. A trace has a function's first line, not the one
// that ran.
func (w *writer) frame(c call) timeline.FrameID {
	key := frameKey{c.layer == python, c.name}
	id, known := w.frames[key]
	if known {
		return id
	}
	f := timeline.Frame{Function: w.trace.Text(c.name)}
	if c.layer == python {
		if p, ok := place.Parse(f.Function); ok {
			f = timeline.Frame{Function: p.Function, File: p.File, FirstLine: p.Line}
		}
	}
	if f.File == "" {
		w.codes[f.Function] = c.layer.code(f.Function)
	}
	id = w.b.Frame(f)
	w.frames[key] = id
	return id
}

// moduleCall is how the profiler calls the call of a module, which has no file.
const moduleCall = "nn.Module: "

// isBackward recognises what only autograd's own threads run at their outermost.
func isBackward(name string) bool {
	return strings.HasPrefix(name, "autograd::engine::evaluate_function")
}
