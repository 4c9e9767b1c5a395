package glance

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

const (
	maxLines = 4 << 10 // bytes of a cell's lines: a session keeps a thousand cells
	halfCode = maxCode/2 - 2

	// A line is shown from shortly before that in which it differs, where that is far behind its begin.
	farBehind, before = halfCode, halfCode / 2
)

// Lines are those of a cell's text that say something: code first, then comments and magics, for as far as a table of cells
// needs them to distinguish one from another.
func Lines(text string) (lines []string) {
	var rest []string
	left := maxLines
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || left <= 0 {
			continue
		}
		line = strings.Clone(line[:min(len(line), left)]) // the text itself is not kept
		left -= len(line)
		isCode := !strings.HasPrefix(line, "%") && !strings.HasPrefix(line, "#")
		if isCode || len(lines)+len(rest) == 0 && otherLanguage.MatchString(line) {
			lines = append(lines, line)
		} else {
			rest = append(rest, line)
		}
	}
	if len(lines) > 0 {
		rest = slices.DeleteFunc(rest, isOurs)
	}
	return append(lines, rest...)
}

// isOurs reports whether a line is omni_perf's own magic, which says nothing of what a cell does.
func isOurs(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, "%"), "omni_perf") }

// FirstLine is the first line of a cell's text that says something: no comment and no magic, unless it has nothing else or
// is not run as what it looks like.
func FirstLine(text string) string {
	if lines := Lines(text); len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// Titles are what the cells are called. Cells that would be called the same have the line in which they differ, too.
func Titles(cells []Cell) []string {
	list := make([]string, len(cells))
	same := make(map[string][]int)
	for i, c := range cells {
		list[i] = c.title()
		same[list[i]] = append(same[list[i]], i)
	}
	for title, rows := range same {
		distinguish(cells, rows, 0, strings.TrimSuffix(words.Clean(title, halfCode), "…")+" … ", list)
	}
	return list
}

// distinguish adds to the title of rows the first line, from one on, in which not all are the same, and so on among those
// of which it is.
func distinguish(cells []Cell, rows []int, from int, title string, titles []string) {
	if len(rows) < 2 {
		return
	}
	line := func(row, at int) string {
		if at < len(cells[row].Lines) {
			return cells[row].Lines[at]
		}
		return ""
	}
	most := 0
	for _, row := range rows {
		most = max(most, len(cells[row].Lines))
	}
	for at := from; at < most; at++ {
		with := make(map[string][]int)
		for _, row := range rows {
			with[line(row, at)] = append(with[line(row, at)], row)
		}
		if len(with) == 1 {
			continue
		}
		skip := shared(with)
		for text, some := range with {
			for _, row := range some {
				if text != "" {
					titles[row] = title + words.Clean(strings.TrimSpace(text[skip:]), halfCode)
				}
			}
			distinguish(cells, some, at+1, title, titles)
		}
		return
	}
}

// shared is how many bytes of all lines need not be shown, since they are the same.
func shared(lines map[string][]int) int {
	var common string
	first := true
	for line := range lines {
		if first {
			common, first = line, false
		}
		n := 0
		for n < min(len(common), len(line)) && common[n] == line[n] {
			n++
		}
		common = common[:n]
	}
	if len(common) <= farBehind {
		return 0
	}
	skip := len(common) - before
	for skip > 0 && !utf8.RuneStart(common[skip]) {
		skip--
	}
	return skip
}
