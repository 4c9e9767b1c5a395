package diagnose

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// cutFor is a loop in line 8 that takes 2 s of 3, the first of them with its callee cut.
func cutFor(cut timeline.Nanos) *timeline.Recording {
	var acts []act
	for range 10 {
		acts = append(acts, act{sec / 5, 8, "", "", timeline.StatePython, 0}, act{sec / 10, 7, "", "", timeline.StatePython, 0})
	}
	rec := scene{acts: acts, cell: strings.Repeat("\n", 6) + "for i in numbers:\n    total += i * i\n"}.record()
	left := cut
	for i, span := range rec.Threads[0].Spans {
		if f := rec.Frames[rec.Nodes[span.Node].Frame]; f.Line == 8 && left > 0 {
			rec.Threads[0].Spans[i].Truncated = true
			left -= span.End - span.Start
		}
	}
	return rec
}

func TestWhatWasCutIsNotKnownToBeTheLines(t *testing.T) {
	for _, c := range []struct {
		cut    timeline.Nanos
		advice Advice
	}{
		{0, Vectorise}, {2 * sec / 10, Vectorise}, {2 * sec, NoAdvice}, {12 * sec / 10, NoAdvice},
	} {
		d := Run(cutFor(c.cut))
		main, ok := d.Main()
		if !ok || d.Findings[main].ID != OneLine || d.Findings[main].Place.Line != 8 {
			t.Fatalf("findings %+v, want line 8", d.Findings)
		}
		if f := d.Findings[main]; f.CutTime != c.cut || f.PlaceTime != 2*sec || f.Advice != c.advice {
			t.Errorf("%v cut: got %v of %v, advice %q; want %q", c.cut, f.CutTime, f.PlaceTime, f.Advice, c.advice)
		}
	}
}
