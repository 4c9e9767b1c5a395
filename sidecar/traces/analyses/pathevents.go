package analyses

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/criticalpath"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// pathWindows are the times of consecutive chosen steps, and how many steps these are; without steps, from the first that was recorded to
// the end of what the main thread did.
func (r *recording) pathWindows(main int32) (windows []interval, steps int) {
	list := hostSteps(r.steps)
	for i, s := range list {
		if i > 0 && s.number <= list[i-1].number+1 && s.start <= list[i-1].end+int64(r.opts.KernelWait)+(list[i-1].end-list[i-1].start)/2 {
			last := &windows[len(windows)-1]
			last.End = max(last.End, s.end)
			continue
		}
		windows = append(windows, between(s.start, s.end))
	}
	if len(windows) > 0 {
		return windows, distinct(list)
	}
	all := between(r.spans[0].start, math.MinInt64)
	grow := func(start, end int64, thread uint32) {
		all.Start = min(all.Start, start)
		if int32(thread) == main {
			all.End = max(all.End, end)
		}
	}
	for i := range r.calls {
		if c := &r.calls[i]; c.row >= 0 {
			grow(c.start, c.end(), r.t.Calls.Thread[c.row])
		}
	}
	for _, row := range r.operators().rows {
		grow(r.t.Ops.Start[row], r.operators().end(row), r.t.Ops.Thread[row])
	}
	all.End = max(all.End, all.Start)
	return []interval{all}, 0
}

// handingThreads are the thread that the steps are of and those of autograd. Without steps it is the one with most operators, without
// operators the first one that calls; where nothing says which threads are autograd's it is all that launch work.
func (r *recording) handingThreads() (main int32, autograd []int32) {
	o := &r.t.Ops
	weight, backward := make([]int, len(r.t.Threads)+1), make([]bool, len(r.t.Threads)+1)
	main = -1
	isStep, isAutograd := map[kineto.Sym]bool{}, map[kineto.Sym]bool{}
	for s := range r.t.Names.Len() {
		name := r.t.Names.Text(kineto.Sym(s))
		_, isStep[kineto.Sym(s)] = stepNumber(name)
		isAutograd[kineto.Sym(s)] = strings.HasPrefix(name, autogradPrefix)
	}
	for _, row := range r.operators().rows {
		switch thread := o.Thread[row]; {
		case isStep[o.Name[row]]:
			main = int32(thread)
		case o.Backward[row] || isAutograd[o.Name[row]]:
			backward[thread] = true
		default:
			weight[thread]++
		}
	}
	if main < 0 {
		main = r.firstCaller()
		for thread, n := range weight {
			if n > weight[main] && !backward[thread] {
				main = int32(thread)
			}
		}
	}
	if !slices.Contains(backward, true) {
		r.markLaunching(backward)
	}
	for thread, is := range backward {
		if is && int32(thread) != main {
			autograd = append(autograd, int32(thread))
		}
	}
	return main, autograd
}

// markLaunching marks the threads that launch what devices did.
func (r *recording) markLaunching(threads []bool) {
	for i := range r.spans {
		if call := r.spans[i].call; call >= 0 && r.calls[call].row >= 0 {
			threads[r.t.Calls.Thread[r.calls[call].row]] = true
		}
	}
}

// firstCaller is the thread of the first call; 0 if there is none.
func (r *recording) firstCaller() (thread int32) {
	first := int64(math.MaxInt64)
	for i := range r.calls {
		if c := &r.calls[i]; c.row >= 0 && c.start < first {
			first, thread = c.start, int32(r.t.Calls.Thread[c.row])
		}
	}
	return thread
}

// events are what a window has for the graph, and the spans by Events.Work.
func (a *pathAnalysis) events(window interval) (e *criticalpath.Events, spans []int32) {
	r := a.r
	e = &criticalpath.Events{
		Start: window.Start, End: window.End, Main: a.main, Autograd: a.autograd, Threads: len(r.t.Threads) + 1,
		Short: int64(r.opts.KernelWait), Busy: a.busyThreads(window),
	}
	a.spansIn(window, a.callsIn(window, e))
	a.beforeWindow(window)
	slices.SortStableFunc(a.work, func(x, y windowWork) int { return cmp.Compare(x.Start, y.Start) })
	streams := map[streamKey]int32{}
	for _, w := range a.work {
		key := streamKey{r.t.Device.Device[w.row], r.t.Device.Stream[w.row]}
		stream, known := streams[key]
		if !known {
			stream = int32(len(streams))
			streams[key] = stream
		}
		w.Stream = stream
		e.Work, spans = append(e.Work, w.Work), append(spans, w.span)
	}
	a.work = a.work[:0]
	return e, spans
}

