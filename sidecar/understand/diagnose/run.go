package diagnose

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Options of a diagnosis; the zero value is usable.
type Options struct {
	// Line reads a line of a file of the target, empty if it cannot. It is asked
	// for lines of the user's own code at which a thread waited, or where a program
	// that used a GPU stood; none of the text is kept. nil = the cells' own sources only.
	Line func(file string, line int) string
	// Quick leaves out what a look at a recording in progress has no time for: idle time
	// is divided by the windows alone, and there are no findings, ranks and regions.
	Quick bool
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
	lanes, threads := s.rankLanes()
	if s.leader = s.leadingRank(threads); s.leader != nil {
		d.Leading = s.leader.Process
	}
	for _, dev := range used {
		dev.divide(s, o.Quick)
	}
	d.Idle = idleOf(devices, used)
	thread := s.responsible(-1)
	life := lifeOf(s, thread)
	main := newHost(s, thread, life)
	bystanders := newBystanders(s, thread)
	bystanders.resolve(main)
	d.Spent = main.spent()
	d.Steps = steps(s, used, main, threads)
	if o.Quick {
		return d
	}
	d.Regions = regions(rec)
	d.Ranks = ranksOf(lanes, threads, d.Steps)
	e := &evidence{lanes: lanes, rec: rec, stacks: s, diagnosis: &d, devices: devices, thread: thread, main: main, bystanders: bystanders, ended: life.end}
	d.Findings = findings(e)
	d.Headline = headline(rec, d.Spent, d.Findings)
	return d
}

// lifeOf finds when the program's own code began and ended.
func lifeOf(s *stacks, t *timeline.Thread) lifetime {
	begin, end := scriptLife(s, t)
	life := lifetime{begin: begin, end: end}
	if t != nil {
		life.unread = unreadTimes(s.rec, t.PID)
	}
	if t != nil && t.Process > 0 && t.Process < len(s.rec.Processes) {
		life.born, life.died = s.rec.Processes[t.Process].Start, s.rec.Processes[t.Process].End
	}
	return life
}

// divide attributes the device's idle time; without a model if it is to be quick.
func (d *device) divide(s *stacks, quick bool) {
	thread := s.responsible(d.index)
	life := lifeOf(s, thread)
	life.firstWork = d.firstWork()
	h := newHost(s, thread, life)
	newBystanders(s, thread).resolve(h)
	var model *activityModel
	d.shares = attribute(h, d.windows, nil)
	if !quick && d.shares.ambiguity() > exactBounds {
		model = chooseModel(h, d.working())
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
	d.idle = DeviceIdle{Device: d.index, Idle: d.shares.idle, Certainty: c, Causes: d.shares.causes(), Kinds: d.shares.kinds()}
	if model != nil {
		d.idle.tighten(timeline.Nanos(d.shares.halfWidth(model) * float64(d.idle.Idle)))
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
		for _, d := range known {
			d.idle = DeviceIdle{Device: d.index, Idle: d.time.Idle, Certainty: Certainty{Method: ByAbsence, R2: math.NaN(), HeldOut: math.NaN()}}
			if n := d.time.Idle; n > 0 {
				d.idle.Causes = []CauseIdle{{Cause: NoWork, Bounded: exactly(n), Share: 1}}
				d.idle.Kinds = []KindIdle{{Kind: Absence, Bounded: exactly(n)}}
			}
		}
		used = known
	}
	byLine := make(map[Place]timeline.Nanos)
	for i, d := range used {
		idle.Total += d.idle.Idle
		idle.Devices = append(idle.Devices, d.idle)
		if i == 0 || lessCertain(d.idle.Certainty, idle.Certainty) {
			idle.Certainty = d.idle.Certainty
		}
		for _, c := range d.idle.Causes {
			c.Evidence = slices.Clone(c.Evidence)
			idle.Causes = mergeCause(idle.Causes, c)
			if c.Place.Line > 0 {
				byLine[c.Place] += c.Nanos
			}
		}
		for _, k := range d.idle.Kinds {
			idle.Kinds = mergeKind(idle.Kinds, k)
		}
	}
	finishCauses(idle.Causes, idle.Total)
	idle.Kinds = finishKinds(idle.Kinds, idle.Total)
	for at, nanos := range byLine {
		idle.Lines = append(idle.Lines, LineIdle{at, nanos})
	}
	slices.SortFunc(idle.Lines, func(a, b LineIdle) int { return cmp.Or(cmp.Compare(b.Nanos, a.Nanos), comparePlaces(a.Place, b.Place)) })
	return idle
}

// comparePlaces orders places by file and line.
func comparePlaces(a, b Place) int {
	return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}
