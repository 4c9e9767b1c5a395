package activity

import (
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
// it from the same place does from then on.

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
	if calls == nil {
		return
	}
	does, trains := s.whatIsCompiled(calls, frames)
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

// compiledCalls are, of the nodes at and below a call of a compiled function, the nodes that call it; nil where there is none. What
// a framework wraps its functions in calls none.
func (s *Stacks) compiledCalls() (calls []timeline.NodeID) {
	callers := make([]timeline.NodeID, len(s.Rec.Nodes)) // each node, or of what a framework wraps a function in the one that calls it
	for i := 1; i < len(s.Rec.Nodes); i++ {
		n := s.Rec.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(s.facts) { // a damaged file
			continue
		}
		if callers[i] = timeline.NodeID(i); s.Means(n.Frame, origin.Decorates) {
			callers[i] = callers[n.Parent]
		}
		if calls != nil && calls[n.Parent] != timeline.RootNode {
			calls[i] = calls[n.Parent]
			continue
		}
		if !s.Means(n.Frame, origin.RunsCompiled) {
			continue
		}
		if calls == nil {
			calls = make([]timeline.NodeID, len(s.Rec.Nodes))
		}
		calls[i] = callers[n.Parent]
	}
	return calls
}
