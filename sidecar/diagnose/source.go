package diagnose

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/origin"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// Source is the text of the program's lines, for the rules here and for the
// report's tables. Cells exist only in the kernel: their text is the recording's.
type Source struct {
	cells   map[string][]string // by co_filename
	changed map[string]bool     // files whose text is not the running code's
	line    func(file string, line int) string
}

// NewSource makes the source of a recorded program. Lines of files come from
// line, which returns an empty one where it cannot; nil = the cells' only. It is
// not asked for files that were changed since their code was loaded.
func NewSource(rec *timeline.Recording, line func(file string, line int) string) *Source {
	s := &Source{cells: make(map[string][]string), changed: origin.Changed(rec), line: line}
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
	case s.line == nil || s.changed[file]:
		return ""
	}
	return strings.TrimSpace(s.line(file, line))
}

// Changed tells that a file's text may not be what its running code was made of.
func (s *Source) Changed(file string) bool { return s.changed[file] }

// isCell tells whether a file is a cell of the notebook.
func (s *Source) isCell(file string) bool { return s.cells[file] != nil }
