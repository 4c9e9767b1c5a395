package interpret

import (
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// withSentCode returns the recording in which functions that were sent to this process by value have the file of the
// notebook's cell that defines them. cloudpickle (as of 3.1.2) takes the file's name from them; what is left is
// the function's name and first line. Where cells of different text define such a function the file stays unknown. It
// shares with rec what it does not change.
func withSentCode(rec *timeline.Recording) *timeline.Recording {
	if len(rec.Sources) == 0 || !slices.ContainsFunc(rec.Frames, func(f timeline.Frame) bool { return f.File == timeline.SentCode }) {
		return rec
	}
	out := *rec
	out.Frames = slices.Clone(rec.Frames)
	for i := range out.Frames {
		if f := &out.Frames[i]; f.File == timeline.SentCode {
			if cell := definedIn(rec.Sources, f.Function, f.FirstLine); cell != "" {
				f.File = cell
			}
		}
	}
	return &out
}

// definedIn is the file of the newest cell that defines a function in this line of its code, if all cells that do have
// one text; empty otherwise.
func definedIn(cells []timeline.Source, function string, line int) string {
	newest, text := -1, ""
	for i, c := range cells {
		if c.Nested || !defines(c, function, line) {
			continue
		}
		if newest >= 0 && c.Text != text {
			return ""
		}
		text = c.Text
		if newest < 0 || c.ExecutionCount > cells[newest].ExecutionCount {
			newest = i
		}
	}
	if newest < 0 {
		return ""
	}
	return cells[newest].File
}

// defines reports whether a function begins in this line of a cell's code: with its decorators, as CPython counts.
func defines(c timeline.Source, function string, line int) bool {
	if len(c.Lines) > 0 && line >= 1 && line <= len(c.Lines) {
		line = c.Lines[line-1]
	}
	return origin.Defines(strings.Split(c.Text, "\n"), line, function)
}
