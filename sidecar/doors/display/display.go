// Package display makes of a report what a notebook or a terminal shows, and the
// pictures that a caller asks a sidecar for.
package display

import (
	"fmt"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/compared"
	"github.com/omni-perf/omni-perf/sidecar/show/live/panel"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	"github.com/omni-perf/omni-perf/sidecar/show/chart"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// textWidth is the columns of the text form where the terminal's is not known.
const textWidth = 100

// Charts draws reports by package chart; it is a server.Presenter.
type Charts struct{}

// Bundle makes what the extension displays.
func (Charts) Bundle(r *report.View, at jupyter.Place) (jupyter.Bundle, error) {
	if chart.IsLine(r) && !at.Whole {
		return jupyter.NewBundle(nil, []byte(chart.Line(r)), ""), nil
	}
	text := []byte(chart.Text(r, textWidth))
	if at.Form == "terminal" {
		return jupyter.NewBundle(nil, text, ""), nil
	}
	draw, options := chart.HTML, scene.Options{Theme: scene.Theme(at.Theme)}
	switch {
	case at.Folded:
		draw = chart.Folded
	case chart.IsPicture(r) && !at.Whole:
		draw = chart.Picture
	}
	html, err := draw(r, options)
	if err != nil {
		return jupyter.Bundle{}, err
	}
	b := jupyter.NewBundle(html, text, "")
	b.Data[viewer.MimeType] = viewer.Mark{Kind: viewer.KindChart}
	return b, nil
}

// Live makes what the output of a cell in progress shows.
func (Charts) Live(now *live.Now, at jupyter.Place) jupyter.Bundle {
	text := []byte(strings.Join(panel.Text(now, textWidth, false), "\n") + "\n")
	return jupyter.NewBundle(panel.HTML(now, scene.Theme(at.Theme)), text, "")
}

// Draw makes a file.
func (Charts) Draw(r *report.View, format string) (content []byte, mediaType string, err error) {
	switch format {
	case "svg":
		content, err = chart.SVG(r, scene.Options{})
		return content, "image/svg+xml", err
	case "html":
		content, err = chart.Page(r, scene.Options{})
		return content, "text/html", err
	case "text":
		return []byte(chart.Text(r, textWidth)), "text/plain", nil
	}
	return nil, "", fmt.Errorf("there are json, svg, html, text and bundle")
}

// Comparison makes what the extension displays of a comparison.
func (Charts) Comparison(before, after []*report.View, at jupyter.Place) (jupyter.Bundle, string, error) {
	c, err := comparison.Of(before, after)
	if err != nil {
		return jupyter.Bundle{}, "", err
	}
	pair := compared.Pair{Comparison: c, Before: before[0], After: after[0]}
	text := []byte(compared.Text(pair, textWidth))
	headline := compared.Headline(pair)
	if at.Form == "terminal" {
		return jupyter.NewBundle(nil, text, ""), headline, nil
	}
	html, err := compared.HTML(pair, scene.Options{Theme: scene.Theme(at.Theme)})
	if err != nil {
		return jupyter.Bundle{}, "", err
	}
	b := jupyter.NewBundle(html, text, "")
	b.Data[viewer.MimeType] = viewer.Mark{Kind: viewer.KindComparison}
	return b, headline, nil
}
