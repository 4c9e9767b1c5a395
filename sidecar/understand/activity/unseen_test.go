package activity

import (
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A loop whose lines 1 and 2 compute in turn, and whose line 3, in less than a reading, makes 2 MiB in each turn, which is seen in some.
func TestGrowthOfALineThatIsSeenNowAndThen(t *testing.T) {
	const ms, mb = timeline.Nanos(time.Millisecond), int64(1 << 20)
	random := []bool{true, false, true, true, false, false, true, true, true, false, true, false, false, true, true, false}
	for name, c := range map[string]struct {
		seen  []bool // of the turns
		also  int64  // MiB that line 1 makes in each turn
		want  int64  // MiB of line 3
		doubt int64
	}{
		"in most turns":                    {slices.Repeat([]bool{true, true, false, true}, 5), 0, 40, 10},
		"at random":                        {random, 0, 32, 14},
		"always":                           {slices.Repeat([]bool{true}, 20), 0, 40, 0},
		"too seldom to be known":           {slices.Repeat([]bool{true, false, true, false, false}, 2), 0, 8, 0},
		"beside a line that makes as much": {random, 2, 10, 1},
		"beside a line that makes something else":     {random, 8, 9, 0},
		"never where its neighbours grow as it would": {slices.Repeat([]bool{true, false}, 10), 0, 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := timeline.NewBuilder(timeline.Options{Origin: 1})
			line := func(number int) timeline.NodeID {
				return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: "app.py", Line: number}))
			}
			main := b.Thread(timeline.Thread{Main: true})
			at, before := timeline.Nanos(0), timeline.RootNode
			look := func(number int, grown int64) {
				at += ms
				now := line(number)
				b.Set(main, at, now, timeline.StatePython, false)
				if grown > 0 {
					b.AddGrowth(timeline.Growth{Start: at - ms, End: at, Before: before, After: now, Bytes: grown})
				}
				before = now
			}
			for _, seen := range c.seen {
				for i := range 20 {
					look(1+i/10, 0)
				}
				if c.also > 0 {
					look(1, 0)
					look(1, c.also*mb)
				}
				if look(1, 0); seen {
					look(3, mb)
					look(2, mb)
				} else {
					look(2, 2*mb)
				}
			}
			rec := b.Snapshot(at + ms)
			lines, _ := memoryOf(rec, func(timeline.FrameID) bool { return true }, func(int) timeline.Nanos { return rec.Duration })
			for _, l := range lines {
				if l.Place.Line == 3 && (l.Grown/mb != c.want || l.Uncertain/mb != c.doubt) {
					t.Errorf("it grew by %d MiB, %d of them in doubt, want %d and %d", l.Grown/mb, l.Uncertain/mb, c.want, c.doubt)
				}
			}
		})
	}
}
