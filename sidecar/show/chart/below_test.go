package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// said is all text of a scene, from top to bottom.
func said(s *scene.Scene) string {
	texts := slices.Clone(s.Texts)
	slices.SortStableFunc(texts, func(a, b scene.Label) int { return int(a.Y*10) - int(b.Y*10) })
	var b strings.Builder
	for _, t := range texts {
		b.WriteString(t.S + " ")
	}
	return b.String()
}

// What someone is to do is never cut, however narrow the picture.
func TestHintsAreNotCut(t *testing.T) {
	const hint = "several ways out, in this order: move the call out of the loop, give it a larger batch, keep the sum on the device and call .item() after the loop, or take what the page on idle time says of it at last"
	s := sketch.TrainingCell()
	s.Findings = append(s.Findings, sketch.Finding{Text: "Another finding.", Hint: hint})
	for i := range s.Idle {
		for k := range s.Idle[i].Causes {
			s.Idle[i].Causes[k].Hint = hint
		}
	}
	r := s.View()
	for _, width := range []float64{560, 700, 900, 1120, 1800} {
		d := digestOf(r)
		drawn := lay(d, width, fullDetail)
		words := strings.Fields(hint)
		counts := make(map[string]int)
		for _, w := range strings.Fields(said(drawn)) {
			counts[w]++
		}
		for _, w := range words {
			if counts[w] < 2 { // in the table, and below "Also"
				t.Errorf("%.0f pixels: the hint has no %q", width, w)
				break
			}
		}
	}
}

func TestBarsHaveOneScale(t *testing.T) {
	small := table{rows: []row{{share: 0.006}, {share: 0.003}}}
	whole := table{rows: []row{{share: 1}}}
	cores := table{rows: []row{{share: 4}, {share: 1}}}
	for _, c := range []struct {
		what string
		t    table
		want float64
	}{{"0.6 % of a core", small, 1.5}, {"all of the time", whole, 100}, {"four cores", cores, 100}} {
		if got := barLength(c.t.rows[0], largestShare(c.t), 100); got != c.want {
			t.Errorf("%s: a bar of %.1f %%, want %.1f", c.what, got, c.want)
		}
	}
}

// A white stretch would read as "did nothing".
func TestWhatIsNotKnownIsSaid(t *testing.T) {
	s := sketch.NewScript(10)
	main := s.Thread("MainThread")
	work := sketch.Call("work", "Cell [3]", 1, report.CodeCell)
	s.Span(main, 0, 4, report.StatePython, work)
	s.Span(main, 4, 7, report.StateUnknown)
	s.Span(main, 7, 10, report.StatePython, work)
	drawn := lay(digestOf(s.CellOf(3, "work()").View()), scene.DefaultWidth, fullDetail)
	if len(drawn.Gaps) != 1 || drawn.Gaps[0].X1-drawn.Gaps[0].X0 < 0.25*(drawn.Plot.X1-drawn.Plot.X0) {
		t.Errorf("gaps %v, want one of 3 of 10 s", drawn.Gaps)
	}
	if text := said(drawn); !strings.Contains(text, "not sampled") || !strings.Contains(text, "not known") {
		t.Errorf("neither the lane nor the legend says it: %s", text)
	}
}

func TestAGPUsTooltipNamesIt(t *testing.T) {
	r := sketch.TrainingCell().View()
	for i := range r.Devices {
		r.Devices[i].Name, r.Devices[i].Simulated = "Demo GPU (simulated)", true
	}
	about := tracksOf(r, gpuSummary{}, 13.4)[0].about
	if !strings.HasPrefix(about, "GPU 0: mean ") || strings.Count(about, "simulated") != 1 {
		t.Errorf("%q", about)
	}
}

func TestAMemoryLaneSaysHowMuchItGrew(t *testing.T) {
	for want, values := range map[string][]float64{"+2 MiB": {1 << 20, 3 << 20}, "−2 MiB": {3 << 20, 1 << 20}, "": {1 << 20, 1<<20 + 100}} {
		var points []scene.Point
		for i, v := range values {
			points = append(points, scene.Point{From: float64(i), To: float64(i + 1), Value: v})
		}
		if got := grown(points); got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
	}
}

// The lane says the same of resident memory as the table below it.
func TestTheMemoryLaneSaysWhatWasKept(t *testing.T) {
	r := sketch.TrainingCell().View()
	track := r.HostTrack("rss")
	program := r.Program()
	track.Process = &program
	kept := int64(200 << 20)
	r.Processes[program].KeptBytes = &kept
	if got := changeOf(r, track, nil, 10); got != "+200 MiB" {
		t.Errorf("got %q", got)
	}
	points := []scene.Point{{Value: 0}, {Value: 64 << 20}}
	r.Processes[program].KeptBytes = nil
	if got := changeOf(r, track, points, 10); got != "+64 MiB" {
		t.Errorf("of an older report: %q", got)
	}
	if got := changeOf(r, track, points, 0.02); got != "" {
		t.Errorf("of a short cell that is not known: %q", got)
	}
}
