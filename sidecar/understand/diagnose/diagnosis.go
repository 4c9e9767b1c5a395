// Package diagnose answers two questions about a finished recording: which
// source lines was each GPU waiting for, and what is the bottleneck.
//
// In flow a *timeline.Recording and a function that knows the program's source
// lines, out a Diagnosis; nothing else is read, so a saved recording gives the
// same answer. The package knows neither collectors nor how a diagnosis is shown:
// a Diagnosis holds ids, figures and places, and no text for people. Package
// wording renders it.
//
// What the program's threads did is read by package activity, what its GPUs waited for by
// package gpuidle; the rules here decide what is worth a finding, and the first of them.
package diagnose

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/batches"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
	"github.com/omni-perf/omni-perf/sidecar/understand/straggler"
)

// Diagnosis is what a recording says about its bottleneck and its GPUs.
type Diagnosis struct {
	Headline     Headline
	Findings     []Finding             // the main one first; empty when nothing stands out
	Spent        []activity.Spent      // how the thread that runs the cell spent the recording, most first; adds up to its duration
	GPUs         []gpuidle.DeviceTime  // one per device with a "gpuN.util" track or a place in Recording.GPUs, by index
	Idle         *gpuidle.Breakdown    // nil when no device's activity is known
	Steps        []Step                // of each process in order of time: first those of the one whose steps lead, then those of the other ranks
	StepsUnknown bool                  // an optimizer was seen to step, and Steps is empty as not each of its calls was
	NoOptimizer  bool                  // a training was seen, no optimizer of torch that steps, and Steps is empty
	Optimizers   *Optimizers           // of the process whose steps lead; nil: no other one stepped than that of the steps
	Elsewhere    Elsewhere             // steps that are not among Steps
	Loaders      []batches.Loader      // that processes train with, as torch's iterators over them show, in the order of Steps
	Ranks        []Rank                // by rank; empty where the recording has none
	RankLines    []straggler.LineTimes // of Ranks, by line; empty where they have no steps
	Phases       []PhaseTime           // of each process that trains, the leading one first; empty where no training was seen
	PhasesWithin float64               // the part of a training's time that a phase of Phases may be off, as stacks are read now and then; of the process with the largest
	Slow         []SlowSteps           // likewise, what took most time first
	Regions      []Region              // of the marks of kind "region", most total time first
}

// Step is one training step: Busy, Idle and Unknown are means over the used
// devices and add up to its length; all of it is Unknown without a device.
type Step struct {
	Process             int // index in Recording.Processes
	Name                string
	Source              timeline.MarkSource
	Batch               timeline.Batch
	Start, End          timeline.Nanos
	Busy, Idle, Unknown timeline.Nanos
	DataWait            timeline.Nanos // the responsible thread spent in the loader
	Phases              *PhaseTimes    // of its process's main thread; nil where no training was seen
	// InCollectives is for how long its rank's main thread was in collectives; nil where its process is no rank, or most
	// of its stacks are not known.
	InCollectives *timeline.Nanos
	// Anew is of the first step of another training than that of the step before: another optimizer stepped.
	Anew bool
}

// Elsewhere are the steps of processes that train beside that whose steps lead, and are no ranks of its training.
type Elsewhere struct {
	Processes, Steps int // how many
}

// Optimizers are two that step in one training, as in one of two models.
type Optimizers struct {
	Place activity.Place // where the one steps whose steps are the training's; zero: not known
	Other string         // class of the other one
	At    activity.Place // where that steps; zero: not known
}

// Region sums up the marks of one name.
type Region struct {
	Process         int // of Recording.Processes, that was in them
	Name            string
	Count           int
	Total, P50, P95 timeline.Nanos
}
