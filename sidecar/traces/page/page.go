package page

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// pageRows bounds a table in HTML; the whole one is in the JSON and the CSV.
const pageRows = 100

// htmlTable is a table as the templates read it.
type htmlTable struct {
	Title, Note string
	Head        []htmlCell
	Rows        [][]htmlCell
}

type htmlCell struct {
	Text   string
	Number bool
	Short  bool // a word, which is not broken: a long one beside it gives way
}

// shortText is the most that such a word has.
const shortText = 24

func forPage(t *table.Table, rows int) htmlTable {
	h := htmlTable{Title: plain(t.Title), Note: plain(t.Note)}
	for _, c := range t.Columns {
		h.Head = append(h.Head, htmlCell{Text: headingIn(t, c), Number: c.Kind != table.Text})
	}
	for r := range min(rows, t.Len()) {
		var row []htmlCell
		for _, c := range t.Columns {
			text := cut(cellText(c, r), 160)
			row = append(row, htmlCell{text, c.Kind != table.Text, words.Columns(text) <= shortText})
		}
		h.Rows = append(h.Rows, row)
	}
	if t.Len() > rows {
		h.Note += fmt.Sprintf(" The first %d of %s rows; --csv and --json have them all.", rows, words.Count(int64(t.Len())))
	}
	return h
}

// pageData is what both templates read.
type pageData struct {
	Name     string
	About    string
	Answer   string   // the first finding
	Findings []string // those to read at once
	More     []string // the others
	Warnings []string
	Notes    []string // about the input: they affect no figure
	Missing  []string
	Steps    []pageStep
	StepNote string // why there are none
	Charts   []pageChart
	Tables   []htmlTable
	// Allocations are one by one; nil: there is no memory snapshot with a history.
	Allocations *pageAllocations

	Policy, Style, Viewer, Script any
}

// atOnce is how many findings are below the answer: communication, the cause, the loader, the
// line of Python, the synchronising call, and one more.
const atOnce = 6

type pageChart struct {
	Title string
	// Inline is made by this package from numbers, with foreign text escaped.
	Inline template.HTML
	Image  template.URL
}

// isSeries recognises tables with a row per event, which no one reads as a table.
func isSeries(name string) bool {
	switch name {
	case analyses.TableQueueSeries, analyses.TableBandwidthSeries, analyses.TableMemoryTimeline, analyses.TableLaunch,
		snapshot.TableTimeline, snapshot.TablePlaces:
		return true
	}
	return false
}

func (r *Result) page(theme Theme, rows int) pageData {
	d := pageData{Name: plain(r.Name), About: r.about(), StepNote: plain(r.StepNote)}
	if lines := r.headline(); len(lines) > 0 {
		n := min(1+atOnce, len(lines))
		d.Answer, d.Findings, d.More = lines[0], lines[1:n], lines[n:]
	}
	for _, note := range r.Notes {
		d.Warnings = append(d.Warnings, plain(note))
	}
	if r.Analysis != nil {
		for _, w := range r.Analysis.Warnings {
			to := &d.Warnings
			if w.Note {
				to = &d.Notes
			}
			*to = append(*to, plain(w.String()))
		}
	}
	d.Charts = forTemplate(r.Charts(theme))
	for _, t := range r.shown() {
		if !isSeries(t.Name) {
			d.Tables = append(d.Tables, forPage(t, rows))
		}
	}
	d.Missing = r.missing()
	return d
}

func forTemplate(charts []Chart) (list []pageChart) {
	for _, c := range charts {
		list = append(list, pageChart{
			Title: c.Title, Inline: template.HTML(c.inline()),
			Image: template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(c.SVG)),
		})
	}
	return list
}

// missing says what the traces of torch.profiler do not have and how to get it. Of those of other tools a note says it.
func (r *Result) missing() []string {
	if r.Analysis != nil && !slices.ContainsFunc(r.Analysis.Recordings, func(f traces.Recording) bool { return f.From == kineto.FromTorch }) {
		return nil
	}
	var list []string
	for _, m := range []struct{ table, text string }{
		{analyses.TableSteps, "profiler steps (call prof.step() in the training loop)"},
		{analyses.TablePythonFunctions, "Python stacks (with_stack=True)"},
		{analyses.TableMemoryPeaks, "memory (profile_memory=True)"},
	} {
		for _, t := range r.tables() {
			if t.Name == m.table && t.Len() == 0 && !r.hasOldStacks(m.table) {
				list = append(list, m.text)
			}
		}
	}
	return list
}

