package recorder

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// longCell is a cell of many hours on a clock of its own: two threads whose stacks
// change at every sample, figures every 100 ms, steps.
type longCell struct {
	interval time.Duration
	lasts    time.Duration
}

// record runs the cell through a Recorder and returns what it saw.
func (l longCell) record(tb testing.TB) *timeline.Recording {
	now := int64(1e9)
	r := New(Options{Target: timeline.Target{PID: targetPID}, Stacks: &fakeStacks{}, Clock: func() int64 { return now }})
	if _, err := r.Begin(Spec{ID: "long", Started: now, Interval: l.interval}); err != nil {
		tb.Fatal(err)
	}
	l.feed(r.run.Builder)
	now += int64(l.lasts)
	rec, err := r.End("long", Ending{At: now})
	if err != nil {
		tb.Fatal(err)
	}
	return rec
}

func (l longCell) feed(b *timeline.Builder) {
	random := rand.New(rand.NewPCG(1, 2))
	var nodes []timeline.NodeID
	node := timeline.RootNode
	for i := range 400 { // stacks 20 deep
		if i%20 == 0 {
			node = timeline.RootNode
		}
		node = b.Child(node, b.Frame(timeline.Frame{Function: fmt.Sprintf("layer%d", i), File: "/home/u/train.py", Line: i}))
		nodes = append(nodes, node)
	}
	var threads []timeline.ThreadID
	for tid := range 2 {
		threads = append(threads, b.Thread(timeline.Thread{PID: targetPID, NativeID: tid}))
	}
	var tracks []*timeline.TrackWriter
	for i := range 20 {
		tracks = append(tracks, b.Track(timeline.TrackSpec{ID: fmt.Sprintf("track%d", i), Kind: timeline.KindRate}))
	}
	figures := max(int(100*time.Millisecond/l.interval), 5)
	for i, at := 0, timeline.Nanos(0); at < timeline.Nanos(l.lasts); i, at = i+1, at+timeline.Nanos(l.interval) {
		for _, t := range threads {
			b.Set(t, at, nodes[random.IntN(len(nodes))], timeline.State(random.IntN(timeline.NumStates)), false)
		}
		if i%figures == 0 {
			for _, w := range tracks {
				w.Add(at, random.Float64())
			}
		}
		if i%1000 == 0 {
			b.Mark(timeline.Mark{Kind: "step", Name: "step", Start: at, End: at + 1})
		}
	}
}

// heap is what is live now, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What a cell of any length keeps is bounded, so 24 h at 5 Hz stand for a cell of
// the same number of samples at 1 kHz, and for any longer one.
func TestALongCellStaysBounded(t *testing.T) {
	before := heap()
	rec := longCell{interval: 200 * time.Millisecond, lasts: 24 * time.Hour}.record(t)
	grown := int64(heap()) - int64(before)
	if grown > 40<<20 {
		t.Errorf("%d MB are held after 24 h, want at most 40", grown>>20)
	}
	spans := 0
	for _, th := range rec.Threads {
		spans += len(th.Spans)
		if last := th.Spans[len(th.Spans)-1]; th.NativeID < 2 && rec.Duration-last.End > timeline.Nanos(2*rec.Resolution) {
			t.Errorf("thread %d ends at %v of %v", th.NativeID, last.End.Duration(), rec.Duration.Duration())
		}
	}
	if spans < 50_000 || spans > 1<<18 {
		t.Errorf("%d spans for 864,000 changes", spans)
	}
	if rec.Resolution <= 200*time.Millisecond || rec.Resolution > time.Minute {
		t.Errorf("the resolution is reported as %v", rec.Resolution)
	}
	for _, tr := range rec.Tracks {
		if len(tr.Points) > 8192 || tr.Step == 0 {
			t.Errorf("%s: %d points, step %v", tr.ID, len(tr.Points), tr.Step)
		}
	}
	runtime.KeepAlive(rec)
}

// BenchmarkLongCell prints what a simulated day at 1 kHz costs and leaves.
func BenchmarkLongCell(b *testing.B) {
	for b.Loop() {
		before := heap()
		rec := longCell{interval: time.Millisecond, lasts: 24 * time.Hour}.record(b)
		b.ReportMetric(float64(heap()-before)/1e6, "MB-held")
		b.ReportMetric(rec.Resolution.Seconds(), "s-resolution")
		runtime.KeepAlive(rec)
	}
}
