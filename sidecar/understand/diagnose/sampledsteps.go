package diagnose

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

const (
	leastSteps = 3 // fewer are no training loop
	// leastVisits is how many of its process's sampling intervals an optimizer's call must last, in the
	// median: then hardly one is missed, which would make two steps one.
	leastVisits = 3
	// maxBrief is the share of calls that may have been seen in fewer than two samples: where there are
	// more, others of that length were not seen at all.
	maxBrief = 0.02
	// maxUneven is by what share the numbers of steps of ranks may differ, or by one: ranks step together.
	maxUneven = 0.02
)

// stepFinder finds the training steps of processes. Those that calls of an optimizer show are
// of all ranks or of none.
type stepFinder struct {
	*activity.Stacks
	sampled map[int][]timeline.Mark // by process
	unsure  bool                    // an optimizer's calls were seen, and how many there were is not known
}

func newStepFinder(s *activity.Stacks, ranks []*timeline.Thread) *stepFinder {
	f := &stepFinder{Stacks: s, sampled: make(map[int][]timeline.Mark)}
	threads := ranks
	if len(ranks) == 0 && len(s.About.Runs) > 0 {
		threads = []*timeline.Thread{&s.Rec.Threads[s.About.Runs[0]]}
	}
	fewest, most := 0, 0
	for _, t := range threads {
		if len(stepsIn(s.Rec.MarksOf(t.Process))) > 0 {
			continue
		}
		steps, sure := sampledSteps(s, t)
		if !sure {
			f.unsure = true
			continue
		}
		if len(steps) == 0 {
			continue
		}
		f.sampled[t.Process] = steps
		if fewest == 0 || len(steps) < fewest {
			fewest = len(steps)
		}
		most = max(most, len(steps))
	}
	if float64(most-fewest) > max(1, maxUneven*float64(most)) {
		f.unsure = true
	}
	if f.unsure {
		clear(f.sampled)
	}
	return f
}

// of are the training steps of a thread's process: those that it marked, else those that the
// thread's calls of an optimizer show.
func (f *stepFinder) of(t *timeline.Thread) []Step {
	if marked := stepsIn(f.Rec.MarksOf(t.Process)); len(marked) > 0 {
		return marked
	}
	return stepsIn(f.sampled[t.Process])
}

// sampledSteps are the training steps of a thread, as the calls of its first optimizer
// show: each ends with one. sure reports whether each call was seen, and is true where there are none.
func sampledSteps(s *activity.Stacks, t *timeline.Thread) (steps []timeline.Mark, sure bool) {
	calls := firstOptimizer(s, t)
	if len(calls) < leastSteps {
		return nil, true
	}
	lengths, before := make([]timeline.Nanos, len(calls)), timeline.Nanos(0)
	for i, call := range calls {
		lengths[i] = call.Nanos()
		steps = append(steps, timeline.Mark{Kind: "step", Start: before, End: call.End, Process: t.Process, Source: timeline.StepSampled})
		before = call.End
	}
	slices.Sort(lengths)
	interval := timeline.Nanos(s.ReadEvery(t.Process))
	brief, _ := slices.BinarySearch(lengths, interval*3/2)
	if lengths[len(lengths)/2] < leastVisits*interval || float64(brief) > maxBrief*float64(len(lengths)) {
		return nil, false
	}
	return steps[1:], true // before the first one there was everything else
}

// firstOptimizer are the calls of the optimizer that a thread was seen in first.
func firstOptimizer(s *activity.Stacks, t *timeline.Thread) (calls []timeline.Interval) {
	on := s.Optimizers()
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
