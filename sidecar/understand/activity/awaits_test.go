package activity

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Tasks that wait at one line by way of several stacks are counted together, at the innermost line of the
// user's own; those of a library alone are left out.
func TestAwaitsAreByTheInnermostOwnLine(t *testing.T) {
	const s = timeline.Nanos(time.Second)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	stack := func(frames ...timeline.Frame) (node timeline.NodeID) {
		for _, f := range frames {
			node = b.Child(node, b.Frame(f))
		}
		return node
	}
	fetch := timeline.Frame{Function: "fetch", File: "app.py", Line: 3}
	sleep := timeline.Frame{Function: "sleep", File: "asyncio/tasks.py", Line: 600}
	direct := stack(fetch, sleep)
	wrapped := stack(timeline.Frame{Function: "retry", File: "app.py", Line: 9}, fetch, sleep)
	library := stack(sleep)
	b.AddAwaits(0, 0, 2*s, timeline.AwaitsOther, map[timeline.NodeID]int{direct: 10, library: 5}, nil)
	b.AddAwaits(0, 1*s, 3*s, timeline.AwaitsOther, map[timeline.NodeID]int{wrapped: 8}, nil)
	b.AddAwaits(0, 5*s, 6*s, timeline.AwaitsOther, map[timeline.NodeID]int{direct: 2}, nil)
	rec := b.Snapshot(10 * s)
	lines := Awaits(rec, func(id timeline.FrameID) bool { return rec.Frames[id].File == "app.py" })
	if len(lines) != 1 {
		t.Fatalf("got %+v, want one line", lines)
	}
	a := lines[0]
	if a.Place != (Place{"app.py", 3}) || a.Waiting != 38*s || a.Some != 4*s || a.Most != 18 || a.Mean() != 9.5 || len(a.Where) != 2 {
		t.Errorf("got %+v", a)
	}
}

// Whatever waited when: a line's times are what counting each millisecond finds.
func TestAwaitsAreWhatCountingFinds(t *testing.T) {
	const ms, duration = timeline.Nanos(time.Millisecond), 200
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		var counted [duration]int
		for _, node := range []timeline.NodeID{
			b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "a", File: "app.py", Line: 3})),
			b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "b", File: "app.py", Line: 3})),
		} {
			for at := random.IntN(20); at < duration; { // often touching, in ones and twos and with pauses
				end, tasks := min(at+1+random.IntN(20), duration), random.IntN(4)
				b.AddAwaits(0, timeline.Nanos(at)*ms, timeline.Nanos(end)*ms, timeline.AwaitsOther, map[timeline.NodeID]int{node: tasks}, nil)
				for i := at; i < end; i++ {
					counted[i] += tasks
				}
				at = end + max(0, random.IntN(10)-6)
			}
		}
		var want AwaitLine
		alone := timeline.Nanos(0)
		for _, tasks := range counted {
			want.Waiting += timeline.Nanos(tasks) * ms
			want.Most = max(want.Most, tasks)
			if tasks > 0 {
				want.Some += ms
			}
			if tasks == 1 {
				alone += ms
			}
		}
		lines := Awaits(b.Snapshot(duration*ms), func(timeline.FrameID) bool { return true })
		if len(lines) != 1 || lines[0].Waiting != want.Waiting || lines[0].Some != want.Some || lines[0].Most != want.Most || timeline.Total(lines[0].Alone) != alone {
			t.Fatalf("seed %d: got %+v, want %+v", seed, lines, want)
		}
	}
}
