package findings

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// parsed is a place of a table; nil where there is none.
func parsed(text string) *place.Place {
	p, ok := place.Parse(text)
	if !ok {
		return nil
	}
	return &p
}

// cpuOnly is what there is of a trace without device events. It does not say that
// nothing ran: kernels that were launched may not have been recorded.
func cpuOnly(t Tables) *Finding {
	files := t.get(analyses.TableRecordings)
	if t.get(analyses.TableTemporal).Len() > 0 || files.Len() == 0 {
		return nil
	}
	events := int64(0)
	for r := range files.Len() {
		events += files.IntAt("events", r)
	}
	f := &Finding{ID: CPUOnly, Value: recorded(t), Unit: Micros, Evidence: map[string]float64{"recordings": float64(files.Len()), "events": float64(events)}}
	steps := t.get(analyses.TableSteps)
	var n, sum float64
	for r := range steps.Len() {
		if steps.TextAt("counted", r) != "yes" {
			continue
		}
		n++
		sum += steps.FloatAt("duration_us", r)
	}
	if n > 0 {
		f.Evidence["steps"], f.Evidence["mean_step_us"] = n, sum/n
	}
	calls := t.get(analyses.TableCalls)
	var launches float64
	for r := range calls.Len() {
		if analyses.LaunchesKernels(calls.TextAt("call", r)) {
			launches += calls.FloatAt("count", r)
		}
	}
	if launches > 0 {
		f.Evidence["launches"] = launches
	}
	return f
}

// recorded is the length of all recordings, in µs.
func recorded(t Tables) (sum float64) {
	files := t.get(analyses.TableRecordings)
	for r := range files.Len() {
		sum += files.FloatAt("duration_us", r)
	}
	return sum
}

// dataLoading is the time the loop waited for its DataLoader.
func dataLoading(t Tables) *Finding {
	loader := t.get(analyses.TableDataLoader)
	var fetching, idle, whole float64
	type sums struct{ fetching, whole float64 }
	ranks := map[int64]sums{}
	var worst int64 = table.None
	devices := map[int64]float64{}
	byDevice := t.get(analyses.TableTemporalByDevice)
	for r := range byDevice.Len() {
		devices[byDevice.IntAt("rank", r)]++
	}
	for r := range loader.Len() {
		rank := loader.IntAt("rank", r)
		s := ranks[rank]
		ranks[rank] = sums{s.fetching + loader.FloatAt("dataloader_us", r), s.whole + loader.FloatAt("step_us", r)}
		fetching += loader.FloatAt("dataloader_us", r)
		idle += loader.FloatAt("device_idle_us", r) / max(1, devices[rank]) // the mean of its devices
		whole += loader.FloatAt("step_us", r)
	}
	highest := 0.0
	for rank, s := range ranks {
		if part := ratio(s.fetching, s.whole); part > highest || part == highest && rank < worst {
			highest, worst = part, rank
		}
	}
	f := &Finding{
		ID: DataLoading, Value: ratio(fetching, whole), Unit: Share, Threshold: leastLoader, Lost: ratio(fetching, whole),
		Evidence: t.onDevices(map[string]float64{
			"dataloader_us": fetching, "device_idle_us": idle, "ranks": float64(len(ranks)), "highest_share": highest,
		}),
	}
	if len(ranks) > 1 {
		f.Rank = pointer(worst)
	}
	if len(devices) > 0 && !math.IsNaN(idle) {
		f.Lost = ratio(idle, whole) // what the devices have enough work for costs nothing
	}
	return f
}

// placeSums adds up a column by place: the user's own where there is one.
func placeSums(t *table.Table, value string, own func(row int) string) (sums map[string]float64, all float64) {
	sums = map[string]float64{}
	for r := range t.Len() {
		v := t.FloatAt(value, r)
		if math.IsNaN(v) {
			continue
		}
		sums[own(r)] += v
		all += v
	}
	return sums, all
}

// most is the largest of some sums that has a place.
func most(sums map[string]float64) (at *place.Place, value float64) {
	name := ""
	for text, v := range sums {
		if p := parsed(text); p != nil && (v > value || v == value && text < name) {
			at, value, name = p, v, text
		}
	}
	return at, value
}

// textOf is a row's function as a place.
func textOf(t *table.Table, row int) string {
	p := place.Place{File: t.TextAt("file", row), Function: t.TextAt("function", row)}
	if line := t.IntAt("line", row); line != table.None {
		p.Line = int(line)
	}
	return p.String()
}

