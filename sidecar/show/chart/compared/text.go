package compared

import (
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Text says what differs in plain text of at most width columns.
func Text(p Pair, width int) string { return textOf(digestOf(p), width) }

func textOf(c *digest, width int) string {
	t := &writer{words.NewWriter(width)}
	t.Line(scene.Join(c.title, "  "))
	t.Paragraph("", scene.Join(c.finding[:1], ""))
	for _, p := range c.finding[1:] {
		if p.Face == scene.Mono {
			t.Line("    " + p.Text)
		} else {
			t.Paragraph("", p.Text)
		}
	}
	for _, tb := range c.tables {
		t.Line("")
		t.changes(tb)
	}
	t.Line("")
	for _, n := range c.notes {
		t.Paragraph("", n)
	}
	return t.String()
}

// writer writes a comparison in lines of bounded width.
type writer struct{ words.Writer }

// changes writes a table: name, before, after, change, and the line's text where there
// is room.
func (t *writer) changes(tb changeTable) {
	heading := tb.heading
	if tb.note != "" {
		heading += "  (" + tb.note + ")"
	}
	t.Line(heading)
	name, before, after, change := 0, len("before"), len("after"), 0
	for _, r := range tb.rows {
		name = max(name, words.Columns(nameAside(r)))
		before = max(before, words.Columns(changeTime(r.change.Before)))
		after = max(after, words.Columns(changeTime(r.change.After)))
		change = max(change, words.Columns(r.change.Words()))
	}
	name = min(name, max(t.Width-before-after-change-8, t.Width/4))
	t.Line("  " + words.Pad("", name) + "  " + words.PadLeft("before", before) + "  " + words.PadLeft("after", after) + "  change")
	for _, r := range tb.rows {
		line := "  " + words.Pad(nameAside(r), name) + "  " + words.PadLeft(changeTime(r.change.Before), before) + "  " +
			words.PadLeft(changeTime(r.change.After), after) + "  "
		const leastCode = 12
		if room := t.Width - words.Columns(line) - change - 2; r.code != "" && room >= leastCode {
			t.Line(line + words.Pad(r.change.Words(), change) + "  " + words.Cut(r.code, room))
			continue
		}
		t.Line(line + r.change.Words())
	}
	if tb.rest != "" {
		t.Line("  " + tb.rest)
	}
}

func nameAside(r changeRow) string {
	if r.aside == "" {
		return r.name
	}
	return r.name + " · " + r.aside
}
