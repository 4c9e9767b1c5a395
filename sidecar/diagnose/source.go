package diagnose

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// Source is the text of the program's lines, for the rules here and for the
// report's tables. Cells exist only in the kernel: their text is the recording's.
type Source struct {
	cells map[string][]string // by co_filename
	line  func(file string, line int) string
}

// NewSource makes the source of a recorded program. Lines of files come from
// line, which returns an empty one where it cannot; nil = the cells' only.
func NewSource(rec *timeline.Recording, line func(file string, line int) string) *Source {
	s := &Source{cells: make(map[string][]string), line: line}
	for _, source := range rec.Sources {
		s.cells[source.File] = strings.Split(source.Text, "\n")
	}
	if cell := rec.Target.Cell; cell != nil { // wins: equal cells share a file name
		s.cells[cell.File] = strings.Split(cell.Text, "\n")
	}
	return s
}

// Line returns a line, counted from 1, without the space around it; empty where
// it is not known.
func (s *Source) Line(file string, line int) string {
	switch lines, cell := s.cells[file]; {
	case line < 1, cell && line > len(lines):
		return ""
	case cell:
		return strings.TrimSpace(lines[line-1])
	case s.line == nil:
		return ""
	}
	return strings.TrimSpace(s.line(file, line))
}

// isCell tells whether a file is a cell of the notebook.
func (s *Source) isCell(file string) bool { return s.cells[file] != nil }
