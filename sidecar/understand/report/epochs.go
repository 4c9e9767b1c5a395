package report

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// EpochTimes are the times of one epoch's steps, their lengths without evaluation, and without what was between epochs: both are in
// the first step of the next one, which begins where the last step before ended.
type EpochTimes struct {
	Epoch int
	StepTimes
	BetweenNS int64 // before its training, beside evaluation; in no time of StepTimes
}

// trainingPhases are those that a step has of the training itself, wherever its epoch began: the workers that a loader starts anew are in them.
var trainingPhases = []origin.Phase{origin.Loading, origin.Transfer, origin.Forward, origin.Backward, origin.Optimizer, origin.ZeroGrad, origin.Compilation, origin.CompiledStep}

// EpochTimes sums up the leading process's steps by the epochs that the program, or its loader, has numbered, in their order of time.
func (v *View) EpochTimes() (list []EpochTimes) {
	type epochSteps struct {
		steps []Step
		first []int // of these, those before which another epoch was, or none: more than one where several trainings count from 0
	}
	leading, others := v.pacedSteps()
	of, order := make(map[int]*epochSteps), []int{}
	for i, s := range leading {
		if s.Epoch == nil {
			continue
		}
		e := of[*s.Epoch]
		if e == nil {
			e = &epochSteps{}
			of[*s.Epoch], order = e, append(order, *s.Epoch)
		}
		if i == 0 || leading[i-1].Epoch == nil || *leading[i-1].Epoch != *s.Epoch {
			e.first = append(e.first, len(e.steps))
		}
		e.steps = append(e.steps, s)
	}
	for _, epoch := range order {
		e, evaluation, between := of[epoch], int64(0), int64(0)
		inTraining := make([]int64, len(e.first))
		for n, at := range e.first {
			inTraining[n] = e.steps[at].training()
		}
		for i := range e.steps {
			s := &e.steps[i]
			part := s.evaluation()
			s.StartNS, s.PhasesNS = s.StartNS+part, nil
			evaluation += part
		}
		usual := medianOfOthers(e.steps, e.first)
		for n, at := range e.first {
			s := &e.steps[at]
			length := s.EndNS - s.StartNS
			if usual == 0 || float64(length) < diagnose.SlowBy*float64(usual) || length-usual < diagnose.LeastReads*v.stackInterval(s.Process) {
				continue // not a slow one: there was nothing before it
			}
			part := length - min(max(usual, inTraining[n]), length)
			s.StartNS += part
			between += part
		}
		times := stepTimes(e.steps)
		times.Others = others
		times.TotalNS, times.EvaluationNS = times.TotalNS+evaluation, evaluation
		list = append(list, EpochTimes{epoch, times, between})
	}
	return list
}

// medianOfOthers is the median length of an epoch's steps but for the first ones; 0 where there are no others.
func medianOfOthers(steps []Step, first []int) int64 {
	var lengths []int64
	for i := range steps {
		if !slices.Contains(first, i) {
			lengths = append(lengths, steps[i].EndNS-steps[i].StartNS)
		}
	}
	if len(lengths) == 0 {
		return 0
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2]
}

// stackInterval is the time between two readings of a process's stacks, on average.
func (v *View) stackInterval(process int) int64 {
	p := &v.Processes[process]
	if every := p.Stacks.IntervalNS; every != nil {
		return *every
	}
	return v.Targets[p.Target].Sampling.Interval(v.DurationNS)
}

// training is for how long a step was in phases of the training itself.
func (s *Step) training() (ns int64) {
	for _, phase := range trainingPhases {
		ns += max(s.PhasesNS[phase.String()], 0)
	}
	return ns
}
