package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// arbitrary is a recording such as nobody makes on purpose.
func arbitrary(r *rand.Rand) *timeline.Recording {
	b := timeline.NewBuilder(timeline.Options{Origin: 1 + r.Int64N(1<<58), StartedAt: time.Unix(r.Int64N(2e9), 0), MaxSpans: 1 + r.IntN(200)})
	length := timeline.Nanos(r.Int64N(1 << (10 + r.IntN(45))))
	at := func() timeline.Nanos { return timeline.Nanos(r.Int64N(int64(length)*5/4+2)) - length/8 }
	files := []string{cellFile, "/tmp/ipykernel_1/8.py", "/home/ann/project/train.py", "/v/site-packages/torch/utils/data/dataloader.py", "<frozen importlib._bootstrap>", "", "\xff"}
	var nodes []timeline.NodeID
	for range 1 + r.IntN(20) {
		n := timeline.RootNode
		for range r.IntN(12) {
			n = b.Child(n, b.Frame(timeline.Frame{
				Function: []string{"<module>", "f", "C.g.<locals>.h", ""}[r.IntN(4)], File: files[r.IntN(len(files))],
				Line: r.IntN(9) - 1, FirstLine: r.IntN(9) - 1, Phase: timeline.Phase(max(r.IntN(20)-14, 0)),
			}))
		}
		nodes = append(nodes, n)
	}
	pids := []int{0, 100, 101, 200}
	for i := range r.IntN(6) {
		id := b.Thread(timeline.Thread{PID: pids[r.IntN(4)], NativeID: 100 + i, Name: "t", Main: r.IntN(2) == 0, RunsCell: r.IntN(4) == 0, Internal: r.IntN(5) == 0, OnCPU: timeline.Nanos(r.IntN(100) - 1)})
		now := timeline.Nanos(0)
		for range r.IntN(100) {
			now += timeline.Nanos(r.Int64N(int64(length)/50 + 2))
			if r.IntN(10) == 0 {
				b.End(id, now)
				continue
			}
			b.Set(id, now, nodes[r.IntN(len(nodes))], timeline.State(r.IntN(timeline.NumStates)), r.IntN(8) == 0)
		}
	}
	for i := range r.IntN(8) {
		device := r.IntN(3) - 1
		id := []string{"cpu", "rss", "thread.101.cpu", fmt.Sprint("x", i)}[r.IntN(4)]
		if device >= 0 {
			id = fmt.Sprintf("gpu%d.%s", device, []string{"util", "mem", "sm"}[r.IntN(3)])
		}
		w := b.Track(timeline.TrackSpec{ID: id, Kind: []string{timeline.KindRate, timeline.KindGauge}[r.IntN(2)], Unit: "%", PID: pids[r.IntN(4)], Device: device, Limit: []float64{0, 100, math.Inf(1), -1}[r.IntN(4)]})
		for range r.IntN(60) {
			w.AddWindow(at(), at(), []float64{0, 50, 100, math.NaN(), 1e-9, 1 << 40}[r.IntN(6)])
		}
	}
	for range r.IntN(6) {
		b.Mark(timeline.Mark{Kind: []string{"step", "region"}[r.IntN(2)], Name: "m", Start: at(), End: at()})
	}
	b.Describe(func(rec *timeline.Recording) {
		rec.Target = timeline.Target{PID: pids[r.IntN(4)]}
		if r.IntN(2) == 0 {
			rec.Target.Cell = &timeline.Cell{ExecutionCount: r.IntN(3), File: cellFile, Text: "a\nb\tc\n", Outcome: []string{"", "ok", "error", "error: X", "the process ended"}[r.IntN(5)]}
		}
		rec.Sampling = timeline.Sampling{Interval: time.Duration(r.IntN(3)), Samples: r.Int64N(1000), Lost: r.Int64N(9) - 4, CPU: timeline.Nanos(r.IntN(9) - 1)}
		for range r.IntN(5) {
			exit := r.IntN(200)
			rec.Processes = append(rec.Processes, timeline.Process{PID: pids[r.IntN(4)], Parent: pids[r.IntN(4)], Start: at() - 1<<55, End: max(at(), 0), CPU: -1, Exit: &exit})
		}
		for i := range r.IntN(3) {
			rec.GPUs = append(rec.GPUs, timeline.GPU{Index: i, OtherProcesses: r.IntN(3) - 1, PIDs: []int{100, 7}, Lost: max(at(), 0)})
		}
	})
	return b.Snapshot(length).Slice(0, length)
}

// Whatever was recorded, its document is sound, and so is a smaller one.
func TestAnyRecordingMakesASoundReport(t *testing.T) {
	s := schema(t)
	for seed := range uint64(300 / slowdown) {
		r := rand.New(rand.NewPCG(seed, 5))
		rec := arbitrary(r)
		var d *diagnose.Diagnosis
		if r.IntN(4) > 0 {
			found := diagnose.Run(rec)
			d = &found
		}
		v, err := report.Build(rec, d, report.Options{Text: func(string) []byte { return []byte("x\n") }})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		packed, err := report.Pack(v.Document)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		again, err := report.Read(packed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		useAll(t, again)
		if seed%20 == 0 {
			text, _ := report.Unpack(packed)
			validate(t, s, text)
		}
	}
}

// A host that has been up for a year, a process that is as old, and days of many threads.
func TestLargeTimesAreNoDamage(t *testing.T) {
	const day = timeline.Nanos(24 * time.Hour)
	b := timeline.NewBuilder(timeline.Options{Origin: int64(400 * day), StartedAt: time.Unix(1_790_000_000, 0)})
	node := b.Child(timeline.RootNode, b.Frame(cellAt(1)))
	for i := range 64 {
		b.Set(b.Thread(timeline.Thread{PID: 1, NativeID: i, Main: i == 0}), 0, node, timeline.StatePython, false)
	}
	b.Describe(func(r *timeline.Recording) {
		r.Target.PID = 1
		r.Processes = []timeline.Process{{PID: 1, Start: -380 * day, CPU: 64 * 7 * day}}
	})
	v := built(t, b.Snapshot(7*day), report.Options{})
	if got, want := v.FunctionTimes[0].SelfNS, int64(64*7*day); got != want {
		t.Errorf("%d ns, want %d", got, want)
	}
}
