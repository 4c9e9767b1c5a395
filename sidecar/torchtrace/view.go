package torchtrace

import (
	"cmp"
	"math"
	"slices"
)

// view is the part of a trace that the analyses look at, as one mode sees it:
// in exact mode the device events and runtime calls of the chosen steps. What
// differs between the modes is settled here as far as possible.
type view struct {
	t       *Trace
	hta     bool   // HTA's rules, rounded or not
	spans   []span // by start; equal starts in file order
	calls   []call // file order
	steps   []step
	keeps   func(start int64) bool // whether the host's work at a time is in the chosen steps
	dropped int                    // number of the last step, dropped as unfinished; -1 if none was
	cut     int64                  // HTA: host rows from here on were dropped, if dropped >= 0
}

// span is a device event.
type span struct {
	start, dur  int64 // ns
	launch      int64 // start of its runtime call; None if that is not in the trace
	stream      int64
	correlation int64
	name        Sym
	row         int32 // of Trace.Device; -1 for HTA's other "device" events
	kind        KernelKind
}

// end is never before the start, except in HTA's rounded times.
func (s *span) end() int64 { return s.start + s.dur }

// call is a runtime call.
type call struct {
	start, dur  int64 // ns
	correlation int64
	name        Sym
	row         int32 // of Trace.Calls; -1 for HTA's other "host" events
}

// step is a ProfilerStep#N.
type step struct {
	number     int
	start, end int64 // ns, host clock
	device     bool  // gpu_user_annotation: known to the device's clock only
}

// newView selects by opts.
func newView(t *Trace, opts *AnalyzeOptions, stepNames int) *view {
	if opts.Mode == HTA || opts.Mode == HTANs {
		return newHTAView(t, opts, stepNames)
	}
	v := &view{t: t, dropped: -1, steps: findSteps(t)}
	host := hostSteps(v.steps)
	keep := func(int64) bool { return true }
	all := true
	switch {
	case len(opts.Steps) > 0:
		all = false
		keep = func(start int64) bool { return inSteps(host, opts.Steps, start) }
		v.steps = slices.DeleteFunc(v.steps, func(s step) bool { return !slices.Contains(opts.Steps, s.number) })
	case !opts.IncludeLastStep && distinct(host) >= 2:
		all = false
		last := host[len(host)-1]
		keep = func(start int64) bool { return start < last.start }
		v.dropped = last.number
		v.steps = slices.DeleteFunc(v.steps, func(s step) bool { return s.number == last.number })
	}
	v.keeps = keep
	c := &t.Calls
	launched := make(map[int64]int64, len(c.Start))
	v.calls = make([]call, 0, len(c.Start))
	for row, start := range c.Start {
		if !keep(start) {
			continue
		}
		v.calls = append(v.calls, call{start, max(0, c.Dur[row]), c.Correlation[row], c.Name[row], int32(row)})
		if c.Correlation[row] != None {
			launched[c.Correlation[row]] = start
		}
	}
	d := &t.Device
	kind := kinds{t: t, seen: map[kindKey]KernelKind{}}
	v.spans = make([]span, 0, len(d.Start))
	for row, start := range d.Start {
		launch, known := launched[d.Correlation[row]]
		if !known {
			if !all {
				continue
			}
			launch = None
		}
		v.spans = append(v.spans, span{
			start: start, dur: max(0, d.Dur[row]), launch: launch, stream: d.Stream[row],
			correlation: d.Correlation[row], name: d.Name[row], row: int32(row),
			kind: kind.of(d.Name[row], d.Class[row]),
		})
	}
	v.sort()
	return v
}

// sort orders spans by start, then end, then place in the file.
func (v *view) sort() {
	byStart := func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.dur, b.dur))
	}
	if !slices.IsSortedFunc(v.spans, byStart) {
		slices.SortStableFunc(v.spans, byStart)
	}
}

// findSteps lists the ProfilerStep#N annotations by start.
func findSteps(t *Trace) []step {
	number := map[Sym]int{}
	for s := range t.Names.Len() {
		if n, ok := stepNumber(t.Names.Text(Sym(s))); ok {
			number[Sym(s)] = n
		}
	}
	if len(number) == 0 {
		return nil
	}
	var steps []step
	o := &t.Ops
	for row, name := range o.Name {
		n, ok := number[name]
		if !ok || o.Class[row] > OpGPUAnnotation {
			continue
		}
		steps = append(steps, step{n, o.Start[row], o.Start[row] + max(0, o.Dur[row]), o.Class[row] == OpGPUAnnotation})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.start, b.start) })
	return steps
}

// stepNumber reads "ProfilerStep#12", or "ProfilerStep*" style names as none.
func stepNumber(name string) (n int, ok bool) {
	const prefix = "ProfilerStep#"
	if len(name) <= len(prefix) || name[:len(prefix)] != prefix {
		return 0, false
	}
	for _, c := range []byte(name[len(prefix):]) {
		if c-'0' > 9 {
			break
		}
		n, ok = min(n*10+int(c-'0'), math.MaxInt32), true
	}
	return n, ok
}

// hostSteps are the steps on the host's clock.
func hostSteps(steps []step) []step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return s.device })
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
