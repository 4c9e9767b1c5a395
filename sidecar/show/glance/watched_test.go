package glance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

var began = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)

func watched() Watched {
	idle := 61 * time.Second
	return Watched{
		Kernel: "~/notebooks/train.ipynb", PID: 4242, Began: began, Watching: true,
		Cells: []WatchedCell{
			{
				Cell: Cell{
					Number: 3, Duration: 92 * time.Second, Outcome: "error: KeyError", Code: "for batch in loader:",
					Headline: "GPU 0 was idle for 61 of 92 s: the loader is slow.", Figures: Figures{Idle: &idle, Known: 92 * time.Second},
				},
				Process: 1, Began: began.Add(-time.Minute), Already: true,
				Results: []Result{{"html", "cell-3.html"}, {"json", "cell-3.json"}},
			},
			{
				Cell:    Cell{Number: 1, Duration: 5 * time.Second, Outcome: "still running", Code: "fit()", Headline: "Spent 4.8 of 5.0 s in line 1."},
				Process: 2, Began: began.Add(2 * time.Minute), Running: true, Place: "train.py:40, fit: loss = model(x)", Results: []Result{{"html", "cell.2-1.html"}},
			},
			{Process: 2, Began: began.Add(3 * time.Minute), Trouble: "the report cannot be made"},
		},
	}
}

func pageOf(t testing.TB, x Watched) string {
	t.Helper()
	page, err := x.Page()
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestThePageOfAWatchedKernel(t *testing.T) {
	const golden = "testdata/watched.html"
	got := pageOf(t, watched())
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
	x := watched()
	if !strings.Contains(pageOf(t, x), `http-equiv="refresh"`) {
		t.Error("a page that grows is not loaded anew")
	}
	x.Watching = false
	if strings.Contains(pageOf(t, x), `http-equiv="refresh"`) {
		t.Error("a page that grows no more is loaded anew")
	}
}

func TestAPageWithoutCellsSaysSo(t *testing.T) {
	if got := pageOf(t, Watched{Kernel: "k", Began: began}); !strings.Contains(got, "No cell has begun yet.") {
		t.Error(got)
	}
}

func TestWhatTheReportSaysOfACell(t *testing.T) {
	exception := "KeyError"
	finding := 0
	r := &report.View{Document: &report.Document{
		DurationNS: 3e9, Headline: report.Headline{Text: "all of it", Finding: &finding},
		Findings:  []report.Finding{{Text: "The loader is slow."}},
		Targets:   []report.Target{{Cell: &report.Cell{Outcome: report.OutcomeError, Exception: &exception}}},
		Processes: []report.Process{{}}, Subject: &report.Subject{},
		Devices: []report.Device{{Used: true, BusyNS: 1e9, IdleNS: 3e9}, {BusyNS: 9e9}},
	}}
	var c WatchedCell
	c.SetReport(r)
	if c.Duration != 3*time.Second || c.Headline != "The loader is slow." || c.Outcome != "error: KeyError" || c.row().GPU != "25 %" {
		t.Errorf("%+v", c)
	}
	r.Devices, r.Targets[0].Cell = nil, &report.Cell{Outcome: report.OutcomeUnknown}
	c.SetReport(r)
	if c.row().GPU != unknown || c.Outcome != "" {
		t.Errorf("%+v; what is not known has to be left out", c)
	}
}

// Names of notebooks, texts of cells, exceptions and files are whatever somebody chose.
func FuzzWatchedPage(f *testing.F) {
	f.Add(`<script>alert(1)</script>`)
	f.Add(`"><img src=x onerror=alert(1)>`)
	f.Add(`javascript:alert(1)`)
	f.Add("\x1b]0;owned\a\u202Etxt.exe\x00")
	f.Add(`{{.}}`)
	f.Fuzz(func(t *testing.T, s string) {
		x := watched()
		x.Kernel, x.Note = s, s
		for i := range x.Cells {
			c := &x.Cells[i]
			c.Code, c.Headline, c.Place, c.Outcome, c.Trouble = s, s, s, s, s
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