// hasOldStacks recognises traces of older profilers, which wrote stacks into operators.
func (r *Result) hasOldStacks(name string) bool {
	return name == analyses.TablePythonFunctions && r.table(analyses.TablePythonIdle) != nil
}

// about says what was analysed and how.
func (r *Result) about() string {
	if r.Analysis == nil {
		return "memory snapshot"
	}
	text := plural(len(r.Analysis.Ranks), "rank")
	if n := len(r.Analysis.Recordings); n > len(r.Analysis.Ranks) {
		text += ", " + plural(n, "file")
	}
	steps := 0
	for _, list := range r.Analysis.ProfilerSteps {
		steps = max(steps, len(list))
	}
	if steps > 0 {
		text += ", " + plural(steps, "profiler step") + r.leftOut()
	}
	if r.Analysis.Mode != analyses.Exact {
		text += fmt.Sprintf(", by the rules of HolisticTraceAnalysis (%s)", r.Analysis.Mode)
	}
	return text
}

// asLong is the share of the length of a counted step from which on a last step, left out since it may have been cut off, is
// likely to be whole.
const asLong = 0.5

// leftOut says that last steps were left out, where one is about as long as the others.
func (r *Result) leftOut() string {
	t := r.table(analyses.TableSteps)
	if t == nil || t.Column("counted") == nil {
		return ""
	}
	var counted, dropped []float64
	perRank := map[int64]int{}
	for row := range t.Len() {
		us := t.FloatAt("duration_us", row)
		if t.TextAt("counted", row) != "dropped" {
			counted = append(counted, us)
			continue
		}
		dropped = append(dropped, us)
		perRank[t.IntAt("rank", row)]++
	}
	if len(counted) == 0 || len(dropped) == 0 {
		return ""
	}
	slices.Sort(counted)
	if slices.Max(dropped) < asLong*counted[(len(counted)-1)/2] {
		return ""
	}
	which := "the last one"
	for _, n := range perRank {
		if n > 1 {
			which = "the last one of each cycle"
		}
	}
	return fmt.Sprintf(" (%s left out; --last-step counts it)", which)
}

// Page writes a self-contained HTML document: the answer, one step from near, small
// charts side by side, the tables folded. Its policy allows only its own scripts and
// styles, by hash: anything in it that was not escaped would do nothing.
func (r *Result) Page(w io.Writer) error {
	d := r.page(Auto, pageRows)
	styles := []string{pageStyle, style(Auto)}
	scripts := "'none'"
	for i := range r.Steps {
		step, figure, err := r.pageStep(&r.Steps[i])
		if err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
		d.Steps = append(d.Steps, step)
		styles = append(styles, figure.Styles...)
	}
	if len(d.Steps) > 0 {
		styles, scripts = append(styles, viewer.Style), viewer.Allow(viewer.Script)
		d.Viewer, d.Script = template.CSS(viewer.Style), template.JS(viewer.Script)
	}
	var err error
	if d.Allocations, err = r.allocations(); err != nil {
		return err
	}
	d.Style = template.CSS(pageStyle)
	if d.Allocations != nil {
		more := allocationsStyle()
		styles, d.Allocations.Style = append(styles, more), template.CSS(more)
		allowed := viewer.Allow(allocationsScript)
		if scripts != "'none'" {
			allowed = scripts + " " + allowed
		}
		scripts = allowed
	}
	slices.Sort(styles)
	d.Style = template.CSS(pageStyle)
	d.Policy = fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'",
		scripts, viewer.Allow(slices.Compact(styles)...))
	if err := page.Execute(w, d); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// fragmentRows bounds a table in a notebook.
const fragmentRows = 12

// Fragment writes what a notebook shows: one step as a cell is shown, the charts as
// images, which survive its sanitizer, and the tables folded up.
func (r *Result) Fragment(w io.Writer) error {
	d := r.page(Auto, fragmentRows)
	if len(r.Steps) > 0 {
		step, err := r.fragmentStep(&r.Steps[0])
		if err != nil {
			return fmt.Errorf("writing the display: %w", err)
		}
		d.Steps = append(d.Steps, step)
	}
	if err := fragment.Execute(w, d); err != nil {
		return fmt.Errorf("writing the display: %w", err)
	}
	return nil
}
