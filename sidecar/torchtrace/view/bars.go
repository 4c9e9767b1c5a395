package view

import "math"

// bar is one row of a bar chart: a name at the left, parts, a figure at the right.
type bar struct {
	name, figure string
	parts        []part
}

type part struct {
	value float64
	paint paint
	about string
}

// maxBars bounds a chart's rows; what is left out is told.
const maxBars = 128

// rowsOf is how tall the rows of a chart are, the space between them, and which
// of them have room for text: every first, second, …
func rowsOf(n int) (row, gap float64, every int) {
	if n > 24 {
		return 8, 2, 2
	}
	return 24, 6, 1
}

// room is how much of the width goes to the names.
type room float64

const (
	shortNames room = plotLeft
	longNames  room = 400
)

// bars draws rows of stacked parts on one scale; full is the value of the whole
// width, 0 for the largest row.
func bars(theme Theme, names room, name, title, aside string, legend []legend, list []bar, full float64) Chart {
	left := float64(names)
	hidden := max(0, len(list)-maxBars)
	list = list[:len(list)-hidden]
	row, gap, every := rowsOf(len(list))
	height := 30 + 8 + row*float64(len(list))
	if len(legend) > 0 {
		height += 22
	}
	if hidden > 0 {
		height += 20
	}
	if full <= 0 {
		for _, b := range list {
			sum := 0.0
			for _, p := range b.parts {
				sum += p.value
			}
			full = max(full, sum)
		}
	}
	c := newCanvas(theme, left, height, title, aside, legend)
	for i, b := range list {
		if i%every == 0 {
			c.Text(left-10, c.y+row/2+4, cut(b.name, int((left-14)/charWidth)), `class="opt opr"`)
			c.Text(plotRight+10, c.y+row/2+4, b.figure, `class="opt"`)
		}
		c.Rect(left, c.y+gap/2, plotRight-left, row-gap, class(paintTrack))
		x := left
		for _, p := range b.parts {
			if !(p.value > 0) || full <= 0 {
				continue
			}
			w := min(p.value/full*(plotRight-left), plotRight-x)
			c.box(x, c.y+gap/2, w, row-gap, p.paint, p.about)
			x += w
		}
		c.y += row
	}
	if hidden > 0 {
		c.Text(left, c.y+14, "and "+plural(hidden, "more row")+" in the table", `class="opd"`)
	}
	return c.chart(name, title)
}

// columnBin is one bin of a histogram.
type columnBin struct {
	label string
	parts []part
}

// histogram draws bins side by side.
func histogram(theme Theme, name, title, aside string, legend []legend, bins []columnBin, unit func(float64) string) Chart {
	const plot = 150.0
	height := 30 + 22 + plot + 30
	c := newCanvas(theme, plotLeft, height, title, aside, legend)
	if len(legend) == 0 {
		c.y += 22
	}
	most := 0.0
	for _, b := range bins {
		sum := 0.0
		for _, p := range b.parts {
			sum += max(0, p.value)
		}
		most = max(most, sum)
	}
	bottom := c.y + plot
	c.Line(plotLeft, bottom, plotRight, bottom, `class="opl"`)
	if most > 0 {
		c.Line(plotLeft, c.y, plotRight, c.y, `class="opl"`)
		c.Text(plotLeft-10, c.y+4, unit(most), `class="opd opr"`)
	}
	step := (plotRight - plotLeft) / float64(max(1, len(bins)))
	every := int(math.Ceil(62 / step)) // labels must not touch
	for i, b := range bins {
		x, y := plotLeft+step*float64(i), bottom
		for _, p := range b.parts {
			if !(p.value > 0) || most <= 0 {
				continue
			}
			h := p.value / most * plot
			y -= h
			c.box(x+1, y, step-2, h, p.paint, p.about)
		}
		if i%every == 0 {
			c.Text(x, bottom+16, b.label, `class="opd"`)
		}
	}
	return c.chart(name, title)
}
