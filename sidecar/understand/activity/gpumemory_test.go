package activity

import (
	"math"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// onDevice is a recording of 5 s in which line 1 computes until 2 s, line 2 until 3 s, and line 3 waits after that.
func onDevice(change func(*timeline.Recording)) *timeline.Recording {
	const s = timeline.Nanos(time.Second)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 7}
		r.Processes = []timeline.Process{{PID: 7, ParentIndex: -1, CPU: -1}, {PID: 8, ParentIndex: 0, CPU: -1}}
		r.GPUs = []timeline.GPU{{Index: 0, PIDs: []int{7}}}
		change(r)
	})
	line := func(n int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "load", File: "app.py", Line: n}))
	}
	main := b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true, OnCPU: -1})
	b.Set(main, 0, line(1), timeline.StatePython, false)
	b.Set(main, 2*s, line(2), timeline.StateNative, false)
	b.Set(main, 3*s, line(3), timeline.StateWaiting, false)
	for name, factor := range map[string]float64{"gpu0.mem": 1, "gpu0.mem.self": 0.5} {
		w := b.Track(timeline.TrackSpec{ID: name, Kind: timeline.KindGauge, Unit: "B", Device: 0, Resolution: time.Second})
		for i, mb := range []float64{100, 200, math.NaN(), 600, 500, 520} {
			w.Add(timeline.Nanos(i)*s, mb*factor*(1<<20))
		}
	}
	return b.Snapshot(5 * s)
}

// What the memory of a process on a GPU grew by is charged to the lines that computed between two of the driver's
// figures, and is uncertain where there were several; after a figure that is not known nothing is.
func TestMemoryOfAGPUIsByLine(t *testing.T) {
	const mb = int64(1 << 20)
	of := func(rec *timeline.Recording) ([]GPUMemoryLine, []GPUMemorySum) {
		return GPUMemory(rec, func(t *timeline.Thread) int { return t.Process }, func(timeline.FrameID) bool { return true })
	}
	lines, sums := of(onDevice(func(*timeline.Recording) {}))
	got := map[int][2]int64{}
	for _, l := range lines {
		got[l.Place.Line] = [2]int64{l.Grown / mb, l.Uncertain / mb}
	}
	if want := map[int][2]int64{1: {100, 0}, 3: {20, 0}}; len(got) != 2 || got[1] != want[1] || got[3] != want[3] {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := (GPUMemorySum{Resolution: time.Second, Whole: true, Grown: 120 * mb, Released: 100 * mb, Peak: 600 * mb}); len(sums) != 1 || sums[0] != want {
		t.Errorf("got %+v, want %+v", sums, want)
	}
	shared, sums := of(onDevice(func(r *timeline.Recording) { r.GPUs[0].OtherProcesses = 1 }))
	if len(shared) != 2 || shared[0].Grown != 50*mb || sums[0].Whole {
		t.Errorf("beside another program got %+v, %+v", shared, sums)
	}
	if lines, sums := of(onDevice(func(r *timeline.Recording) { r.GPUs[0].PIDs = []int{7, 8} })); len(lines) != 0 || len(sums) != 0 {
		t.Errorf("of two processes got %+v, %+v", lines, sums)
	}
}

// Several lines between two figures share what grew, by their computing time.
func TestLinesShareWhatGrewBetweenTwoFigures(t *testing.T) {
	rec := onDevice(func(*timeline.Recording) {})
	for i := range rec.Tracks {
		rec.Tracks[i].Points = []timeline.Point{{At: 0, Value: 0}, {At: timeline.Nanos(4 * time.Second), Value: 300}}
	}
	lines, _ := GPUMemory(rec, func(t *timeline.Thread) int { return t.Process }, func(timeline.FrameID) bool { return true })
	if len(lines) != 2 || lines[0].Place.Line != 1 || lines[0].Grown != 200 || lines[0].Uncertain != 200 || lines[1].Grown != 100 {
		t.Errorf("got %+v", lines)
	}
}
