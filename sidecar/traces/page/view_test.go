package page

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/traces/synth"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// training analyses made-up ranks with everything on.
func training(t *testing.T) (*Result, *synth.Answers) {
	t.Helper()
	dir := t.TempDir()
	cfg := synth.Config{Seed: 3, Ranks: 4, Steps: 4, Straggler: 2, StragglerDelay: 5 * time.Millisecond, ClockSkew: 4 * time.Millisecond, Stacks: true, Memory: true}
	answers, err := synth.WriteDir(cfg, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	names := append(analyses.DefaultTables(), analyses.Series()...)
	analysis, err := traces.Run(context.Background(), []string{dir}, kineto.Options{}, analyses.Options{Tables: names})
	if err != nil {
		t.Fatal(err)
	}
	var pickle bytes.Buffer
	if err := synth.WriteSnapshot(cfg, &pickle); err != nil {
		t.Fatal(err)
	}
	memory, err := snapshot.Read(bytes.NewReader(pickle.Bytes()), snapshot.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return &Result{Name: "run", Analysis: analysis, Snapshot: snapshot.Analyze(memory, snapshot.Options{})}, answers
}

func wellFormed(t *testing.T, name string, text []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s is not well-formed: %v", name, err)
			return
		}
	}
}

func TestEveryChartIsDrawn(t *testing.T) {
	r, _ := training(t)
	charts := r.Charts(Auto)
	drawn := map[string]bool{}
	for _, c := range charts {
		drawn[c.Name] = true
		wellFormed(t, c.Name, c.SVG)
		if len(c.SVG) > 100<<10 {
			t.Errorf("%s has %d bytes, a notebook keeps them all", c.Name, len(c.SVG))
		}
		if bytes.Contains(c.SVG, []byte("NaN")) || bytes.Contains(c.SVG, []byte("Inf")) {
			t.Errorf("%s has coordinates that are no numbers", c.Name)
		}
	}
	for _, name := range []string{
		"temporal", "idle", "idle-intervals", "python-idle", "dataloader", "steps", "overlap", "stragglers", "kernels",
		"launch-delay", "queue", "bandwidth", "memory", "snapshot", "snapshot-peak",
	} {
		if !drawn[name] {
			t.Errorf("there is no chart %q", name)
		}
	}
}

func TestHeadlineNamesTheStraggler(t *testing.T) {
	r, _ := training(t)
	text := strings.Join(r.headline(), "\n")
	for _, want := range []string{"The devices of 4 ranks were idle", "Rank 2 came last to"} {
		if !strings.Contains(text, want) {
			t.Errorf("headline %q does not say %q", text, want)
		}
	}
}

// hostile is a table whose text wants to be markup, a terminal command, a
// formula of terminal escapes.
func hostile() *Result {
	const evil = "</style><script>alert(1)</script>\x1b[31m\x07\u202Eevil\u0000 & \"quoted\""
	kernels := &table.Table{Name: analyses.TableKernels, Title: "Kernels", Columns: []*table.Column{
		{Name: "rank", Kind: table.Int, Ints: []int64{0, 0}},
		{Name: "kernel_type", Kind: table.Text, Text: []string{"COMPUTATION", evil}},
		{Name: "name", Kind: table.Text, Text: []string{evil, "k"}},
		{Name: "sum_us", Kind: table.Micros, Floats: []float64{5, math.NaN()}},
	}}
	return &Result{Name: evil, Notes: []string{evil}, Analysis: &traces.Analysis{
		Mode: analyses.Exact, Ranks: []int{0}, Tables: []*table.Table{kernels},
		Warnings: []kineto.Warning{{File: evil, What: evil}},
	}}
}

