package diagnose

import (
	"math"
	"math/rand"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// FuzzRun diagnoses recordings that no collector would write: a saved file may
// hold anything. Nothing panics, and the sums hold all the same.
func FuzzRun(f *testing.F) {
	for seed := range int64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		rec := nonsense(rand.New(rand.NewSource(seed)))
		checkSums(t, "nonsense", rec, Run(rec))
	})
}

func nonsense(rng *rand.Rand) *timeline.Recording {
	at := func() timeline.Nanos { return timeline.Nanos(rng.Int63n(int64(3*time.Second)) - 5e8) }
	rec := &timeline.Recording{Duration: timeline.Nanos(rng.Int63n(int64(2 * time.Second)))}
	for range rng.Intn(4) {
		rec.Frames = append(rec.Frames, timeline.Frame{Function: "f", File: []string{"", cellFile, dataloaderFile, "<x>"}[rng.Intn(4)], Line: rng.Intn(20) - 3})
	}
	for range rng.Intn(6) {
		rec.Nodes = append(rec.Nodes, timeline.Node{Parent: timeline.NodeID(rng.Intn(8)), Frame: timeline.FrameID(rng.Intn(6))})
	}
	if rng.Intn(2) == 0 {
		rec.Target.Cell = &timeline.Cell{File: cellFile, Text: cellText}
	}
	for range rng.Intn(3) {
		th := timeline.Thread{Main: rng.Intn(2) == 0, RunsCell: rng.Intn(2) == 0, PID: rng.Intn(3)}
		for range rng.Intn(40) {
			th.Spans = append(th.Spans, timeline.Span{Start: at(), End: at(), Node: timeline.NodeID(rng.Intn(8)), State: timeline.State(rng.Intn(9))})
		}
		rec.Threads = append(rec.Threads, th)
	}
	values := []float64{0, 100, 55, -20, 300, math.NaN(), math.Inf(1), math.Inf(-1)}
	for _, id := range []string{"gpu0.util", "gpu1.util", "gpu0.mem", "gpu0.throttle", "swap", "rss", "cpu", "cpu.children"} {
		tr := timeline.Track{TrackSpec: timeline.TrackSpec{ID: id, Device: rng.Intn(2), Limit: float64(rng.Intn(3))}, Peak: values[rng.Intn(len(values))]}
		for range rng.Intn(60) {
			tr.Points = append(tr.Points, timeline.Point{From: at(), At: at(), Value: values[rng.Intn(len(values))]})
		}
		rec.Tracks = append(rec.Tracks, tr)
	}
	for range rng.Intn(4) {
		rec.Processes = append(rec.Processes, timeline.Process{PID: rng.Intn(4), Parent: rng.Intn(4), Role: []timeline.Role{"worker", "child", ""}[rng.Intn(3)], Start: at(), End: at(), CPU: at()})
	}
	for range rng.Intn(5) {
		kind := []string{"step", "region", "other"}[rng.Intn(3)]
		rec.Marks = append(rec.Marks, timeline.Mark{Kind: kind, Name: "m", Start: at(), End: at()})
	}
	if rng.Intn(2) == 0 {
		rec.GPUs = []timeline.GPU{{Index: rng.Intn(3), PIDs: []int{rng.Intn(3)}, OtherProcesses: rng.Intn(3) - 1, Lost: at(), Throttle: timeline.ThrottleReasons()[:rng.Intn(3)]}}
	}
	return rec
}
