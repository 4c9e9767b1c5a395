package timeline

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSpansAreTheChangesOfState(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	th := b.Thread(Thread{NativeID: 1, Main: true})
	a := b.Child(RootNode, b.Frame(Frame{Function: "a"}))
	ab := b.Child(a, b.Frame(Frame{Function: "b"}))

	b.Set(th, 0, a, StatePython, false)
	b.Set(th, 10, a, StatePython, false) // nothing changed
	b.Set(th, 20, ab, StateNative, false)
	b.Set(th, 30, a, StatePython, true)
	b.End(th, 40)
	b.Set(th, 60, a, StatePython, false)

	got := b.Snapshot(100).Threads[th].Spans
	want := []Span{
		{0, 20, a, StatePython, false, 0, 0},
		{20, 30, ab, StateNative, false, 0, 0},
		{30, 40, a, StatePython, true, 0, 0},
		{60, 100, a, StatePython, false, 0, 0},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("spans\n%v, want\n%v", got, want)
	}
}

func TestAThreadThatWasLostGoesOnInItsLane(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	main := b.Thread(Thread{PID: 7, NativeID: 1, Main: true, OnCPU: 5})
	worker := b.Thread(Thread{PID: 7, NativeID: 2})
	a := b.Child(RootNode, b.Frame(Frame{Function: "a"}))
	b.Set(main, 0, a, StatePython, false)
	b.Set(worker, 0, a, StateWaiting, false)
	for _, id := range []ThreadID{main, worker} {
		b.Lose(id, 10)
	}
	b.BeginGap(7, 10, GapExit)
	b.BeginGap(7, 20, GapExec) // so that was it
	b.EndGap(7, 30)
	if again := b.Thread(Thread{PID: 7, NativeID: 1, Main: true}); again != main {
		t.Errorf("the main thread got lane %d, had %d", again, main)
	}
	b.Set(main, 30, a, StatePython, false)
	b.EndLost(7, 30)
	b.BeginGap(7, 60, GapStopped)

	rec := b.Snapshot(80)
	want := []Span{{0, 10, a, StatePython, false, 0, 0}, {10, 30, RootNode, StateUnknown, false, 0, 0}, {30, 80, a, StatePython, false, 0, 0}}
	if got := rec.Threads[main].Spans; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("main thread\n%v, want\n%v", got, want)
	}
	if got := rec.Threads[worker].Spans; len(got) != 2 || got[1] != (Span{10, 30, RootNode, StateUnknown, false, 0, 0}) {
		t.Errorf("the worker, which did not come back: %v", got)
	}
	if !rec.Threads[main].OnCPUAtLeast {
		t.Error("what a lost thread used since the last reading is missing, and nobody says so")
	}
	if got, want := fmt.Sprint(rec.Gaps), "[{10 30 7 exec} {60 80 7 stopped}]"; got != want {
		t.Errorf("gaps %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(rec.Slice(20, 70).Gaps), "[{0 10 7 exec} {40 50 7 stopped}]"; got != want {
		t.Errorf("gaps of the slice %s, want %s", got, want)
	}
}

// A change is one only where another interval is kept than before.
func TestOnlyAnotherIntervalIsAChange(t *testing.T) {
	const ms = time.Millisecond
	s := Sampling{Interval: ms}
	s.Keep(Nanos(10*ms), ms)
	s.Keep(Nanos(20*ms), 4*ms)
	s.Keep(Nanos(30*ms), 4*ms)
	s.Keep(Nanos(40*ms), ms)
	s.Keep(Nanos(50*ms), 0)
	if want := []IntervalChange{{Nanos(20 * ms), 4 * ms}, {Nanos(40 * ms), ms}}; !slices.Equal(s.Changes, want) {
		t.Errorf("changes %v, want %v", s.Changes, want)
	}
	unknown := Sampling{}
	if unknown.Keep(0, ms); len(unknown.Changes) > 0 {
		t.Errorf("an interval of which nothing is known has changed: %v", unknown.Changes)
	}
}

