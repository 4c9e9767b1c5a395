package diagnose

import (
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

const (
	leastSteps = 3 // fewer are no training loop
	// leastVisits is how many sampling intervals an optimizer's call must last, in the
	// median: then hardly one is missed, which would make two steps one.
	leastVisits = 3
)

// stepsOf are the training steps of a thread's process: those that it marked, else those that the
// thread's calls of an optimizer show.
func (s *stacks) stepsOf(t *timeline.Thread) (steps []timeline.Mark) {
	for _, m := range s.rec.MarksOf(t.Process) {
		if m.Kind == "step" && m.End > m.Start {
			steps = append(steps, m)
		}
	}
	if len(steps) == 0 {
		steps = s.sampledSteps(t)
	}
	return steps
}

// sampledSteps are the training steps of a thread, as the calls of its first optimizer
// show: each ends with one. nil where they do not.
func (s *stacks) sampledSteps(t *timeline.Thread) []timeline.Mark {
	r := s.rec
	leading := ""
	on := make([]string, len(r.Nodes)) // the outermost optimizer on a stack, by node
	for i := 1; i < len(r.Nodes); i++ {
		n := r.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(r.Frames) { // a damaged file
			continue
		}
		if on[i] = on[n.Parent]; on[i] == "" && s.facts[n.Frame].means&origin.OptimizerStep != 0 {
			on[i] = r.Frames[n.Frame].Function
		}
	}
	var steps []timeline.Mark
	var visits []timeline.Nanos
	start, before := timeline.Nanos(-1), timeline.Nanos(0)
	for i, span := range t.Spans {
		name := ""
		if int(span.Node) < len(on) {
			name = on[span.Node]
		}
		if leading == "" {
			leading = name
		}
		inside := name != "" && name == leading
		if inside && start < 0 {
			start = span.Start
		}
		last := i == len(t.Spans)-1
		if start >= 0 && !inside {
			visits = append(visits, span.Start-start)
			steps = append(steps, timeline.Mark{Kind: "step", Start: before, End: span.Start, Process: t.Process, Source: timeline.StepSampled})
			before, start = span.Start, -1
		} else if start >= 0 && last {
			steps = append(steps, timeline.Mark{Kind: "step", Start: before, End: span.End, Process: t.Process, Source: timeline.StepSampled})
			visits = append(visits, span.End-start)
		}
	}
	if len(steps) < leastSteps {
		return nil
	}
	slices.Sort(visits)
	if interval := max(r.Resolution, r.Sampling.Interval, time.Microsecond); visits[len(visits)/2] < leastVisits*timeline.Nanos(interval) {
		return nil
	}
	return steps[1:] // before the first one there was everything else
}
