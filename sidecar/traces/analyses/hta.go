package analyses

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// HTA's rules, faults included (but for its own filter of MTIA traces with
// several steps, of which no example is known). Its frame has one row per
// complete event with a category; "device" means a stream that is a number
// other than -1.

// htaRow is a row of HTA's frame that can matter: one with a correlation, a
// stream, or both. (Rows with neither only matter as steps and as row 0.)
type htaRow struct {
	kineto.FrameRow
	start, dur int64 // ns, by HTA's clock
	gpu        bool  // GPUKernelFilter keeps it
	linked     int64 // index_correlation
}

// newHTARecording builds the recording as HTA would see the trace.
func newHTARecording(t *kineto.Trace, opts *Options, stepNames int) *recording {
	if t.Frame == nil {
		panic("analyses: HTA's modes need traces that were read with kineto.Options.Frame")
	}
	r := &recording{
		t: t, opts: opts, hta: true, dropped: -1, steps: findSteps(t), stepNames: stepNames,
		keeps: func(int64) bool { return true },
	}
	r.found = stepNumbers(r.steps)
	clock := htaClock{rounded: opts.Mode == HTA && t.Frame.Decimals}
	list := htaRows(t, &clock)
	link(list)
	copies := htaFilter(r, list, &clock, stepNames)
	starts := map[int64]int64{}
	for i := range list {
		if copies[i] > 0 {
			starts[int64(list[i].Index)] = list[i].start
		}
	}
	if _, known := starts[0]; !known && t.Frame.Zero != nil && t.Frame.Zero.Kind == kineto.FrameOther {
		if start, _ := clock.times(t.Frame.Zero.Start, t.Frame.Zero.Dur); r.dropped < 0 || start < r.cut {
			starts[0] = start
		}
	}
	kind := kinds{t: t, hta: true, seen: map[kindKey]KernelKind{}}
	for i := range list {
		row := &list[i]
		if copies[i] == 0 {
			continue
		}
		if row.Stream == -1 {
			r.calls = append(r.calls, call{row.start, row.dur, row.Correlation, row.Name, row.in(kineto.FrameCall)})
			continue
		}
		s := span{start: row.start, dur: row.dur, launch: kineto.None, stream: row.Stream, call: -1,
			correlation: row.Correlation, name: row.Name, row: row.in(kineto.FrameDevice), kind: kind.of(row.Name, kineto.ClassKernel)}
		if start, ok := starts[row.linked]; ok {
			s.launch = start
		}
		for range copies[i] {
			r.spans = append(r.spans, s)
		}
	}
	if len(r.spans) > 0 {
		r.of = []int32{0}
	}
	r.sort()
	return r
}

// in is the row's place in a table, -1 if it is not there.
func (r *htaRow) in(kind kineto.FrameKind) int32 {
	if r.Kind == kind {
		return r.Row
	}
	return -1
}

// isRowZero reports whether a span is the file's first event.
func (r *recording) isRowZero(s *span) bool {
	zero := r.t.Frame.Zero
	return zero != nil && zero.Kind == kineto.FrameDevice && zero.Row == s.row
}

// htaClock rounds times as HTA's round_down_time_stamps: the start up, the end
// down, both as float64 microseconds.
type htaClock struct{ rounded bool }

func (c htaClock) times(start, dur int64) (int64, int64) {
	if !c.rounded {
		return start, dur
	}
	ts := float64(start) / 1000
	end := ts + float64(dur)/1000
	from, to := int64(math.Ceil(ts)), int64(math.Floor(end))
	return from * 1000, (to - from) * 1000
}

// htaRows lists the rows that matter in the file's order.
func htaRows(t *kineto.Trace, clock *htaClock) []htaRow {
	eventSync, contextSync := t.Names.Find("Event Sync"), t.Names.Find("Context Sync")
	list := make([]htaRow, len(t.Frame.Rows))
	for i, row := range t.Frame.Rows {
		start, dur := clock.times(row.Start, row.Dur)
		list[i] = htaRow{FrameRow: row, start: start, dur: dur}
		list[i].gpu = row.Stream >= 0 && row.Correlation >= 0 ||
			row.Name != 0 && (row.Name == eventSync || row.Name == contextSync)
	}
	return list
}

// link sets index_correlation: the row at the other end of the correlation, 0
// when that is missing (which HTA then takes for row 0), -1 without one.
func link(list []htaRow) {
	host := map[int64]uint32{} // correlation → last host row
	for i := range list {
		r := &list[i]
		r.linked = min(r.Correlation, 0)
		if !r.gpu && r.Correlation != -1 {
			host[r.Correlation] = r.Index
		}
	}
	device := map[int64]uint32{}
	for i := range list {
		r := &list[i]
		if r.gpu && r.Correlation != -1 {
			if index, ok := host[r.Correlation]; ok {
				r.linked = int64(index)
			}
			device[r.Correlation] = r.Index
		}
	}
	for i := range list {
		r := &list[i]
		if index, ok := device[r.Correlation]; ok && !r.gpu && r.Correlation != -1 {
			r.linked = int64(index)
		}
	}
}

// htaFilter drops the last step as HTA does and returns how often each row is
// in the filtered frame: its merge copies a device row once per host row of
// the same correlation.
func htaFilter(r *recording, list []htaRow, clock *htaClock, stepNames int) []int {
	copies := make([]int, len(list))
	for i := range copies {
		copies[i] = 1
	}
	if stepNames < 2 || len(r.steps) == 0 {
		return copies
	}
	keep := func(int64) bool { return true }
	if !r.opts.IncludeLastStep {
		r.cut = math.MinInt64
		for _, s := range r.steps { // gpu_user_annotations too: fault 6
			start, _ := clock.times(s.start, 0)
			if start > r.cut {
				r.cut, r.dropped = start, s.number
			}
		}
		keep = func(start int64) bool { return start < r.cut }
		r.keeps = keep
		r.steps = slices.DeleteFunc(r.steps, func(s step) bool {
			start, _ := clock.times(s.start, 0)
			return start >= r.cut
		})
	}
	hosts := map[int64]int{}
	for i := range list {
		row := &list[i]
		if row.gpu {
			continue
		}
		if !keep(row.start) {
			copies[i] = 0
			continue
		}
		hosts[row.Correlation]++
	}
	for i := range list {
		if list[i].gpu {
			copies[i] = hosts[list[i].Correlation]
		}
	}
	return copies
}

// htaLaunches are the calls whose correlations HTA's launch statistics count.
var htaLaunches = []string{
	"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync",
	"runFunction - job_prep_and_submit_for_execution",
}

// htaLaunched reports whether a correlation belongs to one of those calls.
func htaLaunched(r *recording) func(correlation int64) bool {
	names := symSet(r.t, htaLaunches)
	counted := map[int64]bool{}
	for i := range r.calls {
		if names[r.calls[i].name] {
			counted[r.calls[i].correlation] = true
		}
	}
	return func(correlation int64) bool { return counted[correlation] }
}

// htaQueued are the calls that put work on a stream in HTA's queue length.
var htaQueued = []string{
	"cudaMemsetAsync", "cudaMemcpyAsync", "cudaLaunchKernel", "cudaLaunchKernelExC",
	"cuLaunchKernel", "cuLaunchKernelEx", "runFunction - job_prep_and_submit_for_execution",
	"hipLaunchKernel", "hipExtModuleLaunchKernel", "hipMemcpyAsync", "hipMemsetAsync", "hipMemcpyWithStream",
}
