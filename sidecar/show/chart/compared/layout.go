package compared

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// sheet is the picture of a comparison as it is laid out.
type sheet struct{ scene.Sheet }

// lay lays out the picture of a comparison. Boxes narrower
// than least pixels are left out.
func lay(c *digest, width, least float64) *scene.Scene {
	l := &sheet{scene.NewSheet(width, c.summary)}
	l.Plot.X0, l.Plot.X1 = scene.Margin, width-scene.Margin
	l.Head(c.title, c.finding, "")
	l.changeGraph(c.graph, least)
	if len(c.tables) > 0 {
		l.Rule()
		columns := l.changeColumns(c.tables)
		l.changeHeads(columns)
		for i, t := range c.tables {
			if i > 0 {
				l.Y += 8
			}
			l.changeTable(columns, t)
		}
	}
	l.Notes(c.notes)
	l.Height = math.Ceil(l.Y + 6)
	return l.Scene
}

func (l *sheet) changeGraph(g *changeGraph, least float64) {
	if g == nil {
		return
	}
	l.Y += 8
	l.Text(scene.Margin, l.Y, "Flame graph, after", scene.HeadingSize, scene.Plain, scene.Bold, scene.Left)
	x := scene.Margin + scene.WidthOf("Flame graph, after", scene.HeadingSize, scene.Bold) + 14
	for _, e := range []struct {
		paint scene.Paint
		means string
	}{{scene.PaintGPU, "less than before"}, {scene.PaintData, "more"}, {scene.PaintOther, "no difference beyond noise"}} {
		bar := scene.Bar{Box: scene.Box{X0: x, Y0: l.Y - 8, X1: x + 9, Y1: l.Y + 1}, Paint: e.paint}
		l.Legend = append(l.Legend, scene.Entry{Bar: bar, Means: e.means})
		l.Text(x+13, l.Y, e.means, scene.LabelSize, scene.Muted, scene.Sans, scene.Left)
		x += 13 + scene.WidthOf(e.means, scene.LabelSize, scene.Sans) + 12
	}
	l.Y += 9
	rows := g.rows(scene.Margin, l.Width-scene.Margin, l.Y, least)
	lane := scene.Lane{ID: "flame", Kind: scene.FlameLane, Index: -1, Box: scene.Box{X0: scene.Margin, Y0: l.Y, X1: l.Width - scene.Margin, Y1: l.Y + float64(len(rows))*scene.RowHeight}, Rows: rows}
	l.Lanes = append(l.Lanes, lane)
	l.Y = lane.Y1 + scene.Gap
}

// changeColumns are the widths that all tables share.
type changeColumns struct{ name, before, after, bar, words, aside float64 }

