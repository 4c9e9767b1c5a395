package chart

import (
	"encoding/base64"
	"errors"
	"html"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/inhtml"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// HTML is what a notebook shows for a cell: an image that also survives where
// the page is not trusted, the report to look closer, and a script that puts the
// same picture inline and waits until somebody does.
func HTML(r *report.View, o scene.Options) ([]byte, error) {
	if r == nil {
		return nil, errNoReport
	}
	return htmlOf(r, digestOf(r), o)
}

// CaptionedHTML is HTML for a picture with a caption.
func CaptionedHTML(r *report.View, c *Caption, o scene.Options) ([]byte, error) {
	if r == nil {
		return nil, errNoReport
	}
	return htmlOf(r, captioned(r, c), o)
}

func htmlOf(r *report.View, d *digest, o scene.Options) ([]byte, error) {
	o = o.WithDefaults()
	image, drawn, err := imageOf(d, o, inhtml.ImageBytes, fullDetail)
	if err != nil {
		return nil, err
	}
	payload, err := payloadWithin(inhtml.DataBytes(r.DurationNS), r, d, drawn)
	if errors.Is(err, report.ErrTooSmall) {
		return inhtml.Fragment(image, viewer.PictureScript), nil
	}
	if err != nil {
		return nil, err
	}
	return inhtml.Output(image, payload), nil
}

// imageOf draws the picture as an image.
func imageOf(d *digest, o scene.Options, limit int, from detail) (string, *scene.Scene, error) {
	o.Inline = true
	drawn, svg, err := drawWithin(limit, d, o, from)
	if err != nil {
		return "", nil, err
	}
	return inhtml.Image(svg, o.Width, d.summary), drawn, nil
}

// bytesOfCell is what a cell of the ranks' steps takes of a payload, times four: they are a fourth of it at most.
const bytesOfCell = 64

// payloadWithin is as much of a report for the viewer as takes at most limit bytes
// of gzip. A notebook is shown to others: the machine has no name in it.
func payloadWithin(limit int, r *report.View, d *digest, s *scene.Scene) (string, error) {
	for budget := limit; ; budget -= budget / 4 {
		e, err := r.Thin(budget)
		if err != nil {
			return "", err
		}
		payload, err := viewer.Payload(d.views(r), documentOf(e.Document.WithoutMachines(), viewerChart(r, e, d, s, budget/bytesOfCell), s))
		if err != nil || base64.StdEncoding.DecodedLen(len(payload)) <= limit {
			return payload, err
		}
	}
}

// Folded is the chart of a cell nobody asked about: closed, its headline visible, at
// most 60 kB. It has the picture, and a little of the report for the JupyterLab
// extension; the script that others need to look closer is in what "%omni_perf last" shows.
func Folded(r *report.View, o scene.Options) ([]byte, error) {
	if r == nil {
		return nil, errNoReport
	}
	d := digestOf(r)
	content, err := stillOf(r, d, o, foldedBytes, foldedData, foldedDetail)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(`<details><summary style="cursor:pointer">`)
	for i, p := range append(d.title, firstOf(d.finding)...) {
		if i > 0 {
			b.WriteString(" &nbsp; ")
		}
		text := html.EscapeString(words.Clean(p.Text, 160))
		if p.Face == scene.Bold {
			text = "<b>" + text + "</b>"
		}
		b.WriteString(text)
	}
	if d.badge != "" {
		b.WriteString(" &nbsp; <b>(" + html.EscapeString(d.badge) + ")</b>")
	}
	b.WriteString("</summary>")
	b.Write(inhtml.Fragment(content, viewer.PictureScript))
	b.WriteString("</details>")
	return []byte(b.String()), nil
}

func firstOf(ps []scene.Phrase) []scene.Phrase {
	if len(ps) == 0 {
		return nil
	}
	return []scene.Phrase{{Text: ps[0].Text, Tone: ps[0].Tone, Face: scene.Sans}}
}
