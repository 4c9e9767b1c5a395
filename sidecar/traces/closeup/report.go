package closeup

import (
	"fmt"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

const (
	// maxThreads is how many host threads are shown: a data loader of 64 workers
	// has as many, and each of them says the same.
	maxThreads = 16
	// maxWindow is longer than any step and short enough for sums of a few; a damaged
	// file can have any.
	maxWindow = int64(100 * time.Hour)
)

// writer turns the records of a window into a recording.
type writer struct {
	trace    *kineto.Trace
	from, to int64
	b        *timeline.Builder
	frames   map[frameKey]timeline.FrameID
	codes    map[string]report.Code // of functions that stand in no file, by name
}

// frameKey is a frame by what the trace calls it.
type frameKey struct {
	python bool
	name   kineto.Sym
}

// reportOf is a window of a trace as a report. The recording it is made of counts from
// the window's start on both clocks, so that the trace's times are exact in it.
func reportOf(trace *kineto.Trace, from, to int64) (*report.View, error) {
	if to <= from || uint64(to-from) > uint64(maxWindow) { // the difference may overflow
		return nil, fmt.Errorf("%w between %d and %d ns", ErrNothing, from, to)
	}
	start := trace.UnixNs(from)
	w := &writer{
		trace: trace, from: from, to: to, frames: map[frameKey]timeline.FrameID{}, codes: map[string]report.Code{},
		b: timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: time.Unix(0, start), Interval: time.Microsecond}),
	}
	pid := int(max(trace.Process.PID, 1))
	threads := threadsIn(trace, from, to)
	for i, t := range threads[:min(len(threads), maxThreads)] {
		id := w.b.Thread(timeline.Thread{PID: pid, NativeID: nativeID(trace, t.index), Name: w.name(i, t), Main: i == 0, RunsCell: i == 0, OnCPU: -1})
		w.history(id, t.calls)
	}
	w.b.Describe(func(r *timeline.Recording) { r.Target.PID = pid })
	rec := w.b.Snapshot(timeline.Nanos(to - from))
	if trace.Device.Len() > 0 {
		bridge := timeline.Bridge{Offset: 1 - start}
		m, err := addtrace.Into(rec, []*kineto.Trace{trace}, addtrace.Options{Bridge: bridge})
		if err != nil {
			return nil, fmt.Errorf("placing the kernels: %w", err)
		}
		rec = m.Recording
	}
	v, err := report.Build(rec, nil, report.Options{})
	if err != nil {
		return nil, fmt.Errorf("making a report of the step: %w", err)
	}
	return w.coded(v)
}

// coded says whose code the functions are: a trace's files have no folders, and
// operators and runtime calls stand in none.
func (w *writer) coded(v *report.View) (*report.View, error) {
	doc := *v.Document
	doc.Files, doc.Functions = slices.Clone(doc.Files), slices.Clone(doc.Functions)
	for i := range doc.Files {
		if name := doc.Files[i].Name; name != "" {
			doc.Files[i].Code = report.CodeByName(name)
		}
	}
	for i := range doc.Functions {
		f := &doc.Functions[i]
		if name := doc.Files[f.File].Name; name != "" {
			f.Code = doc.Files[f.File].Code
		} else if code, known := w.codes[f.Name]; known {
			f.Code = code
		}
	}
	doc.Lines = []report.Line{} // of frames whose line is not known
	checked, err := report.Check(&doc)
	if err != nil {
		return nil, fmt.Errorf("making a report of the step: %w", err)
	}
	return checked, nil
}

func nativeID(t *kineto.Trace, index uint32) int {
	if int(index) < len(t.Threads) {
		return int(max(t.Threads[index].TID, 0))
	}
	return 0
}

// name is what a thread is called. Kineto names most of them by their number, or by
// the program; what they do is more informative.
func (w *writer) name(i int, t thread) string {
	switch {
	case i == 0 && (t.stepped || t.calls[0].layer == python):
		return "main thread"
	case slices.ContainsFunc(t.calls, func(c call) bool { return isBackward(w.trace.Text(c.name)) }):
		return "autograd"
	}
	return ""
}
