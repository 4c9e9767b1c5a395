package diagnose

import (
	"regexp"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// stacks reads a recording's stack tree the way causes and places need it.
type stacks struct {
	rec    *timeline.Recording
	source *Source
	files  *origin.Files
	facts  []frameFacts // by FrameID
	// device tells that a GPU was used: without one, .numpy(), .tolist() and
	// np.save() are ordinary work.
	device bool
	leader *timeline.Thread // of a launcher: its leading rank's main one; nil: the target itself is told of
	said   map[saying]bool
	hosts  map[*timeline.Thread]*host // of threads beside the main one
}

// frameFacts is what one frame says, whatever stands above and below it.
type frameFacts struct {
	rules uint64          // causeRules whose conditions on a frame it meets
	means origin.Meanings // what it means, of a library's
	own   bool            // the user wrote it
}

func newStacks(rec *timeline.Recording, source *Source) *stacks {
	s := &stacks{rec: rec, source: source, files: origin.New(rec), facts: make([]frameFacts, len(rec.Frames)), said: make(map[saying]bool), hosts: make(map[*timeline.Thread]*host)}
	for i, f := range rec.Frames {
		isOwn := f.Phase == timeline.PhaseNone && s.files.Own(f.File)
		means := s.files.Means(f)
		facts := frameFacts{own: isOwn, means: means}
		for r := range causeRules {
			if causeRules[r].fits(f, means, isOwn) {
				facts.rules |= 1 << r
			}
		}
		s.facts[i] = facts
	}
	return s
}

// stack returns a node's frames from its leaf to its root.
func (s *stacks) stack(node timeline.NodeID) []timeline.FrameID {
	var list []timeline.FrameID
	for node != timeline.RootNode && int(node) < len(s.rec.Nodes) {
		n := s.rec.Nodes[node]
		if int(n.Frame) < len(s.rec.Frames) {
			list = append(list, n.Frame)
		}
		if n.Parent >= node { // a damaged file: parents come first
			break
		}
		node = n.Parent
	}
	return list
}

// ownest is the index of the deepest frame of the user's own code; -1 = none.
func (s *stacks) ownest(stack []timeline.FrameID) int {
	for i, id := range stack {
		if s.facts[id].own {
			return i
		}
	}
	return -1
}

// charged returns the place a stack is charged to: the deepest line of the user's
// own code, else the leaf; in a notebook, where that is the kernel's own work, none.
func (s *stacks) charged(stack []timeline.FrameID) Place {
	at := s.ownest(stack)
	if at < 0 {
		if len(stack) == 0 || s.rec.Target.Cell != nil {
			return Place{}
		}
		at = 0
	}
	f := s.rec.Frames[stack[at]]
	return Place{f.File, f.Line}
}

// phase is what the notebook was doing outside of the cell's code, by the outermost
// frame.
func (s *stacks) phase(stack []timeline.FrameID) timeline.Phase {
	if len(stack) == 0 {
		return timeline.PhaseNone
	}
	return s.rec.Frames[stack[len(stack)-1]].Phase
}

// importing tells whether the innermost line of the user's own is an import: the
// import system stands between it and the leaf, so that whatever runs there runs
// to make a module. Own code that a module runs while it is imported is own code.
func (s *stacks) importing(stack []timeline.FrameID) bool {
	for _, id := range stack {
		if s.facts[id].own {
			return false
		}
		if s.facts[id].means&origin.Imports != 0 {
			return true
		}
	}
	return false
}

// track returns a track of the recording; nil when there is none.
func (s *stacks) track(id string) *timeline.Track {
	for i := range s.rec.Tracks {
		if s.rec.Tracks[i].ID == id {
			return &s.rec.Tracks[i]
		}
	}
	return nil
}

// saying is a question that many stacks have in common.
type saying struct {
	at      Place
	pattern *regexp.Regexp
}

// says tells whether a line's text has a pattern.
func (s *stacks) says(at Place, pattern *regexp.Regexp) bool {
	k := saying{at, pattern}
	found, known := s.said[k]
	if !known {
		found = pattern.MatchString(s.source.Line(at.File, at.Line))
		s.said[k] = found
	}
	return found
}
