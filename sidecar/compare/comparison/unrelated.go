package comparison

import (
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// fewShared is the share of the user's own functions, of the side with fewer, up to which two programs have little in common;
// of their scripts' lines it is half of that from which on files are alike.
const (
	fewShared = 0.2
	fewLines  = alikeFiles / 2
)

// Unrelated reports whether the sides are different programs: of other names, with few functions and lines in common. Versions
// of a script are none, whatever they are called, nor are two cells, which are compared because they differ.
func (c *Comparison) Unrelated() bool { return c.unrelated }

func unrelated(a, b *report.View) bool {
	if nameOf(a) == nameOf(b) || a.Target().Cell != nil && b.Target().Cell != nil {
		return false
	}
	names, others := ownNames(a), ownNames(b)
	shared := 0
	for name := range names {
		if others[name] {
			shared++
		}
	}
	if fewer := min(len(names), len(others)); float64(shared) > fewShared*float64(fewer) {
		return false
	}
	lines, known := ownLines(a)
	otherLines, otherKnown := ownLines(b)
	if !known || !otherKnown {
		return len(names) > 0 && len(others) > 0
	}
	return 2*float64(align(lines, otherLines).equal) <= fewLines*float64(len(lines)+len(otherLines))
}

// ownNames are the functions of the user's own, without those that any program may have.
func ownNames(v *report.View) map[string]bool {
	names := make(map[string]bool)
	for _, f := range v.Functions {
		if v.Files[f.File].Code.Own() && f.Name != "main" && !strings.HasPrefix(f.Name, "<") {
			names[f.Name] = true
		}
	}
	return names
}

// ownLines are those of the recorded script or cell, without those that any program may have; known: there are any.
func ownLines(v *report.View) (lines []numbered, known bool) {
	if main := mainFile(v); main >= 0 {
		lines = linesOf(v.Files[main].Lines)
	}
	known = len(lines) > 0
	return slices.DeleteFunc(lines, func(l numbered) bool { return anyPrograms.MatchString(l.text) }), known
}

// anyPrograms are lines that say nothing of what a program does.
var anyPrograms = regexp.MustCompile(`^\s*(import |from |.*\bmain\(|.*__name__|.{0,8}$)`)
