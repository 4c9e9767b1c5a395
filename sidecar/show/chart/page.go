package chart

import (
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/inhtml"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Page is a file of its own to open in a browser, without a network: the picture,
// the viewer with the whole report, and, for screen readers and copying, the text.
// It prints the picture. Its policy allows only these scripts and styles,
// by hash: anything in it that was not escaped would do nothing.
func Page(r *report.View, o scene.Options) ([]byte, error) {
	if r == nil {
		return nil, errNoReport
	}
	o = o.WithDefaults()
	d := digestOf(r)
	o.Inline = true
	drawn, svg, err := drawWithin(inhtml.PageBytes, d, o, fullDetail)
	if err != nil {
		return nil, err
	}
	payload, err := viewer.Payload(d.views(r), documentOf(r.Document, viewerChart(r, r.Whole(), d, drawn, pageCells), drawn))
	if err != nil {
		return nil, err
	}
	return inhtml.Page(scene.Join(d.title, "  "), svg, payload, textOf(d, 110), o), nil
}

// pageCells is how many cells of the ranks' steps a page has at most; an output has fewer.
const pageCells = 1 << 14

// document is what the viewer reads.
type document struct {
	*report.Document
	Chart *viewer.Chart `json:"chart"`
}

// documentOf puts a report and its picture together, and beside the report's tracks
// those that only the picture has.
func documentOf(r *report.Document, c *viewer.Chart, s *scene.Scene) document {
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

// viewerChart is the picture's geometry and words for the viewer, which has e to read, with so many cells of the ranks'
// steps at most.
func viewerChart(r *report.View, e *report.Excerpt, d *digest, s *scene.Scene, cells int) *viewer.Chart {
	c := &viewer.Chart{
		Width: s.Width, Plot: [4]float64{s.Plot.X0, s.Plot.Y0, s.Plot.X1, s.Plot.Y1}, Axis: s.AxisY, Strip: s.AxisY - inhtml.Overview, Pitch: scene.RowHeight, Folded: true,
		Title: inhtml.Phrases(d.title), Finding: inhtml.Phrases(d.finding), Legend: [][2]string{}, Notes: d.notes, More: s.More,
		Threads: make([]string, len(e.Threads)), States: labels.States[:], Help: viewer.Help, Lanes: make([]viewer.Lane, len(s.Lanes)),
	}
	if d.badge != "" {
		c.Title = append(c.Title, [3]string{d.badge, string(scene.Warn), "b"})
	}
	for _, e := range s.Legend {
		c.Legend = append(c.Legend, [2]string{string(e.Paint), e.Means})
	}
	for _, p := range r.StepPhases() {
		c.Phases = append(c.Phases, [3]string{p.Phase.ID, words.Clean(p.Phase.Text, 40), string(phasePaint(p.Phase.ID))})
	}
	for i := range c.Threads {
		c.Threads[i] = threadName(r, &r.Threads[i])
	}
	for i := range s.Lanes {
		if c.Lanes[i] = viewerLane(&s.Lanes[i], e); s.Lanes[i].Kind == scene.RanksLane {
			c.Lanes[i].Cells = d.ranks.viewerCells(cells, len(e.Threads))
		}
	}
	if !d.lanesOnly {
		c.Tables = viewerTables(d.tables)
	}
	if t := e.Thinned; t != nil && t.SpansStepNS != nil && !d.lanesOnly {
		c.Notes = append(slices.Clip(c.Notes), fmt.Sprintf("zoomed: stacks each %s; %%omni_perf save NAME.html has all", words.Seconds(report.Seconds(*t.SpansStepNS))))
	}
	return c
}

// viewerTables are those that the viewer does not make itself of any stretch.
func viewerTables(all []table) (out []viewer.Table) {
	for _, t := range all {
		if !t.asItIs {
			continue
		}
		v := viewer.Table{Heading: t.heading, Note: labels.Join(t.note, t.barNote), Rows: make([]viewer.Row, len(t.rows))}
		largest := largestShare(t)
		for i, r := range t.rows {
			v.Rows[i] = viewer.Row{Name: strings.Trim(r.name+" "+r.place, " "), Figure: r.time(), Share: max(r.share, 0) / largest, Aside: r.aside, Text: r.code, Hint: r.remark()}
		}
		out = append(out, v)
	}
	return out
}

func viewerLane(l *scene.Lane, e *report.Excerpt) viewer.Lane {
	v := viewer.Lane{
		Kind: string(l.Kind), Index: indexIn(e, l), Y0: l.Y0, Y1: l.Y1, Limit: l.Limit, Bottom: l.Bottom, Top: l.Top,
		Name: l.Names.Name, Sources: l.Names.Sources, Value: l.Names.Value, Aside: l.Names.Aside,
	}
	if l.Kind == scene.FlameLane {
		v.Rows = len(l.Rows)
	}
	if len(l.Areas) > 0 {
		v.Paint = string(l.Areas[0].Paint)
	}
	return v
}

// indexIn is where an excerpt has what a lane shows; -1 where it does not, or where
// the lane is of no one thing.
func indexIn(e *report.Excerpt, l *scene.Lane) int {
	switch {
	case l.Index < 0:
	case l.Kind == scene.TrackLane:
		return e.Tracks[l.Index]
	case l.Kind == scene.LinesLane:
		return e.Files[l.Index]
	case l.Kind == scene.StreamLane || l.Index < len(e.Threads):
		return l.Index
	}
	return -1
}
