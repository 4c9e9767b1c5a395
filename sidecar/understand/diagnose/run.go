package diagnose

import (
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
	"github.com/omni-perf/omni-perf/sidecar/understand/straggler"
)

// Options of a diagnosis; the zero value is usable.
type Options struct {
	// Line reads a line of a file of the target, empty if it cannot. It is asked
	// for lines of the user's own code at which a thread waited, or where a program
	// that used a GPU was; none of the text is kept. nil = the cells' own sources only.
	Line func(file string, line int) string
	// Quick leaves out what a look at a recording in progress has no time for: idle time
	// is divided by the windows alone, and there are no findings, ranks and regions.
	Quick bool
	// KernelWait is the gap up to which a device whose work is exactly known was between queued kernels; 0: gpuidle's.
	KernelWait time.Duration
}

// Run diagnoses a recording by what is in it.
func Run(rec *timeline.Recording) Diagnosis { return Options{}.Run(rec) }

// Run diagnoses a recording.
func (o Options) Run(rec *timeline.Recording) Diagnosis {
	s := activity.NewStacks(rec, activity.NewSource(rec, o.Line))
	devices := gpuidle.Devices(rec, o.KernelWait)
	d := Diagnosis{}
	for _, dev := range devices {
		d.GPUs = append(d.GPUs, dev.Time)
	}
	used := slices.DeleteFunc(slices.Clone(devices), func(dev *gpuidle.Device) bool { return !dev.Time.Used || !dev.IsMeasured() })
	s.UsesGPU = len(used) > 0
	lanes, threads := rankLanes(s)
	for _, dev := range used {
		main, _ := s.Explain(dev.Index, dev.FirstWork())
		dev.Divide(main.History, o.Quick)
	}
	d.Idle = gpuidle.Sum(devices, used)
	main, bystanders := s.Explain(activity.AnyDevice, 0)
	d.Spent = main.History.Spent()
	d.Steps, d.StepsUnknown = steps(s, used, main.History, threads)
	setUps(d.Steps)
	d.Loaders = loaded(rec, d.Steps)
	d.Steps = withoutSetUp(d.Steps)
	d.Elsewhere = elsewhere(rec, d.Steps)
	if o.Quick {
		return d
	}
	workerTimes(rec, d.Loaders)
	phases(s, used, threads, &d)
	d.Regions = regions(rec)
	d.Optimizers = optimizersBeside(s, d.Steps)
	d.Ranks = ranksOf(lanes, threads, d.Steps)
	d.RankLines = straggler.CompareLines(lanes)
	e := &evidence{lanes: lanes, rec: rec, stacks: s, diagnosis: &d, devices: devices, main: main, bystanders: bystanders}
	e.late = straggler.FindStraggler(straggler.Until(lanes, e.neverMetAgain()))
	d.Findings = findings(e)
	d.Headline = headline(rec, d.Spent, d.Findings)
	return d
}
