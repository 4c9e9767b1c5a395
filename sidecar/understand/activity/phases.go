package activity

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// PhaseStretch is a time in which a thread was in one phase of a training.
type PhaseStretch struct {
	Start, End timeline.Nanos
	Phase      origin.Phase
	stepping   bool // in the call of an optimizer's step; of no stretch that Phases returns
}

// moves is the text of a line of the user's own that copies a batch to a device: the call is native
// code without a frame.
var moves = regexp.MustCompile(`\.(to|cuda)\(`)

// Phases are the phases of a thread in order of time. They are empty where no training was seen: neither
// a backward pass nor an optimizer's step, nor the model in most of the time. What the stacks do not
// show is in no stretch.
func (s *Stacks) Phases(t *timeline.Thread) []PhaseStretch {
	phases := s.nodePhases()
	trains := func(span timeline.Span) bool {
		return int(span.Node) < len(phases) && span.End > span.Start && begins(phases[span.Node])
	}
	if !slices.ContainsFunc(t.Spans, trains) {
		return nil
	}
	var list []PhaseStretch
	var steps []string
	calls := s.optimizerCalls(t.Process)
	if len(calls) > 0 {
		steps = s.Optimizers()
	}
	begun := false
	for _, span := range t.Spans {
		if span.Node == timeline.RootNode || int(span.Node) >= len(phases) || span.End <= span.Start {
			continue
		}
		phase := phases[span.Node]
		if begins(phase) && !begun {
			begun = true
			startUp(list)
		}
		if begun && phase == origin.StartUp {
			phase = origin.OtherPhase
		}
		list = followed(list, PhaseStretch{span.Start, span.End, phase, steps != nil && steps[span.Node] != ""})
	}
	list = exactly(list, calls, 2*timeline.Nanos(s.ReadEvery(t.Process)))
	if s.byTurns {
		list = validated(list, s.stepsOf(t.Process))
	}
	return list
}

// followed are stretches with one more behind them, which goes on with the last where that is of its phase.
func followed(list []PhaseStretch, by PhaseStretch) []PhaseStretch {
	if n := len(list); n > 0 && list[n-1].Phase == by.Phase && list[n-1].stepping == by.stepping && list[n-1].End == by.Start {
		list[n-1].End = by.End
		return list
	}
	return append(list, by)
}

// cutAt divides those of the stretches that are to be divided, at times that are in order.
func cutAt(list []PhaseStretch, times []timeline.Nanos, divided func(PhaseStretch) bool) (cut []PhaseStretch) {
	for _, p := range list {
		for len(times) > 0 && times[0] < p.End {
			if at := times[0]; at > p.Start && divided(p) {
				before := p
				before.End, p.Start = at, at
				cut = append(cut, before)
			}
			times = times[1:]
		}
		cut = append(cut, p)
	}
	return cut
}

// begins reports whether a phase shows that the training has begun.
func begins(p origin.Phase) bool {
	return p == origin.Backward || p == origin.Optimizer || p == origin.CompiledStep
}

// startUp makes what was in no phase before the training began its start-up: up to the first forward
// pass, where there was one.
func startUp(list []PhaseStretch) {
	for i := range list {
		if list[i].Phase == origin.Forward {
			return
		}
		if list[i].Phase == origin.OtherPhase {
			list[i].Phase = origin.StartUp
		}
	}
}

// nodePhases are the phases of the stack tree's nodes.
func (s *Stacks) nodePhases() []origin.Phase {
	if s.phases != nil {
		return s.phases
	}
	frames := s.framePhases()
	s.phases = s.below(frames, nil)
	if slices.ContainsFunc(s.phases, begins) { // else nobody asks for the text of lines
		evaluations, at := s.validates(s.phases)
		if len(evaluations) > 0 {
			s.phases = s.below(frames, evaluations)
		}
		s.byTurns = s.alternates(s.phases, at)
		s.moving()
	}
	return s.phases
}

