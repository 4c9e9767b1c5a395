package glance

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Watched is the cells of a kernel that is watched, while it runs and afterwards.
type Watched struct {
	Kernel   string // its notebook, or its id
	PID      int    // of its process, the last one
	Began    time.Time
	Watching bool          // more may come
	Note     string        // what there is to know about the watching; or empty
	Cells    []WatchedCell // in the order they began
}

// WatchedCell is one row.
type WatchedCell struct {
	Cell
	Process int // of the kernel: 1, after a restart 2
	Began   time.Time
	Already bool // it ran before it was watched: Began is when that began
	Running bool
	Place   string // the line it was in last, of one that runs or was cut short
	Results []Result
	Trouble string // why there is no result
}

// Result is a file of a cell's report.
type Result struct {
	Name string // of its format
	Path string // as the page refers to it
}

// SetReport takes over what a report says of the cell.
func (c *WatchedCell) SetReport(r *report.View) {
	c.Cell.SetReport(r)
	if f := r.MainFinding(); f != nil {
		c.Headline = f.Text
	}
}

// reload is how often a browser loads the page anew while the kernel is watched, in seconds.
const reload = 5

// Page is the table as a page that stands by itself: it loads nothing but, while the kernel is watched, itself anew.
func (w Watched) Page() ([]byte, error) {
	p := watchedPage{
		Title: words.Clean(w.Kernel, words.MaxName), Note: words.Clean(w.Note, words.MaxName),
		About: fmt.Sprintf("Kernel process %d, watched since %s. %s.", w.PID, clock(w.Began), words.Plural(len(w.Cells), "cell", "cells")),
	}
	if w.Watching {
		p.Reload = reload
	}
	for _, c := range w.Cells {
		p.Rows = append(p.Rows, c.row())
	}
	var b bytes.Buffer
	if err := watchedTemplate.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("the page of cells: %w", err)
	}
	return b.Bytes(), nil
}

func clock(t time.Time) string { return t.Format("2006-01-02 15:04:05") }

type watchedPage struct {
	Title, About, Note string
	Reload             int
	Rows               []watchedRow
}

type watchedRow struct {
	Number, Began, Duration, Outcome, GPU, Headline, Place, Text, Trouble string
	Bad, Running                                                          bool
	Results                                                               []Result
}

func (c WatchedCell) row() watchedRow {
	w := watchedRow{
		Number: number(c.Cell), Began: c.Began.Format("15:04:05"), Duration: unknown, Outcome: unknown, GPU: unknown,
		Headline: words.Clean(c.Headline, 300), Text: words.Clean(c.Code, 120),
		Trouble: words.Clean(c.Trouble, 300), Running: c.Running,
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
	if f := c.Figures; f.Idle != nil && f.Known > 0 {
		w.GPU = words.Percent(1 - f.Idle.Seconds()/f.Known.Seconds())
	}
	if c.Place != "" {
		w.Place = "In " + words.Clean(c.Place, words.MaxName)
	}
	for _, r := range c.Results {
		w.Results = append(w.Results, Result{r.Name, (&url.URL{Path: "./" + r.Path}).String()})
	}
	return w
}

var watchedTemplate = template.Must(template.New("watched").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}} – omni_perf</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
{{with .Reload}}<meta http-equiv="refresh" content="{{.}}">
{{end}}<style>
` + style + `
.t{white-space:nowrap}.running{color:#1a7f37;font-weight:600}
@media screen and (prefers-color-scheme:dark){.running{color:#6fdd8b}}
</style></head><body>
<h1>{{.Title}}</h1><p class="dim">{{.About}}</p>
{{with .Note}}<p>{{.}}</p>
{{end}}{{if .Rows}}<div class="scroll"><table>
<tr><th>Cell</th><th>Began</th><th class="n">Took</th><th>Outcome</th><th class="n">GPU busy</th><th>Where the time went</th><th>Chart</th></tr>
{{range .Rows}}<tr><td class="t">{{.Number}}</td><td class="t">{{.Began}}</td><td class="n">{{.Duration}}</td><td{{if .Running}} class="running"{{else if .Bad}} class="bad"{{end}}>{{.Outcome}}</td><td class="n">{{.GPU}}</td><td class="w">{{.Headline}}{{with .Place}}<div>{{.}}</div>{{end}}{{with .Text}}<div class="dim"><code>{{.}}</code></div>{{end}}{{with .Trouble}}<div class="bad">{{.}}</div>{{end}}</td><td>{{range $i, $r := .Results}}{{if $i}} · {{end}}<a href="{{$r.Path}}">{{$r.Name}}</a>{{end}}</td></tr>
{{end}}</table></div>{{else}}<p>No cell has begun yet.</p>
{{end}}</body></html>
`))
