// Package chart shows a report: as an SVG picture, as the HTML a notebook

// displays, as a page of its own and as text for a terminal.
//
// In flows a report.View, which was checked, out flow bytes; the package knows
// neither how a report came about nor where the bytes go. Two reports and what
// differs are shown by package compared, a recording in progress by live/panel.
//
// The way is always the same and each step is a pure function: digestOf puts
// into words and rows what there is to say, lay places it (a
// Scene, in pixels), scene.SVG writes the Scene. Text reads the digest, too, so
// that picture and text never show different figures.
package chart

import (
	"errors"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/inhtml"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

const (
	// A notebook keeps every output: these bound a chart's bytes for any report.
	foldedBytes = 27_000 // of Folded's: 36 kB
	foldedData  = 14_900 // of its report, as gzip: 20 kB
)

var errNoReport = errors.New("chart: no report to draw")

// SVG draws the report as a picture of at most 200 KiB.
func SVG(r *report.View, o scene.Options) ([]byte, error) {
	if r == nil {
		return nil, errNoReport
	}
	o = o.WithDefaults()
	_, svg, err := drawWithin(inhtml.PageBytes, digestOf(r), o, fullDetail)
	return svg, err
}

// SVGWithin draws the report with as much detail as has room in limit bytes. Where that is not enough for the
// least detail, the picture is larger.
func SVGWithin(r *report.View, limit int, o scene.Options) ([]byte, error) {
	if r == nil {
		return nil, errNoReport
	}
	_, svg, err := drawWithin(limit, digestOf(r), o.WithDefaults(), fullDetail)
	return svg, err
}

// drawWithin draws with less and less detail until the bytes fit, and returns the
// scene, too.
func drawWithin(limit int, d *digest, o scene.Options, from detail) (*scene.Scene, []byte, error) {
	for dt := from; ; dt = dt.coarser() {
		s := lay(d, o.Width, dt)
		svg, err := scene.SVG(s, d.identity, o)
		if err != nil || len(svg) <= limit || dt == dt.coarser() {
			return s, svg, err
		}
	}
}
