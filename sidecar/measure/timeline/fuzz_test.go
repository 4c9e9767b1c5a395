package timeline

import (
	"encoding/binary"
	"math"
	"testing"
)

// operations reads what is done to a Builder from bytes: what a sampler, a collector
// and the calls of a kernel do, in any order and at any time.
type operations struct{ bytes []byte }

func (o *operations) byte() byte {
	if len(o.bytes) == 0 {
		return 0
	}
	b := o.bytes[0]
	o.bytes = o.bytes[1:]
	return b
}

// time is one of three scales: most are near the recording, some are not of this world.
func (o *operations) time() Nanos {
	var raw [8]byte
	n := copy(raw[:], o.bytes)
	o.bytes = o.bytes[n:]
	at := Nanos(binary.LittleEndian.Uint64(raw[:]))
	if raw[7] < 0xF0 {
		at %= 10e9
	}
	return at
}

const fuzzSpans = 64 // so that thinning is met soon

func apply(b *Builder, o *operations) (nodes []NodeID, threads int) {
	nodes = []NodeID{RootNode}
	for len(o.bytes) > 0 {
		thread := ThreadID(0)
		if threads > 0 {
			thread = ThreadID(int(o.byte()) % threads)
		}
		switch op := o.byte() % 9; {
		case op == 0 || threads == 0:
			b.Thread(Thread{Name: string(o.bytes[:min(len(o.bytes), 3)]), OnCPU: -1})
			threads++
		case op == 1:
			parent := nodes[int(o.byte())%len(nodes)]
			nodes = append(nodes, b.Child(parent, b.Frame(Frame{Function: "f", Line: int(o.byte())})))
		case op < 5:
			b.Set(thread, o.time(), nodes[int(o.byte())%len(nodes)], State(o.byte()%byte(NumStates)), op == 4)
		case op == 5:
			b.End(thread, o.time())
		case op == 6:
			w := b.Track(TrackSpec{ID: string(rune('a' + o.byte()%3)), Kind: KindRate, MaxPoints: 8})
			w.AddWindow(o.time(), o.time(), float64(o.byte()))
		case op == 7:
			w := b.Track(TrackSpec{ID: string(rune('d' + o.byte()%3)), Kind: KindGauge, MaxPoints: 8})
			w.Add(o.time(), math.Float64frombits(uint64(o.time())))
		default:
			b.Mark(Mark{Kind: "region", Name: "m", Start: o.time(), End: o.time()})
		}
	}
	return nodes, threads
}

// whole fails unless everything holds that readers of a recording rely on.
func whole(t *testing.T, r *Recording) {
	t.Helper()
	spans := 0
	for i, thread := range r.Threads {
		before := Nanos(0)
		for _, s := range thread.Spans {
			if s.Start < before || s.End <= s.Start || s.End > r.Duration {
				t.Fatalf("thread %d: span from %d to %d after %d, in %d", i, s.Start, s.End, before, r.Duration)
			}
			if int(s.Node) >= len(r.Nodes) || int(s.State) >= NumStates {
				t.Fatalf("thread %d: node %d of %d, state %d", i, s.Node, len(r.Nodes), s.State)
			}
			before = s.End
		}
		spans += len(thread.Spans)
	}
	if most := fuzzSpans + len(r.Threads); spans > most {
		t.Fatalf("%d spans, more than %d", spans, most)
	}
	for i, n := range r.Nodes[1:] {
		if int(n.Parent) > i || int(n.Frame) >= len(r.Frames) {
			t.Fatalf("node %d: parent %d, frame %d of %d", i+1, n.Parent, n.Frame, len(r.Frames))
		}
	}
	for _, track := range r.Tracks {
		for _, p := range track.Points {
			if p.From < 0 || p.At < p.From || p.At > r.Duration {
				t.Fatalf("track %s: a point from %d to %d in %d", track.ID, p.From, p.At, r.Duration)
			}
		}
	}
}

func FuzzBuilder(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 7, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3, 9, 9, 0, 0, 0, 0, 0, 0, 0, 2}, int64(5e9), int64(1e9), int64(2e9))
	var busy []byte
	for i := range 600 {
		busy = append(busy, 0, 2)
		busy = binary.LittleEndian.AppendUint64(busy, uint64(i)*3e6)
		busy = append(busy, byte(i), byte(i))
	}
	f.Add(append([]byte{0, 0, 0, 1, 0, 1, 0, 1, 1, 2}, busy...), int64(2e9), int64(-5), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, ops []byte, duration, from, to int64) {
		b := NewBuilder(Options{Origin: 1, MaxSpans: fuzzSpans})
		apply(b, &operations{ops})
		if duration < 0 {
			duration = 0
		}
		r := b.Snapshot(Nanos(duration))
		whole(t, r)
		whole(t, r.Slice(Nanos(from), Nanos(to)))
		whole(t, b.Snapshot(Nanos(duration/2)))
	})
}
