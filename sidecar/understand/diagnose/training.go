package diagnose

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// loadsShare is the share of the recording from which on loading data is a finding.
const loadsShare = 0.30

// byOne is the share of the loading from which on all of it is said to be waiting for workers, or a sampler.
const byOne = 0.9

// minTraining is the share of the recording that a training of its own must have.
const minTraining = 0.10

// loadsData is the time that loading data took of all of the recording. Where most of it, and not nearly all, was waiting for a
// loader's workers it is that alone: another loader, as of a validation, may have none. So is that of a sampler, which workers do not run.
func loadsData(e *evidence) measured {
	all := hostRule(loading, activity.Load, activity.LoadHere, activity.LoadWorker, activity.LoadSampler)(e)
	if all.Cause != activity.LoadWorker && all.Cause != activity.LoadSampler {
		return all
	}
	most := hostRule(loading, all.Cause)(e)
	switch {
	case float64(most.Time) >= byOne*float64(all.Time):
		return all
	case most.low >= loadsShare || all.low < loadsShare:
		return most
	}
	all.Cause = activity.Load // neither is enough by itself
	return all
}

// trainingLoads is of a training that is a small part of the recording, as of a short trial whose imports took most of
// it: how much of the training itself went to loading, as a long run will have it.
func trainingLoads(e *evidence) measured {
	m := loadsData(e)
	if math.IsNaN(m.low) {
		return nothing
	}
	training := timeline.Total(e.training())
	if m.low >= loadsShare || e.share(training) < minTraining {
		return nothing // the recording's own finding says it, or there was hardly any
	}
	m.Whole, m.Value = training, float64(m.Time)/float64(training)
	m.low = m.Value
	return m
}

// training is when the process in question trained, without its start-up.
func (e *evidence) training() (where []timeline.Interval) {
	if e.main.Thread == nil {
		return nil
	}
	for _, p := range e.stacks.Phases(e.main.Thread) {
		if p.Phase != origin.StartUp {
			where = append(where, timeline.Between(p.Start, p.End))
		}
	}
	return where
}

// covered is the share of the loading that workers could save: with them a training takes as long as the rest of it, or
// as all of its computing on all CPUs. It is 0 where that is not known.
func (e *evidence) covered(a activity.Account) float64 {
	where := e.training()
	all := timeline.Total(where)
	used, limit := e.bystanders.Cores(where)
	if all <= a.Total || limit < 1 || math.IsNaN(used) {
		return 0
	}
	least := max(all-a.Total, timeline.Nanos(float64(all)*used/limit))
	return max(float64(all-least)/float64(a.Total), 0)
}
