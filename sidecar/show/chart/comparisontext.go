package chart

import "github.com/omni-perf/omni-perf/sidecar/understand/words"

// ComparisonText says what differs in plain text of at most width columns.
func ComparisonText(p Pair, width int) string { return comparedText(comparedDigestOf(p), width) }

func comparedText(c *comparedDigest, width int) string {
	t := &textWriter{width: min(max(width, minTextWidth), maxTextWidth)}
	t.line(joinPhrases(c.title, "  "))
	t.paragraph("", joinPhrases(c.finding[:1], ""))
	for _, p := range c.finding[1:] {
		if p.face == mono {
			t.line("    " + p.text)
		} else {
			t.paragraph("", p.text)
		}
	}
	for _, tb := range c.tables {
		t.line("")
		t.changes(tb)
	}
	t.line("")
	for _, n := range c.notes {
		t.paragraph("", n)
	}
	return t.String()
}

// changes writes a table: name, before, after, change, and the line's text where there
// is room.
func (t *textWriter) changes(tb changeTable) {
	heading := tb.heading
	if tb.note != "" {
		heading += "  (" + tb.note + ")"
	}
	t.line(heading)
	name, before, after, change := 0, len("before"), len("after"), 0
	for _, r := range tb.rows {
		name = max(name, words.Columns(nameAside(r)))
		before = max(before, words.Columns(changeTime(r.change.Before)))
		after = max(after, words.Columns(changeTime(r.change.After)))
		change = max(change, words.Columns(r.change.Words()))
	}
	name = min(name, max(t.width-before-after-change-8, t.width/4))
	t.line("  " + words.Pad("", name) + "  " + words.PadLeft("before", before) + "  " + words.PadLeft("after", after) + "  change")
	for _, r := range tb.rows {
		line := "  " + words.Pad(nameAside(r), name) + "  " + words.PadLeft(changeTime(r.change.Before), before) + "  " +
			words.PadLeft(changeTime(r.change.After), after) + "  "
		const leastCode = 12
		if room := t.width - words.Columns(line) - change - 2; r.code != "" && room >= leastCode {
			t.line(line + words.Pad(r.change.Words(), change) + "  " + words.Cut(r.code, room))
			continue
		}
		t.line(line + r.change.Words())
	}
	if tb.rest != "" {
		t.line("  " + tb.rest)
	}
}

func nameAside(r changeRow) string {
	if r.aside == "" {
		return r.name
	}
	return r.name + " · " + r.aside
}
