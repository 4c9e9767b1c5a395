package recorder

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Limits of what is kept of cells' sources: a notebook of a thousand cells of
// 4 kB, and no single cell that fills a report.
const (
	maxSourceText  = 256 << 10
	maxSourceTotal = 4 << 20
)

// sourceBook remembers the texts of cells by co_filename: of equal texts, and of
// one cell reported again, the latest. Several cells have one file only where
// IPYKERNEL_CELL_NAME names them all alike.
type sourceBook struct {
	byFile map[string][]timeline.Source // oldest first
	order  []string                     // the file of each, oldest first
	size   int
}

func (b *sourceBook) add(sources ...timeline.Source) {
	if b.byFile == nil {
		b.byFile = make(map[string][]timeline.Source)
	}
	for _, s := range sources {
		if s.File == "" {
			continue
		}
		s.Text = clipText(s.Text)
		if !b.replace(s) {
			b.byFile[s.File] = append(b.byFile[s.File], s)
			b.order = append(b.order, s.File)
			b.size += sizeOf(s)
		}
	}
	for b.size > maxSourceTotal && len(b.order) > 1 {
		file := b.order[0]
		b.size -= sizeOf(b.byFile[file][0])
		if b.byFile[file] = b.byFile[file][1:]; len(b.byFile[file]) == 0 {
			delete(b.byFile, file)
		}
		b.order = b.order[1:]
	}
}

func (b *sourceBook) replace(s timeline.Source) bool {
	for i, old := range b.byFile[s.File] {
		if sameSource(old, s) {
			b.size += sizeOf(s) - sizeOf(old)
			b.byFile[s.File][i] = s
			return true
		}
	}
	return false
}

func sameSource(a, b timeline.Source) bool {
	return a.ExecutionCount == b.ExecutionCount || strings.TrimSpace(a.Text) == strings.TrimSpace(b.Text)
}

func sizeOf(s timeline.Source) int { return len(s.Text) + len(s.File) + 8*len(s.Lines) }

// of returns the sources of the files that rec's frames name, and its cell's own,
// which wins: equal cells share a file name. Functions that cell magics compiled
// name no cell: where there are such, all cells with magics are returned, too. Nor do those that were
// sent to another process by value: those cells are, too, that have a function of such a name.
func (b *sourceBook) of(rec *timeline.Recording, files ...string) []timeline.Source {
	var out []timeline.Source
	seen := make(map[string]bool)
	add := func(s timeline.Source) {
		for _, known := range out {
			if known.File == s.File && sameSource(known, s) {
				return
			}
		}
		out = append(out, s)
	}
	if c := rec.Target.Cell; c != nil && c.File != "" {
		c.Text = clipText(c.Text)
		add(b.ofCell(c))
	}
	magics, sent := false, make(map[string]bool)
	for _, f := range files {
		for _, s := range b.byFile[f] {
			add(s)
		}
	}
	for _, f := range rec.Frames {
		magics = magics || isOfMagic(f.File)
		if f.File == timeline.SentCode {
			sent[nameOf(f.Function)] = true
		}
		if !seen[f.File] {
			seen[f.File] = true
			for _, s := range b.byFile[f.File] {
				add(s)
			}
		}
	}
	b.each(func(s timeline.Source) {
		if magics && hasMagic(s) || len(sent) > 0 && hasFunction(s, sent) {
			add(s)
		}
	})
	return out
}

// ofCell is the source of the cell that was recorded, with what is known of its lines.
func (b *sourceBook) ofCell(c *timeline.Cell) timeline.Source {
	own := timeline.Source{File: c.File, ExecutionCount: c.ExecutionCount, Text: c.Text}
	for _, known := range b.byFile[c.File] {
		if sameSource(known, own) {
			own.Lines, own.Nested = known.Lines, known.Nested
		}
	}
	return own
}

// isOfMagic reports whether a file's name is one that cell magics give to what they compile.
func isOfMagic(file string) bool {
	return strings.HasPrefix(file, "<timed ") || file == "<magic-timeit>"
}

func (b *sourceBook) each(visit func(timeline.Source)) {
	for _, file := range b.order {
		for _, s := range b.byFile[file] {
			visit(s)
		}
	}
}

// hasMagic reports whether a cell begins with a cell magic.
func hasMagic(s timeline.Source) bool {
	return strings.HasPrefix(strings.TrimLeft(s.Text, "\n"), "%%")
}

// hasFunction reports whether a cell may define a function of one of the names.
func hasFunction(s timeline.Source, names map[string]bool) bool {
	for name := range names {
		if strings.Contains(s.Text, "def "+name) || name == "<lambda>" && strings.Contains(s.Text, "lambda") {
			return true
		}
	}
	return false
}

// nameOf is a function's own name, without what it is defined in.
func nameOf(function string) string { return function[strings.LastIndexByte(function, '.')+1:] }

// clipText cuts a source at a line's end. The rest's lines stay numbers.
func clipText(text string) string {
	if len(text) <= maxSourceText {
		return text
	}
	text = text[:maxSourceText]
	if i := strings.LastIndexByte(text, '\n'); i > 0 {
		text = text[:i+1]
	}
	return strings.Clone(strings.ToValidUTF8(text, ""))
}
