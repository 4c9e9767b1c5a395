package analyses

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// step is a ProfilerStep#N.
type step struct {
	number     int
	start, end int64 // ns, host clock
	device     bool  // gpu_user_annotation: known to the device's clock only
}

// findSteps lists the ProfilerStep#N annotations by start.
func findSteps(t *kineto.Trace) []step {
	number := map[kineto.Sym]int{}
	for s := range t.Names.Len() {
		if n, ok := stepNumber(t.Names.Text(kineto.Sym(s))); ok {
			number[kineto.Sym(s)] = n
		}
	}
	if len(number) == 0 {
		return nil
	}
	var steps []step
	o := &t.Ops
	for row, name := range o.Name {
		n, ok := number[name]
		if !ok || o.Class[row] > kineto.OpGPUAnnotation {
			continue
		}
		steps = append(steps, step{n, o.Start[row], o.Start[row] + max(0, o.Dur[row]), o.Class[row] == kineto.OpGPUAnnotation})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.start, b.start) })
	return steps
}

// stepNumber reads "ProfilerStep#12".
func stepNumber(name string) (n int, ok bool) {
	digits, is := strings.CutPrefix(name, kineto.StepPrefix)
	if !is {
		return 0, false
	}
	for _, c := range []byte(digits) {
		if c-'0' > 9 {
			break
		}
		n, ok = min(n*10+int(c-'0'), math.MaxInt32), true
	}
	return n, ok
}

// CountStepNames counts the distinct ProfilerStep#N of all traces, by which HTA
// decides whether there is a last step to drop.
func CountStepNames(traces []*kineto.Trace) int {
	names := map[string]bool{}
	for _, t := range traces {
		for s := range t.Names.Len() {
			text := t.Names.Text(kineto.Sym(s))
			if _, ok := stepNumber(text); ok {
				names[text] = true
			}
		}
	}
	return len(names)
}

// stepNumbers lists the numbers of steps, ascending, each once.
func stepNumbers(steps []step) []int {
	numbers := []int{}
	for _, s := range steps {
		numbers = append(numbers, s.number)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// hostSteps are the steps on the host's clock.
func hostSteps(steps []step) []step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return s.device })
}

// HostStep is a ProfilerStep#N on the host's clock, in the trace's times.
type HostStep struct {
	Number     int
	Start, End int64 // ns
}

// HostSteps lists the steps of a trace by start.
func HostSteps(t *kineto.Trace) []HostStep {
	var list []HostStep
	for _, s := range hostSteps(findSteps(t)) {
		list = append(list, HostStep{s.number, s.start, s.end})
	}
	return list
}

// IsStep recognises the annotation of a step from others.
func IsStep(name string) bool {
	_, is := stepNumber(name)
	return is
}

// distinct counts the step numbers.
func distinct(steps []step) int {
	seen := map[int]bool{}
	for _, s := range steps {
		seen[s.number] = true
	}
	return len(seen)
}

// inSteps reports whether a time lies in one of the numbered steps.
func inSteps(steps []step, numbers []int, at int64) bool {
	for _, s := range steps {
		if s.start <= at && at < s.end && slices.Contains(numbers, s.number) {
			return true
		}
	}
	return false
}

// whole is the recording with the last step kept.
func (r *recording) whole() *recording {
	if r.dropped < 0 {
		return r
	}
	every := *r.opts
	every.IncludeLastStep = true
	return newRecording(r.t, &every, r.stepNames)
}

// stepRow is how long a step took and how busy the devices were meanwhile.
type stepRow struct {
	number                     int
	start                      int64 // ns since the epoch
	length                     int64
	busy, idle, compute, comms int64 // summed over the devices
	launches                   int   // runtime calls that started device work
	dropped                    bool
}

// observeSteps has a row per step, the dropped last one included.
func observeSteps(r *recording) []stepRow {
	whole := r.whole()
	steps := hostSteps(whole.steps)
	if len(steps) == 0 {
		return nil
	}
	launches := launchTimes(pairs(whole, func(*call) bool { return true }))
	rows := make([]stepRow, 0, len(steps))
	for _, s := range steps {
		window := between(s.start, s.end)
		row := stepRow{
			number: s.number, start: r.t.UnixNs(s.start), length: s.end - s.start,
			launches: within(launches, window), dropped: s.number == r.dropped,
		}
		for d := range whole.of {
			on := timeline.Total(timeline.Clip(whole.busy(d), window))
			row.busy += on
			row.idle += s.end - s.start - on
			row.compute += timeline.Total(timeline.Clip(whole.layer(d, Computation), window))
			row.comms += timeline.Total(timeline.Clip(whole.layer(d, Communication), window))
		}
		rows = append(rows, row)
	}
	return rows
}

func answerSteps(a asked[[]stepRow]) []*table.Table {
	columns := []*table.Column{
		{Name: "rank", Kind: table.Int},
		{Name: "step", Kind: table.Int},
		{Name: "start_us", Kind: table.Micros}, // since the rank's first step
		{Name: "duration_us", Kind: table.Micros},
	}
	if a.about.device {
		columns = append(columns, []*table.Column{
			{Name: "device_busy_us", Kind: table.Micros}, // of several devices the sum, as idle
			{Name: "device_idle_us", Kind: table.Micros},
			{Name: "compute_us", Kind: table.Micros},
			{Name: "communication_us", Kind: table.Micros},
			{Name: "launches", Kind: table.Int}, // runtime calls that started device work
		}...)
	}
	columns = append(columns, &table.Column{Name: "counted", Kind: table.Text}) // yes, or "dropped": the last one, maybe cut off
	t := table.New(TableSteps, "Profiler steps", columns...)
	var why notes
	for _, rank := range a.ranks {
		rows := slices.Concat(rank.parts...)
		note := ""
		if len(rows) == 0 {
			note = "no ProfilerStep annotations: call prof.step() in the training loop"
		}
		why.add(rank.rank, note)
		for _, row := range rows {
			cells := []any{rank.rank, row.number, micros(row.start - rows[0].start), micros(row.length)}
			if a.about.device {
				cells = append(cells, micros(row.busy), micros(row.idle), micros(row.compute), micros(row.comms), row.launches)
			}
			counted := "yes"
			if row.dropped {
				counted = "dropped"
			}
			t.Add(append(cells, counted)...)
		}
	}
	t.Note = why.String()
	return []*table.Table{t}
}

// launchTimes are the starts of the distinct calls, in order.
func launchTimes(joined []launched) []int64 {
	var starts []int64
	var last *call
	for _, p := range joined {
		if p.call != last {
			starts = append(starts, p.call.start)
		}
		last = p.call
	}
	slices.Sort(starts)
	return starts
}

// within counts the times that lie in a window.
func within(sorted []int64, window interval) int {
	from, _ := slices.BinarySearch(sorted, window.Start)
	to, _ := slices.BinarySearch(sorted, window.End)
	return max(to-from, 0)
}
