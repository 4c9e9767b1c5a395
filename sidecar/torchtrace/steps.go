package torchtrace

import (
	"slices"
	"strings"
)

// stepTimes has a row per step of a rank, the dropped last one included: how
// long it took and how busy the device was meanwhile.
func stepTimes(v, whole *view) *Table {
	t := newTable(TableSteps, "Profiler steps",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "step", Kind: Int},
		&Column{Name: "start_us", Kind: Micros}, // since the rank's first step
		&Column{Name: "duration_us", Kind: Micros},
		&Column{Name: "device_busy_us", Kind: Micros},
		&Column{Name: "device_idle_us", Kind: Micros},
		&Column{Name: "compute_us", Kind: Micros},
		&Column{Name: "communication_us", Kind: Micros},
		&Column{Name: "launches", Kind: Int}, // runtime calls that started device work
		&Column{Name: "counted", Kind: Text}) // yes, or "dropped": the last one, maybe cut off
	steps := hostSteps(whole.steps)
	if len(steps) == 0 {
		t.Note = "no ProfilerStep annotations: call prof.step() in the training loop"
		return t
	}
	busy := union(whole.spans, anyKind)
	compute := union(whole.spans, ofKind(Computation))
	comm := union(whole.spans, ofKind(Communication))
	launches := launchTimes(pairs(whole, func(*call) bool { return true }))
	for _, s := range steps {
		window := interval{s.start, s.end}
		on := length(clip(busy, window))
		counted := "yes"
		if s.number == v.dropped {
			counted = "dropped"
		}
		t.add(v.t.Rank, s.number, micros(s.start-steps[0].start), micros(s.end-s.start),
			micros(on), micros(s.end-s.start-on), micros(length(clip(compute, window))), micros(length(clip(comm, window))),
			within(launches, s), counted)
	}
	return t
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

// within counts the times that lie in a step.
func within(sorted []int64, s step) int {
	from, _ := slices.BinarySearch(sorted, s.start)
	to, _ := slices.BinarySearch(sorted, s.end)
	return max(to-from, 0)
}

// dataLoading has a row per step: the time the loop waited for its DataLoader
// and how much of that the device idled.
func dataLoading(v *view) *Table {
	t := newTable(TableDataLoader, "Waiting for data",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "step", Kind: Int}, // -1: the trace has no steps
		&Column{Name: "fetches", Kind: Int},
		&Column{Name: "dataloader_us", Kind: Micros},
		&Column{Name: "step_us", Kind: Micros},
		&Column{Name: "dataloader_pctg", Kind: Percent}, // of the step
		&Column{Name: "device_idle_us", Kind: Micros})   // during the fetches
	fetches := dataFetches(v)
	if len(fetches) == 0 {
		t.Note = "no enumerate(DataLoader) in the trace"
		return t
	}
	waits := union(fetches, anyKind)
	idle := invert(union(v.spans, anyKind))
	steps := hostSteps(v.steps)
	if len(steps) == 0 {
		whole := interval{waits[0].start, waits[len(waits)-1].end}
		for i := range v.calls {
			whole.start, whole.end = min(whole.start, v.calls[i].start), max(whole.end, v.calls[i].start+v.calls[i].dur)
		}
		steps = []step{{number: -1, start: whole.start, end: whole.end}}
	}
	starts := make([]int64, len(fetches)) // sorted, as fetches are
	for i, f := range fetches {
		starts[i] = f.start
	}
	for _, s := range steps {
		window := interval{s.start, s.end}
		inside := clip(waits, window)
		t.add(v.t.Rank, s.number, within(starts, s), micros(length(inside)), micros(s.end-s.start),
			percent(length(inside), s.end-s.start), micros(overlap(inside, clip(idle, window))))
	}
	return t
}

// dataFetches lists the "enumerate(DataLoader)…" annotations by start.
func dataFetches(v *view) []span {
	names := map[Sym]bool{}
	for s := range v.t.Names.Len() {
		if strings.HasPrefix(v.t.Names.Text(Sym(s)), "enumerate(DataLoader)") {
			names[Sym(s)] = true
		}
	}
	o := &v.t.Ops
	f := view{}
	for row, name := range o.Name {
		if names[name] && o.Class[row] <= OpAnnotation && v.keeps(o.Start[row]) {
			f.spans = append(f.spans, span{start: o.Start[row], dur: max(0, o.Dur[row])})
		}
	}
	f.sort()
	return f.spans
}
