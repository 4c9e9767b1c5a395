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
		largest := largestShare(t)
		for _, r := range t.rows {
			c.barAside = max(c.barAside, barLength(r, largest, c.bar)+6+widthOf(r.aside, labelSize, sans))
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
	if c.hint < min(hint, leastHint) { // no room beside the code: the hints go below
		c.code, c.hint = min(code, left), 0
	}
	return c
}

// leastHint is the least room in which a hint is written beside its row: less breaks it into
// lines of a word or two.
const leastHint = 180.0

const columnGap = 12.0

// largestShare is what a full bar of a table means: all there is, or more where a share is
// of one core and there were several.
func largestShare(t table) float64 {
	largest := 1.0
	for _, r := range t.rows {
		largest = max(largest, r.share)
	}
	return largest
}

// barLength is the bar of a row in a table whose full bar has most pixels; what is more
// than nothing is seen.
func barLength(r row, largest, most float64) float64 {
	if r.share <= 0 {
		return 0
	}
	return max(r.share/largest*most, 1.5)
}

// tables are below the chart.
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
		largest := largestShare(t)
		of := c
		if !slices.ContainsFunc(t.rows, func(r row) bool { return r.code != "" }) {
			of.code = -columnGap // remarks are there
		}
		for _, r := range t.rows[:min(len(t.rows), l.dt.tableRows)] {
			l.row(of, r, largest)
		}
	}
}

func (l *layouter) row(c tableColumns, r row, largest float64) {
	l.y += lineHeight
	tone := Plain
	if r.rest {
		tone = Muted
	}
	x := margin
	names := l.column(x, c.name, r.name, tone, 2)
	x += c.name + columnGap + c.seconds
	l.text(x, l.y, r.time(), textSize, tone, sans, Right)
	x += columnGap
	end := x + barLength(r, largest, c.bar)
	if end > x {
		l.Bars = append(l.Bars, stateBars(Box{x, l.y - 9.5, end, l.y + 1.5}, r.states)...)
	}
	l.text(end+6, l.y, r.aside, labelSize, Muted, sans, Left)
	x += c.barAside + columnGap + c.place
	l.text(x, l.y, fit(r.place, c.place, textSize, sans), textSize, Muted, sans, Right)
	x += columnGap
	room, remark := c.code, r.remark()
	if remark == "" || c.hint == 0 {
		room = l.Width - margin - x
	}
	l.text(x, l.y, fit(r.code, room, textSize, mono), textSize, Plain, mono, Left)
	if c.hint == 0 && remark != "" {
		l.y += max(names, 1) * rowPitch
		names = 0
	} else {
		x += c.code + columnGap
	}
	hints := l.column(x, l.Width-margin-x, remark, Muted, hintLines)
	l.y += max(names, hints, 1)*rowPitch - rowPitch
}

const rowPitch = 14.0 // of lines within a row

// hintLines are more than the longest hint needs where it has leastHint of room: what
// someone is to do is not cut.
const hintLines = 12

// column sets text in at most so many lines and returns their number.
func (l *layouter) column(x, room float64, s string, tone Tone, most int) float64 {
	lines := wrap(s, room, textSize, sans, most)
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
		l.flow(ps, margin, l.Width-margin, textSize, hintLines)
	}
}

// notes are the footer.
func (l *layouter) notes() {
	l.rule()
	for _, n := range l.d.notes {
		for _, line := range wrap(n, l.Width-2*margin, smallSize, sans, hintLines) {
			l.y += 14
			l.text(margin, l.y, line, smallSize, Muted, sans, Left)
		}
	}
}
