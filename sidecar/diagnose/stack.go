package diagnose

import (
	"fmt"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// stacks reads a recording's stack tree the way causes and lines need it.
type stacks struct {
	rec   *timeline.Recording
	cells map[string][]string // source lines of the files that exist only in the kernel
	// device tells that a GPU was used: without one, .numpy() and .tolist() are
	// ordinary work.
	device bool
}

func newStacks(rec *timeline.Recording) *stacks {
	s := &stacks{rec: rec, cells: make(map[string][]string)}
	for _, source := range rec.Sources {
		s.cells[source.File] = strings.Split(source.Text, "\n")
	}
	if cell := rec.Target.Cell; cell != nil && s.cells[cell.File] == nil {
		s.cells[cell.File] = strings.Split(cell.Text, "\n")
	}
	return s
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

// charged returns the line a stack is charged to and whether it is the leaf:
// the deepest one in a cell, else the deepest in code of the user's own, else
// the leaf; in a notebook, where that is the kernel's own work, none.
func (s *stacks) charged(frames []timeline.Frame) (at line, leaf bool) {
	own := -1
	for i, f := range frames {
		if s.cells[f.File] != nil {
			return line{f.File, f.Line}, i == 0
		}
		if own < 0 && !IsLibrary(f.File) {
			own = i
		}
	}
	if own < 0 {
		if len(frames) == 0 || s.rec.Target.Cell != nil && base(frames[0].File) != "selectors.py" {
			return line{}, false
		}
		own = 0
	}
	return line{frames[own].File, frames[own].Line}, own == 0
}

// text returns a line's source where the recording has it.
func (s *stacks) text(at line) string {
	lines := s.cells[at.file]
	if at.number < 1 || at.number > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[at.number-1])
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
