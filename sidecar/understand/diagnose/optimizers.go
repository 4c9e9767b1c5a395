package diagnose

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// optimizersBeside are the optimizer whose steps lead and another one, where the hook has seen one step besides; nil: it has not,
// or calls decide what a step is.
func optimizersBeside(s *activity.Stacks, steps []Step) *Optimizers {
	if len(steps) == 0 || steps[0].Source != timeline.StepOptimizer {
		return nil
	}
	marks := s.Rec.MarksOf(steps[0].Process)
	at := slices.IndexFunc(marks, func(m timeline.Mark) bool { return m.Kind == "optimizer" })
	if at < 0 {
		return nil
	}
	o := &Optimizers{Other: marks[at].Name}
	for i := range s.Rec.Threads {
		if t := &s.Rec.Threads[i]; t.Main && t.Process == steps[0].Process {
			o.Place, o.At = placesOfSteps(s, t, steps)
			break
		}
	}
	return o
}

// placesOfSteps are the line in whose call of an optimizer steps end, and the other one that optimizers are in most.
func placesOfSteps(s *activity.Stacks, t *timeline.Thread, steps []Step) (leading, other activity.Place) {
	ends := make(map[activity.Place]timeline.Nanos)
	for _, step := range steps {
		if step.Process != t.Process || step.Phases == nil {
			continue
		}
		at := s.TimesIn(t, origin.Optimizer, timeline.Between(step.End-1, step.End))
		if place := activity.MostOf(at); place.Line > 0 {
			ends[place]++
		}
	}
	if leading = activity.MostOf(ends); leading.Line == 0 {
		return leading, other
	}
	all := s.TimesIn(t, origin.Optimizer, timeline.Between(steps[0].Start, s.Rec.Duration))
	delete(all, leading)
	return leading, activity.MostOf(all)
}
