package activity

import (
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// A loop that trains and validates by turns, as PyTorch's tutorials have it:
//
//	for phase in ["train", "val"]:
//	    for x, y in loaders[phase]:
//	        with torch.set_grad_enabled(phase == "train"):
//	            loss = criterion(model(x), y)
//	            if phase == "train":
//	                loss.backward()
//
// has the same stacks in both. What tells them apart is time: of the batches that follow each other with no gradients in
// between only the last one is trained with.

// alternates reports whether a loop has a model's forward passes with gradients or without, as a value has it: not one
// that evaluates for a calling line of its own, as validates has it.
func (s *Stacks) alternates(phases []origin.Phase, evaluates map[Place]bool) bool {
	type frame struct {
		id    timeline.FrameID
		phase origin.Phase
	}
	blocks := make(map[frame][]Place)
	always := make(map[Place]bool) // loops in which some gradients are computed whatever a value has
	trains, models := make(map[Place]bool), make(map[Place]bool)
	for i, phase := range phases {
		if phase != origin.Forward && !begins(phase) {
			continue
		}
		for _, id := range s.Stack(timeline.NodeID(i)) {
			if !s.facts[id].own {
				continue
			}
			of := frame{id, phase}
			list, seen := blocks[of]
			if !seen {
				var unconditional Place
				list, unconditional = s.switched(id, begins(phase))
				blocks[of] = list
				always[unconditional] = always[unconditional] || phase == origin.Backward // a scaler's step is below an if of its own
			}
			for _, at := range list {
				if evaluates[at] {
					continue
				}
				trains[at] = trains[at] || begins(phase)
				models[at] = models[at] || !begins(phase)
			}
		}
	}
	for at := range trains {
		if trains[at] && models[at] && !always[at] {
			return true
		}
	}
	return false
}

// ifTraining is the text of a header below which is what only a training does.
var ifTraining = regexp.MustCompile(`^if [^:]*(?i:train|phase|mode|split|stage)`)

// switched are the parts of a function that a frame's line is in which train or not, as a value has it: below a header that
// computes gradients by it, or a loop in which they are computed below `if phase == "train":`, and the model runs beside it. always is the loop of gradients
// that are below no such line.
func (s *Stacks) switched(id timeline.FrameID, trains bool) (list []Place, always Place) {
	f := s.Rec.Frames[id]
	conditional := false
	for _, h := range s.enclosing(f.File, f.Line) {
		at := Place{f.File, h.line}
		switch {
		case strings.HasPrefix(h.text, "with "):
			if _, perhaps := gradients(h.text); perhaps {
				list = append(list, at)
			}
		case strings.HasPrefix(h.text, "for ") && conditional == trains:
			list = append(list, at)
			if trains {
				return list, always
			}
		case strings.HasPrefix(h.text, "for ") && trains && always.Line == 0:
			always = at
		case ifTraining.MatchString(h.text):
			conditional = true
		}
	}
	return list, always
}

// moreForward is from what multiple of the usual time in the forward pass on the time without gradients may be a validation's.
const moreForward = 1.5

// manyRuns is from how many runs on four fifths of them are usual: with few readings in a step some show no gradients of it, and
// two forward passes in a row, while a validation is one of many.
const manyRuns = 20

// validated makes evaluations of the batches that are not trained with. Between two steps, which end then, as far as
// that is known, there is one batch at least that is.
func validated(list []PhaseStretch, steps []timeline.Nanos) []PhaseStretch {
	list = cutAt(list, steps, func(p PhaseStretch) bool { return prepares(p.Phase) }) // what prepares the batches of several steps
	runs := runsWithoutGradients(list, steps)
	forward, length := make([]timeline.Nanos, 0, len(runs)), make([]timeline.Nanos, 0, len(runs))
	for _, r := range runs {
		if r.batches > 0 {
			forward, length = append(forward, r.forward), append(length, r.length)
		}
	}
	if len(forward) == 0 {
		return list
	}
	slices.Sort(forward)
	slices.Sort(length)
	usual, step := forward[len(forward)/2], length[len(length)/2]
	if len(forward) >= manyRuns {
		usual = forward[len(forward)*4/5]
	}
	for _, r := range runs {
		if r.batches < 2 || float64(r.forward) < moreForward*float64(usual) {
			continue
		}
		last := r.last
		if r.trained { // with the last batch
			last = lastBatch(list, r, step)
		}
		list = evaluated(list, r.first, last)
	}
	return merged(list)
}

// stepsOf are the ends of a process's steps, as torch's hook has noted them: a loop may call omni_perf.step() for a batch that it
// validates with.
func (s *Stacks) stepsOf(process int) (ends []timeline.Nanos) {
	for _, m := range s.Rec.MarksOf(process) {
		if m.Kind == "step" && m.Source == timeline.StepOptimizer {
			ends = append(ends, m.End)
		}
	}
	slices.Sort(ends)
	return ends
}

// run is a row of stretches between two in which gradients are computed or used.
type run struct {
	first, last     int // of the stretches: the first of a batch, and the last forward pass
	batches         int // as far as stacks show what comes between two
	forward, length timeline.Nanos
	trained         bool // gradients follow
}

// prepares is what is done for a batch before its forward pass.
func prepares(p origin.Phase) bool {
	return p == origin.Loading || p == origin.Transfer || p == origin.ZeroGrad
}

// runsWithoutGradients are those behind the first step. No stack may show the gradients of a short step, that ends all the same.
func runsWithoutGradients(list []PhaseStretch, steps []timeline.Nanos) (runs []run) {
	begun := slices.IndexFunc(list, func(p PhaseStretch) bool { return begins(p.Phase) })
	if begun < 0 {
		return nil
	}
	var now run
	fresh := true // nothing of the batch's forward pass has been seen
	end := func(trained bool) {
		if now.trained = trained; now.batches > 0 {
			now.length = list[now.last].End - list[now.first].Start
			runs = append(runs, now)
		}
		now, fresh = run{first: -1}, true
	}
	now.first = -1
	for i := begun + 1; i < len(list); i++ {
		p, stepped := list[i], false
		for len(steps) > 0 && steps[0] <= p.Start+(p.End-p.Start)/2 {
			steps, stepped = steps[1:], true
		}
		if stepped {
			end(true)
		}
		switch {
		case begins(p.Phase):
			end(true)
			continue
		case prepares(p.Phase):
			fresh = true
		case p.Phase == origin.Forward:
			if fresh {
				now.batches++
				fresh = false
			}
			now.forward += p.End - p.Start
			now.last = i
		default:
			continue
		}
		if now.first < 0 {
			now.first = i
		}
	}
	end(false)
	return runs
}

// lastBatch is the last stretch of a run before those of the batch that is trained with, which take as long as usual.
func lastBatch(list []PhaseStretch, r run, step timeline.Nanos) int {
	end := list[r.last].End
	seen := false // what prepares the last batch
	at := r.last
	for ; at > r.first; at-- {
		p := list[at]
		if seen && p.Phase == origin.Forward || end-p.Start > step+step/2 {
			break
		}
		seen = seen || prepares(p.Phase)
	}
	for at > r.first && list[at].Phase != origin.Forward {
		at--
	}
	return at
}

// evaluated makes an evaluation of stretches, but for what is told apart within one.
func evaluated(list []PhaseStretch, first, last int) []PhaseStretch {
	for i := first; i <= last; i++ {
		if p := list[i].Phase; p == origin.OtherPhase || !p.Within(origin.Evaluation) {
			list[i].Phase = origin.Evaluation
		}
	}
	return list
}

// merged joins neighbours of one phase.
func merged(list []PhaseStretch) []PhaseStretch {
	out := list[:0]
	for _, p := range list {
		out = followed(out, p)
	}
	return out
}
