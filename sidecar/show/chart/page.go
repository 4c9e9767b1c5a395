package chart

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Page is a file of its own to open in a browser, without a network: the picture,
// the viewer with the whole report, and, for screen readers and copying, the text.
// It prints the picture. Its policy allows only these scripts and styles,
// by hash: anything in it that was not escaped would do nothing.
func Page(r *report.View, o Options) ([]byte, error) {
	if r == nil {
		return nil, errNoReport
	}
	o = o.withDefaults()
	d := o.digest(r)
	o.Inline = true
	scene, svg, err := drawWithin(fullBytes, d, o, fullDetail)
	if err != nil {
		return nil, err
	}
	payload, err := viewer.Payload(d.views(r), documentOf(r.Document, viewerChart(r, r.Whole(), d, scene), scene))
	if err != nil {
		return nil, err
	}
	return page(joinPhrases(d.title, "  "), svg, payload, viewer.Script, textOf(d, 110), o), nil
}

// page is a file of its own around an inline picture and what its viewer reads.
func page(title string, svg []byte, payload, script, text string, o Options) []byte {
	style := pageStyle(o)
	styles := []string{style, viewer.Style}
	for _, m := range styleElement.FindAllSubmatch(svg, -1) {
		styles = append(styles, cdata.Replace(string(m[1])))
	}
	var b strings.Builder
	b.Grow(len(svg) + len(payload) + len(script) + len(viewer.Style) + 64<<10)
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"%s><head><meta charset=\"utf-8\">\n", map[Theme]string{Light: ` theme="light"`, Dark: ` theme="dark"`}[o.Theme])
	fmt.Fprintf(&b, `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'">`+"\n",
		viewer.Allow(script), viewer.Allow(styles...))
	b.WriteString(`<meta name="viewport" content="width=device-width">` + "\n")
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(words.Clean(title, 200)))
	b.WriteString("<style>" + style + "</style><style>" + viewer.Style + "</style></head><body>\n<div>")
	b.Write(svg)
	b.WriteString(dataElement(payload) + "<script>" + script + "</script></div>\n")
	b.WriteString("<details><summary>As text</summary><pre>")
	b.WriteString(html.EscapeString(text))
	b.WriteString("</pre></details>\n</body></html>\n")
	return []byte(b.String())
}

// styleElement is a style sheet of the picture; what counts for a hash is its text
// without the marks around it.
var (
	styleElement = regexp.MustCompile(`(?s)<style[^>]*>(.*?)</style>`)
	cdata        = strings.NewReplacer("<![CDATA[", "", "]]>", "")
)

// pageStyle is the page around the picture.
func pageStyle(o Options) string {
	const light, dark = "color-scheme:light;background:#ffffff", "color-scheme:dark;background:#111113"
	root := ":root{" + light + "}@media screen and (prefers-color-scheme:dark){:root{" + dark + "}}"
	switch o.Theme {
	case Light:
		root = ":root{" + light + "}"
	case Dark:
		root = ":root{" + dark + "}"
	}
	// The picture has a width; from where that leaves much of a window empty, the viewer takes all of it.
	return root + fmt.Sprintf("body{margin:0 auto;max-width:%.0fpx;padding:8px;font-family:system-ui,sans-serif}", o.Width) +
		fmt.Sprintf("@media screen and (min-width:%.0fpx){body{max-width:none}.opv{max-width:none!important}}", o.Width*9/8) +
		"details{padding:8px 16px;font-size:13px}pre{overflow:auto;font-size:12px}@media print{details{display:none}}"
}

// document is what the viewer reads.
type document struct {
	*report.Document
	Chart *viewer.Chart `json:"chart"`
}

// documentOf puts a report and its picture together, and beside the report's tracks
// those that only the picture has.
func documentOf(r *report.Document, c *viewer.Chart, s *Scene) document {
	all := *r
	all.Tracks = slices.Clone(r.Tracks)
	for i := range s.Lanes {
		if l := &s.Lanes[i]; len(l.Pool) > 0 {
			c.Lanes[i].Index = len(all.Tracks)
			all.Tracks = append(all.Tracks, poolTrack(l.Pool))
		}
	}
	return document{&all, c}
}

