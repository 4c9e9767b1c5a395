package chart

import (
	"math"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// loop is a program of many short calls for so many seconds: a third in read, the rest in work.
func loop(seconds float64) *digest {
	s := sketch.NewScript(seconds)
	main := s.Thread("MainThread")
	cell := sketch.Call("<module>", "Cell [3]", 1, report.CodeCell)
	for at := 0.0; at < seconds; at += 0.03 {
		s.Span(main, at, min(at+0.01, seconds), report.StateIO, cell, sketch.Call("read", "Cell [3]", 2, report.CodeCell))
		s.Span(main, at+0.01, min(at+0.03, seconds), report.StatePython, cell, sketch.Call("work", "Cell [3]", 3, report.CodeCell))
	}
	return digestOf(s.CellOf(3, "run()").View())
}

// Of a long recording the flame chart shows one joined box; the merged one can be read.
func TestALongRecordingHasAMergedFlameGraph(t *testing.T) {
	s := lay(loop(60), scene.DefaultWidth, fullDetail)
	if len(s.Merged) != 2 || len(s.Merged[1].Boxes) != 2 {
		t.Fatalf("merged rows %+v, want the cell and two functions", s.Merged)
	}
	plot := s.Plot.X1 - s.Plot.X0
	for i, want := range []struct {
		name  string
		share float64
	}{{"work  Cell [3]:3", 2. / 3}, {"read  Cell [3]:2", 1. / 3}} {
		b := s.Merged[1].Boxes[i]
		if share := (b.X1 - b.X0) / plot; b.Label == nil || b.Label.S != want.name || math.Abs(share-want.share) > 0.01 {
			t.Errorf("box %d is %+v, %.2f of the width; want %s with %.2f, the longest first", i, b.Label, share, want.name, want.share)
		}
	}
	if len(s.Merged[1].Hatch) != 1 {
		t.Errorf("hatches %v, want one over what waited", s.Merged[1].Hatch)
	}
	if top := s.Merged[0].Y0; top < s.Plot.Y1 {
		t.Errorf("it begins at %v, within the time axis that ends at %v", top, s.Plot.Y1)
	}
}

func TestAShortRecordingHasNone(t *testing.T) {
	if s := lay(loop(19), scene.DefaultWidth, fullDetail); len(s.Merged) != 0 {
		t.Errorf("19 s have %d merged rows", len(s.Merged))
	}
}
