package gpuidle

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// Divide attributes the device's idle time to what a thread did; without a model if it is to be quick.
func (d *Device) Divide(h *activity.History, quick bool) {
	var model *activityModel
	h = released(h, d.windows, d.sampling.At)
	d.shares = attribute(h, d.windows, nil)
	if !quick && d.shares.ambiguity() > exactBounds {
		model = chooseModel(h, onlySampled(d.working()))
		d.shares = attribute(h, d.windows, model)
	}
	c := Certainty{
		Window: typicalWindow(d.windows), Windows: len(onlySampled(d.windows)), Repeats: d.shares.repeats(),
		R2: math.NaN(), HeldOut: math.NaN(), KernelWait: d.kernelWait, Recorded: d.Time.Busy + d.Time.Idle + d.Time.Unknown,
	}
	estimated := timeline.Nanos(0) // idle time of which only windows are known
	for _, w := range d.windows {
		if w.grain == sampled {
			estimated += w.idle()
		} else {
			c.Exact += w.at - w.from
		}
	}
	if model != nil {
		c.R2, c.HeldOut, c.Lag = model.r2, model.heldOut, time.Duration(model.lag)
	}
	switch {
	case c.Exact > 0 && float64(estimated) <= tightBounds*float64(d.shares.idle):
		c.Method = ByExact
	case d.shares.ambiguity() <= tightBounds:
		c.Method = ByWindows
	case model != nil && c.Repeats >= minRepeats && model.trusted(d.shares.idleShare()):
		c.Method = ByRepetition
	default:
		c.Method = ByAverage
	}
	d.Idle = DeviceBreakdown{Device: d.Index, Idle: d.shares.idle, Certainty: c, Causes: d.shares.causes(), Kinds: d.shares.kinds()}
	if model != nil {
		d.Idle.tighten(timeline.Nanos(d.shares.halfWidth(model) * float64(d.Idle.Idle)))
	}
}

// Sum joins the devices: those that were used, or all of them where none was.
func Sum(devices, used []*Device) *Breakdown {
	known := slices.DeleteFunc(slices.Clone(devices), func(d *Device) bool { return !d.IsMeasured() })
	if len(known) == 0 {
		return nil
	}
	idle := &Breakdown{}
	if len(used) == 0 {
		for _, d := range known {
			d.Idle = DeviceBreakdown{Device: d.Index, Idle: d.Time.Idle, Certainty: Certainty{Method: ByAbsence, R2: math.NaN(), HeldOut: math.NaN()}}
			if n := d.Time.Idle; n > 0 {
				d.Idle.Causes = []CauseTime{{Cause: activity.NoWork, Bounded: exactly(n), Share: 1}}
				d.Idle.Kinds = []KindTime{{Kind: activity.Absence, Bounded: exactly(n)}}
			}
		}
		used = known
	}
	byLine := make(map[activity.Place]timeline.Nanos)
	for i, d := range used {
		idle.Total += d.Idle.Idle
		idle.Devices = append(idle.Devices, d.Idle)
		if i == 0 || lessCertain(d.Idle.Certainty, idle.Certainty) {
			idle.Certainty = d.Idle.Certainty
		}
		for _, c := range d.Idle.Causes {
			c.Evidence = slices.Clone(c.Evidence)
			idle.Causes = mergeCause(idle.Causes, c)
			if c.Place.Line > 0 {
				byLine[c.Place] += c.Nanos
			}
		}
		for _, k := range d.Idle.Kinds {
			idle.Kinds = mergeKind(idle.Kinds, k)
		}
	}
	finishCauses(idle.Causes, idle.Total)
	idle.Kinds = finishKinds(idle.Kinds, idle.Total)
	for at, nanos := range byLine {
		idle.Lines = append(idle.Lines, LineTime{at, nanos})
	}
	slices.SortFunc(idle.Lines, func(a, b LineTime) int { return cmp.Or(cmp.Compare(b.Nanos, a.Nanos), a.Place.Compare(b.Place)) })
	return idle
}
