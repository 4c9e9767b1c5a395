// Package cellindex is the page that lists the cells of a kernel which is watched: when
// each ran, for how long, how it ended, what cost most, and where its chart is.
//
// In flow facts of cells, out flows a page that stands by itself: no script, no other
// file, nothing loaded. While the kernel is watched, the page asks the browser to load it
// anew now and then. It does not know who watches, and writes no file.
package cellindex

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Index is the cells of one kernel.
type Index struct {
	Kernel   string // its notebook, or its id
	PID      int    // of its process, the last one
	Began    time.Time
	Watching bool   // more may come
	Note     string // what there is to know about the watching; or empty
	Cells    []Cell // in the order they began
}

// Cell is one row. SetReport adds what its report says.
type Cell struct {
	Number   int // execution count; 0: not known
	Process  int // of the kernel: 1, after a restart 2
	Began    time.Time
	Already  bool // it ran before it was watched: Began is when that began
	Running  bool
	Text     string        // as typed
	Duration time.Duration // that it was recorded for, so far; 0: not known
	Outcome  string        // "ok", "error: ValueError", "still running"; empty: not known
	Headline string
	Place    string   // the line it was in last, of one that runs or was cut short
	GPU      *float64 // share of the time that its devices were busy; nil: it used none, or that is not known
	Results  []Result
	Trouble  string // why there is no result
}

// Result is a file of a cell's report.
type Result struct {
	Name string // of its format
	Path string // as the page refers to it
}

// SetReport takes over what a report says of the cell.
func (c *Cell) SetReport(r *report.View) {
	c.Duration = time.Duration(r.DurationNS)
	c.Headline = r.Headline.Text
	if f := r.MainFinding(); f != nil {
		c.Headline = f.Text
	}
	var busy, known int64
	for _, d := range r.Devices {
		if d.Used {
			busy += d.BusyNS
			known += d.BusyNS + d.IdleNS
		}
	}
	if c.GPU = nil; known > 0 {
		share := float64(busy) / float64(known)
		c.GPU = &share
	}
	if cell := r.Target().Cell; cell != nil {
		c.Outcome = cell.Ending()
	}
}

// reload is how often a browser loads the page anew while the kernel is watched, in seconds.
const reload = 5

// Page writes the index as a page.
func (x Index) Page() ([]byte, error) {
	p := page{
		Title: words.Clean(x.Kernel, words.MaxName), Note: words.Clean(x.Note, words.MaxName),
		About: fmt.Sprintf("Kernel process %d, watched since %s. %s.", x.PID, clock(x.Began), words.Plural(len(x.Cells), "cell", "cells")),
	}
	if x.Watching {
		p.Reload = reload
	}
	for _, c := range x.Cells {
		p.Rows = append(p.Rows, c.row())
	}
	var b bytes.Buffer
	if err := document.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("the page of cells: %w", err)
	}
	return b.Bytes(), nil
}

func clock(t time.Time) string { return t.Format("2006-01-02 15:04:05") }

type page struct {
	Title, About, Note string
	Reload             int
	Rows               []row
}

type row struct {
	Number, Began, Duration, Outcome, GPU, Headline, Place, Text, Trouble string
	Bad, Running                                                          bool
	Results                                                               []Result
}

const unknown = "–"

func (c Cell) row() row {
	w := row{
		Number: unknown, Began: c.Began.Format("15:04:05"), Duration: unknown, Outcome: unknown, GPU: unknown,
		Headline: words.Clean(c.Headline, 300), Text: words.Clean(strings.TrimSpace(firstLine(c.Text)), 120),
		Trouble: words.Clean(c.Trouble, 300), Running: c.Running,
	}
	if c.Number > 0 {
		w.Number = fmt.Sprintf("[%d]", c.Number)
	}
	if c.Process > 1 {
		w.Number += fmt.Sprintf(" of process %d", c.Process)
	}
	if c.Already {
		w.Began = "before " + w.Began
	}
	if c.Duration > 0 {
		w.Duration = words.Duration(c.Duration)
		if c.Already {
			w.Duration = "over " + w.Duration
		}
	}
	if c.Outcome != "" {
		w.Outcome = words.Clean(c.Outcome, 80)
		w.Bad = c.Outcome != "ok"
	}
	if c.Running {
		w.Outcome, w.Bad = "running", false
	}
	if c.GPU != nil {
		w.GPU = words.Percent(*c.GPU)
	}
	if c.Place != "" {
		w.Place = "In " + words.Clean(c.Place, words.MaxName)
	}
	for _, r := range c.Results {
		w.Results = append(w.Results, Result{r.Name, (&url.URL{Path: "./" + r.Path}).String()})
	}
	return w
}

// firstLine is the first line of a cell that says something.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

var document = template.Must(template.New("index").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}} – omni_perf</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
{{with .Reload}}<meta http-equiv="refresh" content="{{.}}">
{{end}}<style>
:root{color-scheme:light dark;--text:#1c1c1e;--dim:#6e6e73;--line:#e2e2e7;--ground:#fff;--bad:#b3261e;--good:#1a7f37}
@media (prefers-color-scheme:dark){:root{--text:#f2f2f5;--dim:#9a9aa2;--line:#35353b;--ground:#111113;--bad:#ff8a80;--good:#6fdd8b}}
body{font:14px/1.45 system-ui,"Segoe UI","DejaVu Sans",sans-serif;color:var(--text);background:var(--ground);max-width:1100px;margin:32px auto;padding:0 24px}
h1{font-size:20px;margin:0 0 4px;overflow-wrap:anywhere}.dim{color:var(--dim)}.bad{color:var(--bad)}.running{color:var(--good);font-weight:600}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}
td,th{padding:6px 14px 6px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}th{color:var(--dim);font-weight:400}
.n{text-align:right;white-space:nowrap}.t{white-space:nowrap}.w{overflow-wrap:anywhere;min-width:16em}code{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:12px}
a{color:inherit}
</style></head><body>
<h1>{{.Title}}</h1><p class="dim">{{.About}}</p>
{{with .Note}}<p>{{.}}</p>
{{end}}{{if .Rows}}<div class="scroll"><table>
<tr><th>Cell</th><th>Began</th><th class="n">Took</th><th>Outcome</th><th class="n">GPU busy</th><th>Where the time went</th><th>Chart</th></tr>
{{range .Rows}}<tr><td class="t">{{.Number}}</td><td class="t">{{.Began}}</td><td class="n">{{.Duration}}</td><td{{if .Running}} class="running"{{else if .Bad}} class="bad"{{end}}>{{.Outcome}}</td><td class="n">{{.GPU}}</td><td class="w">{{.Headline}}{{with .Place}}<div>{{.}}</div>{{end}}{{with .Text}}<div class="dim"><code>{{.}}</code></div>{{end}}{{with .Trouble}}<div class="bad">{{.}}</div>{{end}}</td><td>{{range $i, $r := .Results}}{{if $i}} · {{end}}<a href="{{$r.Path}}">{{$r.Name}}</a>{{end}}</td></tr>
{{end}}</table></div>{{else}}<p>No cell has begun yet.</p>
{{end}}</body></html>
`))
