package analyses

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// cycleTime is what one recording of a rank is compared with the others by.
type cycleTime struct {
	deviceTime       // summed over the devices
	steps      int   // that are counted
	stepTime   int64 // ns of them
	// The longest call that does not wait for the device, which the first launch of a process often is.
	call     string
	callTime int64
}

func observeCycle(r *recording) (c cycleTime) {
	for _, t := range observeDeviceTime(r) {
		c.deviceTime = c.plus(t)
	}
	for _, s := range hostSteps(r.steps) {
		c.steps++
		c.stepTime += s.end - s.start
	}
	var longest *call
	for i := range r.calls {
		if of := &r.calls[i]; of.row >= 0 && (longest == nil || of.dur > longest.dur) && !Waits(r.t.Text(of.name)) {
			longest = of
		}
	}
	if longest != nil {
		c.call, c.callTime = r.t.Text(longest.name), longest.dur
	}
	return c
}

// answerCycles has a row per rank and recording of it, where a rank has several.
func answerCycles(a asked[cycleTime]) []*table.Table {
	t := table.New(TableCycles, "The cycles",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "cycle", Kind: table.Int}, // from 1 on
		&table.Column{Name: "steps", Kind: table.Int}, // that are counted
		&table.Column{Name: "mean_step_us", Kind: table.Micros},
		&table.Column{Name: "kernel_time_us", Kind: table.Micros}, // first device event to last; of several devices the sum, as what follows
		&table.Column{Name: "compute_time_us", Kind: table.Micros},
		&table.Column{Name: "idle_time_us", Kind: table.Micros},
		&table.Column{Name: "idle_share", Kind: table.Ratio},
		&table.Column{Name: "longest_call_us", Kind: table.Micros}, // of the runtime calls that do not wait for the device
		&table.Column{Name: "longest_call", Kind: table.Text, Optional: true})
	if !slices.ContainsFunc(a.ranks, func(r rankParts[cycleTime]) bool { return len(r.parts) > 1 }) {
		return []*table.Table{t}
	}
	for _, rank := range a.ranks {
		for i, c := range rank.parts {
			longest := math.NaN()
			if c.call != "" {
				longest = micros(c.callTime)
			}
			t.Add(rank.rank, i+1, c.steps, micros(c.stepTime)/float64(c.steps), micros(c.whole), micros(c.compute), micros(c.idle()),
				share(c.idle(), c.whole), longest, c.call)
		}
	}
	return []*table.Table{t}
}
