package activity

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Each line has what its threads were blocked on, apart by object; time without a line of one's own is of none.
func TestBlockedIsSummedByLineAndObject(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) { r.Processes = []timeline.Process{{PID: 7}} })
	own := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "query", File: "/u/db.py", Line: 3, FirstLine: 1}))
	library := b.Child(own, b.Frame(timeline.Frame{Function: "recv_into", File: "/v/ssl.py", Line: 9, FirstLine: 8}))
	alone := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "run", File: "/v/ssl.py", Line: 99, FirstLine: 90}))
	database := b.Object(timeline.Object{Call: "recv", Kind: timeline.ObjectSocket, Name: "10.0.0.5:5432"})
	file := b.Object(timeline.Object{Call: "fsync", Kind: timeline.ObjectFile, Name: "/u/ckpt.pt"})
	main := b.Thread(timeline.Thread{PID: 7, Main: true, OnCPU: -1})
	other := b.Thread(timeline.Thread{PID: 7, NativeID: 8, OnCPU: -1})
	blocked := func(id timeline.ThreadID, at timeline.Nanos, node timeline.NodeID, on timeline.ObjectID) {
		b.Set(id, at, node, timeline.StateIO, false)
		b.SetWait(id, at, timeline.WaitSocket, on)
	}
	blocked(main, 0, library, database)
	b.Set(main, 10*ms, own, timeline.StatePython, false)
	blocked(main, 20*ms, library, database)
	blocked(main, 50*ms, own, file)
	b.Set(main, 55*ms, own, timeline.StatePython, false)
	blocked(other, 0, library, database)
	blocked(other, 5*ms, alone, database)
	rec := b.Snapshot(100 * ms)
	got := BlockedOn(rec, func(*timeline.Thread) int { return 0 }, func(id timeline.FrameID) bool { return rec.Frames[id].File == "/u/db.py" })
	frame := rec.Nodes[own].Frame
	place := Place{File: "/u/db.py", Line: 3}
	want := []Blocked{
		{Place: place, Function: frame, Object: database, Time: 45 * ms, Main: 40 * ms, Longest: 30 * ms, Times: 3},
		{Place: place, Function: frame, Object: file, Time: 5 * ms, Main: 5 * ms, Longest: 5 * ms, Times: 1},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}
