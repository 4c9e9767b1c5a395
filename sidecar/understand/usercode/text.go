package usercode

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// text is one cell as it was typed.
type text struct {
	source timeline.Source
	lines  []string
	// A body that a magic of another cell ran is that cell's text from line start on, counted from 0.
	within *text
	start  int
}

func newText(s timeline.Source) *text {
	return &text{source: s, lines: strings.Split(strings.TrimRight(s.Text, "\n"), "\n")}
}

// texts finds the cells that code belongs to.
type texts struct {
	byFile map[string][]*text // newest last
	all    []*text            // newest last
	cell   *text              // the recorded one; nil for programs without cells
	// recorded is the co_filename of the recorded cell.
	recorded string
}

// newTexts reads the sources of a recording; each cell's file gets a name that no other has.
func newTexts(rec *timeline.Recording) *texts {
	t := &texts{byFile: make(map[string][]*text)}
	sources := slices.Clone(rec.Sources)
	slices.SortStableFunc(sources, func(a, b timeline.Source) int { return a.ExecutionCount - b.ExecutionCount })
	for _, s := range sources {
		one := newText(s)
		t.byFile[s.File] = append(t.byFile[s.File], one)
		t.all = append(t.all, one)
	}
	if c := rec.Target.Cell; c != nil {
		t.recorded = c.File
		for _, one := range t.byFile[c.File] {
			if t.cell == nil || one.source.ExecutionCount == c.ExecutionCount {
				t.cell = one
			}
		}
		if t.cell == nil {
			t.cell = newText(timeline.Source{File: c.File, ExecutionCount: c.ExecutionCount, Text: c.Text})
			t.byFile[c.File], t.all = append(t.byFile[c.File], t.cell), append(t.all, t.cell)
		}
	}
	for file, several := range t.byFile {
		for i, one := range several {
			if i > 0 { // IPYKERNEL_CELL_NAME gives all cells one name
				one.source.File = fmt.Sprintf("%s#%d", file, one.source.ExecutionCount)
			}
		}
	}
	for _, inner := range t.all {
		for _, outer := range t.all {
			if inner != outer && outer.source.ExecutionCount == inner.source.ExecutionCount && outer.within == nil && inner.isBodyOf(outer) {
				inner.within, inner.start = outer, len(outer.lines)-len(inner.lines)
			}
		}
	}
	return t
}

// isBodyOf reports whether a cell magic of outer has this text below it.
func (t *text) isBodyOf(outer *text) bool {
	start := len(outer.lines) - len(t.lines)
	return start > 0 && strings.HasPrefix(strings.TrimLeft(outer.source.Text, "\n"), "%%") && slices.Equal(outer.lines[start:], t.lines)
}

// region is where a piece of code that IPython compiles by itself was typed: a cell, or the body of
// a magic.
type region struct {
	text *text
	// first is the line of text, counted from 0, that is line 1 of the code.
	first int
	// magic means that the code is one call: of the cell magic in line first.
	magic bool
}

// region of the cell's code.
func (t *text) region() region {
	if t.within != nil {
		return t.within.from(t.start)
	}
	return t.from(0)
}

// body is the region below the cell magic of r.
func (r region) body() region { return r.text.from(r.first + 1) }

// from returns the region that begins in or below a line: IPython drops empty lines at the top, our
// transformer drops its own magic from above others.
func (t *text) from(start int) region {
	first := t.skipEmpty(start)
	if t.begins(first, ourMagic) {
		if next := t.skipEmpty(first + 1); t.begins(next, anyMagic) {
			return region{t, next, true}
		}
		return region{t, first, false}
	}
	return region{t, first, t.begins(first, anyMagic)}
}

// skipEmpty is the first line from there on that says something; the line itself where none
// does: the text of a cell need not be known.
func (t *text) skipEmpty(from int) int {
	line := from
	for line < len(t.lines) && strings.TrimSpace(t.lines[line]) == "" {
		line++
	}
	if line == len(t.lines) {
		return from
	}
	return line
}

var (
	ourMagic = regexp.MustCompile(`^%%omni_perf(\s|$)`)
	anyMagic = regexp.MustCompile(`^%%`)
)

func (t *text) begins(line int, with *regexp.Regexp) bool {
	return line < len(t.lines) && with.MatchString(t.lines[line])
}

// line converts a line of the region's code, counted from 1, to that of the text.
func (r region) line(code int) int {
	switch known := r.text.source.Lines; {
	case code < 1:
		return code
	case r.magic:
		return r.first + 1
	case r.first > 0 && r.text.region() != r || known == nil:
		return r.first + code
	case code <= len(known):
		return known[code-1]
	default:
		return code
	}
}

// frame converts a frame of code of the region.
func (r region) frame(f timeline.Frame) timeline.Frame {
	f.File, f.Line = r.text.source.File, r.line(f.Line)
	if f.Function == moduleLevel {
		f.FirstLine = 1
	} else {
		f.FirstLine = r.line(f.FirstLine)
	}
	return f
}

const moduleLevel = "<module>"

// of returns the region that a frame's code was typed in, by its file's name; where several cells have
// it, the newest that defines the function.
func (t *texts) of(f timeline.Frame) (region, bool) {
	several := t.byFile[f.File]
	if len(several) == 0 {
		return region{}, false
	}
	if t.cell != nil && slices.Contains(several, t.cell) && (f.Function == moduleLevel || len(several) == 1) {
		return t.cell.region(), true
	}
	for i := len(several) - 1; i >= 0; i-- {
		if r := several[i].region(); len(several) == 1 || r.defines(f) {
			return r, true
		}
	}
	return several[len(several)-1].region(), true
}

// ofMagic finds the newest cell in the body of whose magic a function was defined.
func (t *texts) ofMagic(f timeline.Frame) (region, bool) {
	for i := len(t.all) - 1; i >= 0; i-- {
		if r := t.all[i].region(); r.magic {
			for r.magic {
				r = r.body()
			}
			if r.defines(f) {
				return r, true
			}
		}
	}
	return region{}, false
}

// defines reports whether the region's text has the function at its first line.
func (r region) defines(f timeline.Frame) bool {
	return f.FirstLine > 0 && origin.Defines(r.text.lines, r.line(f.FirstLine), f.Function)
}
