package page

import (
	"bytes"
	"fmt"
	"strings"

	svg "github.com/ajstarks/svgo/float"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
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
	const font = ".opt,.opd{font:12px system-ui,'Segoe UI','DejaVu Sans',sans-serif}.oph{font-size:13.5px;font-weight:600}.opr{text-anchor:end}.opm{text-anchor:middle}"
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

// Charts are small: a page sets them side by side.
const (
	chartWidth = 440.0 // inside the margin
	margin     = 10.0
	plotLeft   = 88.0 // right of names and of an axis' figures
	plotRight  = 352.0
	textSize   = 12.0
	charWidth  = 7.4 // of 12 px text in the widest common font
	lineHeight = 18.0
)

// newCanvas begins a chart with its heading and legend; height is what comes below.
func newCanvas(theme Theme, height float64, title, aside string, legend []legend) *canvas {
	c := &canvas{}
	c.SVG = svg.New(&c.out)
	c.Decimals = 1
	asides := wrapped(aside)
	places, legendHeight := placed(legend)
	head := 26 + lineHeight*float64(len(asides)) + legendHeight
	width, tall := chartWidth+2*margin, head+height+2*margin
	c.Start(width, tall, fmt.Sprintf(`viewBox="%.0f %.0f %.0f %.0f" role="img"`, -margin, -margin, width, tall))
	c.Title(plain(title))
	fmt.Fprintf(&c.out, "<style>%s</style>\n", style(theme))
	// A ground of its own: where the page is light and the viewer prefers dark,
	// the text must not vanish.
	c.Rect(-margin, -margin, width, tall, `class="opg"`)
	c.Text(0, 15, cut(title, titleColumns), `class="opt oph"`)
	c.y = 26
	for _, line := range asides {
		c.Text(0, c.y+8, line, `class="opd"`)
		c.y += lineHeight
	}
	for i, l := range legend {
		c.Roundrect(places[i].x, c.y+places[i].y+1, 10, 10, 2, 2, class(l.paint))
		c.Text(places[i].x+15, c.y+places[i].y+10, cut(l.text, 40), `class="opd"`)
	}
	c.y += legendHeight
	return c
}

// titleColumns is how much of a title fits; it is larger and bolder than other text.
const titleColumns = 50

// wrapped breaks a line where it is too long for a chart; what a third line would
// hold is cut.
func wrapped(text string) []string {
	const columns = 66
	text = plain(text)
	if text == "" {
		return nil
	}
	if words.Columns(text) <= columns {
		return []string{text}
	}
	at := strings.LastIndex(words.Cut(text, columns), " ")
	if at <= 0 {
		return []string{cut(text, columns)}
	}
	return []string{text[:at], cut(strings.TrimSpace(text[at:]), columns)}
}

type at struct{ x, y float64 }

// placed sets a legend's entries in lines.
func placed(legend []legend) (places []at, height float64) {
	x, y := 0.0, 0.0
	for _, l := range legend {
		width := 15 + charWidth*float64(min(words.Columns(l.text), 40)) + 14
		if x > 0 && x+width > chartWidth {
			x, y = 0, y+lineHeight
		}
		places = append(places, at{x, y})
		x += width
	}
	if len(legend) > 0 {
		height = y + lineHeight + 4
	}
	return places, height
}

// legend explains a colour.
type legend struct {
	paint paint
	text  string
}

func class(p paint) string { return `class="op-` + string(p) + `"` }

// box is a rectangle that describes itself when pointed at.
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