// pythonIdle is the line that the devices idled for longest: the user's own that
// called, else the library's. Name is the function inside of it that had most.
func pythonIdle(t Tables) *Finding {
	idle := t.get(analyses.TablePythonIdle)
	ofRow := func(row int) string {
		if idle.TextAt("kind", row) != analyses.IdlePython {
			return ""
		}
		if caller := idle.TextAt("caller", row); caller != "" {
			return caller
		}
		return textOf(idle, row)
	}
	sums, all := placeSums(idle, "idle_us", ofRow)
	at, us := most(sums)
	if at == nil || !worthACause(t) {
		return nil
	}
	f := &Finding{
		ID: PythonIdle, Value: ratio(us, all), Unit: Share, Threshold: leastPlace, Place: at, Lost: t.ofIdle(ratio(us, all)),
		Evidence: t.onDevices(map[string]float64{"idle_us": us}),
	}
	inner, _ := placeSums(idle, "idle_us", func(row int) string {
		if ofRow(row) != at.String() {
			return ""
		}
		return textOf(idle, row)
	})
	if inside, us := most(inner); inside != nil && *inside != *at {
		f.Name, f.Evidence["inner_share"] = inside.String(), ratio(us, all)
	}
	return f
}

// hostIdle is what the host did for the longest part of the devices' idle time, of traces without Python
// stacks: else a line says more.
func hostIdle(t Tables) *Finding {
	if !worthACause(t) || pythonIdle(t) != nil {
		return nil
	}
	idle := t.get(analyses.TableHostIdle)
	type activity struct{ kind, name string }
	type sums struct {
		us    float64
		calls map[string]float64
	}
	by, all := map[activity]*sums{}, 0.0
	for r := range idle.Len() {
		us := idle.FloatAt("idle_us", r)
		all += us
		a := activity{idle.TextAt("kind", r), idle.TextAt("name", r)}
		if a.name == "" {
			continue
		}
		if by[a] == nil {
			by[a] = &sums{calls: map[string]float64{}}
		}
		by[a].us += us
		by[a].calls[idle.TextAt("call", r)] += idle.FloatAt("call_us", r)
	}
	var top activity
	for a, s := range by {
		if best := by[top]; best == nil || s.us > best.us || s.us == best.us && a.name < top.name {
			top = a
		}
	}
	if by[top] == nil {
		return nil
	}
	f := &Finding{
		ID: HostIdle, Value: ratio(by[top].us, all), Unit: Share, Threshold: leastPlace, Name: top.name, Lost: t.ofIdle(ratio(by[top].us, all)),
		Evidence: t.onDevices(map[string]float64{"idle_us": by[top].us}),
	}
	for call, us := range by[top].calls {
		if part := ratio(us, by[top].us); call != "" && call != top.name && part > 0.5 {
			f.Call, f.Evidence["call_share"] = call, part
		}
	}
	return f
}

// pythonTime is the user's line that the main thread was longest in; of a trace
// without device events.
func pythonTime(t Tables) *Finding {
	if t.get(analyses.TableTemporal).Len() > 0 {
		return nil
	}
	functions := t.get(analyses.TablePythonFunctions)
	own, _ := placeSums(functions, "own_us", func(row int) string { return textOf(functions, row) })
	_, all := placeSums(functions, "self_us", func(int) string { return "" })
	at, us := most(own)
	if at == nil || us <= 0 {
		return nil
	}
	return &Finding{
		ID: PythonTime, Value: ratio(us, all), Unit: Share, Threshold: leastPlace, Place: at, Lost: ratio(us, all),
		Evidence: map[string]float64{"own_us": us, "main_thread_us": all},
	}
}

// topOperator is the operator with most host time of its own; of a trace without
// device events.
func topOperator(t Tables) *Finding {
	if t.get(analyses.TableTemporal).Len() > 0 {
		return nil
	}
	operators := t.get(analyses.TableOperators)
	sums, calls, all := map[string]float64{}, map[string]float64{}, 0.0
	for r := range operators.Len() {
		name := operators.TextAt("name", r)
		if analyses.IsAnnotation(name) {
			continue
		}
		sums[name] += operators.FloatAt("self_cpu_us", r)
		calls[name] += operators.FloatAt("calls", r)
		all += operators.FloatAt("self_cpu_us", r)
	}
	top := ""
	for name, us := range sums {
		if top == "" || us > sums[top] || us == sums[top] && name < top {
			top = name
		}
	}
	if top == "" {
		return nil
	}
	return &Finding{
		ID: TopOperator, Value: ratio(sums[top], all), Unit: Share, Threshold: leastPlace, Name: top, Lost: min(ratio(sums[top], recorded(t)), 1),
		Evidence: map[string]float64{"self_cpu_us": sums[top], "operators_us": all, "calls": calls[top]},
	}
}
