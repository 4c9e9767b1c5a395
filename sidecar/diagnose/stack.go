package diagnose

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// stacks reads a recording's stack tree the way causes and lines need it.
type stacks struct {
	rec    *timeline.Recording
	source *Source
	// device tells that a GPU was used: without one, .numpy(), .tolist() and
	// np.save() are ordinary work.
	device bool
	said   map[saying]bool
}

func newStacks(rec *timeline.Recording, source *Source) *stacks {
	return &stacks{rec: rec, source: source, said: make(map[saying]bool)}
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

// charged returns the line a stack is charged to: the deepest one in a cell,
// else the deepest in code of the user's own, else the leaf; in a notebook, where
// that is the kernel's own work, none.
func (s *stacks) charged(frames []timeline.Frame) line {
	own := -1
	for i, f := range frames {
		if s.source.isCell(f.File) {
			return line{f.File, f.Line}
		}
		if own < 0 && !IsLibrary(f.File) {
			own = i
		}
	}
	if own < 0 {
		if len(frames) == 0 || s.rec.Target.Cell != nil && base(frames[0].File) != "selectors.py" {
			return line{}
		}
		own = 0
	}
	return line{frames[own].File, frames[own].Line}
}

// own tells whether a frame is of code that the user wrote.
func (s *stacks) own(f timeline.Frame) bool { return s.source.isCell(f.File) || !IsLibrary(f.File) }

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

// IsLibrary tells installed code and the standard library from the user's own.
func IsLibrary(file string) bool {
	file = strings.ReplaceAll(file, `\`, "/")
	if strings.HasPrefix(file, "<") {
		return true // <frozen importlib._bootstrap>, <string>, <__array_function__ internals>
	}
	if strings.Contains(file, "/site-packages/") || strings.Contains(file, "/dist-packages/") || strings.Contains(file, "/omni_perf/") {
		return true
	}
	// lib/python3.12/threading.py, and not a user's folder that is called python3.
	_, rest, ok := strings.Cut(file, "/lib/python3")
	return ok && strings.HasPrefix(strings.TrimLeft(rest, ".0123456789t"), "/")
}
