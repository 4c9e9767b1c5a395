package activity

import (
	"regexp"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// withoutGradients is the text of a header, or of a decorator, below which no gradients are computed.
var withoutGradients = regexp.MustCompile(`\b(no_grad|inference_mode)\b`)

// validates makes the frames of the user's own an evaluation that run a model over a loader's batches without gradients, in
// a block of a plain loop or a function that is not called so: `with torch.no_grad():` around a `for`, or above it as a
// decorator. What only computes without gradients, as an average of weights or a rollout, has no batches of a loader. It
// reports whether there are any.
func (s *Stacks) validates(frames, phases []origin.Phase) bool {
	blocks := make(map[timeline.FrameID]Place)
	blockOf := func(id timeline.FrameID) Place {
		block, known := blocks[id]
		if !known {
			block = s.ungradedBlock(id)
			blocks[id] = block
		}
		return block
	}
	type uses struct{ model, loader bool }
	in := make(map[Place]uses)
	for i, phase := range phases {
		if phase != origin.Forward && phase != origin.Loading {
			continue
		}
		for _, id := range s.Stack(timeline.NodeID(i)) {
			if !s.facts[id].own {
				continue
			}
			if block := blockOf(id); block.Line > 0 {
				u := in[block]
				in[block] = uses{u.model || phase == origin.Forward, u.loader || phase == origin.Loading}
			}
		}
	}
	found := false
	for id := range frames {
		if !s.facts[id].own || len(in) == 0 {
			continue
		}
		if u := in[blockOf(timeline.FrameID(id))]; u.model && u.loader {
			frames[id], found = origin.Evaluation, true
		}
	}
	return found
}

// ungradedBlock is the header that makes a frame's line compute no gradients over a loop that it is part of; zero: there is none.
func (s *Stacks) ungradedBlock(id timeline.FrameID) Place {
	f := s.Rec.Frames[id]
	looped := strings.HasPrefix(s.source.Line(f.File, f.Line), "for ")
	for _, h := range s.source.headers(f.File, f.Line) {
		switch {
		case strings.HasPrefix(h.text, "for "):
			looped = true
		case looped && strings.HasPrefix(h.text, "with ") && withoutGradients.MatchString(h.text):
			return Place{f.File, h.line}
		}
	}
	if !looped {
		return Place{}
	}
	first := Place{f.File, f.FirstLine}
	for at := first; at.Line < s.definition(first).Line; at.Line++ {
		if text := s.source.Line(at.File, at.Line); strings.HasPrefix(text, "@") && withoutGradients.MatchString(text) {
			return at
		}
	}
	return Place{}
}
