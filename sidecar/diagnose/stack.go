package diagnose

import (
	"fmt"
	"regexp"

	"github.com/omni-perf/omni-perf/sidecar/origin"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// stacks reads a recording's stack tree the way causes and lines need it.
type stacks struct {
	rec    *timeline.Recording
	source *Source
	origin *origin.Files
	// device tells that a GPU was used: without one, .numpy(), .tolist() and
	// np.save() are ordinary work.
	device bool
	said   map[saying]bool
}

func newStacks(rec *timeline.Recording, source *Source) *stacks {
	return &stacks{rec: rec, source: source, origin: origin.New(rec), said: make(map[saying]bool)}
}

// frames returns a stack from its leaf to its root.
func (s *stacks) frames(node timeline.NodeID) []timeline.Frame {
	var list []timeline.Frame
	for node != timeline.RootNode && int(node) < len(s.rec.Nodes) {
		n := s.rec.Nodes[node]
		if int(n.Frame) < len(s.rec.Frames) {
			list = append(list, s.rec.Frames[n.Frame])
		}
		if n.Parent >= node { // a damaged file: parents come first
			break
		}
		node = n.Parent
	}
	return list
}

// line is a place in the user's program; the zero value is none.
type line struct {
	file   string
	number int
}

// charged returns the line a stack is charged to: the deepest one of the user's
// own code, else the leaf; in a notebook, where that is the kernel's own work, none.
func (s *stacks) charged(frames []timeline.Frame) line {
	for _, f := range frames {
		if s.own(f) {
			return line{f.File, f.Line}
		}
	}
	if len(frames) == 0 || s.rec.Target.Cell != nil && base(frames[0].File) != "selectors.py" {
		return line{}
	}
	return line{frames[0].File, frames[0].Line}
}

// own tells whether a frame is of code that the user wrote.
func (s *stacks) own(f timeline.Frame) bool { return s.origin.Own(f.File) }

// saying is a question that many stacks have in common.
type saying struct {
	at      line
	pattern *regexp.Regexp
}

// says tells whether a line's text has a pattern.
func (s *stacks) says(at line, pattern *regexp.Regexp) bool {
	k := saying{at, pattern}
	found, known := s.said[k]
	if !known {
		found = pattern.MatchString(s.source.Line(at.file, at.number))
		s.said[k] = found
	}
	return found
}

// place names a line of a cell as the report does: by number in the recorded
// cell, by cell and number elsewhere.
func (s *stacks) place(at line) string {
	if cell := s.rec.Target.Cell; cell == nil || cell.File != at.file {
		for _, source := range s.rec.Sources {
			if source.File == at.file {
				return fmt.Sprintf("Cell [%d]:%d", source.ExecutionCount, at.number)
			}
		}
	}
	return fmt.Sprintf("line %d", at.number)
}
