package chart

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/report"
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
	text, err := os.ReadFile("viewer/testdata/geometry.json")
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
