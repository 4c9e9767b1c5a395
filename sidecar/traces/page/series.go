package page

import (
	"fmt"
	"math"
	"strings"
)

// line is a step curve: y[i] holds from x[i] to x[i+1]. Filled lines of one
// chart are stacked by the caller (y counts from the axis).
type line struct {
	name   string
	paint  paint
	filled bool
	x, y   []float64
}

// points is the resolution of a curve: one value per pixel, its highest.
const points = int(curveRight - plotLeft)

// curveRight is where the time axis ends.
const curveRight = chartWidth

// curves draws lines over one time axis in microseconds.
func curves(theme Theme, name, title, aside string, list []line, unit func(float64) string) Chart {
	const plot = 120.0
	var legends []legend
	for _, l := range list {
		legends = append(legends, legend{l.paint, l.name})
	}
	c := newCanvas(theme, 10+plot+24, title, aside, legends)
	c.y += 10
	first, last, most := math.Inf(1), math.Inf(-1), 0.0
	for _, l := range list {
		for i := range l.x {
			first, last, most = min(first, l.x[i]), max(last, l.x[i]), max(most, l.y[i])
		}
	}
	bottom := c.y + plot
	c.Line(plotLeft, bottom, curveRight, bottom, `class="opl"`)
	if !(last > first) || most <= 0 {
		return c.chart(name, title)
	}
	c.Line(plotLeft, c.y, curveRight, c.y, `class="opl"`)
	c.Text(plotLeft-10, c.y+4, unit(most), `class="opd opr"`)
	c.Text(plotLeft-10, bottom+4, "0", `class="opd opr"`)
	c.Text(plotLeft, bottom+16, "0", `class="opd"`)
	c.Text(curveRight, bottom+16, length(last-first), `class="opd opr"`)
	for _, l := range list {
		path := curvePath(l, first, last, func(v float64) float64 { return bottom - v/most*plot }, bottom)
		attr := fmt.Sprintf(`class="ops-%s"`, l.paint)
		if l.filled {
			attr = class(l.paint)
		}
		c.Path(path, attr)
	}
	return c.chart(name, title)
}

// curvePath reduces a line to one value per pixel and writes it as steps.
func curvePath(l line, first, last float64, y func(float64) float64, bottom float64) string {
	high := make([]float64, points)
	for i := range high {
		high[i] = math.NaN()
	}
	for i := range l.x {
		at := min(points-1, int((l.x[i]-first)/(last-first)*float64(points)))
		if !(l.y[i] <= high[at]) {
			high[at] = l.y[i]
		}
	}
	// A pixel without a point of its own holds the last value before it.
	value, next := 0.0, 0
	var b strings.Builder
	fmt.Fprintf(&b, "M%.1f %.1f", plotLeft, bottom)
	previous := math.NaN()
	for px := range high {
		for ; next < len(l.x) && (l.x[next]-first)/(last-first)*float64(points) < float64(px+1); next++ {
			value = l.y[next]
		}
		shown := value
		if !math.IsNaN(high[px]) {
			shown = high[px]
		}
		if shown != previous {
			fmt.Fprintf(&b, "H%.1fV%.1f", plotLeft+float64(px), y(shown))
			previous = shown
		}
	}
	fmt.Fprintf(&b, "H%.1f", curveRight)
	if l.filled {
		fmt.Fprintf(&b, "V%.1fZ", bottom)
	}
	return b.String()
}