func TestForeignTextStaysText(t *testing.T) {
	r := hostile()
	var page, fragment, text, summary bytes.Buffer
	for _, write := range []error{r.Page(&page), r.Fragment(&fragment), r.Text(&text, 100), r.WriteSummary(&summary)} {
		if write != nil {
			t.Fatal(write)
		}
	}
	for name, html := range map[string]string{"page": page.String(), "fragment": fragment.String()} {
		if strings.Contains(html, "<script") || strings.Contains(html, "alert(1)</") {
			t.Errorf("%s has markup from the trace", name)
		}
	}
	for name, plain := range map[string]string{"text": text.String(), "summary": summary.String(), "page": page.String()} {
		for _, c := range plain {
			if unicode.IsControl(c) && c != '\n' || unicode.Is(unicode.Cf, c) {
				t.Errorf("%s has the control character %U", name, c)
				break
			}
		}
	}
	for _, c := range r.Charts(Dark) {
		wellFormed(t, c.Name, c.SVG)
	}
}

func TestTextFitsTheTerminal(t *testing.T) {
	r, _ := training(t)
	for _, columns := range []int{80, 120} {
		var out bytes.Buffer
		if err := r.Text(&out, columns); err != nil {
			t.Fatal(err)
		}
		tables := false
		for _, line := range strings.Split(out.String(), "\n") {
			tables = tables || strings.HasPrefix(line, "  rank")
			if strings.HasPrefix(line, "  ") && words.Columns(line) > columns {
				t.Errorf("%d columns: a line has %d: %s", columns, words.Columns(line), line)
			}
		}
		if !tables {
			t.Errorf("%d columns: no table was written", columns)
		}
	}
}

func TestCSVHasEveryTable(t *testing.T) {
	r, answers := training(t)
	dir := filepath.Join(t.TempDir(), "csv")
	if err := r.WriteCSV(dir); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "temporal_breakdown.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(answers.Ranks)+1 || rows[0][1] != "idle_time_us" {
		t.Errorf("temporal_breakdown.csv has %d rows and header %q", len(rows), rows[0])
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.csv"))
	want := 0
	for _, t := range r.tables() {
		if t.Len() > 0 {
			want++
		}
	}
	if len(files) != want {
		t.Errorf("%d files for %d tables with rows", len(files), want)
	}
}

func TestDisplayHasBundleAndColumns(t *testing.T) {
	r, _ := training(t)
	path := filepath.Join(t.TempDir(), "display.json")
	if err := r.DisplayFile(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var display struct {
		Bundle map[string]string
		Tables []struct {
			Name    string
			Columns []struct {
				Name string
				HTA  string
			}
		}
	}
	if err := json.Unmarshal(text, &display); err != nil {
		t.Fatal(err)
	}
	bundle := display.Bundle
	if first := display.Tables[0]; first.Name != "temporal_breakdown" || first.Columns[1].HTA != "idle_time(us)" {
		t.Errorf("the first table is %+v, want HTA's names of temporal_breakdown", first)
	}
	if !strings.Contains(bundle["text/html"], "data:image/svg") || !strings.Contains(bundle["text/plain"], "Where the device time went") {
		t.Error("the bundle lacks pictures or text")
	}
	if len(text) > 1<<20 {
		t.Errorf("the bundle has %d bytes", len(text))
	}
}

func TestUnwritableFileIsNamed(t *testing.T) {
	r, _ := training(t)
	path := filepath.Join(t.TempDir(), "no", "such", "page.html")
	if err := r.PageFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names %s", err, path)
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		duration(0.5): "0.500 µs", duration(334e3): "0.334 s", duration(12345): "12.3 ms", duration(2.5e6): "2.50 s", duration(math.NaN()): "–",
		words.Count(1234567): "1,234,567", words.Count(-1000): "-1,000", bytesOf(1536): "1.5 KiB",
		cut("日本語テキスト", 7): "日本語…", cut("abc", 3): "abc",
		kernelLabel("void at::native::(anonymous namespace)::k<4>(int, float)"): "k<4>",
		baseName("/a/b/train.py(3): f"):                                         "train.py(3): f",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestThePageRunsNothing(t *testing.T) {
	var page bytes.Buffer
	if err := (&Result{Name: "<script>alert(1)</script>"}).Page(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'none';`, "&lt;script&gt;"} {
		if !strings.Contains(strings.ReplaceAll(page.String(), "&#39;", "'"), want) {
			t.Errorf("the page does not hold %s", want)
		}
	}
}