func TestTheIntervalThatWasKept(t *testing.T) {
	ms := time.Millisecond
	b := NewBuilder(Options{Origin: 1, Interval: ms})
	b.Describe(func(r *Recording) {
		r.Sampling.Changes = []IntervalChange{{Nanos(100 * ms), 4 * ms}, {Nanos(300 * ms), 2 * ms}}
	})
	rec := b.Snapshot(Nanos(400 * ms))
	// 100 ticks, then 50, then 50.
	if got := rec.Sampling.Kept(rec.Duration); got != 2*ms || rec.Resolution != got {
		t.Errorf("kept %v, resolution %v; want 2 ms on average", got, rec.Resolution)
	}
	part := rec.Slice(Nanos(200*ms), Nanos(350*ms))
	if got, want := fmt.Sprint(part.Sampling.Interval, part.Sampling.Changes), "4ms [{100000000 2ms}]"; got != want {
		t.Errorf("slice: %s, want %s", got, want)
	}
	if got := rec.Slice(0, Nanos(50*ms)).Sampling.Kept(Nanos(50 * ms)); got != ms {
		t.Errorf("kept %v at first, want 1 ms", got)
	}
}

func TestASnapshotDoesNotChangeLater(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	th := b.Thread(Thread{NativeID: 1})
	b.Set(th, 0, RootNode, StatePython, false)
	first := b.Snapshot(10)
	b.Set(th, 10, RootNode, StateIO, false)
	b.Note(NoteLate, "late", "said afterwards")
	if got := first.Threads[0].Spans; len(got) != 1 || got[0].End != 10 || len(first.Notes) != 0 {
		t.Errorf("the snapshot changed: %v, notes %v", got, first.Notes)
	}
}

// A day at 1 kHz with a change at each sample stays within its limit and keeps
// the shares of time of a program that spends 1/4, 1/4 and 1/2 of each 4 ms.
func TestThinningIsBoundedAndKeepsShares(t *testing.T) {
	const limit = 1 << 12
	b := NewBuilder(Options{Origin: 1, MaxSpans: limit})
	th := b.Thread(Thread{NativeID: 1})
	var nodes [3]NodeID
	for i := range nodes {
		nodes[i] = b.Child(RootNode, b.Frame(Frame{Function: fmt.Sprint(i)}))
	}
	const turns = 200_000
	for i := range Nanos(turns) {
		b.Set(th, i*4e6, nodes[0], StatePython, false)
		b.Set(th, i*4e6+1e6, nodes[1], StatePython, false)
		b.Set(th, i*4e6+2e6, nodes[2], StatePython, false)
	}
	rec := b.Snapshot(turns * 4e6)

	spans := rec.Threads[0].Spans
	if len(spans) > limit {
		t.Errorf("%d spans, the limit is %d", len(spans), limit)
	}
	if rec.Resolution <= time.Millisecond {
		t.Errorf("resolution %v: a thinned recording must say so", rec.Resolution)
	}
	var sums [3]Nanos
	last := Nanos(0)
	for _, s := range spans {
		if s.Start < last || s.End <= s.Start {
			t.Fatalf("span %v after %v: not in order", s, last)
		}
		last = s.End
		sums[s.Node-1] += s.End - s.Start
	}
	for i, want := range []float64{0.25, 0.25, 0.5} {
		// 4,096 independent draws: four standard deviations are 0.03
		if got := float64(sums[i]) / float64(rec.Duration); math.Abs(got-want) > 0.03 {
			t.Errorf("share of %d is %.3f, want %.2f", i, got, want)
		}
	}
}

func TestStackTreeIsBounded(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	node := RootNode
	for i := range maxNodes + 100 {
		node = b.Child(node, b.Frame(Frame{Function: "f", Line: i}))
	}
	rec := b.Snapshot(1)
	if len(rec.Nodes) > maxNodes || len(rec.Frames) > maxFrames {
		t.Errorf("%d nodes, %d frames", len(rec.Nodes), len(rec.Frames))
	}
	if len(rec.Notes) != 1 || rec.Notes[0].What != "stack tree" {
		t.Errorf("notes %v: what was cut must be said", rec.Notes)
	}
}

func TestLongNamesAreCutAtARune(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	b.Frame(Frame{Function: strings.Repeat("é", 10_000)})
	name := b.Snapshot(1).Frames[0].Function
	if len(name) > maxNameSize || !strings.HasSuffix(name, "é…") {
		t.Errorf("name of %d bytes ends with %q", len(name), name[len(name)-5:])
	}
}

