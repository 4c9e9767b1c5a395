package diagnose

import (
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
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
func stepsOf(s *activity.Stacks, t *timeline.Thread) (steps []timeline.Mark) {
	for _, m := range s.Rec.MarksOf(t.Process) {
		if m.Kind == "step" && m.End > m.Start {
			steps = append(steps, m)
		}
	}
	if len(steps) == 0 {
		steps = sampledSteps(s, t)
	}
	return steps
}

// sampledSteps are the training steps of a thread, as the calls of its first optimizer
// show: each ends with one. nil where they do not.
func sampledSteps(s *activity.Stacks, t *timeline.Thread) []timeline.Mark {
	calls := firstOptimizer(s, t)
	if len(calls) < leastSteps {
		return nil
	}
	var steps []timeline.Mark
	lengths, before := make([]timeline.Nanos, len(calls)), timeline.Nanos(0)
	for i, call := range calls {
		lengths[i] = call.Nanos()
		steps = append(steps, timeline.Mark{Kind: "step", Start: before, End: call.End, Process: t.Process, Source: timeline.StepSampled})
		before = call.End
	}
	slices.Sort(lengths)
	if interval := max(s.Rec.Resolution, s.Rec.Sampling.Interval, time.Microsecond); lengths[len(lengths)/2] < leastVisits*timeline.Nanos(interval) {
		return nil
	}
	return steps[1:] // before the first one there was everything else
}

// firstOptimizer are the calls of the optimizer that a thread was seen in first.
func firstOptimizer(s *activity.Stacks, t *timeline.Thread) (calls []timeline.Interval) {
	on := optimizers(s)
	leading, inside := "", false
	for _, span := range t.Spans {
		name := ""
		if int(span.Node) < len(on) {
			name = on[span.Node]
		}
		if leading == "" {
			leading = name
		}
		switch is := name != "" && name == leading; {
		case is && !inside:
			calls, inside = append(calls, timeline.Between(span.Start, span.End)), true
		case inside: // until what follows it begins
			last := &calls[len(calls)-1]
			if last.End = span.Start; is {
				last.End = span.End
			}
			inside = is
		}
	}
	return calls
}

// optimizers are the outermost optimizers' functions on the stacks, by node; empty where there is none.
func optimizers(s *activity.Stacks) []string {
	on := make([]string, len(s.Rec.Nodes))
	for i := 1; i < len(on); i++ {
		n := s.Rec.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(s.Rec.Frames) { // a damaged file
			continue
		}
		if on[i] = on[n.Parent]; on[i] == "" && s.Means(n.Frame, origin.OptimizerStep) {
			on[i] = s.Rec.Frames[n.Frame].Function
		}
	}
	return on
}
