package diagnose

import (
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Source is the text of the program's lines, for the rules here and for the
// report's tables. Cells exist only in the kernel, and code given by -c only on the
// command line: their text is the recording's.
type Source struct {
	texts   map[string][]string // by co_filename
	changed map[string]bool     // files whose text is not the running code's
	line    func(file string, line int) string
}

// NewSource makes the source of a recorded program. Lines of files come from
// line, which returns an empty one where it cannot; nil = none of files. It is
// not asked for files that were changed since their code was loaded.
func NewSource(rec *timeline.Recording, line func(file string, line int) string) *Source {
	s := &Source{texts: make(map[string][]string), changed: origin.Changed(rec), line: line}
	for _, source := range rec.Sources {
		s.texts[source.File] = strings.Split(source.Text, "\n")
	}
	if cell := rec.Target.Cell; cell != nil { // wins: equal cells share a file name
		s.texts[cell.File] = strings.Split(cell.Text, "\n")
	} else if i := slices.Index(rec.Target.Argv, "-c"); i >= 0 && i+1 < len(rec.Target.Argv) {
		s.texts["<string>"] = strings.Split(rec.Target.Argv[i+1], "\n")
	}
	return s
}

// Line returns a line, counted from 1, without the space around it; empty where
// it is not known.
func (s *Source) Line(file string, line int) string {
	switch lines, known := s.texts[file]; {
	case line < 1, known && line > len(lines):
		return ""
	case known:
		return strings.TrimSpace(lines[line-1])
	case s.line == nil || s.changed[file]:
		return ""
	}
	return strings.TrimSpace(s.line(file, line))
}

// Changed tells that a file's text may not be what its running code was made of.
func (s *Source) Changed(file string) bool { return s.changed[file] }
