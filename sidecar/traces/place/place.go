// Package place reads where in Python something happened.
//
// In flow the texts that torch's profiler and memory snapshots write for a
// frame, out flow file, line and function. Whose code that is, origin decides by
// the name: traces are read on other machines than they were recorded on.
package place

import (
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Place is a function at a line: where it starts in a trace, where it was in a
// memory snapshot.
type Place struct {
	File     string
	Line     int
	Function string
}

// Parse splits "file.py(12): function". ok is false for what has no file, as
// "<built-in method …>": then Function is the whole text.
func Parse(text string) (p Place, ok bool) {
	end := strings.Index(text, "): ")
	if end < 0 {
		return Place{Function: text}, false
	}
	open := strings.LastIndexByte(text[:end], '(')
	if open < 0 {
		return Place{Function: text}, false
	}
	line, err := strconv.ParseUint(text[open+1:end], 10, 31)
	if err != nil {
		return Place{Function: text}, false
	}
	return Place{File: text[:open], Line: int(line), Function: text[end+3:]}, true
}

// String is the text that Parse reads.
func (p Place) String() string {
	if p.File == "" {
		return p.Function
	}
	return p.File + "(" + strconv.Itoa(p.Line) + "): " + p.Function
}

// Base is the text without the folders of the file.
func (p Place) Base() string {
	p.File = p.File[strings.LastIndexByte(strings.ReplaceAll(p.File, `\`, "/"), '/')+1:]
	return p.String()
}

// Own reports whether the function is the user's own code, by its file's name.
func (p Place) Own() bool { return origin.ByName(p.File).Own() }
