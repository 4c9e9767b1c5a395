package cellindex

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

var update = flag.Bool("update", false, "rewrite the golden page")

var began = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)

func share(v float64) *float64 { return &v }

func notebook() Index {
	return Index{
		Kernel: "~/notebooks/train.ipynb", PID: 4242, Began: began, Watching: true,
		Cells: []Cell{
			{
				Number: 3, Process: 1, Began: began.Add(-time.Minute), Already: true, Duration: 92 * time.Second, Outcome: "error: KeyError",
				Text: "\nfor batch in loader:\n    step(batch)", Headline: "GPU 0 was idle for 61 of 92 s: the loader is slow.", GPU: share(0.337),
				Results: []Result{{"html", "cell-3.html"}, {"json", "cell-3.json"}},
			},
			{Number: 1, Process: 2, Began: began.Add(2 * time.Minute), Duration: 5 * time.Second, Running: true, Outcome: "still running",
				Text: "fit()", Headline: "Spent 4.8 of 5.0 s in line 1.", Place: "train.py:40, fit: loss = model(x)", Results: []Result{{"html", "cell.2-1.html"}}},
			{Process: 2, Began: began.Add(3 * time.Minute), Trouble: "the report cannot be made"},
		},
	}
}

func pageOf(t testing.TB, x Index) string {
	t.Helper()
	page, err := x.Page()
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestPage(t *testing.T) {
	const golden = "testdata/index.html"
	got := pageOf(t, notebook())
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || got != string(want) {
		t.Errorf("the page differs from %s (%v); go test -update writes it anew", golden, err)
	}
}

func TestAPageIsLoadedAnewOnlyWhileTheKernelIsWatched(t *testing.T) {
	x := notebook()
	if !strings.Contains(pageOf(t, x), `http-equiv="refresh"`) {
		t.Error("a page that grows is not loaded anew")
	}
	x.Watching = false
	if strings.Contains(pageOf(t, x), `http-equiv="refresh"`) {
		t.Error("a page that grows no more is loaded anew")
	}
}

func TestAPageWithoutCellsSaysSo(t *testing.T) {
	if got := pageOf(t, Index{Kernel: "k", Began: began}); !strings.Contains(got, "No cell has begun yet.") {
		t.Error(got)
	}
}

func TestWhatTheReportSaysOfACell(t *testing.T) {
	exception := "KeyError"
	finding := 0
	r := &report.View{Document: &report.Document{
		DurationNS: 3e9, Headline: report.Headline{Text: "all of it", Finding: &finding},
		Findings: []report.Finding{{Text: "The loader is slow."}},
		Targets:  []report.Target{{Cell: &report.Cell{Outcome: report.OutcomeError, Exception: &exception}}},
		Devices:  []report.Device{{Used: true, BusyNS: 1e9, IdleNS: 3e9}, {BusyNS: 9e9}},
	}}
	var c Cell
	c.SetReport(r)
	if c.Duration != 3*time.Second || c.Headline != "The loader is slow." || c.Outcome != "error: KeyError" || c.GPU == nil || *c.GPU != 0.25 {
		t.Errorf("%+v", c)
	}
	r.Devices, r.Targets[0].Cell = nil, &report.Cell{Outcome: report.OutcomeUnknown}
	c.SetReport(r)
	if c.GPU != nil || c.Outcome != "" {
		t.Errorf("%+v; what is not known has to be left out", c)
	}
}

// scripted finds what could run or load something.
var scripted = regexp.MustCompile(`^(?i)(script|iframe|object|embed|link|img|base|form|svg|math|input)$`)

// Names of notebooks, texts of cells, exceptions and files are whatever somebody chose.
func FuzzPage(f *testing.F) {
	f.Add(`<script>alert(1)</script>`)
	f.Add(`"><img src=x onerror=alert(1)>`)
	f.Add(`javascript:alert(1)`)
	f.Add("\x1b]0;owned\a\u202Etxt.exe\x00")
	f.Add(`{{.}}`)
	f.Fuzz(func(t *testing.T, s string) {
		x := notebook()
		x.Kernel, x.Note = s, s
		for i := range x.Cells {
			c := &x.Cells[i]
			c.Text, c.Headline, c.Place, c.Outcome, c.Trouble = s, s, s, s, s
			c.Results = []Result{{s, filepath.Base(s)}}
		}
		page, err := html.Parse(strings.NewReader(pageOf(t, x)))
		if err != nil {
			t.Fatal(err)
		}
		for n := range page.Descendants() {
			if n.Type == html.ElementNode && scripted.MatchString(n.Data) {
				t.Errorf("%q made a <%s>", s, n.Data)
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "href" && !strings.HasPrefix(a.Val, "./") {
					t.Errorf("%q made %s=%q", s, a.Key, a.Val)
				}
			}
		}
	})
}