// callsIn adds the calls of a window that launch, wait or order something. It returns where each call of the recording
// is among these, -1 where it is not.
func (a *pathAnalysis) callsIn(window interval, e *criticalpath.Events) (callAt []int32) {
	r := a.r
	stepped := len(r.steps) > 0
	callAt = make([]int32, len(r.calls))
	for i := range r.calls {
		callAt[i] = -1
		c := &r.calls[i]
		name := r.t.Text(c.name)
		does := criticalpath.Call{Start: c.start, End: max(c.start, c.end()), Waits: synchronising[name], Orders: orders[name]}
		if c.row < 0 || stepped && c.start >= window.End || c.start < window.Start || !a.launched[i] && !does.Waits && !does.Orders {
			continue
		}
		does.Thread = int32(r.t.Calls.Thread[c.row])
		callAt[i] = int32(len(e.Calls))
		e.Calls = append(e.Calls, does)
	}
	return callAt
}

// spansIn adds what devices did for a window.
func (a *pathAnalysis) spansIn(window interval, callAt []int32) {
	r := a.r
	stepped := len(r.steps) > 0
	for i := range r.spans {
		s := &r.spans[i]
		if s.row < 0 || s.end() <= window.Start {
			continue
		}
		w := criticalpath.Work{Start: s.start, End: max(s.start, s.end()), Call: -1, Copy: s.kind == MemoryOp}
		if s.call >= 0 {
			at := r.calls[s.call].start
			if stepped && at >= window.End {
				continue
			}
			w.Call, w.Earlier = callAt[s.call], at < window.Start
		} else if w.Earlier = stepped && len(r.calls) > 0; w.Earlier && s.start >= window.End {
			continue
		}
		a.work = append(a.work, windowWork{w, int32(i), s.row})
	}
}

// windowWork is a work of a window, and where it comes from.
type windowWork struct {
	criticalpath.Work
	span int32 // index into recording.spans; -1: it is of none of the chosen steps
	row  int32 // of Trace.Device
}

// beforeWindow adds what the device had still to do when a window began, of other steps than the chosen ones.
func (a *pathAnalysis) beforeWindow(window interval) {
	r, d, c := a.r, &a.r.t.Device, &a.r.t.Calls
	if len(r.spans) == d.Len() {
		return
	}
	chosen := make([]bool, d.Len())
	for i := range r.spans {
		if row := r.spans[i].row; row >= 0 {
			chosen[row] = true
		}
	}
	later := map[int64]bool{} // correlations of calls from the window on
	for row, id := range c.Correlation {
		if c.Start[row] >= window.Start {
			later[id] = true
		}
	}
	for row, start := range d.Start {
		if end := d.End(row); !chosen[row] && end > window.Start && start < window.End && !later[d.Correlation[row]] {
			a.work = append(a.work, windowWork{criticalpath.Work{Start: start, End: end, Call: -1, Earlier: true}, -1, int32(row)})
		}
	}
}

// busyThreads are when the threads that hand over to each other were in operators or calls.
func (a *pathAnalysis) busyThreads(window interval) [][]criticalpath.Busy {
	busy := make([][]criticalpath.Busy, len(a.r.t.Threads)+1)
	if len(a.autograd) == 0 {
		return busy
	}
	for _, thread := range append([]int32{a.main}, a.autograd...) {
		var list []interval
		for _, l := range a.host.opLeaves[uint32(thread)] {
			if l.call >= 0 && a.r.operators().inOperator(l.call) {
				list = append(list, between(l.start, l.end))
			}
		}
		for _, l := range a.host.callLeaves[uint32(thread)] {
			list = append(list, between(l.start, l.end))
		}
		for _, i := range timeline.Joined(list) {
			if i.Start >= window.Start && i.Start < window.End {
				busy[thread] = append(busy[thread], criticalpath.Busy{Start: i.Start, End: i.End})
			}
		}
	}
	return busy
}

// inOperator reports whether a row of the tree is in an operator or in what autograd calls, not only in annotations.
func (tree *opTree) inOperator(at int32) bool {
	for o := &tree.t.Ops; at >= 0; at = tree.parent[at] {
		row := tree.rows[at]
		if name := tree.t.Text(o.Name[row]); o.Class[row] == kineto.OpCPU &&
			(o.Backward[row] || strings.HasPrefix(name, autogradPrefix) || !IsAnnotation(name)) {
			return true
		}
	}
	return false
}
