package activity

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// What freeing a function's locals costs is on the line that called it. It is named where that is proven: right after the
// return, with nothing below, while the memory of the process shrinks.
func TestFreeingIsProvenByTheReturnAndTheMemory(t *testing.T) {
	const ms, mb = timeline.Nanos(time.Millisecond), int64(1 << 20)
	call := timeline.Frame{Function: "<module>", File: "app.py", Line: 7}
	load := timeline.Frame{Function: "load", File: "app.py", Line: 3}
	lists := timeline.Frame{Function: "best.<listcomp>", File: "app.py", Line: 7}
	for name, c := range map[string]struct {
		callee timeline.Frame
		growth []timeline.Growth
		after  timeline.Nanos // the return, 100 ms on
		other  bool           // another thread computes
		want   timeline.Nanos
	}{
		"shrinks":              {load, []timeline.Growth{{Start: 110 * ms, End: 130 * ms, Bytes: -8 * mb}, {Start: 130 * ms, End: 180 * ms, Bytes: -20 * mb}}, 100 * ms, false, 80 * ms},
		"shrinks and grows":    {load, []timeline.Growth{{Start: 110 * ms, End: 130 * ms, Bytes: -8 * mb}, {Start: 130 * ms, End: 180 * ms, Bytes: 2 * mb}}, 100 * ms, false, 0},
		"too little":           {load, []timeline.Growth{{Start: 110 * ms, End: 180 * ms, Bytes: -mb / 2}}, 100 * ms, false, 0},
		"nothing is known":     {load, nil, 100 * ms, false, 0},
		"not after the return": {load, []timeline.Growth{{Start: 110 * ms, End: 180 * ms, Bytes: -20 * mb}}, 110 * ms, false, 0},
		"another thread":       {load, []timeline.Growth{{Start: 110 * ms, End: 180 * ms, Bytes: -20 * mb}}, 100 * ms, true, 0},
		"of a comprehension":   {lists, []timeline.Growth{{Start: 110 * ms, End: 180 * ms, Bytes: -20 * mb}}, 100 * ms, false, 0},
		"the line works first": {load, []timeline.Growth{{Start: 140 * ms, End: 180 * ms, Bytes: -20 * mb}}, 100 * ms, false, 0},
		"and works afterwards": {load, []timeline.Growth{{Start: 101 * ms, End: 120 * ms, Bytes: -28 * mb}, {Start: 190 * ms, End: 191 * ms, Bytes: -20 * mb}}, 100 * ms, false, 20 * ms},
	} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		thread := b.Thread(timeline.Thread{PID: 1, Main: true, OnCPU: -1})
		at := b.Child(timeline.RootNode, b.Frame(call))
		b.Set(thread, 0, b.Child(at, b.Frame(c.callee)), timeline.StatePython, false)
		if c.after > 100*ms {
			b.Set(thread, 100*ms, timeline.RootNode, timeline.StateUnknown, false)
		}
		b.Set(thread, c.after, at, timeline.StateNative, false)
		if c.other {
			b.Set(b.Thread(timeline.Thread{PID: 1, OnCPU: -1}), 0, b.Child(timeline.RootNode, b.Frame(load)), timeline.StateNative, false)
		}
		for _, g := range c.growth {
			b.AddGrowth(g)
		}
		got := Freeing(b.Snapshot(200*ms), func(*timeline.Thread) int { return 0 }, func(timeline.FrameID) bool { return true })
		switch {
		case c.want == 0 && len(got) != 0:
			t.Errorf("%s: got %+v, want nothing", name, got)
		case c.want > 0 && (len(got) != 1 || got[0].Time != c.want || got[0].Place != Place{"app.py", 7} || got[0].Bytes != 28*mb):
			t.Errorf("%s: got %+v, want %v in line 7", name, got, c.want)
		}
	}
}
