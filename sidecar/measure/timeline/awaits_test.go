package timeline

import (
	"math/rand/v2"
	"testing"
	"time"
)

const ms = Nanos(time.Millisecond)

// awaitsOf has one stack with the counts of tasks in stretches of 10 ms.
func awaitsOf(counts ...int) (*Builder, NodeID) {
	b := NewBuilder(Options{Origin: 1})
	node := b.Child(RootNode, b.Frame(Frame{Function: "fetch", File: "app.py", Line: 3, Suspended: true}))
	for i, count := range counts {
		b.AddAwaits(0, Nanos(i)*10*ms, Nanos(i+1)*10*ms, AwaitsOther, map[NodeID]int{node: count}, nil)
	}
	return b, node
}

func waiting(awaits []Await) (sum Nanos, most, windows int) {
	for _, a := range awaits {
		for _, w := range a.Windows {
			sum, most, windows = sum+w.Waiting, max(most, w.Most), windows+1
		}
	}
	return sum, most, windows
}

func TestAwaitsAreJoinedWhileNothingChanges(t *testing.T) {
	b, node := awaitsOf(2, 2, 2, 0, 2, 5)
	got := b.Snapshot(60 * ms).Awaits
	if len(got) != 1 || got[0].Node != node || len(got[0].Windows) != 3 {
		t.Fatalf("got %+v, want three windows of one stack", got)
	}
	if first, want := got[0].Windows[0], (AwaitWindow{0, 30 * ms, 60 * ms, 2, 0}); first != want {
		t.Errorf("the first window is %+v, want %+v", first, want)
	}
	if sum, most, _ := waiting(got); sum != (60+20+50)*ms || most != 5 {
		t.Errorf("waited %v with at most %d", sum, most)
	}
}

// A cell that ran inside another's recording has its own part of the awaits.
func TestAwaitsOfASlice(t *testing.T) {
	b, _ := awaitsOf(4, 4, 4, 4)
	part := b.Snapshot(40*ms).Slice(15*ms, 25*ms)
	if sum, most, windows := waiting(part.Awaits); sum != 40*ms || most != 4 || windows != 1 || part.Awaits[0].Windows[0].Start != 0 {
		t.Errorf("got %+v", part.Awaits)
	}
}

// Any number of changes takes bounded memory and keeps the sum and the highest number.
func TestAwaitsAreBounded(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	want, most := Nanos(0), 0
	node := b.Child(RootNode, b.Frame(Frame{Function: "fetch", File: "app.py", Line: 3}))
	for i := range 50_000 {
		count := i % 7
		b.AddAwaits(0, Nanos(i)*ms, Nanos(i+1)*ms, AwaitsOther, map[NodeID]int{node: count}, nil)
		want, most = want+Nanos(count)*ms, max(most, count)
	}
	for i := range 2 * maxAwaits {
		node := b.Child(RootNode, b.Frame(Frame{Function: "fetch", File: "app.py", Line: i + 10}))
		b.AddAwaits(0, 60_000*ms, 60_001*ms, AwaitsOther, map[NodeID]int{node: 1}, nil)
	}
	rec := b.Snapshot(70_000 * ms)
	if len(rec.Awaits) != maxAwaits {
		t.Errorf("%d stacks are kept, want %d", len(rec.Awaits), maxAwaits)
	}
	sum, got, windows := waiting(rec.Awaits[:1])
	if sum != want || got != most || windows > maxAwaitWindows {
		t.Errorf("waited %v with at most %d in %d windows, want %v and %d in at most %d", sum, got, windows, want, most, maxAwaitWindows)
	}
	if len(rec.Notes) != 1 || rec.Notes[0].ID != NoteLeftOut {
		t.Errorf("notes %+v, want one about what is left out", rec.Notes)
	}
}

// Whatever is added, joined and cut: windows are in order and apart, within the recording, and no more
// tasks waited on average than at once.
func TestAwaitWindowsKeepTheirPromise(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 2))
		b := NewBuilder(Options{Origin: 1})
		nodes := make([]NodeID, 3)
		for i := range nodes {
			nodes[i] = b.Child(RootNode, b.Frame(Frame{Function: "fetch", File: "app.py", Line: 3 + i}))
		}
		at, sum := Nanos(0), Nanos(0)
		for range 2*maxAwaitWindows + random.IntN(4*maxAwaitWindows) {
			from := at + Nanos(max(0, random.IntN(20)-12)) // mostly none lies between them
			at = from + 1 + Nanos(random.IntN(30))         // also of a nanosecond: nothing is lost by rounding
			tasks := make(map[NodeID]int)
			for _, node := range nodes {
				if count := random.IntN(4); count > 0 {
					tasks[node], sum = count, sum+Nanos(count)*(at-from)
				}
			}
			b.AddAwaits(0, from, at, AwaitKinds()[at%2], tasks, nil)
		}
		rec := b.Snapshot(at)
		if got, _, _ := waiting(rec.Awaits); got != sum {
			t.Errorf("seed %d: tasks waited %d ns, want %d", seed, got, sum)
		}
		promised(t, rec.Awaits, at)
		for range 20 {
			from := Nanos(random.Int64N(int64(at)))
			to := from + 1 + Nanos(random.Int64N(int64(at-from)))
			promised(t, rec.Slice(from, to).Awaits, to-from)
		}
	}
}

func promised(t *testing.T, awaits []Await, duration Nanos) {
	t.Helper()
	for _, a := range awaits {
		before := Nanos(0)
		if len(a.Windows) > maxAwaitWindows {
			t.Fatalf("%d windows are kept", len(a.Windows))
		}
		for _, w := range a.Windows {
			if w.Start < before || w.End <= w.Start || w.End > duration || w.Waiting < 0 || w.Waiting > Nanos(w.Most)*(w.End-w.Start) {
				t.Fatalf("the window %+v of %d ns follows %d", w, duration, before)
			}
			before = w.End
		}
	}
}
