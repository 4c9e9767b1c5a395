package chart

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

const (
	maxOperators = 8
	maxKernels   = 6
)

// tracedTime is for how long torch.profiler recorded, and the words that say so.
func tracedTime(r *report.View) (seconds float64, note string) {
	steps := 0
	for _, t := range r.Traces {
		seconds += report.Seconds(t.EndNS - t.StartNS)
		steps += t.Steps
	}
	note = "of " + words.Seconds(seconds) + " that torch.profiler recorded"
	if steps > 0 {
		note += ", " + words.Plural(steps, "step", "steps")
	}
	if n := len(r.Traces); n > 1 {
		note += " in " + words.Plural(n, "trace", "traces")
	}
	return seconds, note
}

// operatorsTable ranks torch's operators by their own time: on the device, or on the host where
// nothing ran on a device.
func operatorsTable(r *report.View) table {
	traced, note := tracedTime(r)
	onDevice := slices.ContainsFunc(r.Operators, func(o report.Operator) bool { return o.SelfDeviceNS != nil && *o.SelfDeviceNS > 0 })
	own := func(o *report.Operator) int64 {
		switch {
		case !onDevice:
			return o.SelfCPUNS
		case o.SelfDeviceNS != nil:
			return *o.SelfDeviceNS
		}
		return 0
	}
	t := table{heading: "Operators of torch", note: labels.Join("own time on the CPU", note)}
	if onDevice {
		t.note = labels.Join("time of the kernels that they launched", note)
	}
	list := make([]*report.Operator, len(r.Operators))
	for i := range r.Operators {
		list[i] = &r.Operators[i]
	}
	slices.SortStableFunc(list, func(a, b *report.Operator) int { return int(min(1, max(-1, own(b)-own(a)))) })
	for _, o := range list {
		ns := own(o)
		if len(t.rows) == maxOperators || ns == 0 || traced == 0 {
			break
		}
		seconds := report.Seconds(ns)
		rw := row{name: words.Clean(o.Name, 60), seconds: seconds, share: min(1, seconds/traced), aside: words.Plural(int(o.Calls), "call", "calls")}
		if o.InputShapes != nil && *o.InputShapes != "" {
			rw.code = words.Clean(*o.InputShapes, 80)
		}
		if onDevice {
			rw.hint = words.Seconds(report.Seconds(o.SelfCPUNS)) + " of its own on the CPU"
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

// kernelsTable ranks what ran on devices by name.
func kernelsTable(r *report.View) table {
	traced, note := tracedTime(r)
	t := table{heading: "Kernels", note: labels.Join("time on the device", note)}
	list := slices.Clone(r.KernelTimes)
	slices.SortStableFunc(list, func(a, b report.KernelTime) int { return int(min(1, max(-1, b.TotalNS-a.TotalNS))) })
	for i, k := range list {
		if i == maxKernels || k.TotalNS == 0 || traced == 0 {
			break
		}
		seconds := report.Seconds(k.TotalNS)
		t.rows = append(t.rows, row{
			name: words.Clean(k.Name, 60), seconds: seconds, share: min(1, seconds/traced),
			aside: words.Plural(int(k.Count), "time", "times") + ", " + words.Seconds(k.MeanSeconds()) + " each",
		})
	}
	return t
}
