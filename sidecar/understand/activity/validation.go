package activity

import (
	"regexp"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// withoutGradients is the text of a header, or of a decorator, below which no gradients are computed.
var withoutGradients = regexp.MustCompile(`\b(no_grad|inference_mode)\b|\bset_grad_enabled\((mode=)?False\)`)

// perhapsGradients is the text of a header below which gradients are computed or not, as a value has it.
var perhapsGradients = regexp.MustCompile(`\bset_grad_enabled\(`)

// constantGradients is that of one where no value has it.
var constantGradients = regexp.MustCompile(`\bset_grad_enabled\((mode=)?(True|False)\)`)

// block is a header without gradients: in a function that trains and validates, by a value of it, below one caller.
type block struct {
	at     Place
	caller timeline.NodeID // of the function; RootNode: the header is always without
}

// validates returns the nodes at which an evaluation begins that runs a model over a loader's batches without gradients, in
// a block of a plain loop or a function that is not called so: `with torch.no_grad():` around a `for`, or above it as a
// decorator; `with torch.set_grad_enabled(train):` where no gradients are computed of what a line calls it for. What only
// computes without gradients, as an average of weights or a rollout, has no batches of a loader.
func (s *Stacks) validates(phases []origin.Phase) map[timeline.NodeID]bool {
	type header struct {
		at      Place
		perhaps bool
	}
	known := make(map[timeline.FrameID]header)
	blockOf := func(node timeline.NodeID) (b block, ok bool) {
		n := s.Rec.Nodes[node]
		if int(n.Frame) >= len(s.facts) || !s.facts[n.Frame].own {
			return b, false
		}
		h, seen := known[n.Frame]
		if !seen {
			h.at, h.perhaps = s.ungradedBlock(n.Frame)
			known[n.Frame] = h
		}
		if b.at = h.at; h.perhaps {
			b.caller = n.Parent
		}
		return b, h.at.Line > 0 && (!h.perhaps || n.Parent != timeline.RootNode)
	}
	type uses struct{ model, loader, gradients bool }
	in := make(map[block]uses)
	for i, phase := range phases {
		if phase != origin.Forward && phase != origin.Loading && !begins(phase) {
			continue
		}
		for node := timeline.NodeID(i); node != timeline.RootNode; node = s.Rec.Nodes[node].Parent {
			if int(node) >= len(s.Rec.Nodes) || s.Rec.Nodes[node].Parent >= node { // a damaged file
				break
			}
			if b, ok := blockOf(node); ok {
				u := in[b]
				in[b] = uses{u.model || phase == origin.Forward, u.loader || phase == origin.Loading, u.gradients || begins(phase)}
			}
		}
	}
	if len(in) == 0 {
		return nil
	}
	evaluations := make(map[timeline.NodeID]bool)
	for i := 1; i < len(phases); i++ {
		if b, ok := blockOf(timeline.NodeID(i)); ok {
			if u := in[b]; u.model && u.loader && !(u.gradients && b.caller != timeline.RootNode) {
				evaluations[timeline.NodeID(i)] = true
			}
		}
	}
	return evaluations
}

// ungradedBlock is the header that makes a frame's line compute no gradients over a loop that it is part of, or perhaps none;
// zero: there is none.
func (s *Stacks) ungradedBlock(id timeline.FrameID) (at Place, perhaps bool) {
	f := s.Rec.Frames[id]
	looped := strings.HasPrefix(s.source.Line(f.File, f.Line), "for ")
	for _, h := range s.source.headers(f.File, f.Line) {
		switch {
		case strings.HasPrefix(h.text, "for "):
			looped = true
		case !looped || !strings.HasPrefix(h.text, "with "):
		case withoutGradients.MatchString(h.text):
			return Place{f.File, h.line}, false
		case perhapsGradients.MatchString(h.text) && !constantGradients.MatchString(h.text):
			return Place{f.File, h.line}, true
		}
	}
	if !looped {
		return Place{}, false
	}
	first := Place{f.File, f.FirstLine}
	for at := first; at.Line < s.definition(first).Line; at.Line++ {
		if text := s.source.Line(at.File, at.Line); strings.HasPrefix(text, "@") && withoutGradients.MatchString(text) {
			return at, false
		}
	}
	return Place{}, false
}
