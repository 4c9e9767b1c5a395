package activity

import (
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Source is the text of the program's lines, for the rules here and for the
// report's tables. Cells exist only in the kernel, and code given by -c only on the
// command line: their text is the recording's.
type Source struct {
	texts     map[string][]string    // by co_filename
	notProven map[string]origin.Text // files whose text may not be the running code's
	line      func(file string, line int) string
}

// NewSource makes the source of a recorded program. Lines of files come from
// line, which returns an empty one where it cannot; nil = none of files. It is
// not asked for files whose text is not proven to be the code's.
func NewSource(rec *timeline.Recording, line func(file string, line int) string) *Source {
	s := &Source{texts: make(map[string][]string), notProven: origin.Texts(rec), line: line}
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
func (s *Source) Line(file string, line int) string { return strings.TrimSpace(s.written(file, line)) }

// written returns a line with its indentation.
func (s *Source) written(file string, line int) string {
	switch lines, known := s.texts[file]; {
	case line < 1, known && line > len(lines):
		return ""
	case known:
		return lines[line-1]
	case s.line == nil || s.Text(file) != origin.TextProven:
		return ""
	}
	return s.line(file, line)
}

// maxAbove is how many lines above one are looked at for what it is part of.
const maxAbove = 100

// header is the first line of a block.
type header struct {
	line int
	text string
}

// headers are the first lines of the blocks that a line is in, the innermost first, as far as its function or module goes.
func (s *Source) headers(file string, line int) (headers []header) {
	indent := indentation(s.written(file, line))
	for at := line - 1; at >= max(line-maxAbove, 1) && indent > 0; at-- {
		written := s.written(file, at)
		text := strings.TrimSpace(written)
		if text == "" || text[0] == '#' || indentation(written) >= indent {
			continue
		}
		indent = indentation(written)
		if strings.HasPrefix(text, ")") { // the end of a header of several lines
			at, text = s.statement(file, at)
		}
		text = strings.TrimPrefix(text, "async ")
		if strings.HasPrefix(text, "def ") || strings.HasPrefix(text, "class ") {
			return headers
		}
		headers = append(headers, header{at, text})
	}
	return headers
}

// maxLines is how many lines a statement is taken to have at most.
const maxLines = 30

// statement is the first line of the statement that a line is part of, and its text in one: a line between brackets belongs
// to the line that opens them.
func (s *Source) statement(file string, line int) (first int, text string) {
	first = line
	depth := 0
	for at := line - 1; at >= max(line-maxLines, 1); at-- {
		if depth += opened(s.Line(file, at)); depth > 0 {
			first, depth = at, 0
		}
	}
	depth = 0
	for at := first; at < first+maxLines && (at <= line || depth > 0); at++ {
		part := s.Line(file, at)
		depth += opened(part)
		text = strings.TrimSpace(text + " " + part)
	}
	return first, text
}

// notCode is what has no brackets that count.
var notCode = regexp.MustCompile(`"[^"]*"|'[^']*'|#.*`)

// opened is how many brackets a line opens that it does not close.
func opened(text string) (depth int) {
	for _, c := range notCode.ReplaceAllString(text, "") {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
	}
	return depth
}

// Loops returns the first lines of the for loops that a line is in, the innermost first, as far
// as its function or module goes.
func (s *Source) Loops(file string, line int) (loops []string) {
	for _, h := range s.headers(file, line) {
		if strings.HasPrefix(h.text, "for ") {
			loops = append(loops, h.text)
		}
	}
	return loops
}

// indentation is how much space a line begins with; a tab is as much as one.
func indentation(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }

// Text returns what is known of a file's text.
func (s *Source) Text(file string) origin.Text { return s.notProven[file] }
