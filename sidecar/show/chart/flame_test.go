package chart

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/flame"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Shares of a row's area are shares of time, however fast the program alternates.
func TestRasterKeepsShares(t *testing.T) {
	for _, period := range []float64{0.0007, 0.0123, 0.1, 0.1001, 1.7, 13} {
		var spans []span
		for at := 0.0; at < 100; at += period {
			spans = append(spans, span{at, at + 0.6*period, 1, report.StatePython}, span{at + 0.6*period, at + 0.9*period, 2, report.StateWaiting})
		}
		var seen [3]float64
		for _, i := range raster(spans, 1000, 100) {
			if i < 0 {
				seen[0]++
			} else {
				seen[spans[i].node]++
			}
		}
		for k, want := range []float64{0.1, 0.6, 0.3} {
			if got := seen[k] / 1000; math.Abs(got-want) > 0.05 { // 3 standard deviations of 1000 columns
				t.Errorf("period %v s: share of %d is %.3f, want %.1f", period, k, got, want)
			}
		}
	}
}

func TestRasterShowsOnlyWhatRan(t *testing.T) {
	spans := []span{{1, 2, 1, report.StatePython}, {2, 2.0001, 2, report.StatePython}, {5, 9, 3, report.StatePython}}
	for c, i := range raster(spans, 100, 10) {
		from, to := float64(c-1)/10, float64(c+2)/10 // a column's instant is in it or beside it
		through := slices.ContainsFunc(spans, func(s span) bool { return s.start <= from && s.end >= to })
		if i >= 0 && (spans[i].start >= to || spans[i].end <= from) || i < 0 && through {
			t.Errorf("column %v … %v shows %d", from, to, i)
		}
	}
}

// The viewer shows the same instants: testdata of the viewer is what its own rule makes.
func TestInstantsAreTheViewers(t *testing.T) {
	text, err := os.ReadFile("../viewer/testdata/geometry.json")
	if err != nil {
		t.Fatal(err)
	}
	var fixtures []struct {
		Name     string
		Instants []float64
		Document struct {
			DurationNS int64 `json:"duration_ns"`
		}
	}
	if err := json.Unmarshal(text, &fixtures); err != nil {
		t.Fatal(err)
	}
	for _, f := range fixtures {
		for c, at := range instants(report.Seconds(f.Document.DurationNS), len(f.Instants)) {
			if want := f.Instants[c] / 1e6; math.Abs(at-want) > 1e-9 {
				t.Fatalf("%s, column %d: %v s, want %v s", f.Name, c, at, want)
			}
		}
	}
}

// What a box is called, the most informative way first.
func TestBoxesAreNamed(t *testing.T) {
	p := flamePicture{flameLane: &flameLane{
		functions: []labels.Function{
			{Name: "Decoder.decode", File: "~/json/decoder.py", Line: 343},
			{Name: "import scipy.stats", File: "~/scipy/stats/__init__.py", Line: 1, Module: true},
		},
		tree: &flame.Tree{Calls: []flame.Call{{Above: -1, Function: -1}, {Function: 0, Depth: 1}, {Function: 1, Depth: 1}, {Function: 0, Depth: 1, Repeats: 2}}},
	}}
	for _, c := range []struct {
		box  flame.Box
		want []string
	}{
		{flame.Box{Call: 1}, []string{"Decoder.decode  decoder.py:343", "Decoder.decode", "decode"}},
		{flame.Box{Call: 3}, []string{"Decoder.decode ×3  decoder.py:343", "Decoder.decode ×3", "decode ×3"}},
		{flame.Box{Call: 2}, []string{"import scipy.stats", "scipy.stats"}},
		{flame.Box{Call: 1, Share: 0.62, Others: 3}, []string{"decode 62 % + 3 more", "decode 62 %", "decode"}},
		{flame.Box{Call: 2, Share: 0.5}, []string{"scipy.stats 50 %", "scipy.stats"}},
		{flame.Box{Deeper: 12}, []string{"… 12 deeper", "…"}},
	} {
		if got := p.labels(c.box); !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %q, want %q", c.box, got, c.want)
		}
	}
}

// A call into a library is one box for what it calls within its package, and its tooltip says so.
func TestLibrariesFoldByPackage(t *testing.T) {
	s := sketch.NewScript(2)
	cell := sketch.Call("<module>", "Cell [1]", 1, report.CodeCell)
	main := s.Thread("MainThread")
	pandas := func(name string) sketch.Frame {
		return sketch.Call(name, "~/v/lib/python3.12/site-packages/pandas/"+name+".py", 1, report.CodeFramework)
	}
	s.Span(main, 0, 1, report.StatePython, cell, pandas("to_csv"), pandas("save"), pandas("write"))
	s.Span(main, 1, 2, report.StatePython, cell, pandas("to_csv"))
	d := s.CellOf(1, "df.to_csv()").Document()
	name := "pandas"
	for i := range d.Files {
		if d.Files[i].Code == report.CodeFramework {
			d.Files[i].Package = &name
		}
	}
	v, err := report.Check(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lay(digestOf(v), scene.DefaultWidth, fullDetail).Lanes {
		if l.Kind != scene.FlameLane {
			continue
		}
		if len(l.Rows) != 2 || len(l.Rows[1].Boxes) != 1 {
			t.Fatalf("%d rows, want the cell and to_csv: %+v", len(l.Rows), l.Rows)
		}
		if title := l.Rows[1].Boxes[0].Title; !strings.Contains(title, "and what it calls in its package") {
			t.Errorf("tooltip %q", title)
		}
	}
}
