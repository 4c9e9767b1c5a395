package chart

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
)

// streamsIn returns the lanes of streams.
func streamsIn(s *scene.Scene) []scene.Lane {
	var lanes []scene.Lane
	for _, l := range s.Lanes {
		if l.ID == "stream" {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

func says(s *scene.Scene, text string) bool {
	for _, l := range s.Texts {
		if l.S == text {
			return true
		}
	}
	return false
}

func TestKernelsStandWhereTheyRan(t *testing.T) {
	r := sketch.CpuCell() // 6.2 s
	r.Kernels = []sketch.Lane{
		sketch.Stream(0, 7, []string{sketch.Gemm, sketch.ToDevice}, [3]float64{1, 2, 0}, [3]float64{2, 2.5, 1}, [3]float64{4, 5, 0}),
		sketch.Stream(1, 20, []string{sketch.AllReduce}, [3]float64{3, 6.2, 0}),
	}
	r.Kernels[0].Count = []int{1, 1, 40}
	s := lay(digestOf(r.View()), scene.DefaultWidth, fullDetail)
	lanes := streamsIn(s)
	if len(lanes) != 2 {
		t.Fatalf("%d lanes, want 2", len(lanes))
	}
	perSecond := (s.Plot.X1 - s.Plot.X0) / 6.2
	want := [][]scene.Block{
		{{X0: 1, X1: 2, Paint: scene.PaintGPU, Title: sketch.Gemm}, {X0: 2, X1: 2.5, Paint: scene.PaintGPUMemory, Title: sketch.ToDevice}, {X0: 4, X1: 5, Paint: scene.PaintGPU, Title: "the longest of 40 kernels"}},
		{{X0: 3, X1: 6.2, Paint: scene.PaintMemory, Title: sketch.AllReduce}},
	}
	for i, lane := range lanes {
		boxes := lane.Rows[0].Boxes
		if len(boxes) != len(want[i]) {
			t.Fatalf("lane %d has %d boxes, want %d", i, len(boxes), len(want[i]))
		}
		for k, b := range boxes {
			w := want[i][k]
			x0, x1 := s.Plot.X0+w.X0*perSecond, s.Plot.X0+w.X1*perSecond
			if math.Abs(b.X0-x0) > 1.5 || math.Abs(b.X1-x1) > 1.5 || b.Paint != w.Paint || !strings.Contains(b.Title, w.Title) {
				t.Errorf("lane %d: box %s from %.1f to %.1f with %q, want %s from %.1f to %.1f with %q", i, b.Paint, b.X0, b.X1, b.Title, w.Paint, x0, x1, w.Title)
			}
		}
	}
	for _, text := range []string{"GPU 0 stream 7", "40 % busy", "GPU 1 stream 20", "52 % busy", "compute kernel", "communication", "copy or fill"} {
		if !says(s, text) {
			t.Errorf("the picture does not say %q", text)
		}
	}
	if got, want := lanes[0].About, "GPU 0 stream 7: 2.5 s of work in 42 kernels, copies and fills"; got != want {
		t.Errorf("about %q, want %q", got, want)
	}
	flame := false
	for _, l := range s.Lanes {
		flame = flame || l.ID == "flame"
		if l.ID == "stream" && !flame {
			t.Error("a stream is above the flame chart")
		}
	}
}

// The area of a colour is the share of time, however short the kernels are.
func TestShortKernelsKeepTheirShare(t *testing.T) {
	r := sketch.CpuCell()
	var blocks [][3]float64
	for at := 1.0; at < 5; at += 1e-4 {
		blocks = append(blocks, [3]float64{at, at + 3e-5, 0})
	}
	r.Kernels = []sketch.Lane{sketch.Stream(0, 7, []string{sketch.Gemm}, blocks...)}
	s := lay(digestOf(r.View()), 2400, fullDetail)
	inked := 0.0
	for _, b := range streamsIn(s)[0].Rows[0].Boxes {
		inked += b.X1 - b.X0
		if b.Title != "" && !strings.Contains(b.Title, sketch.Gemm+"\nmost of ") {
			t.Errorf("tooltip %q", b.Title)
		}
	}
	got, want := inked/(s.Plot.X1-s.Plot.X0), 0.3*4/6.2
	if math.Abs(got-want) > 0.04 { // three standard errors of 2,000 columns
		t.Errorf("%.3f of the lane is inked, want %.3f", got, want)
	}
}

func TestStreamsAreFew(t *testing.T) {
	d := digestOf(sketch.ManyStreams().View())
	for _, dt := range details {
		s := lay(d, scene.DefaultWidth, dt)
		lanes, titles := streamsIn(s), 0
		for _, l := range lanes {
			for _, b := range l.Rows[0].Boxes {
				if b.Title != "" {
					titles++
				}
			}
		}
		if len(lanes) != dt.streams || titles > dt.titles {
			t.Errorf("detail %d: %d lanes and %d tooltips, want %d lanes and at most %d tooltips", dt.level, len(lanes), titles, dt.streams, dt.titles)
		}
		if want := fmt.Sprintf("+ %d more streams", 12-dt.streams); !says(s, want) {
			t.Errorf("detail %d: the picture does not say %q", dt.level, want)
		}
	}
}

func TestTheBusiestStreamsAreShown(t *testing.T) {
	r := sketch.CpuCell()
	r.DurationS = 20
	for i := range 11 {
		r.Kernels = append(r.Kernels, sketch.Stream(0, int64(i), []string{sketch.Gemm}, [3]float64{0, 0.1 + float64(i*7%11), 0}))
	}
	var names []string
	lanes, more := streamsOf(r.View(), 20)
	for _, l := range lanes {
		names = append(names, strings.TrimPrefix(l.name, "GPU 0 stream "))
	}
	// Streams 0, 8 and 5 have 0, 1 and 2 seconds.
	if got, want := strings.Join(names, " "), "1 2 3 4 6 7 9 10"; got != want || more != 3 {
		t.Errorf("streams %s and %d more, want %s and 3 more", got, more, want)
	}
}
