package timeline

import (
	"slices"
	"strings"
	"time"
)

const (
	leastSteps = 3 // fewer are no training loop
	// leastVisits is how many sampling intervals an optimizer's call must last, in the
	// median: then hardly one is missed, which would make two steps one.
	leastVisits = 3
)

// SampledSteps are the training steps of a thread, as the calls of its first optimizer
// tell: each ends with one. nil where they do not tell.
func (r *Recording) SampledSteps(t *Thread) []Mark {
	leading := ""
	on := make([]string, len(r.Nodes)) // the outermost optimizer on a stack, by node
	for i := 1; i < len(r.Nodes); i++ {
		n := r.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(r.Frames) { // a damaged file
			continue
		}
		if on[i] = on[n.Parent]; on[i] == "" && isOptimizer(r.Frames[n.Frame]) {
			on[i] = r.Frames[n.Frame].Function
		}
	}
	var steps []Mark
	var visits []Nanos
	start, before := Nanos(-1), Nanos(0)
	for i, s := range t.Spans {
		name := ""
		if int(s.Node) < len(on) {
			name = on[s.Node]
		}
		if leading == "" {
			leading = name
		}
		inside := name != "" && name == leading
		if inside && start < 0 {
			start = s.Start
		}
		last := i == len(t.Spans)-1
		if start >= 0 && !inside {
			visits = append(visits, s.Start-start)
			steps = append(steps, Mark{Kind: "step", Start: before, End: s.Start, Process: t.Process, Source: StepSampled})
			before, start = s.Start, -1
		} else if start >= 0 && last {
			steps = append(steps, Mark{Kind: "step", Start: before, End: s.End, Process: t.Process, Source: StepSampled})
			visits = append(visits, s.End-start)
		}
	}
	if len(steps) < leastSteps {
		return nil
	}
	slices.Sort(visits)
	if interval := max(r.Resolution, r.Sampling.Interval, time.Microsecond); visits[len(visits)/2] < leastVisits*Nanos(interval) {
		return nil
	}
	return steps[1:] // before the first one there was everything else
}

// isOptimizer tells the call of a step of one of torch's optimizers.
func isOptimizer(f Frame) bool {
	return strings.HasSuffix(f.Function, ".step") && strings.Contains(f.File, "/torch/optim/") &&
		!strings.HasSuffix(f.File, "/lr_scheduler.py") && !strings.HasSuffix(f.File, "/swa_utils.py")
}
