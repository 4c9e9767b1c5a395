package activity

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// optimizerCalls are the calls of the optimizer that end a process's steps, as torch's hooks have noted them. They are empty where
// another optimizer steps besides: on the stacks nobody knows one from the other.
func (s *Stacks) optimizerCalls(process int) (calls []timeline.Interval) {
	for _, m := range s.Rec.MarksOf(process) {
		switch {
		case m.Kind == "optimizer":
			return nil
		case m.Kind == "step" && 0 < m.Optimizer && m.Optimizer < m.End:
			calls = append(calls, timeline.Between(m.Optimizer, m.End))
		}
	}
	return timeline.Joined(calls)
}

// Optimizers are the outermost optimizers' steps on the stacks, by node, each the name of its function; empty where there is none. What
// torch has around a step, 0.1 ms, is none: it is outside of its hooks, too, and stays as it was read.
func (s *Stacks) Optimizers() []string {
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

// exactly moves the bounds of stretches in an optimizer's calls, which are sampled, to those of the calls that lie near: the error of one
// may be longer than a call. In a call nothing else than what was seen in one is there, and nothing of it before and behind.
func exactly(list []PhaseStretch, calls []timeline.Interval, near timeline.Nanos) []PhaseStretch {
	bounds := make([]timeline.Nanos, 0, 2*len(calls))
	for _, c := range calls {
		bounds = append(bounds, c.Start, c.End)
	}
	cut := cutAt(list, bounds, func(PhaseStretch) bool { return true })
	within := make([]bool, len(cut))
	next := 0
	for _, c := range calls {
		for next < len(cut) && cut[next].End <= c.Start {
			next++
		}
		first := next
		for next < len(cut) && cut[next].Start < c.End {
			within[next] = true
			next++
		}
		called(cut[first:next], near)
	}
	beyond(cut, within, near)
	for i := range cut {
		cut[i].stepping = false
	}
	return merged(cut)
}

// called makes stretches that lie within a call of an optimizer parts of it.
func called(inside []PhaseStretch, near timeline.Nanos) {
	call := PhaseStretch{Phase: origin.Optimizer, stepping: true}
	if seen := slices.IndexFunc(inside, func(p PhaseStretch) bool { return p.stepping }); seen >= 0 {
		call = inside[seen]
	}
	for i := range inside {
		p := &inside[i]
		if p.stepping {
			call = *p
		} else if p.End-p.Start <= near {
			p.take(call)
		}
	}
}

// beyond gives what was seen in a call, and lies next to one, to the stretch at its other end, or else to the last that is of no call.
func beyond(cut []PhaseStretch, within []bool, near timeline.Nanos) {
	other := func(i int) bool { return !within[i] && !cut[i].stepping }
	last := 0 // that is of no call, or the first one
	for last < len(cut) && !other(last) {
		last++
	}
	if last == len(cut) {
		return
	}
	for i := range cut {
		if other(i) {
			last = i
			continue
		}
		p := &cut[i]
		behind, ahead := i > 0 && within[i-1], i+1 < len(cut) && within[i+1]
		switch {
		case within[i] || !behind && !ahead || p.End-p.Start > near:
		case behind && i+1 < len(cut) && other(i+1):
			p.take(cut[i+1])
		default:
			p.take(cut[last])
		}
	}
}

// take makes a stretch one of another's phase.
func (p *PhaseStretch) take(other PhaseStretch) { p.Phase, p.stepping = other.Phase, other.stepping }
