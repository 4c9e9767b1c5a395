package chart

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// layCompared lays out the picture of a comparison. Boxes narrower
// than least pixels are left out.
func layCompared(c *comparedDigest, width, least float64) *Scene {
	l := &layouter{
		Scene: &Scene{Width: width, Summary: c.summary}, dt: fullDetail, y: 8, paints: make(map[Paint]bool),
		d: &digest{title: c.title, finding: c.finding, notes: c.notes, summary: c.summary, duration: 1},
	}
	l.Plot.X0, l.Plot.X1 = margin, width-margin
	l.head()
	l.changeGraph(c.graph, least)
	if len(c.tables) > 0 {
		l.rule()
		columns := l.changeColumns(c.tables)
		l.changeHeads(columns)
		for i, t := range c.tables {
			if i > 0 {
				l.y += 8
			}
			l.changeTable(columns, t)
		}
	}
	l.notes()
	l.Height = math.Ceil(l.y + 6)
	return l.Scene
}

func (l *layouter) changeGraph(g *changeGraph, least float64) {
	if g == nil {
		return
	}
	l.y += 8
	l.text(margin, l.y, "Flame graph, after", 12.5, Plain, bold, Left)
	x := margin + widthOf("Flame graph, after", 12.5, bold) + 14
	for _, e := range []struct {
		paint Paint
		means string
	}{{PaintGPU, "less than before"}, {PaintData, "more"}, {PaintOther, "no difference beyond noise"}} {
		bar := Bar{Box{x, l.y - 8, x + 9, l.y + 1}, e.paint}
		l.Legend = append(l.Legend, Entry{bar, e.means})
		l.text(x+13, l.y, e.means, labelSize, Muted, sans, Left)
		x += 13 + widthOf(e.means, labelSize, sans) + 12
	}
	l.y += 9
	rows := g.rows(margin, l.Width-margin, l.y, least)
	lane := Lane{ID: "flame", Kind: FlameLane, Index: -1, Box: Box{margin, l.y, l.Width - margin, l.y + float64(len(rows))*rowHeight}, Rows: rows}
	l.Lanes = append(l.Lanes, lane)
	l.y = lane.Y1 + gap
}

// changeColumns are the widths that all tables share.
type changeColumns struct{ name, before, after, bar, words, aside float64 }

func (l *layouter) changeColumns(tables []changeTable) changeColumns {
	var c changeColumns
	all := l.Width - 2*margin
	c.bar = 0.14 * all
	for _, t := range tables {
		for _, r := range t.rows {
			c.name = max(c.name, widthOf(r.name, textSize, sans))
			c.before = max(c.before, widthOf(changeTime(r.change.Before), textSize, sans), widthOf("before", labelSize, sans))
			c.after = max(c.after, widthOf(changeTime(r.change.After), textSize, sans), widthOf("after", labelSize, sans))
			c.words = max(c.words, widthOf(r.change.Words(), textSize, sans))
			c.aside = max(c.aside, widthOf(r.aside, textSize, sans))
		}
	}
	c.name = min(c.name, 0.26*all)
	c.aside = min(c.aside, 0.16*all)
	left := all - c.name - c.before - c.after - c.bar - 4*columnGap
	c.words = min(c.words, left)
	if left -= c.words + columnGap; left < c.aside { // narrow: what was changed and the code have no room
		c.aside = max(left, 0)
	}
	return c
}

// changeTime is a time of one side; nothing for none.
func changeTime(s float64) string {
	if s == 0 {
		return "–"
	}
	return words.Seconds(s)
}

// changeHeads are the columns' names, above all tables.
func (l *layouter) changeHeads(c changeColumns) {
	l.y += 16
	before := margin + c.name + columnGap + c.before
	after := before + columnGap + c.after
	l.text(before, l.y, "before", labelSize, Muted, sans, Right)
	l.text(after, l.y, "after", labelSize, Muted, sans, Right)
	l.text(after+columnGap+c.bar/2, l.y, "less | more", labelSize, Muted, sans, Middle)
	l.text(after+columnGap+c.bar+columnGap, l.y, "change", labelSize, Muted, sans, Left)
	l.y -= 4
}

func (l *layouter) changeTable(c changeColumns, t changeTable) {
	l.y += 18
	w := widthOf(t.heading, 12.5, bold)
	l.text(margin, l.y, t.heading, 12.5, Plain, bold, Left)
	l.text(margin+w+12, l.y, fit(joinNote(t.note, t.rest), l.Width-2*margin-w-12, labelSize, sans), labelSize, Muted, sans, Left)
	most := 0.0
	for _, r := range t.rows {
		most = max(most, abs(r.change.Low), abs(r.change.High), abs(r.change.After-r.change.Before))
	}
	for _, r := range t.rows {
		l.changeRow(c, r, most)
	}
}

func (l *layouter) changeRow(c changeColumns, r changeRow, most float64) {
	l.y += lineHeight
	tone, words := Plain, toneOf(r.change.Verdict)
	if r.change.Verdict == significance.WithinNoise {
		tone, words = Muted, Muted
	}
	x := margin
	l.text(x, l.y, fit(r.name, c.name, textSize, sans), textSize, tone, sans, Left)
	x += c.name + columnGap + c.before
	l.text(x, l.y, changeTime(r.change.Before), textSize, tone, sans, Right)
	x += columnGap + c.after
	l.text(x, l.y, changeTime(r.change.After), textSize, tone, sans, Right)
	x += columnGap
	l.changeBar(x, c.bar, r, most)
	x += c.bar + columnGap
	l.text(x, l.y, fit(r.change.Words(), c.words, textSize, sans), textSize, words, sans, Left)
	x += c.words + columnGap
	if c.aside > 0 {
		l.text(x, l.y, fit(r.aside, c.aside, textSize, sans), textSize, Muted, sans, Left)
		x += c.aside + columnGap
	}
	l.text(x, l.y, fit(r.code, l.Width-margin-x, textSize, mono), textSize, tone, mono, Left)
}

// changeBar draws a change: 0 is in the middle, the bar is the change, the line its
// interval.
func (l *layouter) changeBar(x, width float64, r changeRow, most float64) {
	middle, half := x+width/2, width/2
	l.Bars = append(l.Bars, Bar{Box{middle - 0.5, l.y - 11, middle + 0.5, l.y + 3}, Paint(rule)})
	if most <= 0 {
		return
	}
	by := r.change.After - r.change.Before
	paint := PaintData
	if by < 0 {
		paint = PaintGPU
	}
	if r.change.Verdict == significance.WithinNoise {
		paint = Paint(rule)
	}
	from, to := middle+min(by, 0)/most*half, middle+max(by, 0)/most*half
	if to-from >= 0.5 {
		l.Bars = append(l.Bars, Bar{Box{from, l.y - 9.5, to, l.y + 1.5}, paint})
	}
	l.Bars = append(l.Bars, Bar{Box{middle + r.change.Low/most*half, l.y - 4.5, middle + r.change.High/most*half, l.y - 3.5}, Paint(Plain)})
}
