package chart

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
)

// scenes lays out every sample in several widths and details.
func scenes(t *testing.T, check func(t *testing.T, s *scene.Scene)) {
	for name, r := range sketch.Samples() {
		d := digestOf(r)
		for _, width := range []float64{scene.MinWidth, 760, scene.DefaultWidth, 2400} {
			t.Run(fmt.Sprintf("%s/%.0f", name, width), func(t *testing.T) { check(t, lay(d, width, fullDetail)) })
		}
		for _, dt := range details[1:] {
			t.Run(fmt.Sprintf("%s/detail %d", name, dt.level), func(t *testing.T) { check(t, lay(d, scene.DefaultWidth, dt)) })
		}
	}
}

const slack = 0.01 // rounding

func within(b, o scene.Box) bool {
	return b.X0 >= o.X0-slack && b.Y0 >= o.Y0-slack && b.X1 <= o.X1+slack && b.Y1 <= o.Y1+slack && b.X0 <= b.X1 && b.Y0 <= b.Y1
}

func overlaps(b, o scene.Box) bool {
	return b.X0 < o.X1-slack && o.X0 < b.X1-slack && b.Y0 < o.Y1-slack && o.Y0 < b.Y1-slack
}

func TestBoxesLieWithinTheirLane(t *testing.T) {
	scenes(t, func(t *testing.T, s *scene.Scene) {
		all := scene.Box{X0: 0, Y0: 0, X1: s.Width, Y1: s.Height}
		if !within(s.Plot, all) || !(s.Height > 0) || s.Height > 4000 {
			t.Fatalf("plot %v, picture %v", s.Plot, all)
		}
		last := s.Plot.Y0
		for _, l := range s.Lanes {
			if !within(l.Box, s.Plot) || l.Y0 < last-slack {
				t.Errorf("lane %q %v: not below the one before, or outside of the plot %v", l.ID, l.Box, s.Plot)
			}
			last = l.Y1
			for _, r := range l.Rows {
				end := l.X0
				for _, b := range r.Boxes {
					if b.X0 < end-slack || !(b.X1 > b.X0) || b.X1 > l.X1+slack || r.Y0 < l.Y0 || r.Y1 > l.Y1 {
						t.Fatalf("lane %q: box %v after %v", l.ID, b, end)
					}
					end = b.X1
				}
				for _, h := range r.Hatch {
					if !within(scene.Box{X0: h.X0, Y0: r.Y0, X1: h.X1, Y1: r.Y1}, l.Box) {
						t.Errorf("lane %q: hatch %v", l.ID, h)
					}
				}
			}
			for _, a := range l.Areas {
				for i := range a.Y {
					if !within(scene.Box{X0: a.X[i], Y0: a.Y[i], X1: a.X[i], Y1: a.Y[i]}, l.Box) {
						t.Fatalf("lane %q: point %v, %v is outside", l.ID, a.X[i], a.Y[i])
					}
				}
			}
		}
		for _, b := range s.Shades {
			if !within(b, s.Plot) {
				t.Errorf("shade %v outside of %v", b, s.Plot)
			}
		}
		for _, b := range s.Bars {
			if !within(b.Box, all) {
				t.Errorf("bar %v outside of %v", b, all)
			}
		}
	})
}

func TestTextNeverOverlapsNorLeaves(t *testing.T) {
	scenes(t, func(t *testing.T, s *scene.Scene) {
		all := scene.Box{X0: 0, Y0: 0, X1: s.Width, Y1: s.Height}
		texts := s.AllTexts()
		boxes := make([]scene.Box, len(texts))
		for i, l := range texts {
			boxes[i] = l.Bounds()
			if l.S == "" || math.IsNaN(l.X) || math.IsNaN(l.Y) {
				t.Errorf("empty or lost text %+v", l)
			}
			if !within(boxes[i], all) {
				t.Errorf("%q %v leaves the picture %v", l.S, boxes[i], all)
			}
			for k := range i {
				if overlaps(boxes[i], boxes[k]) {
					t.Errorf("%q %v lies over %q %v", l.S, boxes[i], texts[k].S, boxes[k])
				}
			}
		}
		for _, lane := range s.Lanes {
			for _, row := range lane.Rows {
				for _, b := range row.Boxes {
					if b.Label == nil {
						continue
					}
					if in := b.Label.Bounds(); in.X0 < b.X0-slack || in.X1 > b.X1+slack {
						t.Errorf("label %q %v leaves its box %v … %v", b.Label.S, in, b.X0, b.X1)
					}
				}
			}
		}
	})
}

func TestBoxesAreFew(t *testing.T) {
	for name, r := range sketch.Samples() {
		d := digestOf(r)
		for _, dt := range details {
			s := lay(d, scene.DefaultWidth, dt)
			boxes, titles := 0, 0
			for _, l := range s.Lanes {
				for _, row := range l.Rows {
					for _, b := range row.Boxes {
						if l.ID == "flame" {
							boxes++
						}
						if l.ID == "flame" && b.Title != "" {
							titles++
						}
					}
				}
			}
			if boxes > dt.boxes || titles > dt.titles {
				t.Errorf("%s, detail %d: %d boxes and %d tooltips, want at most %d and %d", name, dt.level, boxes, titles, dt.boxes, dt.titles)
			}
		}
	}
}

// The picture of the look: what a reader must find without a click.
func TestTrainingCellAnswersFirst(t *testing.T) {
	s := lay(digestOf(sketch.TrainingCell().View()), scene.DefaultWidth, fullDetail)
	var all []string
	for _, l := range s.AllTexts() {
		all = append(all, l.S)
	}
	text := "\n" + strings.Join(all, "\n") + "\n"
	for _, want := range []string{
		"Cell [7]", "13.4 s", "GPU 0 busy 36 %", "idle 8.6 s", "The GPU waited 6.5 of 13.4 s for data, loaded in the training's own thread in line 3.", "for x, y in loader:",
		"It loads in this process. Try num_workers=4, pin_memory=True.", "GPU 0", "SM active", "memory", "CPU", "RSS", "disk read", "cell line",
		"MainThread", "pin_memory", "Where the GPU waited", "data loading", "9 steps", "fetch", "GPU idle",
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("the picture does not say %q", want)
		}
	}
	if strings.Contains(text, "disk write") {
		t.Error("a lane that is zero all the time is shown")
	}
	if len(s.Shades) < 8 || len(s.Steps) != 9 {
		t.Errorf("got %d idle stretches and %d steps", len(s.Shades), len(s.Steps))
	}
}

func TestSimulatedGPUIsSaidInPlainSight(t *testing.T) {
	s := lay(digestOf(sketch.EightGPUs().View()), scene.DefaultWidth, fullDetail)
	if s.Badge == nil || s.Badge.Text.S != "simulated GPU" {
		t.Fatalf("badge: %+v", s.Badge)
	}
	n := 0
	for _, l := range s.Texts {
		if strings.HasPrefix(l.S, "simulated") {
			n++
		}
	}
	if n != 8 {
		t.Errorf("%d of 8 lanes say that they are simulated", n)
	}
}
