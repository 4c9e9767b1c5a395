package chart

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

const (
	gemm      = "ampere_sgemm_128x64_tn"
	gelu      = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>(int)"
	allReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
	toDevice  = "Memcpy HtoD (Pinned -> Device)"
)

// stream makes a lane of blocks given as start, end, index into names.
func stream(device int, number int64, names []string, blocks ...[3]float64) sketchLane {
	return sketchLane{Device: device, Stream: number, Names: names, Blocks: blocks}
}

// tracedCell is the training cell with a trace of its GPU: many short kernels
// while it was busy, gradients summed up on a stream of their own.
func tracedCell() *sketch {
	r := trainingCell()
	r.Name = "traced"
	r.GPUs[0].Source = "torch.profiler trace"
	r.Certainty = "resolved by the 40 µs windows: the causes last longer"
	rnd := rand.New(rand.NewPCG(3, 4))
	var compute, reduce, copies [][3]float64
	for _, step := range r.Steps {
		begin := step.StartS + step.DataWaitS + 0.06
		copies = append(copies, [3]float64{begin, begin + 0.02, 0})
		for t := begin + 0.03; t < step.EndS; {
			d := 2e-5 + 2e-3*rnd.Float64()
			compute = append(compute, [3]float64{t, t + d, float64(rnd.IntN(2))})
			t += d + 2e-5
		}
		for t := step.EndS - 0.3; t < step.EndS-0.1; t += 0.07 {
			reduce = append(reduce, [3]float64{t, t + 0.06, 0})
		}
	}
	r.Kernels = []sketchLane{
		stream(0, 7, []string{gemm, gelu}, compute...), stream(0, 20, []string{allReduce}, reduce...), stream(0, 24, []string{toDevice}, copies...),
	}
	return r
}

// manyStreams is a report whose lanes of kernels are as large as they get.
func manyStreams() *sketch {
	r := trainingCell()
	r.Name = "many streams"
	rnd := rand.New(rand.NewPCG(5, 6))
	names := []string{gemm, gelu, allReduce, toDevice, strings.Repeat("template<", 100), "<script>\x00\u202e"}
	for s := range 12 {
		var blocks [][3]float64
		for t := rnd.Float64(); t < r.DurationS; {
			d := 0.05 * math.Pow(rnd.Float64(), 3)
			blocks = append(blocks, [3]float64{t, t + d, float64(rnd.IntN(len(names)))})
			t += d + 0.02*rnd.Float64()
		}
		r.Kernels = append(r.Kernels, stream(s%2, int64(s), names, blocks...))
	}
	return r
}

// streamsIn returns the lanes of streams.
func streamsIn(s *Scene) []Lane {
	var lanes []Lane
	for _, l := range s.Lanes {
		if l.ID == "stream" {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

func says(s *Scene, text string) bool {
	for _, l := range s.Texts {
		if l.S == text {
			return true
		}
	}
	return false
}

func TestKernelsStandWhereTheyRan(t *testing.T) {
	r := cpuCell() // 6.2 s
	r.Kernels = []sketchLane{
		stream(0, 7, []string{gemm, toDevice}, [3]float64{1, 2, 0}, [3]float64{2, 2.5, 1}, [3]float64{4, 5, 0}),
		stream(1, 20, []string{allReduce}, [3]float64{3, 6.2, 0}),
	}
	r.Kernels[0].Count = []int{1, 1, 40}
	s := lay(digestOf(r.view()), defaultWidth, fullDetail)
	lanes := streamsIn(s)
	if len(lanes) != 2 {
		t.Fatalf("%d lanes, want 2", len(lanes))
	}
	perSecond := (s.Plot.X1 - s.Plot.X0) / 6.2
	want := [][]Block{
		{{X0: 1, X1: 2, Paint: PaintGPU, Title: gemm}, {X0: 2, X1: 2.5, Paint: PaintGPUMemory, Title: toDevice}, {X0: 4, X1: 5, Paint: PaintGPU, Title: "the longest of 40 kernels"}},
		{{X0: 3, X1: 6.2, Paint: PaintMemory, Title: allReduce}},
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
	r := cpuCell()
	var blocks [][3]float64
	for at := 1.0; at < 5; at += 1e-4 {
		blocks = append(blocks, [3]float64{at, at + 3e-5, 0})
	}
	r.Kernels = []sketchLane{stream(0, 7, []string{gemm}, blocks...)}
	s := lay(digestOf(r.view()), 2400, fullDetail)
	inked := 0.0
	for _, b := range streamsIn(s)[0].Rows[0].Boxes {
		inked += b.X1 - b.X0
		if b.Title != "" && !strings.Contains(b.Title, gemm+"\nmost of ") {
			t.Errorf("tooltip %q", b.Title)
		}
	}
	got, want := inked/(s.Plot.X1-s.Plot.X0), 0.3*4/6.2
	if math.Abs(got-want) > 0.04 { // three standard errors of 2,000 columns
		t.Errorf("%.3f of the lane is inked, want %.3f", got, want)
	}
}

func TestStreamsAreFew(t *testing.T) {
	d := digestOf(manyStreams().view())
	for _, dt := range details {
		s := lay(d, defaultWidth, dt)
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
	r := cpuCell()
	r.DurationS = 20
	for i := range 11 {
		r.Kernels = append(r.Kernels, stream(0, int64(i), []string{gemm}, [3]float64{0, 0.1 + float64(i*7%11), 0}))
	}
	var names []string
	lanes, more := streamsOf(r.view(), 20)
	for _, l := range lanes {
		names = append(names, strings.TrimPrefix(l.name, "GPU 0 stream "))
	}
	// Streams 0, 8 and 5 have 0, 1 and 2 seconds.
	if got, want := strings.Join(names, " "), "1 2 3 4 6 7 9 10"; got != want || more != 3 {
		t.Errorf("streams %s and %d more, want %s and 3 more", got, more, want)
	}
}

// Kinds of kernels are distinguished without colour vision, too.
func TestKindsOfKernelsLookDifferent(t *testing.T) {
	for _, dark := range []bool{false, true} {
		for name, m := range vision {
			for i, a := range kernelKinds {
				for _, b := range kernelKinds[:i] {
					x, y := oklab(seen(colour(t, string(a.paint), dark), m)), oklab(seen(colour(t, string(b.paint), dark), m))
					if d := math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2]); d < 0.04 {
						t.Errorf("dark %v, %s: %q and %q look alike: %.3f", dark, name, a.name, b.name, d)
					}
				}
			}
		}
	}
}