func TestTracks(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	cpu := b.Track(TrackSpec{ID: "cpu", Kind: KindRate, Device: -1})
	cpu.Add(10, 1)
	cpu.Add(5, 99) // time went backwards: says nothing new
	cpu.Add(20, math.NaN())
	cpu.AddWindow(30, 40, 3) // nothing is known of 20 to 30
	cpu.End("the process ended")
	got := b.Snapshot(100).Tracks[0]
	want := "[{0 10 1} {10 20 NaN} {30 40 3}]"
	if fmt.Sprint(got.Points) != want || got.Peak != 3 || got.Ended == "" {
		t.Errorf("points %v peak %v ended %q, want %s, 3 and a reason", got.Points, got.Peak, got.Ended, want)
	}
	if again := b.Track(TrackSpec{ID: "cpu"}); again.t != cpu.t {
		t.Error("a second track of the same ID")
	}
}

func TestThinnedTracksKeepMeanAndPeak(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	rate := b.Track(TrackSpec{ID: "r", Kind: KindRate, MaxPoints: 64, Device: -1})
	gauge := b.Track(TrackSpec{ID: "g", Kind: KindGauge, MaxPoints: 64, Device: -1})
	sum := 0.0
	for i := range 10_000 {
		v := float64(i % 7)
		if i == 5_000 {
			v = 1_000
		}
		sum += v
		rate.Add(Nanos(i+1), v)
		gauge.Add(Nanos(i+1), v)
	}
	rec := b.Snapshot(10_000)
	var got float64
	for _, p := range rec.Tracks[0].Points {
		got += p.Value * float64(p.At-p.From)
	}
	if len(rec.Tracks[0].Points) > 64 || math.Abs(got-sum) > 1e-6*sum {
		t.Errorf("%d points with the sum %v, want at most 64 and %v", len(rec.Tracks[0].Points), got, sum)
	}
	top := 0.0
	for _, p := range rec.Tracks[1].Points {
		top = max(top, p.Value)
	}
	if top != 1_000 || rec.Tracks[1].Peak != 1_000 || rec.Tracks[1].Step == 0 {
		t.Errorf("gauge keeps %v of the peak 1,000 (peak %v, step %v)", top, rec.Tracks[1].Peak, rec.Tracks[1].Step)
	}
}

func TestThinningNeverTurnsUnknownIntoZero(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	w := b.Track(TrackSpec{ID: "r", Kind: KindRate, MaxPoints: 16, Device: -1})
	for i := range Nanos(1_000) {
		v := math.NaN()
		if i%2 == 0 {
			v = 50
		}
		w.Add(i+1, v)
	}
	points := b.Snapshot(1_000).Tracks[0].Points
	if len(points) > 16 {
		t.Errorf("%d points of alternating values, limit 16", len(points))
	}
	for _, p := range points {
		if p.Value < 50 {
			t.Errorf("point %v: unknown became a figure", p)
		}
	}
}

