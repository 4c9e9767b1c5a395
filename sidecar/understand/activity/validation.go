package activity

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// block is a scope: where it takes what its function is called for, below one caller.
type block struct {
	at     Place
	caller timeline.NodeID // of the function; RootNode: of any
}

// blockOf is the block that a scope of a node's frame is.
func (s *Stacks) blockOf(sc scope, node timeline.NodeID) block {
	if sc.need == nothingElse {
		return block{at: sc.at}
	}
	return block{sc.at, s.Rec.Nodes[node].Parent}
}

// uses is what is done in a block.
type uses struct{ model, loader, gradients bool }

// validates returns the nodes at which an evaluation begins that runs a model over a loader's batches without gradients, in
// a plain loop or a function that is not called so: a loop below `with torch.no_grad():` or a decorator like it; one with
// `with torch.set_grad_enabled(train):` around or in it, or behind `model.eval()`, where no gradients are computed of what a
// line calls it for; one without any of it that trains for another line. Behind `model.eval()` that the model runs need not be seen. What only computes without gradients, as an
// average of weights or a rollout, has no batches of a loader. at are the headers of those that a calling line makes one.
func (s *Stacks) validates(phases []origin.Phase) (evaluations map[timeline.NodeID]bool, at map[Place]bool) {
	known := make(map[timeline.FrameID][]scope)
	scopesAt := func(node timeline.NodeID) []scope {
		id := s.Rec.Nodes[node].Frame
		if int(id) >= len(s.facts) || !s.facts[id].own {
			return nil
		}
		list, seen := known[id]
		if !seen {
			list = s.scopesOf(id)
			known[id] = list
		}
		return list
	}
	in, trains := s.used(phases, scopesAt)
	if len(in) == 0 {
		return nil, nil
	}
	evaluations, at = make(map[timeline.NodeID]bool), make(map[Place]bool)
	for i := 1; i < len(phases); i++ {
		node := timeline.NodeID(i)
		for _, sc := range scopesAt(node) {
			if sc.met(in[s.blockOf(sc, node)], trains[sc.at]) {
				evaluations[node] = true
				at[sc.at] = at[sc.at] || sc.need != nothingElse
			}
		}
	}
	return evaluations, at
}

// met reports whether a scope is an evaluation by what is done in it, and whether gradients are computed for some caller.
func (sc scope) met(u uses, trains bool) bool {
	if !u.loader || !u.model && !sc.evals {
		return false
	}
	switch sc.need {
	case noGradients:
		return !u.gradients
	case othersTrain:
		return !u.gradients && trains
	}
	return !u.gradients || !sc.calls // what is called may compute them nevertheless
}

// used is what is done in each block, and the places at which gradients are computed for some caller.
func (s *Stacks) used(phases []origin.Phase, scopesAt func(timeline.NodeID) []scope) (in map[block]uses, trains map[Place]bool) {
	in, trains = make(map[block]uses), make(map[Place]bool)
	for i, phase := range phases {
		if phase != origin.Forward && phase != origin.Loading && !begins(phase) {
			continue
		}
		looped := false // a function that a node calls has a loop with it
		for node := timeline.NodeID(i); node != timeline.RootNode; node = s.Rec.Nodes[node].Parent {
			if int(node) >= len(s.Rec.Nodes) || s.Rec.Nodes[node].Parent >= node { // a damaged file
				break
			}
			loops := false
			for _, sc := range scopesAt(node) {
				loops = loops || sc.loop
				if sc.calls && !looped && !begins(phase) {
					continue
				}
				b := s.blockOf(sc, node)
				u := in[b]
				in[b] = uses{u.model || phase == origin.Forward, u.loader || phase == origin.Loading && (!sc.loop || sc.batch), u.gradients || begins(phase)}
				trains[sc.at] = trains[sc.at] || begins(phase)
			}
			looped = looped || loops && phases[node] == origin.OtherPhase // not one of a model, or of a dataset
		}
	}
	return in, trains
}