// viewsOf are the ways to look at a report that have something to show.
func viewsOf(r *report.View) []viewer.View {
	views := []viewer.View{viewer.Timeline, viewer.Flame, viewer.Lines}
	if r.Idle != nil && slices.ContainsFunc(r.Devices, func(d report.Device) bool { return d.Used }) {
		views = append(views, viewer.Idle)
	}
	if len(r.Steps) > 0 {
		views = append(views, viewer.Steps)
	}
	return append(views, viewer.Findings)
}

// viewerChart is the picture's geometry and words for the viewer, which has e to read.
func viewerChart(r *report.View, e *report.Excerpt, d *digest, s *Scene) *viewer.Chart {
	c := &viewer.Chart{
		Width: s.Width, Plot: [4]float64{s.Plot.X0, s.Plot.Y0, s.Plot.X1, s.Plot.Y1}, Axis: s.AxisY, Strip: s.AxisY - overview, Pitch: rowHeight, Folded: true,
		Title: viewerPhrases(d.title), Finding: viewerPhrases(d.finding), Legend: [][2]string{}, Notes: d.notes,
		Threads: make([]string, len(e.Threads)), States: stateWords[:], Help: viewer.Help, Lanes: make([]viewer.Lane, len(s.Lanes)),
	}
	if d.badge != "" {
		c.Title = append(c.Title, [3]string{d.badge, string(Warn), "b"})
	}
	for _, e := range s.Legend {
		c.Legend = append(c.Legend, [2]string{string(e.Paint), e.Means})
	}
	for i := range c.Threads {
		c.Threads[i] = threadName(r, &r.Threads[i])
	}
	for i := range s.Lanes {
		c.Lanes[i] = viewerLane(&s.Lanes[i], e)
	}
	if t := e.Thinned; t != nil && t.SpansStepNS != nil && !d.lanesOnly {
		c.Notes = append(slices.Clip(c.Notes), fmt.Sprintf("zoomed: stacks each %s; %%omni_perf save NAME.html has all", words.Seconds(report.Seconds(*t.SpansStepNS))))
	}
	return c
}

// overview is how far above the baseline of the ticks' labels the viewer's overview
// begins: below the finding, its height and a little air above the labels.
const overview = 24.0

func viewerLane(l *Lane, e *report.Excerpt) viewer.Lane {
	v := viewer.Lane{
		Kind: string(l.Kind), Index: indexIn(e, l), Y0: l.Y0, Y1: l.Y1, Limit: l.Limit, Bottom: l.Bottom, Top: l.Top,
		Name: l.Names.Name, Sources: l.Names.Sources, Value: l.Names.Value, Aside: l.Names.Aside,
	}
	if l.Kind == FlameLane {
		v.Rows = len(l.Rows)
	}
	if len(l.Areas) > 0 {
		v.Paint = string(l.Areas[0].Paint)
	}
	return v
}

// indexIn is where an excerpt has what a lane shows; -1 where it does not, or where
// the lane is of no one thing.
func indexIn(e *report.Excerpt, l *Lane) int {
	switch {
	case l.Index < 0:
	case l.Kind == TrackLane:
		return e.Tracks[l.Index]
	case l.Kind == LinesLane:
		return e.Files[l.Index]
	case l.Kind == StreamLane || l.Index < len(e.Threads):
		return l.Index
	}
	return -1
}

// viewerPhrases are text, tone and element of each piece of a line.
func viewerPhrases(ps []phrase) [][3]string {
	out := make([][3]string, len(ps))
	for i, p := range ps {
		out[i] = [3]string{p.text, string(p.tone), [...]string{sans: "", bold: "b", mono: "code"}[p.face]}
	}
	return out
}
