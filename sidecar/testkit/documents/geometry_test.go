package documents

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/flame"
)

var update = flag.Bool("update", false, "rewrite testdata")

// fixture is the geometry of one document, for both implementations.
type fixture struct {
	Name     string    `json:"name"`
	Columns  int       `json:"columns"`
	Instants []float64 `json:"instants"` // microseconds
	Boxes    [][][]box `json:"boxes"`    // by lane and row, nil for tracks
	Document *Document `json:"document"`
}

// TestGeometry keeps testdata/geometry.json what this implementation makes of its
// documents; test/geometry.test.ts holds the viewer to the same numbers.
func TestGeometry(t *testing.T) {
	const columns = 894 // of a picture of 1,120 pixels
	var all []fixture
	for _, s := range []struct {
		name string
		make func() *Document
	}{{"training", Training}, {"workers", Workers}, {"imports", Imports}, {"short", ShortCalls}} {
		d := s.make()
		all = append(all, fixture{s.name, columns, flame.Instants(0, float64(d.DurationNS)/1000, columns), Geometry(d, columns), d})
	}
	var got bytes.Buffer
	if err := json.NewEncoder(&got).Encode(all); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", "show", "viewer", "testdata", "geometry.json")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s is not what the samples make; go test ./sidecar/testkit/documents -update rewrites it", file)
	}
}

// TestInstants holds what makes the choice fair and calm: each instant in or beside its column, none
// before the one before it, and the same ones when the window moves by whole columns of a cell.
func TestInstants(t *testing.T) {
	for _, w := range [][2]float64{{0, 13.4e6}, {1e9, 1e9 + 5}, {3.5e9, 3.6e9}, {17, 18.3}} {
		column := (w[1] - w[0]) / 1000
		last := w[0] - 2*column
		for c, at := range flame.Instants(w[0], w[1], 1000) {
			middle := w[0] + (float64(c)+0.5)*column
			if at < last || at < middle-1.5*column || at > middle+1.5*column {
				t.Fatalf("window %v, column %d: %v after %v, middle %v", w, c, at, last, middle)
			}
			last = at
		}
	}
	// A cell has the same instant in every window.
	a, b := flame.Instants(0, 1024*1000, 1000), flame.Instants(512*1024, 512*1024+1024*1000, 1000)
	for c := range 400 {
		if a[512+c] != b[c] {
			t.Fatalf("column %d: %v moved to %v", c, a[512+c], b[c])
		}
	}
}

// TestSharesAreFair compares shares of columns with shares of time, for spans much shorter than a column.
func TestSharesAreFair(t *testing.T) {
	var spans []span
	for at := int64(0); at < 1_000_000; at += 10 {
		spans = append(spans, span{at, at + 3, 1, Python}, span{at + 3, at + 10, 2, Python})
	}
	var first int
	picked := picks(spans, flame.Instants(0, 1e6, 2000))
	for _, i := range picked {
		if i >= 0 && spans[i].node == 1 {
			first++
		}
	}
	if share := float64(first) / 2000; share < 0.26 || share > 0.34 {
		t.Errorf("a stack with 30 %% of the time has %.1f %% of the columns", share*100)
	}
}
