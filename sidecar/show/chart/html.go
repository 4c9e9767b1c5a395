package chart

import (
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// HTML is what a notebook shows for a cell: an image that also survives where
// the page is not trusted, the report to look closer, and a script that puts the
// same picture inline and waits until somebody does.
func HTML(r *report.View, o Options) ([]byte, error) {
	if r == nil {
		return nil, errNoReport
	}
	o = o.withDefaults()
	d := o.digest(r)
	image, scene, err := imageOf(d, o, imageBytes, fullDetail)
	if err != nil {
		return nil, err
	}
	payload, err := payloadWithin(dataBytes(r.DurationNS), r, d, scene)
	if errors.Is(err, report.ErrTooSmall) {
		return fragment(image, viewer.PictureScript), nil
	}
	if err != nil {
		return nil, err
	}
	return fragment("<style>"+viewer.Style+"</style>"+image+dataElement(payload), viewer.Script), nil
}

// dataElement holds a payload beside the picture; no browser takes it for a program.
func dataElement(payload string) string {
	return `<script type="application/octet-stream;base64">` + payload + "</script>"
}

// fragment is an output: content, and the script that makes more of it.
func fragment(content, script string) []byte {
	return []byte(`<div data-lm-suppress-shortcuts="true">` + content + "<script>" + script + "</script></div>")
}

// imageOf draws the picture as an image.
func imageOf(d *digest, o Options, limit int, from detail) (string, *Scene, error) {
	o.Inline = true
	scene, svg, err := drawWithin(limit, d, o, from)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf(`<img width="%.0f" style="max-width:100%%;height:auto" alt="%s" src="data:image/svg+xml;base64,%s">`,
		o.Width, html.EscapeString(words.Clean(d.summary, 600)), base64.StdEncoding.EncodeToString(svg)), scene, nil
}

// dataBytes bounds the report in a notebook's output, as gzip.
func dataBytes(durationNS int64) int {
	return min(max(int(float64(durationNS)/1e9*dataPerSecond), leastData), mostData)
}

// payloadWithin is as much of a report for the viewer as takes at most limit bytes
// of gzip. A notebook is shown to others: the machine has no name in it.
func payloadWithin(limit int, r *report.View, d *digest, s *Scene) (string, error) {
	for budget := limit; ; budget -= budget / 4 {
		e, err := r.Thin(budget)
		if err != nil {
			return "", err
		}
		payload, err := viewer.Payload(d.views(r), documentOf(withoutHosts(e.Document), viewerChart(r, e, d, s), s))
		if err != nil || base64.StdEncoding.DecodedLen(len(payload)) <= limit {
			return payload, err
		}
	}
}

// Folded is the chart of a cell nobody asked about: closed, its headline visible, at
// most 60 kB. It has the picture, and a little of the report for the JupyterLab
// extension; the script that others need to look closer is in what "%omni_perf last" shows.
func Folded(r *report.View, o Options) ([]byte, error) {
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
		text := html.EscapeString(words.Clean(p.text, 160))
		if p.face == bold {
			text = "<b>" + text + "</b>"
		}
		b.WriteString(text)
	}
	if d.badge != "" {
		b.WriteString(" &nbsp; <b>(" + html.EscapeString(d.badge) + ")</b>")
	}
	b.WriteString("</summary>")
	b.Write(fragment(content, viewer.PictureScript))
	b.WriteString("</details>")
	return []byte(b.String()), nil
}

func firstOf(ps []phrase) []phrase {
	if len(ps) == 0 {
		return nil
	}
	return []phrase{{ps[0].text, ps[0].tone, sans}}
}
