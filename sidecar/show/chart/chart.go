// Package chart shows a report: as an SVG picture, as the HTML a notebook
// displays, as a page of its own and as text for a terminal.
//
// In flows a report.View, which was checked, out flow bytes; the package knows
// neither how a report came about nor where the bytes go.
//
// The way is always the same and each step is a pure function: digestOf puts
// into words and rows what there is to say, Lay places it (a
// Scene, in pixels), drawSVG writes the Scene. Text reads the digest, too, so
// that picture and text never show different figures.
package chart

import (
	"errors"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Theme says on which background a chart will be looked at.
type Theme string

// The themes. Auto follows the page or, in an image, the viewer's preference.
const (
	Auto  Theme = "auto"
	Light Theme = "light"
	Dark  Theme = "dark"
)

// Options of a chart; the zero value is usable.
type Options struct {
	Width  float64 // pixels; 0 = 1120, at least 560
	Theme  Theme   // empty = Auto
	Inline bool    // SVG inside an HTML document: no XML declaration
	// Caption, where there is one, is shown in place of what the report says of itself.
	Caption *Caption
}

const (
	defaultWidth = 1120
	minWidth     = 560
	maxWidth     = 4000

	fullBytes = 200 << 10 // of Page's picture, and of SVG

	// A notebook keeps every output: these bound a chart's bytes for any report.
	imageBytes  = 44_000 // of HTML's picture: 59 kB as base64
	foldedBytes = 27_000 // of Folded's: 36 kB
	foldedData  = 14_900 // of its report, as gzip: 20 kB
	// Of what HTML carries to look closer, as gzip: ten seconds of ordinary Python at
	// 1 kHz have room in the least. Longer cells may take more by the second.
	leastData     = 32 << 10
	dataPerSecond = 3 << 10
	mostData      = 220 << 10
)

var errNoReport = errors.New("chart: no report to draw")

func (o Options) withDefaults() Options {
	switch {
	case !(o.Width > 0): // NaN too
		o.Width = defaultWidth
	case o.Width < minWidth:
		o.Width = minWidth
	case o.Width > maxWidth:
		o.Width = maxWidth
	}
	if o.Theme != Light && o.Theme != Dark {
		o.Theme = Auto
	}
	return o
}

// SVG draws the report as a picture of at most 200 KiB.
func SVG(r *report.View, o Options) ([]byte, error) {
	if r == nil {
		return nil, errNoReport
	}
	o = o.withDefaults()
	_, svg, err := drawWithin(fullBytes, o.digest(r), o, fullDetail)
	return svg, err
}

// drawWithin draws with less and less detail until the bytes fit, and returns the
// scene, too.
func drawWithin(limit int, d *digest, o Options, from detail) (*Scene, []byte, error) {
	for dt := from; ; dt = dt.coarser() {
		s := lay(d, o.Width, dt)
		svg, err := drawSVG(s, d.identity, o)
		if err != nil || len(svg) <= limit || dt == dt.coarser() {
			return s, svg, err
		}
	}
}
