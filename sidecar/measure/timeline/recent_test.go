package timeline

import (
	"fmt"
	"testing"
	"time"
)

// framesOf names a stack, root first.
func framesOf(rec *Recording, node NodeID) (names []string) {
	for ; node != RootNode; node = rec.Nodes[node].Parent {
		names = append([]string{rec.Frames[rec.Nodes[node].Frame].Function}, names...)
	}
	return names
}

func TestRecentIsTheSliceOfTheSnapshot(t *testing.T) {
	b := NewBuilder(Options{Origin: 1000})
	th := b.Thread(Thread{NativeID: 1, Main: true})
	early := b.Child(RootNode, b.Frame(Frame{Function: "early"}))
	a := b.Child(RootNode, b.Frame(Frame{Function: "a"}))
	ab := b.Child(a, b.Frame(Frame{Function: "b"}))
	cpu := b.Track(TrackSpec{ID: "cpu", Kind: KindRate})
	rss := b.Track(TrackSpec{ID: "rss", Kind: KindGauge})
	b.Set(th, 0, early, StatePython, false)
	b.Set(th, 50, a, StatePython, false)
	b.Set(th, 70, ab, StateNative, false)
	rss.Add(10, 1)
	cpu.Add(40, 1)
	cpu.Add(80, 2)
	b.Mark(Mark{Kind: "step", Start: 0, End: 30})
	b.Mark(Mark{Kind: "step", Start: 30, End: 65})
	gone := b.Thread(Thread{NativeID: 2})
	b.Set(gone, 10, early, StatePython, false)
	b.End(gone, 20)

	got, want := b.Recent(60, 100), b.Snapshot(100).Slice(60, 100)
	if got.Origin != want.Origin || got.Duration != want.Duration || got.StartedAt != want.StartedAt {
		t.Errorf("began at %d for %d, want %d for %d", got.Origin, got.Duration, want.Origin, want.Duration)
	}
	if got, want := fmt.Sprint(got.Marks), fmt.Sprint(want.Marks); got != want {
		t.Errorf("marks %s, want %s", got, want)
	}
	for i, track := range want.Tracks {
		if got, want := fmt.Sprint(got.Tracks[i].Points), fmt.Sprint(track.Points); got != want {
			t.Errorf("points of %s: %s, want %s", track.ID, got, want)
		}
	}
	if len(got.Threads) != len(want.Threads) {
		t.Fatalf("%d threads, want %d", len(got.Threads), len(want.Threads))
	}
	for i, thread := range want.Threads {
		for j, span := range thread.Spans {
			other := got.Threads[i].Spans[j]
			if other.Start != span.Start || other.End != span.End || other.State != span.State || fmt.Sprint(framesOf(got, other.Node)) != fmt.Sprint(framesOf(want, span.Node)) {
				t.Errorf("span %v of %v, want %v of %v", other, framesOf(got, other.Node), span, framesOf(want, span.Node))
			}
		}
	}
	if len(got.Frames) != 2 {
		t.Errorf("frames %v, want those of the last 40 ns", got.Frames)
	}
}

func TestRecentOfAThinnedRecordingEndsInTheStackOfNow(t *testing.T) {
	b := NewBuilder(Options{Origin: 1, MaxSpans: 64, Interval: time.Microsecond})
	th := b.Thread(Thread{NativeID: 1})
	var nodes []NodeID
	for i := range 7 {
		nodes = append(nodes, b.Child(RootNode, b.Frame(Frame{Function: fmt.Sprint("f", i)})))
	}
	at := Nanos(0)
	for i := range 5000 {
		at = Nanos(i * 1000)
		b.Set(th, at, nodes[i%7], StatePython, false)
	}
	at += 300
	rec := b.Recent(at-200_000, at)
	spans := rec.Threads[0].Spans
	last := spans[len(spans)-1]
	if last.End != rec.Duration {
		t.Errorf("the last span ends at %d of %d", last.End, rec.Duration)
	}
	if got, want := framesOf(rec, last.Node)[0], fmt.Sprint("f", 4999%7); got != want {
		t.Errorf("it is in %s, want %s", got, want)
	}
	for i := 1; i < len(spans); i++ {
		if spans[i].Start < spans[i-1].End {
			t.Errorf("span %d begins at %d, the one before ends at %d", i, spans[i].Start, spans[i-1].End)
		}
	}
}
