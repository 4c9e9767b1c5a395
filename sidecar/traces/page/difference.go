package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/changes"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// difference is where the time of a step, or of a rank's devices where no steps are known, went from another run to
// this one. The parts and the rest add up to the difference of the whole.
type difference struct {
	run, per string
	ofStep   bool // the whole is a step's time, else the devices'
	whole    changed
	parts    []changed // the largest first
	rest     changed
}

// changed is a part before and after, µs.
type changed struct {
	name, about       string
	before, after     float64
	change, low, high float64 // the change is between low and high
	judged            bool    // low, high and verdict are known
	verdict           string
}

const (
	// mostParts is how many parts of a difference have a bar.
	mostParts = 12
	// leastExplained: kernels divide the change of computing, and causes that of idle time, unless what they leave
	// is more than this share of their own changes, as it is where kernels run at the same time.
	leastExplained = 0.25
	// leastDrawn is the share of the whole that a difference must have somewhere for a picture.
	leastDrawn = 0.001
	// mostOutside is how much longer than a step the devices' time may be: it is where a rank has several devices.
	mostOutside = 1.5
)

// differenceOf divides the change against the first of the other runs.
//
//	a step = computing + only communicating + only copying + idle + outside of the devices' time
//	computing = its kernels; idle = its causes
func differenceOf(t *table.Table, kindOf func(kernel string) string) (d difference, ok bool) {
	if t.Len() == 0 {
		return d, false
	}
	d.run = t.TextAt("run", 0)
	of := map[string][]changed{}
	var devices changed
	for r := range t.Len() {
		kind := t.TextAt("kind", r)
		if t.TextAt("run", r) != d.run {
			continue
		}
		if kind == changes.Kernel && kindOf(t.TextAt("name", r)) != analyses.Computation.String() {
			continue
		}
		c := changedAt(t, r)
		of[kind] = append(of[kind], c)
		if kind == changes.Device {
			d.per = t.TextAt("per", r)
			devices.before += c.before
			devices.after += c.after
			devices.change += c.change
		}
	}
	if len(of[changes.Device]) == 0 || devices.before <= 0 || devices.after <= 0 {
		return d, false
	}
	d.whole = devices
	for _, step := range of[changes.Step] {
		if devices.before <= mostOutside*step.before && devices.after <= mostOutside*step.after {
			d.ofStep, d.whole = true, step
		}
	}
	for _, c := range of[changes.Device] {
		switch c.name {
		case changes.Computing:
			d.parts = append(d.parts, divided(c, of[changes.Kernel])...)
		case changes.Idle:
			d.parts = append(d.parts, divided(c, of[changes.IdleCause])...)
		default:
			d.parts = append(d.parts, c)
		}
	}
	if d.ofStep {
		d.parts = append(d.parts, outside(d.whole, devices))
	}
	d.keepLargest()
	return d, true
}

// keepLargest orders the parts and puts all but the largest into the rest.
func (d *difference) keepLargest() {
	d.parts = slices.DeleteFunc(d.parts, func(c changed) bool { return c.change == 0 })
	slices.SortStableFunc(d.parts, func(a, b changed) int { return cmp.Compare(math.Abs(b.change), math.Abs(a.change)) })
	further := max(0, len(d.parts)-mostParts)
	d.parts = d.parts[:len(d.parts)-further]
	d.rest = changed{name: "the rest", about: "the rest: ", change: d.whole.change}
	for _, c := range d.parts {
		d.rest.change -= c.change
	}
	if further > 0 {
		d.rest.about += plural(further, "further change") + ", "
	}
	d.rest.about += "kernels and causes that changed too little to be listed, less what kernels ran at the same time as others"
}

// outside is what a step takes beside the time from the devices' first event to their last one.
func outside(step, devices changed) changed {
	c := changed{
		name:   "outside of the devices' time",
		before: step.before - devices.before, after: step.after - devices.after, change: step.change - devices.change,
	}
	c.about = fmt.Sprintf("steps less the time from the device's first event to the last: %s before, %s after, %s",
		words.Signed(c.before/1e6), words.Signed(c.after/1e6), words.Signed(c.change/1e6))
	return c
}

// changedAt is a row of the table.
func changedAt(t *table.Table, r int) changed {
	c := changed{
		name: t.TextAt("name", r), verdict: t.TextAt("verdict", r), judged: true,
		before: t.FloatAt("before_us", r), after: t.FloatAt("after_us", r), change: t.FloatAt("change_us", r),
		low: t.FloatAt("low_us", r), high: t.FloatAt("high_us", r),
	}
	switch t.TextAt("kind", r) {
	case changes.IdleCause:
		for _, known := range causes {
			if known.name == c.name {
				c.name = "idle: " + known.text
			}
		}
	case changes.Kernel:
		c.about = c.name
		c.name = kernelLabel(c.name)
		if was := t.TextAt("was", r); was != "" {
			c.about += " (was " + was + ")"
		}
	}
	c.about = cmp.Or(c.about, c.name) + ": " +
		fmt.Sprintf("%s before, %s after, %s", length(c.before), length(c.after), c.judgement())
	return c
}

// judgement is the change with its bounds and its verdict.
func (c changed) judgement() string {
	text := fmt.Sprintf("%s (between %s and %s)",
		words.Signed(c.change/1e6), words.Signed(c.low/1e6), words.Signed(c.high/1e6))
	if c.verdict == "" {
		text += ", within noise"
	}
	return text
}

// divided are the parts in place of their whole, if they explain its change.
func divided(whole changed, parts []changed) []changed {
	left, moved := whole.change, 0.0
	for _, p := range parts {
		left, moved = left-p.change, moved+math.Abs(p.change)
	}
	if len(parts) == 0 || math.Abs(left) > leastExplained*moved {
		return []changed{whole}
	}
	return parts
}

// kernelKinds is what the kernels of this run do, and by their names what those do that only the other run has.
func (d drawing) kernelKinds() func(kernel string) string {
	known := map[string]string{}
	if t := d.table(analyses.TableKernels); t != nil {
		for r := range t.Len() {
			known[t.TextAt("name", r)] = t.TextAt("kernel_type", r)
		}
	}
	return func(kernel string) string { return cmp.Or(known[kernel], analyses.KindOfName(kernel).String()) }
}
