package chart

import (
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// comparisonView is the one way to look at a comparison.
var comparisonView = viewer.View{ID: "flame", Name: "Look closer"}

// ComparisonSVG draws a comparison as a picture.
func ComparisonSVG(p Pair, o Options) ([]byte, error) {
	_, svg, err := drawCompared(fullBytes, p, comparedDigestOf(p), o.withDefaults())
	return svg, err
}

// drawCompared leaves narrow boxes out until the bytes fit.
func drawCompared(limit int, p Pair, c *comparedDigest, o Options) (*Scene, []byte, error) {
	for least := 3.0; ; least *= 2 {
		s := layCompared(c, o.Width, least)
		svg, err := drawSVG(s, p.identity(), o)
		if err != nil || len(svg) <= limit || least > o.Width {
			return s, svg, err
		}
	}
}

// ComparisonHTML is what a notebook shows of a comparison: an image, the reports to look
// closer, and the script that waits until somebody does.
func ComparisonHTML(p Pair, o Options) ([]byte, error) {
	c := comparedDigestOf(p)
	o = o.withDefaults()
	o.Inline = true
	scene, svg, err := drawCompared(imageBytes, p, c, o)
	if err != nil {
		return nil, err
	}
	image := fmt.Sprintf(`<img width="%.0f" style="max-width:100%%;height:auto" alt="%s" src="data:image/svg+xml;base64,%s">`,
		o.Width, html.EscapeString(words.Clean(c.summary, 600)), base64.StdEncoding.EncodeToString(svg))
	payload, err := p.payloadWithin(dataBytes(max(p.Before.DurationNS, p.After.DurationNS)), c, scene)
	if errors.Is(err, report.ErrTooSmall) {
		return fragment(image, viewer.PictureScript), nil
	}
	if err != nil {
		return nil, err
	}
	return fragment("<style>"+viewer.Style+"</style>"+image+dataElement(payload), viewer.Script), nil
}

// payloadWithin is as much of both reports as takes at most limit bytes of gzip, without
// the machines' names.
func (p Pair) payloadWithin(limit int, c *comparedDigest, s *Scene) (string, error) {
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

// ComparisonPage is a file of its own: the picture, the viewer with both reports, and
// the text. Its policy is that of Page.
func ComparisonPage(p Pair, o Options) ([]byte, error) {
	c := comparedDigestOf(p)
	o = o.withDefaults()
	o.Inline = true
	scene, svg, err := drawCompared(fullBytes, p, c, o)
	if err != nil {
		return nil, err
	}
	payload, err := p.payload(p.Before.Whole(), p.After.Whole(), c, scene, false)
	if err != nil {
		return nil, err
	}
	return page(joinPhrases(c.title, "  "), svg, payload, viewer.Script, comparedText(c, 110), o), nil
}

// comparedDocument is what the viewer reads.
type comparedDocument struct {
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

func (p Pair) payload(before, after *report.Excerpt, c *comparedDigest, s *Scene, nameless bool) (string, error) {
	d := comparedDocument{Before: before.Document, After: after.Document}
	for side, e := range []*report.Excerpt{before, after} {
		d.Same[side] = make([]int, len(e.Document.Functions))
		for whole, kept := range e.Functions {
			if kept >= 0 {
				d.Same[side][kept] = p.FunctionNumber(side, whole)
			}
		}
	}
	if nameless {
		d.Before, d.After = withoutHosts(d.Before), withoutHosts(d.After)
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
		Width: s.Width, Plot: [4]float64{gutterLeft, axis + 12, s.Width - gutterRight, axis + 13}, Axis: axis, Strip: axis - overview, Pitch: rowHeight,
		Title: viewerPhrases(c.title), Finding: viewerPhrases(c.finding), Legend: [][2]string{}, Notes: c.notes, Threads: []string{},
		States: stateWords[:], Help: viewer.Help, Lanes: []viewer.Lane{},
	}
	return viewer.Payload([]viewer.View{comparisonView}, d)
}

// withoutHosts is a document in which machines have no name: a notebook is shown to
// others.
func withoutHosts(d *report.Document) *report.Document {
	shown := *d
	shown.Hosts = slices.Clone(shown.Hosts)
	for i := range shown.Hosts {
		shown.Hosts[i].Name = nil
	}
	return &shown
}
