package recorder

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// Limits of what is kept of cells' sources: a notebook of a thousand cells of
// 4 kB, and no single cell that fills a report.
const (
	maxSourceText  = 256 << 10
	maxSourceTotal = 4 << 20
)

// sourceBook remembers the texts of cells by co_filename, the latest of each.
type sourceBook struct {
	byFile map[string]timeline.Source
	order  []string // of byFile's keys, oldest first
	size   int
}

func (b *sourceBook) add(sources ...timeline.Source) {
	if b.byFile == nil {
		b.byFile = make(map[string]timeline.Source)
	}
	for _, s := range sources {
		if s.File == "" {
			continue
		}
		s.Text = clipText(s.Text)
		old, known := b.byFile[s.File]
		if !known {
			b.order = append(b.order, s.File)
		}
		b.byFile[s.File] = s
		b.size += len(s.Text) + len(s.File) - len(old.Text)
		if known {
			b.size -= len(old.File)
		}
	}
	for b.size > maxSourceTotal && len(b.order) > 1 {
		gone := b.byFile[b.order[0]]
		delete(b.byFile, b.order[0])
		b.order = b.order[1:]
		b.size -= len(gone.Text) + len(gone.File)
	}
}

// of returns the sources of the files that rec's frames name, and its cell's own,
// which wins: equal cells share a file name.
func (b *sourceBook) of(rec *timeline.Recording) []timeline.Source {
	var out []timeline.Source
	seen := make(map[string]bool)
	if c := rec.Target.Cell; c != nil && c.File != "" {
		c.Text = clipText(c.Text)
		out = append(out, timeline.Source{File: c.File, ExecutionCount: c.ExecutionCount, Text: c.Text})
		seen[c.File] = true
	}
	for _, f := range rec.Frames {
		if seen[f.File] {
			continue
		}
		seen[f.File] = true
		if s, ok := b.byFile[f.File]; ok {
			out = append(out, s)
		}
	}
	return out
}

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
