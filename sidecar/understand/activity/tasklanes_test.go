package activity

import (
	"math"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// The tasks of a coroutine are those whose outermost own code it is; what a thread runs of it is counted too, and a
// loop that only waits runs nothing.
func TestTaskLanesAreByCoroutine(t *testing.T) {
	const ms = timeline.Nanos(time.Millisecond)
	client := timeline.Frame{Function: "client", File: "app.py", Line: 9, FirstLine: 7}
	b := scriptInLoop([]timeline.Frame{client, {Function: "checksum", File: "app.py", Line: 5, FirstLine: 4}}, nil, []timeline.Frame{client}, nil)
	client.Suspended = true
	outer := b.Child(timeline.RootNode, b.Frame(client))
	inner := b.Child(outer, b.Frame(timeline.Frame{Function: "fetch", File: "app.py", Line: 3, FirstLine: 2, Suspended: true}))
	b.AddAwaits(0, 100*ms, 250*ms, timeline.AwaitsOther, map[timeline.NodeID]int{inner: 4}, nil)
	b.AddAwaits(0, 100*ms, 250*ms, timeline.AwaitsTasks, map[timeline.NodeID]int{outer: 1}, nil)
	b.AddAwaits(0, 0, 100*ms, timeline.AwaitsTurn, map[timeline.NodeID]int{outer: 2}, nil)
	rec := b.Snapshot(400 * ms)
	lanes := TaskLanes(rec, func(id timeline.FrameID) bool { return rec.Frames[id].File == "app.py" }, 4)
	if len(lanes) != 1 || rec.Frames[lanes[0].Function].Function != "client" {
		t.Fatalf("got %+v", lanes)
	}
	for what, c := range map[string]struct{ got, want []float64 }{
		"waiting": {lanes[0].Waiting, []float64{0, 5, 2.5, 0}},
		"ready":   {lanes[0].Ready, []float64{2, 0, 0, 0}},
		"running": {lanes[0].Running, []float64{1, 0, 1, 0}},
	} {
		for i, want := range c.want {
			if math.Abs(c.got[i]-want) > 0.001 {
				t.Errorf("%s: got %v, want %v", what, c.got, c.want)
				break
			}
		}
	}
}

// A cell begins in its first line, and so may the first function in it.
func TestACellIsNoLaneOfItsFirstFunction(t *testing.T) {
	const ms = timeline.Nanos(time.Millisecond)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	lane := func(function string, line int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: function, File: cellFile, Line: line, FirstLine: 1, Suspended: true}))
	}
	b.AddAwaits(0, 0, 100*ms, timeline.AwaitsOther, map[timeline.NodeID]int{lane("worker", 2): 4}, nil)
	b.AddAwaits(0, 0, 100*ms, timeline.AwaitsTasks, map[timeline.NodeID]int{lane("<module>", 3): 1}, nil)
	lanes := TaskLanes(b.Snapshot(100*ms), func(timeline.FrameID) bool { return true }, 1)
	if len(lanes) != 2 || math.Abs(lanes[0].Waiting[0]-4) > 0.001 || math.Abs(lanes[1].Waiting[0]-1) > 0.001 {
		t.Errorf("got %+v, want one of four tasks and one of the cell", lanes)
	}
}
