package chart

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// tableColumns are the widths all tables share, so that they line up.
type tableColumns struct{ name, seconds, bar, barAside, place, code, hint float64 }

func (l *layouter) tableColumns() tableColumns {
	var c tableColumns
	var hint, code float64
	all := l.Width - 2*scene.Margin
	c.bar = 0.12 * all
	for _, t := range l.d.tables {
		largest := largestShare(t)
		for _, r := range t.rows {
			c.barAside = max(c.barAside, barLength(r, largest, c.bar)+6+scene.WidthOf(r.aside, scene.LabelSize, scene.Sans))
			c.name = max(c.name, scene.WidthOf(r.name, scene.TextSize, scene.Sans))
			c.seconds = max(c.seconds, scene.WidthOf(r.time(), scene.TextSize, scene.Sans))
			c.place = max(c.place, scene.WidthOf(r.place, scene.TextSize, scene.Sans))
			code = max(code, scene.WidthOf(r.code, scene.TextSize, scene.Mono))
			hint = max(hint, scene.WidthOf(r.remark(), scene.TextSize, scene.Sans))
		}
	}
	c.name = min(c.name, 0.22*all)
	c.place = min(c.place, 0.14*all)
	left := all - c.name - c.seconds - c.barAside - c.place - 5*scene.ColumnGap
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
	l.Rule()
	c := l.tableColumns()
	for i, t := range l.d.tables {
		if i > 0 {
			l.Y += 8
		}
		l.Y += 18
		w := scene.WidthOf(t.heading, scene.HeadingSize, scene.Bold)
		l.Text(scene.Margin, l.Y, t.heading, scene.HeadingSize, scene.Plain, scene.Bold, scene.Left)
		l.Text(scene.Margin+w+12, l.Y, scene.Fit(labels.Join(t.note, t.barNote), l.Width-2*scene.Margin-w-12, scene.LabelSize, scene.Sans), scene.LabelSize, scene.Muted, scene.Sans, scene.Left)
		largest := largestShare(t)
		of := c
		if !slices.ContainsFunc(t.rows, func(r row) bool { return r.code != "" }) {
			of.code = -scene.ColumnGap // remarks are there
		}
		for _, r := range t.rows[:min(len(t.rows), l.dt.tableRows)] {
			l.row(of, r, largest)
		}
	}
}

func (l *layouter) row(c tableColumns, r row, largest float64) {
	l.Y += scene.LineHeight
	tone := scene.Plain
	if r.rest {
		tone = scene.Muted
	}
	x := scene.Margin
	names := l.column(x, c.name, r.name, tone, 2)
	x += c.name + scene.ColumnGap + c.seconds
	l.Text(x, l.Y, r.time(), scene.TextSize, tone, scene.Sans, scene.Right)
	x += scene.ColumnGap
	end := x + barLength(r, largest, c.bar)
	if end > x {
		l.Bars = append(l.Bars, stateBars(scene.Box{X0: x, Y0: l.Y - 9.5, X1: end, Y1: l.Y + 1.5}, r.states)...)
	}
	l.Text(end+6, l.Y, r.aside, scene.LabelSize, scene.Muted, scene.Sans, scene.Left)
	x += c.barAside + scene.ColumnGap + c.place
	l.Text(x, l.Y, scene.Fit(r.place, c.place, scene.TextSize, scene.Sans), scene.TextSize, scene.Muted, scene.Sans, scene.Right)
	x += scene.ColumnGap
	room, remark := c.code, r.remark()
	if remark == "" || c.hint == 0 {
		room = l.Width - scene.Margin - x
	}
	l.Text(x, l.Y, scene.Fit(r.code, room, scene.TextSize, scene.Mono), scene.TextSize, scene.Plain, scene.Mono, scene.Left)
	if c.hint == 0 && remark != "" {
		l.Y += max(names, 1) * rowPitch
		names = 0
	} else {
		x += c.code + scene.ColumnGap
	}
	hints := l.column(x, l.Width-scene.Margin-x, remark, scene.Muted, scene.MaxLines)
	l.Y += max(names, hints, 1)*rowPitch - rowPitch
}

const rowPitch = 14.0 // of lines within a row

// column sets text in at most so many lines and returns their number.
func (l *layouter) column(x, room float64, s string, tone scene.Tone, most int) float64 {
	lines := scene.Wrap(s, room, scene.TextSize, scene.Sans, most)
	for i, line := range lines {
		l.Text(x, l.Y+float64(i)*rowPitch, line, scene.TextSize, tone, scene.Sans, scene.Left)
	}
	return float64(len(lines))
}

// findings are the others that are worth a line.
func (l *layouter) findings() {
	if len(l.d.findings) == 0 {
		return
	}
	l.Y += 26
	l.Text(scene.Margin, l.Y, "Also", scene.HeadingSize, scene.Plain, scene.Bold, scene.Left)
	for _, f := range l.d.findings {
		l.Y += scene.LineHeight
		tone := scene.Plain
		if f.warning {
			tone = scene.Warn
		}
		ps := []scene.Phrase{{Text: f.text, Tone: tone, Face: scene.Sans}}
		if f.hint != "" {
			ps = append(ps, scene.Phrase{Text: f.hint, Tone: scene.Muted, Face: scene.Sans})
		}
		l.Flow(ps, scene.Margin, l.Width-scene.Margin, scene.TextSize, scene.MaxLines)
	}
}

// stateBars divides a bar by what the time was spent with, in the order of states; one
// of which nothing is known stays whole.
func stateBars(b scene.Box, t report.StateTimes) []scene.Bar {
	all := float64(t.Sum())
	if !(all > 0) {
		return []scene.Bar{{Box: b, Paint: scene.PaintBar}}
	}
	var bars []scene.Bar
	x := b.X0
	for s, ns := range t {
		end := x + float64(ns)/all*(b.X1-b.X0)
		switch n := len(bars) - 1; {
		case n >= 0 && bars[n].Paint == labels.StatePaints[s]:
			bars[n].X1 = end
		case end > x:
			bars = append(bars, scene.Bar{Box: scene.Box{X0: x, Y0: b.Y0, X1: end, Y1: b.Y1}, Paint: labels.StatePaints[s]})
		}
		x = end
	}
	return bars
}
