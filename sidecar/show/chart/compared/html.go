package compared

import (
	"encoding/base64"
	"errors"

	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/inhtml"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// view is the one way to look at a comparison.
var view = viewer.View{ID: "flame", Name: "Look closer"}

// SVG draws a comparison as a picture.
func SVG(p Pair, o scene.Options) ([]byte, error) {
	_, svg, err := draw(inhtml.PageBytes, p, digestOf(p), o.WithDefaults())
	return svg, err
}

// draw leaves narrow boxes out until the bytes fit.
func draw(limit int, p Pair, c *digest, o scene.Options) (*scene.Scene, []byte, error) {
	for least := 3.0; ; least *= 2 {
		s := lay(c, o.Width, least)
		svg, err := scene.SVG(s, p.identity(), o)
		if err != nil || len(svg) <= limit || least > o.Width {
			return s, svg, err
		}
	}
}

// HTML is what a notebook shows of a comparison: an image, the reports to look
// closer, and the script that waits until somebody does.
func HTML(p Pair, o scene.Options) ([]byte, error) {
	c := digestOf(p)
	o = o.WithDefaults()
	o.Inline = true
	drawn, svg, err := draw(inhtml.ImageBytes, p, c, o)
	if err != nil {
		return nil, err
	}
	image := inhtml.Image(svg, o.Width, c.summary)
	payload, err := p.payloadWithin(inhtml.DataBytes(max(p.Before.DurationNS, p.After.DurationNS)), c, drawn)
	if errors.Is(err, report.ErrTooSmall) {
		return inhtml.Fragment(image, viewer.PictureScript), nil
	}
	if err != nil {
		return nil, err
	}
	return inhtml.Output(image, payload), nil
}

// payloadWithin is as much of both reports as takes at most limit bytes of gzip, without
// the machines' names.
func (p Pair) payloadWithin(limit int, c *digest, s *scene.Scene) (string, error) {
	for budget := limit / 2; ; budget -= budget / 4 {
		before, err := p.Before.Thin(budget)
		if err != nil {
			return "", err
		}
		after, err := p.After.Thin(budget)
		if err != nil {
			return "", err
		}
		payload, err := p.payload(before, after, c, s, true)
		if err != nil || base64.StdEncoding.DecodedLen(len(payload)) <= limit {
			return payload, err
		}
	}
}

// Page is a file of its own: the picture, the viewer with both reports, and
// the text. Its policy is that of Page.
func Page(p Pair, o scene.Options) ([]byte, error) {
	c := digestOf(p)
	o = o.WithDefaults()
	o.Inline = true
	drawn, svg, err := draw(inhtml.PageBytes, p, c, o)
	if err != nil {
		return nil, err
	}
	payload, err := p.payload(p.Before.Whole(), p.After.Whole(), c, drawn, false)
	if err != nil {
		return nil, err
	}
	return inhtml.Page(scene.Join(c.title, "  "), svg, payload, textOf(c, 110), o), nil
}

// document is what the viewer reads.
type document struct {
	Before    *report.Document `json:"before"`
	After     *report.Document `json:"after"`
	Whole     []viewerChange   `json:"whole"`
	Lines     []viewerChange   `json:"lines"`
	Functions []viewerChange   `json:"functions"`
	Causes    []viewerChange   `json:"causes"`
	Steps     []viewerChange   `json:"steps"`
	Same      [2][]int         `json:"same"` // by function of Before and After: equal numbers are one function
	Chart     *viewer.Chart    `json:"chart"`
}

// viewerChange is a change as the viewer shows it.
type viewerChange struct {
	Name     string `json:"name"`
	BeforeNS int64  `json:"before_ns"`
	AfterNS  int64  `json:"after_ns"`
	LowNS    int64  `json:"low_ns"`
	HighNS   int64  `json:"high_ns"`
	Verdict  string `json:"verdict"`
	Function *int   `json:"function"`
	Place    string `json:"place"`
	Code     string `json:"code"`
}

// viewerRows bounds the viewer's tables: more than anybody reads.
const viewerRows = 40

func (p Pair) payload(before, after *report.Excerpt, c *digest, s *scene.Scene, nameless bool) (string, error) {
	d := document{Before: before.Document, After: after.Document}
	for side, e := range []*report.Excerpt{before, after} {
		d.Same[side] = make([]int, len(e.Document.Functions))
		for whole, kept := range e.Functions {
			if kept >= 0 {
				d.Same[side][kept] = p.FunctionNumber(side, whole)
			}
		}
	}
	if nameless {
		d.Before, d.After = d.Before.WithoutMachines(), d.After.WithoutMachines()
	}
	rows := func(list []comparison.Change, row func(comparison.Change) changeRow) []viewerChange {
		out := []viewerChange{}
		for _, v := range list[:min(len(list), viewerRows)] {
			r := row(v)
			change := viewerChange{
				Name: r.name, BeforeNS: v.BeforeNS, AfterNS: v.AfterNS, LowNS: v.LowNS, HighNS: v.HighNS, Verdict: string(v.Verdict), Place: r.aside, Code: r.code,
			}
			if v.Function != nil && after.Functions[*v.Function] >= 0 {
				change.Function = &after.Functions[*v.Function]
			}
			out = append(out, change)
		}
		return out
	}
	d.Whole, d.Causes = rows(p.Whole, p.figureRow), rows(p.Causes, p.causeRow)
	d.Lines, d.Steps, d.Functions = rows(p.Lines, p.lineRow), rows(p.Steps, p.figureRow), rows(p.Functions, p.functionRow)
	const axis = 85.0 // of a picture without lanes; it is empty
	d.Chart = &viewer.Chart{
		Width: s.Width, Plot: [4]float64{scene.GutterLeft, axis + 12, s.Width - scene.GutterRight, axis + 13}, Axis: axis, Strip: axis - inhtml.Overview, Pitch: scene.RowHeight,
		Title: inhtml.Phrases(c.title), Finding: inhtml.Phrases(c.finding), Legend: [][2]string{}, Notes: c.notes, Threads: []string{},
		States: labels.States[:], Help: viewer.Help, Lanes: []viewer.Lane{},
	}
	return viewer.Payload([]viewer.View{view}, d)
}
