package torchtrace

import (
	"math"
	"slices"
)

// HTA's rules, faults included (but for its own filter of MTIA traces with
// several steps, of which no example is known). Its frame has one row per
// complete event with a category; "device" means a stream that is a number
// other than -1.

// htaRow is a row of HTA's frame that can matter: one with a correlation, a
// stream, or both. (Rows with neither only matter as steps and as row 0.)
type htaRow struct {
	start, dur          int64 // ns
	index               uint32
	stream, correlation int64 // -1: none
	name                Sym
	row                 int32 // of Device or Calls, as gpu and call say; else -1
	isDevice, isCall    bool
	gpu                 bool  // GPUKernelFilter keeps it
	linked              int64 // index_correlation
}

// newHTAView builds the view as HTA would see the trace.
func newHTAView(t *Trace, opts *AnalyzeOptions, stepNames int) *view {
	v := &view{t: t, hta: true, dropped: -1, steps: findSteps(t), keeps: func(int64) bool { return true }}
	clock := htaClock{rounded: opts.Mode == HTA && t.decimals}
	list := htaRows(t, &clock)
	link(list)
	copies := htaFilter(v, list, &clock, opts, stepNames)
	starts := map[int64]int64{}
	for i := range list {
		if copies[i] > 0 {
			starts[int64(list[i].index)] = list[i].start
		}
	}
	if _, known := starts[0]; !known {
		if start, ok := rowZero(t, &clock); ok && (v.dropped < 0 || start < v.cut) {
			starts[0] = start
		}
	}
	kind := kinds{t: t, hta: true, seen: map[kindKey]KernelKind{}}
	for i := range list {
		r := &list[i]
		if copies[i] == 0 {
			continue
		}
		if r.stream == -1 {
			v.calls = append(v.calls, call{r.start, r.dur, r.correlation, r.name, r.callRow()})
			continue
		}
		s := span{start: r.start, dur: r.dur, launch: None, stream: r.stream,
			correlation: r.correlation, name: r.name, row: -1, kind: kind.of(r.name, ClassKernel)}
		if r.isDevice {
			s.row = r.row
		}
		if start, ok := starts[r.linked]; ok {
			s.launch = start
		}
		for range copies[i] {
			v.spans = append(v.spans, s)
		}
	}
	v.sort()
	return v
}

func (r *htaRow) callRow() int32 {
	if r.isCall {
		return r.row
	}
	return -1
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
func htaRows(t *Trace, clock *htaClock) []htaRow {
	d, c, o := &t.Device, &t.Calls, &t.Ops
	list := make([]htaRow, 0, len(d.Start)+len(c.Start)+len(o.onStream))
	orNone := func(id int64) int64 {
		if id == None {
			return -1
		}
		return id
	}
	for row := range d.Start {
		start, dur := clock.times(d.Start[row], d.Dur[row])
		stream := int64(-1)
		if d.htaStream[row] {
			stream = d.Stream[row]
		}
		list = append(list, htaRow{start: start, dur: dur, index: d.index[row], stream: stream,
			correlation: orNone(d.Correlation[row]), name: d.Name[row], row: int32(row), isDevice: true})
	}
	for row := range c.Start {
		start, dur := clock.times(c.Start[row], c.Dur[row])
		list = append(list, htaRow{start: start, dur: dur, index: c.index[row], stream: c.htaStream(row),
			correlation: orNone(c.Correlation[row]), name: c.Name[row], row: int32(row), isCall: true})
	}
	for _, x := range o.onStream {
		start, dur := clock.times(o.Start[x.row], o.Dur[x.row])
		list = append(list, htaRow{start: start, dur: dur, index: o.index[x.row], stream: x.stream,
			correlation: x.correlation, name: o.Name[x.row], row: -1})
	}
	eventSync, contextSync := t.Names.Find("Event Sync"), t.Names.Find("Context Sync")
	for i := range list {
		r := &list[i]
		r.gpu = r.stream >= 0 && r.correlation >= 0 ||
			r.name != 0 && (r.name == eventSync || r.name == contextSync)
	}
	slices.SortFunc(list, func(a, b htaRow) int { return int(int64(a.index) - int64(b.index)) })
	return list
}

// link sets index_correlation: the row at the other end of the correlation, 0
// when that is missing (which HTA then takes for row 0), -1 without one.
func link(list []htaRow) {
	host := map[int64]uint32{} // correlation → last host row
	for i := range list {
		r := &list[i]
		r.linked = min(r.correlation, 0)
		if !r.gpu && r.correlation != -1 {
			host[r.correlation] = r.index
		}
	}
	device := map[int64]uint32{}
	for i := range list {
		r := &list[i]
		if r.gpu && r.correlation != -1 {
			if index, ok := host[r.correlation]; ok {
				r.linked = int64(index)
			}
			device[r.correlation] = r.index
		}
	}
	for i := range list {
		r := &list[i]
		if index, ok := device[r.correlation]; ok && !r.gpu && r.correlation != -1 {
			r.linked = int64(index)
		}
	}
}

// htaFilter drops the last step as HTA does and returns how often each row is
// in the filtered frame: its merge copies a device row once per host row of
// the same correlation.
func htaFilter(v *view, list []htaRow, clock *htaClock, opts *AnalyzeOptions, stepNames int) []int {
	copies := make([]int, len(list))
	for i := range copies {
		copies[i] = 1
	}
	if stepNames < 2 || len(v.steps) == 0 {
		return copies
	}
	keep := func(int64) bool { return true }
	if !opts.IncludeLastStep {
		v.cut = math.MinInt64
		for _, s := range v.steps { // gpu_user_annotations too: fault 6
			start, _ := clock.times(s.start, 0)
			if start > v.cut {
				v.cut, v.dropped = start, s.number
			}
		}
		keep = func(start int64) bool { return start < v.cut }
		v.keeps = keep
		v.steps = slices.DeleteFunc(v.steps, func(s step) bool {
			start, _ := clock.times(s.start, 0)
			return start >= v.cut
		})
	}
	hosts := map[int64]int{}
	for i := range list {
		r := &list[i]
		if r.gpu {
			continue
		}
		if !keep(r.start) {
			copies[i] = 0
			continue
		}
		hosts[r.correlation]++
	}
	for i := range list {
		if list[i].gpu {
			copies[i] = hosts[list[i].correlation]
		}
	}
	return copies
}

// rowZero is the start of the first trace event, if HTA keeps it.
func rowZero(t *Trace, clock *htaClock) (start int64, ok bool) {
	if len(t.Ops.index) > 0 && t.Ops.index[0] == 0 {
		start, _ = clock.times(t.Ops.Start[0], t.Ops.Dur[0])
		return start, true
	}
	if len(t.Python.Start) > 0 && t.Python.leads {
		start, _ = clock.times(t.Python.Start[0], t.Python.Dur[0])
		return start, true
	}
	return 0, false
}

// htaLaunches are the calls whose correlations HTA's launch statistics count.
var htaLaunches = []string{
	"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync",
	"runFunction - job_prep_and_submit_for_execution",
}

// htaLaunched reports whether a correlation belongs to one of those calls.
func htaLaunched(v *view) func(correlation int64) bool {
	names := symSet(v.t, htaLaunches)
	counted := map[int64]bool{}
	for i := range v.calls {
		if names[v.calls[i].name] {
			counted[v.calls[i].correlation] = true
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

// symSet is the set of those names that a trace has.
func symSet(t *Trace, names []string) map[Sym]bool {
	set := map[Sym]bool{}
	for _, n := range names {
		if s := t.Names.Find(n); s != 0 {
			set[s] = true
		}
	}
	return set
}