// below are the phases of the stack tree's nodes, by those that begin with their frames, and the nodes with which evaluations begin.
func (s *Stacks) below(frames []origin.Phase, evaluations map[timeline.NodeID]bool) []origin.Phase {
	phases := make([]origin.Phase, len(s.Rec.Nodes))
	for i := 1; i < len(phases); i++ {
		n := s.Rec.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(frames) { // a damaged file
			continue
		}
		outer := phases[n.Parent]
		inner := frames[n.Frame]
		if evaluations[timeline.NodeID(i)] {
			inner = origin.Evaluation
		}
		if outer == origin.StartUp && s.facts[n.Frame].own { // a module of the user's that is imported runs on its own
			outer = origin.OtherPhase
		}
		phases[i] = outer
		if inner != origin.OtherPhase && inner.Within(outer) {
			phases[i] = inner
		}
	}
	s.compiledSteps(frames, phases)
	return phases
}

// moving finds the copies to a device among the leaves: a line of the user's own that has nothing else
// above it.
func (s *Stacks) moving() {
	for i := 1; i < len(s.phases); i++ {
		n := s.Rec.Nodes[i]
		if s.phases[i] != origin.OtherPhase || int(n.Frame) >= len(s.facts) || !s.facts[n.Frame].own {
			continue
		}
		f := s.Rec.Frames[n.Frame]
		if s.Says(Place{f.File, f.Line}, moves) {
			s.phases[i] = origin.Transfer
		}
	}
}

// framePhases are the phases that begin with the frames. A function of the user's own is what it is
// called, unless it trains: gradients are computed below it.
func (s *Stacks) framePhases() []origin.Phase {
	frames := make([]origin.Phase, len(s.Rec.Frames))
	for i, f := range s.Rec.Frames {
		if f.Phase == timeline.PhaseNone {
			frames[i] = s.Files.Phase(f.File, f.Function)
		}
	}
	type function struct{ file, name string }
	trains := make(map[function]bool)
	for i := len(s.Rec.Nodes) - 1; i > 0; i-- {
		n := s.Rec.Nodes[i]
		if int(n.Frame) >= len(frames) || !begins(frames[n.Frame]) {
			continue
		}
		for _, id := range s.Stack(timeline.NodeID(i)) {
			if f := s.Rec.Frames[id]; s.facts[id].own && frames[id] != origin.OtherPhase {
				trains[function{f.File, f.Function}] = true
			}
		}
	}
	if len(trains) > 0 {
		for i, f := range s.Rec.Frames {
			if s.facts[i].own && trains[function{f.File, f.Function}] {
				frames[i] = origin.OtherPhase
			}
		}
	}
	return frames
}

// ChargedIn returns the place that most of a thread's time in one phase is charged to, within an
// interval; none where the user's own code is not on its stacks.
func (s *Stacks) ChargedIn(t *timeline.Thread, phase origin.Phase, in timeline.Interval) Place {
	return MostOf(s.TimesIn(t, phase, in))
}

// MostOf is the place with the most time, of equal ones the first.
func MostOf(times map[Place]timeline.Nanos) (most Place) {
	for at, time := range times {
		switch first := cmp.Or(strings.Compare(at.File, most.File), at.Line-most.Line) < 0; {
		case time <= 0:
		case time > times[most], time == times[most] && first:
			most = at
		}
	}
	return most
}

// TimesIn are the places that a thread's time in one phase is charged to, within an interval. Of an evaluation that has the
// stacks of a training they are those of its forward passes.
func (s *Stacks) TimesIn(t *timeline.Thread, phase origin.Phase, in timeline.Interval) map[Place]timeline.Nanos {
	phases := s.nodePhases()
	first, _ := slices.BinarySearchFunc(t.Spans, in.Start, func(span timeline.Span, at timeline.Nanos) int {
		if span.End <= at {
			return -1
		}
		return 1
	})
	if s.byTurns && phase == origin.Evaluation && !slices.Contains(phases, origin.Evaluation) {
		phase = origin.Forward
	}
	times := make(map[Place]timeline.Nanos)
	for _, span := range t.Spans[first:] {
		if span.Start >= in.End {
			break
		}
		if int(span.Node) >= len(phases) || phases[span.Node] != phase {
			continue
		}
		if stack := s.Stack(span.Node); s.ownest(stack) >= 0 {
			times[s.Charged(stack)] += min(span.End, in.End) - max(span.Start, in.Start)
		}
	}
	return times
}
