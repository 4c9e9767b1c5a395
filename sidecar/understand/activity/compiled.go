package activity

import (
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// A function that is compiled as a whole, as by jax.jit and tf.function:
//
//	@jax.jit
//	def train_step(state, x, y):
//	    loss, grads = jax.value_and_grad(loss_fn)(state.params, x, y)
//	    return state.apply_gradients(grads=grads), loss
//
// has its frames on the stacks at its first call alone, which traces and compiles it. What it was seen to do then is what a call of
// it does from then on: from the same place, or by its name from another, as of a loop after a call that was only to compile it.

// caller is where a compiled function is called from: a line of the user's own, or a function of a framework, which may wait for the
// result a line later; below one caller of its own.
type caller struct {
	below          timeline.NodeID
	file, function string
	line           int // 0: of a framework's function
}

// compiledSteps makes steps, or evaluations, of what is below a call of a compiled function, and of the place that calls it; and steps
// of the waits for a device in such a training.
func (s *Stacks) compiledSteps(frames, phases []origin.Phase) {
	calls := s.compiledCalls()
	does, trains := s.whatIsCompiled(calls, frames)
	named := s.namesOf(does, calls)
	if !trains && s.waitsForCompiled() { // another cell has traced it
		named = usualNames
		trains = s.callsByName(named)
	}
	if !trains {
		return
	}
	waits := make([]bool, len(phases))
	for i := 1; i < len(phases); i++ {
		n := s.Rec.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(s.facts) { // a damaged file
			continue
		}
		waits[i] = waits[n.Parent] || s.Means(n.Frame, origin.Synchronizes)
		of := calls[i]
		if of == timeline.RootNode {
			of = timeline.NodeID(i)
		}
		phase, called := does[s.callerAt(of)]
		if !called && phases[i] == origin.OtherPhase {
			phase, called = s.calledByName(of, named)
		}
		if waits[i] && !called && calls[i] == timeline.RootNode {
			phase = origin.CompiledStep
		}
		if phases[i] == origin.OtherPhase || waits[i] && phase == origin.CompiledStep && phase.Within(phases[i]) {
			phases[i] = phase
		}
	}
}

// whatIsCompiled is what compiled functions were seen to do at some call from a place: a step where they compute gradients, or an
// evaluation where a function of the user's own is called so; and whether there is a step.
func (s *Stacks) whatIsCompiled(calls []timeline.NodeID, frames []origin.Phase) (does map[caller]origin.Phase, trains bool) {
	does = make(map[caller]origin.Phase)
	for i, call := range calls {
		if call == timeline.RootNode {
			continue
		}
		id := s.Rec.Nodes[i].Frame
		switch from, phase := s.callerAt(call), frames[id]; {
		case begins(phase):
			does[from], trains = origin.CompiledStep, true
		case phase == origin.Evaluation && s.facts[id].own && does[from] == origin.OtherPhase:
			does[from] = origin.Evaluation
		}
	}
	return does, trains
}

// namesOf has what the functions of the user's own do that are compiled, by their names.
func (s *Stacks) namesOf(does map[caller]origin.Phase, calls []timeline.NodeID) map[string]origin.Phase {
	named := make(map[string]origin.Phase)
	traced := make(map[timeline.NodeID]bool)
	for i, call := range calls {
		f := s.Rec.Nodes[i].Frame
		if call == timeline.RootNode || traced[call] || !s.facts[f].own {
			continue
		}
		traced[call] = true // what is called below is part of it
		if phase, ok := does[s.callerAt(call)]; ok && phase != origin.OtherPhase {
			function := s.Rec.Frames[f].Function
			named[function[strings.LastIndexByte(function, '.')+1:]] = phase
		}
	}
	return named
}

// calledByName is what a line of the user's own does by which it calls a compiled function.
func (s *Stacks) calledByName(node timeline.NodeID, named map[string]origin.Phase) (phase origin.Phase, ok bool) {
	f := s.Rec.Nodes[node].Frame
	if len(named) == 0 || s.source == nil || !s.facts[f].own {
		return origin.OtherPhase, false
	}
	text := s.source.Line(s.Rec.Frames[f].File, s.Rec.Frames[f].Line)
	for _, call := range calling.FindAllStringSubmatch(text, -1) {
		if is := named[call[2]]; is != origin.OtherPhase && phase != origin.CompiledStep && (call[1] == "" || call[1] == "self.") {
			phase, ok = is, true
		}
	}
	return phase, ok
}

// calling is a name in front of a parenthesis, and what it is an attribute of.
var calling = regexp.MustCompile(`((?:\w+\.)*)(\w+)\(`)

// callerAt is the caller that a node is.
func (s *Stacks) callerAt(node timeline.NodeID) caller {
	n := s.Rec.Nodes[node]
	f := s.Rec.Frames[n.Frame]
	c := caller{below: n.Parent, file: f.File, function: f.Function}
	if s.facts[n.Frame].own {
		c.line = f.Line
	}
	return c
}

// usualNames are those that people give to a function which they have compiled.
var usualNames = map[string]origin.Phase{
	"train_step": origin.CompiledStep, "training_step": origin.CompiledStep, "train_batch": origin.CompiledStep, "update_step": origin.CompiledStep,
	"eval_step": origin.Evaluation, "evaluate": origin.Evaluation, "validation_step": origin.Evaluation,
}

// waitsForCompiled reports whether the program waits for what compiled functions compute.
func (s *Stacks) waitsForCompiled() bool {
	return slices.ContainsFunc(s.Rec.Nodes, func(n timeline.Node) bool {
		return int(n.Frame) < len(s.facts) && s.Means(n.Frame, origin.WaitsForCompiled)
	})
}

// callsByName reports whether a line calls a step by its name.
func (s *Stacks) callsByName(named map[string]origin.Phase) bool {
	for i, n := range s.Rec.Nodes {
		if i == 0 || int(n.Frame) >= len(s.facts) {
			continue
		}
		if phase, _ := s.calledByName(timeline.NodeID(i), named); phase == origin.CompiledStep {
			return true
		}
	}
	return false
}

// compiledCalls are, of the nodes at and below a call of a compiled function, the nodes that call it. What
// a framework wraps its functions in calls none.
func (s *Stacks) compiledCalls() []timeline.NodeID {
	calls := make([]timeline.NodeID, len(s.Rec.Nodes))
	callers := make([]timeline.NodeID, len(s.Rec.Nodes)) // each node, or of what a framework wraps a function in the one that calls it
	for i := 1; i < len(s.Rec.Nodes); i++ {
		n := s.Rec.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(s.facts) { // a damaged file
			continue
		}
		if callers[i] = timeline.NodeID(i); s.Means(n.Frame, origin.Decorates) {
			callers[i] = callers[n.Parent]
		}
		if calls[n.Parent] != timeline.RootNode {
			calls[i] = calls[n.Parent]
			continue
		}
		if s.Means(n.Frame, origin.RunsCompiled) {
			calls[i] = callers[n.Parent]
		}
	}
	return calls
}
