package view

import (
	"bytes"
	"fmt"
	"github.com/omni-perf/omni-perf/sidecar/words"
	"strings"

	svg "github.com/ajstarks/svgo/float"
)

// Theme says on which background a chart is looked at; empty follows the viewer.
type Theme string

// The themes.
const (
	Auto  Theme = ""
	Light Theme = "light"
	Dark  Theme = "dark"
)

// Chart is one picture.
type Chart struct {
	Name  string // file name without extension
	Title string
	SVG   []byte // a document of its own
}

// inline is the SVG without XML declaration, to stand inside HTML.
func (c Chart) inline() string {
	if i := bytes.Index(c.SVG, []byte("<svg")); i >= 0 {
		return string(c.SVG[i:])
	}
	return ""
}

// paint is what a colour stands for: the same in all charts.
type paint string

const (
	paintCompute  paint = "compute"
	paintOverhead paint = "overhead" // copies and communication
	paintIdle     paint = "idle"
	paintHost     paint = "host"
	paintQueue    paint = "queue"
	paintOther    paint = "other"
	paintMemory   paint = "memory"
	paintLate     paint = "late"
	paintTrack    paint = "track"
)

// Colours differ in lightness too, for those who see no hues.
var colours = []struct {
	paint       paint
	light, dark string
}{
	{paintCompute, "#3a9d6a", "#3ba673"},
	{paintOverhead, "#5b8ad6", "#4f83d1"},
	{paintIdle, "#fbe3bd", "#4d3a1c"},
	{paintHost, "#f2a93b", "#d3902a"},
	{paintQueue, "#a9d4c3", "#2c5e4b"},
	{paintOther, "#b9bcc6", "#6b6e78"},
	{paintMemory, "#9a7fd6", "#8f76c9"},
	{paintLate, "#e2745c", "#c75c45"},
	{paintTrack, "#f1f1f4", "#232327"},
}

func style(theme Theme) string {
	sheet := func(dark bool) string {
		var b strings.Builder
		text, dim, line, ground := "#1c1c1e", "#6e6e73", "#e2e2e7", "#ffffff"
		if dark {
			text, dim, line, ground = "#f2f2f5", "#9a9aa2", "#35353b", "#111113"
		}
		fmt.Fprintf(&b, ".opg{fill:%s}.opt{fill:%s}.opd{fill:%s}.opl{stroke:%s;fill:none}", ground, text, dim, line)
		for _, c := range colours {
			colour := c.light
			if dark {
				colour = c.dark
			}
			fmt.Fprintf(&b, ".op-%s{fill:%s}.ops-%s{stroke:%s;fill:none;stroke-width:1.5}", c.paint, colour, c.paint, colour)
		}
		return b.String()
	}
	const font = ".opt,.opd{font:12px system-ui,'Segoe UI','DejaVu Sans',sans-serif}.oph{font-size:14px;font-weight:600}.opr{text-anchor:end}.opm{text-anchor:middle}"
	switch theme {
	case Light:
		return font + sheet(false)
	case Dark:
		return font + sheet(true)
	}
	return font + sheet(false) + "@media (prefers-color-scheme:dark){" + sheet(true) + "}"
}

// canvas draws; all charts have its width and margins.
type canvas struct {
	*svg.SVG
	out bytes.Buffer
	y   float64 // where the next element goes
}

const (
	chartWidth = 920.0 // inside the margin
	margin     = 10.0
	plotLeft   = 190.0
	plotRight  = 800.0
	charWidth  = 7.4 // of 12 px text in the widest common font
)

// newCanvas begins a chart of a given height with its heading and, from left
// on, its legend.
func newCanvas(theme Theme, left, height float64, title, aside string, legend []legend) *canvas {
	c := &canvas{}
	c.SVG = svg.New(&c.out)
	c.Decimals = 1
	width, tall := chartWidth+2*margin, height+2*margin
	c.Start(width, tall, fmt.Sprintf(`viewBox="%.0f %.0f %.0f %.0f" role="img"`, -margin, -margin, width, tall))
	c.Title(plain(title))
	fmt.Fprintf(&c.out, "<style>%s</style>\n", style(theme))
	// A ground of its own: where the page is light and the viewer prefers dark,
	// the text must not vanish.
	c.Rect(-margin, -margin, width, tall, `class="opg"`)
	c.Text(0, 16, plain(title), `class="opt oph"`)
	if aside != "" {
		c.Text(charWidth*1.25*float64(words.Columns(title))+12, 16, cut(aside, 80), `class="opd"`)
	}
	c.y = 30
	if len(legend) > 0 {
		x := left
		for _, l := range legend {
			c.Roundrect(x, c.y+1, 10, 10, 2, 2, class(l.paint))
			c.Text(x+15, c.y+10, l.text, `class="opd"`)
			x += 15 + charWidth*float64(words.Columns(l.text)) + 18
		}
		c.y += 22
	}
	return c
}

// legend explains a colour.
type legend struct {
	paint paint
	text  string
}

func class(p paint) string { return `class="op-` + string(p) + `"` }

// box is a rectangle that tells about itself when pointed at.
func (c *canvas) box(x, y, w, h float64, p paint, about string) {
	if !(w > 0) || !(h > 0) {
		return
	}
	c.Group(class(p))
	c.Title(plain(about))
	c.Rect(x, y, w, h)
	c.Gend()
}

func (c *canvas) chart(name, title string) Chart {
	c.End()
	return Chart{name, title, c.out.Bytes()}
}
