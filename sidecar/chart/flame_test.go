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

// stacksOf makes a tree of one stack per entry, root first.
func stacksOf(stacks ...[]int32) (report.Nodes, *functions, []int32) {
	nodes, fns := report.Nodes{Parent: report.Column{0}, Frame: report.Column{0}}, &functions{}
	var leaves []int32
	for _, s := range stacks {
		at := int64(0)
		for _, fn := range s {
			for int(fn) >= len(fns.byFrame) {
				fns.byFrame = append(fns.byFrame, int32(len(fns.byFrame)))
				fns.list = append(fns.list, function{name: string(rune('a' + len(fns.list)))})
			}
			nodes.Parent, nodes.Frame = append(nodes.Parent, at), append(nodes.Frame, int64(fn))
			at = int64(len(nodes.Parent) - 1)
		}
		leaves = append(leaves, int32(at))
	}
	return nodes, fns, leaves
}

func TestFlameBoxesMergeByFunction(t *testing.T) {
	// main → a → b, main → a → c, main → a (recursing) → c, nothing, main
	nodes, fns, leaves := stacksOf([]int32{0, 1, 2}, []int32{0, 1, 3}, []int32{0, 1, 1, 1, 3}, nil, []int32{0})
	tree, columns := newCallTree(nodes, fns, leaves)
	type box struct {
		depth, from, to int
		fn              int32
	}
	var got []box
	for _, b := range flameBoxes(tree, columns, 10) {
		got = append(got, box{b.depth, b.from, b.to, tree.nodes[b.key].fn})
	}
	slices.SortFunc(got, func(a, b box) int { return (a.depth-b.depth)*100 + a.from - b.from })
	want := []box{{1, 0, 3, 0}, {1, 4, 5, 0}, {2, 0, 3, 1}, {3, 0, 1, 2}, {3, 1, 3, 3}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	for _, n := range tree.nodes {
		if n.fn == 1 && n.parent > 0 && n.repeat != 2 {
			t.Errorf("recursion of a counted %d times, want 2", n.repeat)
		}
	}
}

func TestFlameTellsWhatIsDeeper(t *testing.T) {
	deep := make([]int32, 900)
	for i := range deep {
		deep[i] = int32(i % 2)
	}
	nodes, fns, leaves := stacksOf(deep, []int32{0, 1})
	tree, columns := newCallTree(nodes, fns, leaves)
	for _, limit := range []int{5, maxDepth, 100} {
		var last flameBox
		for _, b := range flameBoxes(tree, columns, limit) {
			if b.depth > last.depth {
				last = b
			}
		}
		rows := min(limit, maxDepth)
		if want := (flameBox{run{0, 1, -int32(900 - rows)}, rows + 1}); last != want {
			t.Errorf("limit %d: the last row is %+v, want %+v", limit, last, want)
		}
	}
}