func (l *sheet) changeColumns(tables []changeTable) changeColumns {
	var c changeColumns
	all := l.Width - 2*scene.Margin
	c.bar = 0.14 * all
	for _, t := range tables {
		for _, r := range t.rows {
			c.name = max(c.name, scene.WidthOf(r.name, scene.TextSize, scene.Sans))
			c.before = max(c.before, scene.WidthOf(changeTime(r.change.Before), scene.TextSize, scene.Sans), scene.WidthOf("before", scene.LabelSize, scene.Sans))
			c.after = max(c.after, scene.WidthOf(changeTime(r.change.After), scene.TextSize, scene.Sans), scene.WidthOf("after", scene.LabelSize, scene.Sans))
			c.words = max(c.words, scene.WidthOf(r.change.Words(), scene.TextSize, scene.Sans))
			c.aside = max(c.aside, scene.WidthOf(r.aside, scene.TextSize, scene.Sans))
		}
	}
	c.name = min(c.name, 0.26*all)
	c.aside = min(c.aside, 0.16*all)
	left := all - c.name - c.before - c.after - c.bar - 4*scene.ColumnGap
	c.words = min(c.words, left)
	if left -= c.words + scene.ColumnGap; left < c.aside { // narrow: what was changed and the code have no room
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
func (l *sheet) changeHeads(c changeColumns) {
	l.Y += 16
	before := scene.Margin + c.name + scene.ColumnGap + c.before
	after := before + scene.ColumnGap + c.after
	l.Text(before, l.Y, "before", scene.LabelSize, scene.Muted, scene.Sans, scene.Right)
	l.Text(after, l.Y, "after", scene.LabelSize, scene.Muted, scene.Sans, scene.Right)
	l.Text(after+scene.ColumnGap+c.bar/2, l.Y, "less | more", scene.LabelSize, scene.Muted, scene.Sans, scene.Middle)
	l.Text(after+scene.ColumnGap+c.bar+scene.ColumnGap, l.Y, "change", scene.LabelSize, scene.Muted, scene.Sans, scene.Left)
	l.Y -= 4
}

func (l *sheet) changeTable(c changeColumns, t changeTable) {
	l.Y += 18
	w := scene.WidthOf(t.heading, scene.HeadingSize, scene.Bold)
	l.Text(scene.Margin, l.Y, t.heading, scene.HeadingSize, scene.Plain, scene.Bold, scene.Left)
	l.Text(scene.Margin+w+12, l.Y, scene.Fit(labels.Join(t.note, t.rest), l.Width-2*scene.Margin-w-12, scene.LabelSize, scene.Sans), scene.LabelSize, scene.Muted, scene.Sans, scene.Left)
	most := 0.0
	for _, r := range t.rows {
		most = max(most, abs(r.change.Low), abs(r.change.High), abs(r.change.After-r.change.Before))
	}
	for _, r := range t.rows {
		l.changeRow(c, r, most)
	}
}

func (l *sheet) changeRow(c changeColumns, r changeRow, most float64) {
	l.Y += scene.LineHeight
	tone, words := scene.Plain, toneOf(r.change.Verdict)
	if r.change.Verdict == significance.WithinNoise {
		tone, words = scene.Muted, scene.Muted
	}
	x := scene.Margin
	l.Text(x, l.Y, scene.Fit(r.name, c.name, scene.TextSize, scene.Sans), scene.TextSize, tone, scene.Sans, scene.Left)
	x += c.name + scene.ColumnGap + c.before
	l.Text(x, l.Y, changeTime(r.change.Before), scene.TextSize, tone, scene.Sans, scene.Right)
	x += scene.ColumnGap + c.after
	l.Text(x, l.Y, changeTime(r.change.After), scene.TextSize, tone, scene.Sans, scene.Right)
	x += scene.ColumnGap
	l.changeBar(x, c.bar, r, most)
	x += c.bar + scene.ColumnGap
	l.Text(x, l.Y, scene.Fit(r.change.Words(), c.words, scene.TextSize, scene.Sans), scene.TextSize, words, scene.Sans, scene.Left)
	x += c.words + scene.ColumnGap
	if c.aside > 0 {
		l.Text(x, l.Y, scene.Fit(r.aside, c.aside, scene.TextSize, scene.Sans), scene.TextSize, scene.Muted, scene.Sans, scene.Left)
		x += c.aside + scene.ColumnGap
	}
	l.Text(x, l.Y, scene.Fit(r.code, l.Width-scene.Margin-x, scene.TextSize, scene.Mono), scene.TextSize, tone, scene.Mono, scene.Left)
}

// changeBar draws a change: 0 is in the middle, the bar is the change, the line its
// interval.
func (l *sheet) changeBar(x, width float64, r changeRow, most float64) {
	middle, half := x+width/2, width/2
	l.Bars = append(l.Bars, scene.Bar{Box: scene.Box{X0: middle - 0.5, Y0: l.Y - 11, X1: middle + 0.5, Y1: l.Y + 3}, Paint: scene.PaintRule})
	if most <= 0 {
		return
	}
	by := r.change.After - r.change.Before
	paint := scene.PaintData
	if by < 0 {
		paint = scene.PaintGPU
	}
	if r.change.Verdict == significance.WithinNoise {
		paint = scene.PaintRule
	}
	from, to := middle+min(by, 0)/most*half, middle+max(by, 0)/most*half
	if to-from >= 0.5 {
		l.Bars = append(l.Bars, scene.Bar{Box: scene.Box{X0: from, Y0: l.Y - 9.5, X1: to, Y1: l.Y + 1.5}, Paint: paint})
	}
	l.Bars = append(l.Bars, scene.Bar{Box: scene.Box{X0: middle + r.change.Low/most*half, Y0: l.Y - 4.5, X1: middle + r.change.High/most*half, Y1: l.Y - 3.5}, Paint: scene.Paint(scene.Plain)})
}
