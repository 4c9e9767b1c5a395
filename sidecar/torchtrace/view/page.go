package view

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/omni-perf/omni-perf/sidecar/torchtrace/analyses"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/table"
	"github.com/omni-perf/omni-perf/sidecar/words"
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
}

func forPage(t *table.Table, rows int) htmlTable {
	h := htmlTable{Title: plain(t.Title), Note: plain(t.Note)}
	for _, c := range t.Columns {
		h.Head = append(h.Head, htmlCell{heading(c), c.Kind != table.Text})
	}
	for r := range min(rows, t.Len()) {
		var row []htmlCell
		for _, c := range t.Columns {
			row = append(row, htmlCell{cut(cellText(c, r), 160), c.Kind != table.Text})
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
	Headline []string
	Warnings []string
	Missing  []string
	Charts   []pageChart
	Tables   []htmlTable
}

type pageChart struct {
	Title string
	// Inline is made by this package from numbers, with foreign text escaped.
	Inline template.HTML
	Image  template.URL
}

// isSeries tells tables with a row per event, which no one reads as a table.
func isSeries(name string) bool {
	switch name {
	case analyses.TableQueueSeries, analyses.TableBandwidthSeries, analyses.TableMemoryTimeline, analyses.TableLaunch,
		snapshot.TableTimeline, snapshot.TablePlaces:
		return true
	}
	return false
}

func (r *Result) page(theme Theme, rows int) pageData {
	d := pageData{Name: plain(r.Name), Headline: r.headline(), About: r.about()}
	for _, note := range r.Notes {
		d.Warnings = append(d.Warnings, plain(note))
	}
	if r.Analysis != nil {
		for _, w := range r.Analysis.Warnings {
			d.Warnings = append(d.Warnings, plain(w.String()))
		}
	}
	for _, c := range r.Charts(theme) {
		d.Charts = append(d.Charts, pageChart{
			Title: c.Title, Inline: template.HTML(c.inline()),
			Image: template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(c.SVG)),
		})
	}
	for _, t := range r.shown() {
		if !isSeries(t.Name) {
			d.Tables = append(d.Tables, forPage(t, rows))
		}
	}
	d.Missing = r.missing()
	return d
}

// missing says what the traces do not have and how to get it.
func (r *Result) missing() []string {
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

// hasOldStacks tells traces of older profilers, which wrote stacks into operators.
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
		text += ", " + plural(steps, "profiler step")
	}
	if r.Analysis.Mode != analyses.Exact {
		text += fmt.Sprintf(", by the rules of HolisticTraceAnalysis (%s)", r.Analysis.Mode)
	}
	return text
}

// Page writes a self-contained HTML document.
func (r *Result) Page(w io.Writer) error {
	if err := page.Execute(w, r.page(Auto, pageRows)); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// Fragment writes what a notebook shows: pictures as images, which survive its
// sanitizer, and the tables folded up.
func (r *Result) Fragment(w io.Writer) error {
	if err := fragment.Execute(w, r.page(Auto, 12)); err != nil {
		return fmt.Errorf("writing the display: %w", err)
	}
	return nil
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Name}} – omni_perf</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width">
<style>
:root{color-scheme:light dark;--text:#1c1c1e;--dim:#6e6e73;--line:#e2e2e7;--ground:#fff}
@media (prefers-color-scheme:dark){:root{--text:#f2f2f5;--dim:#9a9aa2;--line:#35353b;--ground:#111113}}
body{font:14px/1.45 system-ui,"Segoe UI","DejaVu Sans",sans-serif;color:var(--text);background:var(--ground);max-width:1000px;margin:32px auto;padding:0 24px}
h1{font-size:20px;margin:0 0 4px}h2{font-size:14px;margin:28px 0 6px}.dim{color:var(--dim)}.first{font-weight:600}
figure{margin:12px -10px}figure svg{max-width:100%;height:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
td,th{padding:2px 14px 2px 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}th{color:var(--dim);font-weight:400;border-bottom:1px solid var(--line);overflow-wrap:normal}
.n{text-align:right;white-space:nowrap}.scroll{overflow-x:auto}
details{margin:10px 0;border-top:1px solid var(--line);padding-top:8px}summary{cursor:pointer}
</style></head><body>
<h1>{{.Name}}</h1><p class="dim">{{.About}}</p>
{{range $i, $l := .Headline}}<p{{if eq $i 0}} class="first"{{end}}>{{$l}}</p>
{{end}}{{if .Warnings}}<h2>Warnings</h2><ul>{{range .Warnings}}<li>{{.}}</li>{{end}}</ul>{{end}}
{{range .Charts}}<figure>{{.Inline}}</figure>
{{end}}{{with .Missing}}<p class="dim">Not recorded: {{range $i, $m := .}}{{if $i}}; {{end}}{{$m}}{{end}}.</p>
{{end}}{{range .Tables}}<details><summary>{{.Title}}</summary>{{with .Note}}<p class="dim">{{.}}</p>{{end}}{{if .Rows}}<div class="scroll"><table>
<tr>{{range .Head}}<th{{if .Number}} class="n"{{end}}>{{.Text}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td{{if .Number}} class="n"{{end}}>{{.Text}}</td>{{end}}</tr>
{{end}}</table></div>{{end}}</details>
{{end}}</body></html>
`))

var fragment = template.Must(template.New("fragment").Parse(`<div>
<p style="margin:0 0 4px"><b>{{.Name}}</b> {{.About}}</p>
{{range $i, $l := .Headline}}<p style="margin:0 0 2px">{{if eq $i 0}}<b>{{$l}}</b>{{else}}{{$l}}{{end}}</p>
{{end}}{{if .Warnings}}<details><summary>{{len .Warnings}} warnings about the input</summary><ul>{{range .Warnings}}<li>{{.}}</li>{{end}}</ul></details>{{end}}
{{range .Charts}}<p style="margin:6px 0 0 -10px"><img alt="{{.Title}}" src="{{.Image}}" style="max-width:100%"></p>
{{end}}{{with .Missing}}<p>Not recorded: {{range $i, $m := .}}{{if $i}}; {{end}}{{$m}}{{end}}.</p>
{{end}}{{range .Tables}}<details><summary>{{.Title}}</summary>{{with .Note}}<p>{{.}}</p>{{end}}{{if .Rows}}<table>
<tr>{{range .Head}}<th style="text-align:{{if .Number}}right{{else}}left{{end}}">{{.Text}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td style="text-align:{{if .Number}}right{{else}}left{{end}}">{{.Text}}</td>{{end}}</tr>
{{end}}</table>{{end}}</details>
{{end}}</div>
`))
