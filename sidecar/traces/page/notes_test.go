package page

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// TestNotesAreNoWarnings: what affects no figure is below the figures.
func TestNotesAreNoWarnings(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"source.json": `{"repository": "x", "files": []}`,
		"trace.json":  `{"traceEvents":[{"ph":"X","cat":"kernel","name":"a` + "\x01" + `b","pid":0,"tid":7,"ts":1,"dur":5,"args":{"stream":7}}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := traces.Run(context.Background(), []string{dir}, kineto.Options{}, analyses.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &Result{Name: "run", Analysis: a}
	var out strings.Builder
	if err := r.Text(&out, 120); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if strings.Contains(text, "\n! ") || strings.Count(text, "\nNote: ") != 2 || strings.Index(text, "Note: ") < strings.Index(text, "Kernels by device time") {
		t.Errorf("the two notes are not below the tables:\n%s", text)
	}
	if d := r.page("", 10); len(d.Warnings) != 0 || len(d.Notes) != 2 {
		t.Errorf("the page has warnings %q and notes %q", d.Warnings, d.Notes)
	}
	if len(a.Warnings) != 2 || !a.Warnings[0].Note || !a.Warnings[1].Note {
		t.Errorf("got %+v", a.Warnings)
	}
}

// TestTheBandwidthOfCopiesIsWithoutFills, which need no bus.
func TestTheBandwidthOfCopiesIsWithoutFills(t *testing.T) {
	series := func(names ...string) *table.Table {
		s := table.New(analyses.TableBandwidthSeries, "", &table.Column{Name: "rank", Kind: table.Int}, &table.Column{Name: "name", Kind: table.Text},
			&table.Column{Name: "ts_us", Kind: table.Micros}, &table.Column{Name: "memory_bw_gbps", Kind: table.GBps})
		for i, name := range names {
			s.Add(0, name, float64(2*i), 1000.0)
			s.Add(0, name, float64(2*i+1), 0.0)
		}
		return s
	}
	d := drawing{&Result{}, "", mostRows}
	if chart, ok := d.bandwidth(series("Memset", "Memcpy HtoD")); !ok || strings.Contains(string(chart.SVG), "Memset") || !strings.Contains(string(chart.SVG), "HtoD") {
		t.Errorf("got %t, %s", ok, chart.SVG)
	}
	if _, ok := d.bandwidth(series("Memset")); ok {
		t.Error("fills alone are drawn as copies")
	}
}

// TestWhatOtherToolsLackIsNoAdviceAboutTorch: a note says it.
func TestWhatOtherToolsLackIsNoAdviceAboutTorch(t *testing.T) {
	a, err := traces.Run(context.Background(), []string{"../xplane/testdata/node7.xplane.pb"}, kineto.Options{}, analyses.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &Result{Name: "run", Analysis: a}
	if missing := r.missing(); missing != nil {
		t.Errorf("got %q", missing)
	}
	a.Recordings[0].From = kineto.FromTorch
	if missing := r.missing(); len(missing) != 1 || missing[0] != "memory (profile_memory=True)" {
		t.Errorf("got %q of torch's", missing)
	}
}