func TestSliceHasItsOwnZero(t *testing.T) {
	b := NewBuilder(Options{Origin: 1_000})
	th := b.Thread(Thread{PID: 3, Process: 2, NativeID: 1})
	b.Set(th, 0, RootNode, StatePython, false)
	b.Set(th, 50, RootNode, StateIO, false)
	w := b.Track(TrackSpec{ID: "r", Kind: KindRate, PID: 3, Process: 2, Device: -1})
	w.Add(40, 1)
	w.Add(80, 2)
	b.Mark(Mark{Kind: "step", Start: 30, End: 60, Process: 2})
	b.Mark(Mark{Kind: "step", Start: 0, End: 20})
	b.Describe(func(r *Recording) {
		r.Processes = []Process{{PID: 1, ParentIndex: -1, Start: -900}, {PID: 2, Start: 5, End: 20}, {PID: 3, ParentIndex: 1, Start: 10, End: 60}, {PID: 4, Start: 80}}
		r.GPUs = []GPU{{Index: 0, Lost: 45}, {Index: 1, Lost: 90}}
	})

	whole := b.Snapshot(100)
	rec := whole.Slice(25, 75)
	if rec.Origin != 1_025 || rec.Duration != 50 {
		t.Errorf("origin %d, duration %d", rec.Origin, rec.Duration)
	}
	if got, want := fmt.Sprint(rec.Threads[0].Spans), "[{0 25 0 python false 0 0} {25 50 0 io false 0 0}]"; got != want {
		t.Errorf("spans %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(rec.Tracks[0].Points), "[{0 15 1} {15 50 2}]"; got != want {
		t.Errorf("points %s, want %s", got, want)
	}
	if len(rec.Marks) != 1 || rec.Marks[0].Start != 5 {
		t.Errorf("marks %v", rec.Marks)
	}
	var lives []string
	for _, p := range rec.Processes {
		lives = append(lives, fmt.Sprintf("%d of %d: %d–%d", p.PID, p.ParentIndex, p.Start, p.End))
	}
	if got, want := fmt.Sprint(lives), "[1 of -1: -925–0 3 of -1: -15–35]"; got != want {
		t.Errorf("processes %s, want %s", got, want)
	}
	if rec.Threads[0].Process != 1 || rec.Tracks[0].Process != 1 || rec.Marks[0].Process != 1 {
		t.Errorf("the thread, the track and the mark are of the processes %d, %d and %d, want 1, which is pid 3 now",
			rec.Threads[0].Process, rec.Tracks[0].Process, rec.Marks[0].Process)
	}
	if rec.GPUs[0].Lost != 20 || rec.GPUs[1].Lost != 0 || whole.GPUs[0].Lost != 45 {
		t.Errorf("devices lost at %d and %d, in the whole at %d; want 20, 0 (still there) and 45", rec.GPUs[0].Lost, rec.GPUs[1].Lost, whole.GPUs[0].Lost)
	}
}

func TestAGaugesNearestReadingsStandAtTheEdges(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	w := b.Track(TrackSpec{ID: "rss", Kind: KindGauge, Device: -1})
	for _, at := range []Nanos{10, 20, 40, 60, 80, 90} {
		w.Add(at, float64(at))
	}
	rec := b.Snapshot(100).Slice(30, 70)
	if got, want := fmt.Sprint(rec.Tracks[0].Points), "[{0 0 20} {10 10 40} {30 30 60} {40 40 80}]"; got != want {
		t.Errorf("points %s, want %s", got, want)
	}
}

func TestMeasureFindsTheOffset(t *testing.T) {
	now := int64(0)
	base := func() int64 { now += 10; return now }
	other := func() int64 { now += 10; return now + 5_000 }
	br := Measure(base, other)
	if off := br.ToBase(6_000) - 1_000; off < -br.Error || off > br.Error || br.Error > 20 {
		t.Errorf("bridge %+v is off by %d", br, off)
	}
}

func TestStateNames(t *testing.T) {
	for s := range State(NumStates) {
		if got, ok := ParseState(s.String()); !ok || got != s {
			t.Errorf("state %d is named %q, which reads as %d", s, s, got)
		}
	}
}

func BenchmarkSetUnchanged(b *testing.B) {
	build := NewBuilder(Options{})
	th := build.Thread(Thread{})
	for i := range b.N {
		build.Set(th, Nanos(i), RootNode, StatePython, false)
	}
}

func BenchmarkSetChanging(b *testing.B) {
	build := NewBuilder(Options{})
	th := build.Thread(Thread{})
	for i := range b.N {
		build.Set(th, Nanos(i)*1e6, RootNode, State(i%2), false)
	}
}

func TestThreadsAreBounded(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	for i := range 2 * maxThreads {
		id := b.Thread(Thread{NativeID: i})
		b.Set(id, Nanos(i), RootNode, StatePython, false)
		b.End(id, Nanos(i)+1)
	}
	rec := b.Snapshot(2 * maxThreads)
	if len(rec.Threads) != maxThreads || len(rec.Notes) != 1 {
		t.Errorf("%d threads, notes %v; want %d and one note", len(rec.Threads), rec.Notes, maxThreads)
	}
}

func TestWhatAThreadWaitsIn(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	th := b.Thread(Thread{})
	b.Set(th, 0, RootNode, StateWaiting, false)
	b.SetWait(th, 0, WaitSleep, 0)
	b.SetWait(th, 10, WaitSleep, 0)
	b.SetWait(th, 20, WaitLock, 0)
	b.Set(th, 30, RootNode, StatePython, false)
	b.Set(th, 40, RootNode, StateWaiting, false)
	var got []string
	for _, s := range b.Snapshot(50).Threads[0].Spans {
		got = append(got, fmt.Sprintf("%d–%d %v %d", s.Start, s.End, s.State, s.Wait))
	}
	want := fmt.Sprintf("[0–20 waiting %d 20–30 waiting %d 30–40 python 0 40–50 waiting 0]", WaitSleep, WaitLock)
	if fmt.Sprint(got) != want {
		t.Errorf("spans %v, want %s", got, want)
	}
}
