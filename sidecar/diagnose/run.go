package diagnose

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// Options of a diagnosis; the zero value is usable.
type Options struct {
	// Line reads a line of a file of the target, empty if it cannot. It is asked
	// for lines of the user's own code where a thread of a program that used a GPU
	// stood; none of the text is kept. nil = the cells' own sources only.
	Line func(file string, line int) string
}

// Run diagnoses a recording by what is in it.
func Run(rec *timeline.Recording) Diagnosis { return Options{}.Run(rec) }

// Run diagnoses a recording.
func (o Options) Run(rec *timeline.Recording) Diagnosis {
	s := newStacks(rec, NewSource(rec, o.Line))
	devices := readDevices(rec)
	d := Diagnosis{}
	for _, dev := range devices {
		d.GPUs = append(d.GPUs, dev.time)
	}
	used := slices.DeleteFunc(slices.Clone(devices), func(dev *device) bool { return !dev.time.Used || len(dev.windows) == 0 })
	s.device = len(used) > 0
	for _, dev := range used {
		dev.divide(s)
	}
	d.Idle = idleOf(devices, used)
	main := newHost(s, responsible(rec, -1), 0)
	d.Steps = steps(rec, used, main)
	d.Regions = regions(rec)
	d.Findings = findings(&evidence{rec: rec, stacks: s, diagnosis: &d, devices: devices, main: main})
	return d
}

// divide attributes the device's idle time.
func (d *device) divide(s *stacks) {
	h := newHost(s, responsible(s.rec, d.index), d.firstWork())
	var model *activityModel
	d.shares = attribute(h, d.windows, nil)
	if d.shares.ambiguity() > exactBounds {
		model = chooseModel(h, d.windows)
		d.shares = attribute(h, d.windows, model)
	}
	c := Certainty{
		Window: typicalWindow(d.windows), Windows: len(d.windows), Repeats: d.shares.repeats(),
		R2: math.NaN(), HeldOut: math.NaN(),
	}
	if model != nil {
		c.R2, c.HeldOut, c.Lag = model.r2, model.heldOut, time.Duration(model.lag)
	}
	switch {
	case d.shares.ambiguity() <= tightBounds:
		c.Method = ByWindows
	case model != nil && c.Repeats >= minRepeats && model.trusted(d.shares.idleShare()):
		c.Method = ByRepetition
	default:
		c.Method = ByAverage
	}
	c.Text = c.sentence()
	d.idle = DeviceIdle{Device: d.index, Idle: d.shares.idle, Certainty: c, Causes: d.shares.causes()}
	if c.Method == ByAverage && model != nil && model.heldOut >= boundingHeldOut && model.enough() {
		tighten(d.idle.Causes, timeline.Nanos(model.halfWidth(d.shares.idleShare())*float64(d.idle.Idle)))
	}
}

// idleOf joins the devices: those that were used, or all of them where none was.
func idleOf(devices, used []*device) *Idle {
	known := slices.DeleteFunc(slices.Clone(devices), func(d *device) bool { return len(d.windows) == 0 })
	if len(known) == 0 {
		return nil
	}
	idle := &Idle{}
	if len(used) == 0 {
		c := Certainty{Method: ByAbsence, R2: math.NaN(), HeldOut: math.NaN()}
		c.Text = c.sentence()
		for _, d := range known {
			d.idle = DeviceIdle{Device: d.index, Idle: d.time.Idle, Certainty: c}
			if d.time.Idle > 0 {
				d.idle.Causes = []CauseIdle{{Cause: NoWork, Nanos: d.time.Idle, Share: 1, Low: d.time.Idle, High: d.time.Idle}}
			}
		}
		used = known
	}
	byLine := make(map[line]timeline.Nanos)
	for i, d := range used {
		idle.Total += d.idle.Idle
		idle.Devices = append(idle.Devices, d.idle)
		if i == 0 || lessCertain(d.idle.Certainty, idle.Certainty) {
			idle.Certainty = d.idle.Certainty
		}
		for _, c := range d.idle.Causes {
			c.Evidence = slices.Clone(c.Evidence)
			idle.Causes = mergeCause(idle.Causes, c)
			if c.Line > 0 {
				byLine[line{c.File, c.Line}] += c.Nanos
			}
		}
	}
	finishCauses(idle.Causes, idle.Total)
	for at, nanos := range byLine {
		idle.Lines = append(idle.Lines, LineIdle{at.file, at.number, nanos})
	}
	slices.SortFunc(idle.Lines, func(a, b LineIdle) int {
		return cmp.Or(cmp.Compare(b.Nanos, a.Nanos), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return idle
}
