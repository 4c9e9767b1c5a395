package timeline

import (
	"math/rand/v2"
	"testing"
)

// Growth with one stack that goes on is one; whatever is cut out of it has its part.
func TestGrowthIsJoinedAndCut(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	b.Describe(func(r *Recording) {
		r.Processes = []Process{{PID: 7, Memory: ProcessMemory{Growth: GrowthReading{Reads: 4, First: 1000}}}}
	})
	node := b.Child(RootNode, b.Frame(Frame{Function: "f", Line: 1}))
	b.AddGrowth(Growth{Start: 0, End: 10, Before: node, After: node, Bytes: 100})
	b.AddGrowth(Growth{Start: 10, End: 20, Before: node, After: node, Bytes: 300})
	b.AddGrowth(Growth{Start: 20, End: 30, Before: RootNode, After: RootNode, Bytes: -200})
	b.AddGrowth(Growth{Start: 30, End: 30, Bytes: 5})
	rec := b.Snapshot(100)
	if len(rec.Growth) != 2 || rec.Growth[0] != (Growth{0, 0, 20, node, node, 400, 2}) || rec.Growth[1].Bytes != -200 {
		t.Fatalf("got %+v", rec.Growth)
	}
	if got, want := rec.Slice(0, 100).Processes[0].Memory.Growth, (GrowthReading{Reads: 4, First: 1000, Last: 1200, Largest: 1400}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	part := rec.Slice(15, 100)
	if len(part.Growth) != 2 || part.Growth[0].Bytes != 100 || part.Growth[0].Start != 0 || part.Growth[0].End != 5 {
		t.Errorf("from 15 on: %+v", part.Growth)
	}
	if after := rec.Slice(50, 100); len(after.Growth) != 0 || after.Processes[0].Memory.Growth.First != 1200 || after.Processes[0].Memory.Growth.Largest != 1200 {
		t.Errorf("from 50 on: %+v", after.Processes[0].Memory.Growth)
	}
}

// However much grows with however many stacks, what is kept is bounded and adds up.
func TestGrowthIsBounded(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	random := rand.New(rand.NewPCG(1, 2))
	var nodes []NodeID
	for line := range 400 {
		nodes = append(nodes, b.Child(RootNode, b.Frame(Frame{Function: "f", Line: line + 1})))
	}
	sum := int64(0)
	const count = maxGrowth * 3 / 2
	for i := range Nanos(count) {
		g := Growth{Start: i * 1e6, End: (i + 1) * 1e6, Before: nodes[random.IntN(400)], After: nodes[random.IntN(400)], Bytes: random.Int64N(1 << 20)}
		if random.IntN(4) == 0 {
			g.Before, g.After, g.Bytes = RootNode, RootNode, -g.Bytes
		}
		sum += g.Bytes
		b.AddGrowth(g)
	}
	rec := b.Snapshot(count * 1e6)
	got := int64(0)
	for _, g := range rec.Growth {
		got += g.Bytes
	}
	if len(rec.Growth) > maxGrowth || got != sum {
		t.Errorf("%d of at most %d are kept, %d bytes of %d", len(rec.Growth), maxGrowth, got, sum)
	}
}
