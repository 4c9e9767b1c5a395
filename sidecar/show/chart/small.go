package chart

import (
	"errors"
	"slices"
	"strconv"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/inhtml"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// A notebook keeps every output, and most of its cells are over at once. What a cell is
// shown by grows with its length: a line, a picture, a picture with the viewer.
const (
	lineBelowNS    = 20e6
	pictureBelowNS = 200e6

	// A cell below lineBelowNS that has so many samples was sampled at a finer interval,
	// which somebody asked for.
	lineSamples = 50

	lineBytes    = 600    // of the line: with the figures beside it at most 2 kB
	smallPicture = 18_000 // of Picture's image: 24 kB as base64
	smallData    = 9_000  // of its report, as gzip: 12 kB
)

// IsLine reports whether a line of text shows all that is known of a cell: it is over
// at once, or has too few samples for shares of its time, had memory enough and was not traced by torch.
func IsLine(r *report.View) bool {
	if len(r.OutOfMemory) > 0 || len(r.Operators) > 0 {
		return false
	}
	return r.Headline.Kind == report.HeadlineTooFew || r.DurationNS < lineBelowNS && r.Target().Sampling.Ticks < lineSamples
}

// IsPicture reports whether a cell is so short that its output does without the viewer's script.
func IsPicture(r *report.View) bool { return r.DurationNS < pictureBelowNS }

// Line is a cell in one line: its name, its length, how it ended, its headline, and that
// its beginning is missing.
func Line(r *report.View) string {
	d := digestOf(r)
	ps := []scene.Phrase{}
	for _, p := range d.title { // its shares are of few samples
		if p.Face == scene.Sans || p.Tone == scene.Bad || p.Tone == scene.Plain {
			ps = append(ps, p)
		}
	}
	text := scene.Join(ps, "  ")
	if h := words.Clean(r.Headline.Text, 300); h != "" {
		text += "  " + h
	}
	saysLate := slices.ContainsFunc(r.Headline.Limits, func(i int) bool { return r.Findings[i].ID == string(diagnose.BegunLate) })
	for _, n := range r.Notes {
		if n.ID == string(timeline.NoteBegunLate) && !saysLate {
			text += "  " + words.Clean(n.Text, 150)
		}
	}
	return words.Clean(text, lineBytes/3) + "\n"
}

// Picture is what a notebook shows for a short cell: the image, and the report for the
// JupyterLab extension. The script that others need to look closer, which is more than
// both, is in what "%omni_perf last N" shows, as the last line says.
func Picture(r *report.View, o scene.Options) ([]byte, error) {
	if r == nil {
		return nil, errNoReport
	}
	d := digestOf(r)
	if c := r.Target().Cell; c != nil && c.ExecutionCount != nil {
		d.notes = append(d.notes, "To zoom without the JupyterLab extension: %omni_perf last "+strconv.Itoa(*c.ExecutionCount))
	}
	content, err := stillOf(r, d, o, smallPicture, smallData, fullDetail)
	if err != nil {
		return nil, err
	}
	return inhtml.Fragment(content, viewer.PictureScript), nil
}

// stillOf is an image, and of the report as much as takes dataBytes of gzip.
func stillOf(r *report.View, d *digest, o scene.Options, imageBytes, dataBytes int, from detail) (string, error) {
	content, drawn, err := imageOf(d, o.WithDefaults(), imageBytes, from)
	if err != nil {
		return "", err
	}
	switch payload, err := payloadWithin(dataBytes, r, d, drawn); {
	case err == nil:
		content += inhtml.Data(payload)
	case !errors.Is(err, report.ErrTooSmall): // then names alone are more
		return "", err
	}
	return content, nil
}
