package chart

import "slices"

// tableColumns are the widths all tables share, so that they line up.
type tableColumns struct{ name, seconds, bar, barAside, place, code, hint float64 }

func (l *layouter) tableColumns() tableColumns {
	var c tableColumns
	var hint, code float64
	all := l.Width - 2*margin
	c.bar = 0.12 * all
	for _, t := range l.d.tables {
		longest := longestShare(t)
		for _, r := range t.rows {
			c.barAside = max(c.barAside, barLength(r, longest, c.bar)+6+widthOf(r.aside, labelSize, sans))
			c.name = max(c.name, widthOf(r.name, textSize, sans))
			c.seconds = max(c.seconds, widthOf(r.time(), textSize, sans))
			c.place = max(c.place, widthOf(r.place, textSize, sans))
			code = max(code, widthOf(r.code, textSize, mono))
			hint = max(hint, widthOf(r.remark(), textSize, sans))
		}
	}
	c.name = min(c.name, 0.22*all)
	c.place = min(c.place, 0.14*all)
	left := all - c.name - c.seconds - c.barAside - c.place - 5*columnGap
	hint++ // what fits to the pixel shall not be broken
	c.code, c.hint = code, hint
	if code+hint > left {
		c.code = min(code, max(0.5*left, left-hint))
		c.hint = left - c.code
	}
	return c
}

const columnGap = 12.0

func longestShare(t table) float64 {
	longest := 0.0
	for _, r := range t.rows {
		longest = max(longest, r.share)
	}
	return longest
}

// barLength is the bar of a row in a table whose longest share has a bar of most
// pixels; what is more than nothing is seen.
func barLength(r row, longest, most float64) float64 {
	if longest <= 0 || r.share <= 0 {
		return 0
	}
	return max(r.share/longest*most, 1.5)
}

// tables stand below the chart.
func (l *layouter) tables() {
	if len(l.d.tables) == 0 {
		return
	}
	l.rule()
	c := l.tableColumns()
	for i, t := range l.d.tables {
		if i > 0 {
			l.y += 8
		}
		l.y += 18
		w := widthOf(t.heading, 12.5, bold)
		l.text(margin, l.y, t.heading, 12.5, Plain, bold, Left)
		l.text(margin+w+12, l.y, fit(t.note, l.Width-2*margin-w-12, labelSize, sans), labelSize, Muted, sans, Left)
		longest := longestShare(t)
		of := c
		if !slices.ContainsFunc(t.rows, func(r row) bool { return r.code != "" }) {
			of.code = -columnGap // remarks stand there
		}
		for _, r := range t.rows[:min(len(t.rows), l.dt.tableRows)] {
			l.row(of, r, longest)
		}
	}
}

func (l *layouter) row(c tableColumns, r row, longest float64) {
	l.y += lineHeight
	tone := Plain
	if r.rest {
		tone = Muted
	}
	x := margin
	names := l.column(x, c.name, r.name, tone)
	x += c.name + columnGap + c.seconds
	l.text(x, l.y, r.time(), textSize, tone, sans, Right)
	x += columnGap
	end := x + barLength(r, longest, c.bar)
	if end > x {
		l.Bars = append(l.Bars, stateBars(Box{x, l.y - 9.5, end, l.y + 1.5}, r.states)...)
	}
	l.text(end+6, l.y, r.aside, labelSize, Muted, sans, Left)
	x += c.barAside + columnGap + c.place
	l.text(x, l.y, fit(r.place, c.place, textSize, sans), textSize, Muted, sans, Right)
	x += columnGap
	room, remark := c.code, r.remark()
	if remark == "" {
		room = l.Width - margin - x
	}
	l.text(x, l.y, fit(r.code, room, textSize, mono), textSize, Plain, mono, Left)
	x += c.code + columnGap
	hints := l.column(x, l.Width-margin-x, remark, Muted)
	l.y += max(names, hints, 1)*rowPitch - rowPitch
}

const rowPitch = 14.0 // of lines within a row

// column sets text in at most two lines and returns their number.
func (l *layouter) column(x, room float64, s string, tone Tone) float64 {
	lines := wrap(s, room, textSize, sans, 2)
	for i, line := range lines {
		l.text(x, l.y+float64(i)*rowPitch, line, textSize, tone, sans, Left)
	}
	return float64(len(lines))
}

func (l *layouter) rule() {
	l.y += 14
	l.Rules = append(l.Rules, l.y)
	l.y += 2
}

// findings are the others that are worth a line.
func (l *layouter) findings() {
	if len(l.d.findings) == 0 {
		return
	}
	l.y += 26
	l.text(margin, l.y, "Also", 12.5, Plain, bold, Left)
	for _, f := range l.d.findings {
		l.y += lineHeight
		tone := Plain
		if f.warning {
			tone = Warn
		}
		ps := []phrase{{f.text, tone, sans}}
		if f.hint != "" {
			ps = append(ps, phrase{f.hint, Muted, sans})
		}
		l.flow(ps, margin, l.Width-margin, textSize, 2)
	}
}

// notes are the footer.
func (l *layouter) notes() {
	l.rule()
	for _, n := range l.d.notes {
		for _, line := range wrap(n, l.Width-2*margin, smallSize, sans, 2) {
			l.y += 14
			l.text(margin, l.y, line, smallSize, Muted, sans, Left)
		}
	}
}
