package activity

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A main thread with lines in turn, and what its memory grows by between two readings, 1 ms apart.
func TestGrowthBetweenTwoLinesIsOfTheOneThatGrows(t *testing.T) {
	const ms, mb = timeline.Nanos(time.Millisecond), int64(1 << 20)
	type step struct {
		line   int
		asleep bool
		mb     []int64 // at each reading of it; the first of them is the one since the line before
	}
	quiet := func(n int) []int64 { return make([]int64, n) }
	steady := func(first int64, n int, each int64) []int64 {
		out := []int64{first}
		for range n {
			out = append(out, each)
		}
		return out
	}
	for name, c := range map[string]struct {
		rounds    int
		steps     []step
		want      map[int]int64 // MiB of a line …
		uncertain map[int]int64 // … and of them, what is in doubt
		within    int64
	}{
		"a loop without growth, then a short call that grows, then a sleep in the same line": {
			20, []step{{6, false, quiet(50)}, {12, false, []int64{2, 1}}, {12, true, steady(1, 100, 0)}},
			map[int]int64{6: 0, 12: 80}, map[int]int64{}, 0,
		},
		"the same, and the call is never met": {
			20, []step{{6, false, quiet(50)}, {12, true, steady(4, 100, 0)}},
			map[int]int64{6: 0, 12: 80}, map[int]int64{12: 80}, 0,
		},
		"a line that takes memory and sleeps, long after another one": {
			20, []step{{12, false, steady(0, 5, 4)}, {12, true, steady(1, 50, 0)}},
			map[int]int64{12: 419, 1: 0}, map[int]int64{}, 1,
		},
		"two lines that grow alike": {
			10, []step{{1, false, steady(2, 9, 2)}, {2, false, steady(2, 9, 2)}},
			map[int]int64{1: 200, 2: 198}, map[int]int64{1: 19, 2: 19}, 2,
		},
		"one grows ten times as fast": {
			10, []step{{1, false, steady(1, 9, 1)}, {2, false, steady(1, 9, 10)}},
			map[int]int64{1: 91, 2: 918}, map[int]int64{1: 3, 2: 16}, 4,
		},
		"one grows slowly, and a short call is never met in two readings": {
			10, []step{{1, false, steady(2, 20, 2)}, {2, false, []int64{20}}, {3, false, quiet(20)}},
			map[int]int64{1: 460, 2: 160, 3: 0}, map[int]int64{1: 40, 2: 160}, 9,
		},
		"one grows, and a line that is met once was not seen to": {
			1, []step{{1, false, quiet(1)}, {2, false, steady(8, 20, 8)}},
			map[int]int64{1: 0, 2: 168}, map[int]int64{1: 0, 2: 8}, 1,
		},
		"a call that grows as it returns, then a loop without growth": {
			10, []step{{1, false, append(quiet(20), 3, 2)}, {2, false, steady(2, 20, 0)}},
			map[int]int64{1: 70, 2: 0}, map[int]int64{}, 0,
		},
		"once only": {
			1, []step{{1, false, quiet(20)}, {2, false, steady(8, 20, 0)}},
			map[int]int64{1: 4, 2: 4}, map[int]int64{1: 4, 2: 4}, 0,
		},
		"neither grows": {
			20, []step{{1, false, quiet(20)}, {2, false, steady(8, 20, 0)}},
			map[int]int64{1: 80, 2: 80}, map[int]int64{1: 80, 2: 80}, 0,
		},
		"what is given back is no line's": {
			10, []step{{1, false, steady(0, 20, 0)}, {2, false, []int64{2, 2, 1}}, {3, false, append([]int64{-5}, quiet(20)...)}},
			map[int]int64{1: 0, 2: 50, 3: 0}, map[int]int64{}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := timeline.NewBuilder(timeline.Options{Origin: 1})
			main := b.Thread(timeline.Thread{Main: true})
			at, before := timeline.Nanos(0), timeline.RootNode
			b.Set(main, 0, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "start", File: "app.py", Line: 100})), timeline.StatePython, false)
			for range c.rounds {
				for _, s := range c.steps {
					node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: "app.py", Line: s.line}))
					state := timeline.StatePython
					if s.asleep {
						state = timeline.StateWaiting
					}
					for _, grown := range s.mb {
						at += ms
						b.Set(main, at, node, state, false)
						if s.asleep {
							b.SetWait(main, at, timeline.WaitSleep, 0)
						}
						if grown != 0 && before != timeline.RootNode {
							g := timeline.Growth{Start: at - ms, End: at, Before: before, After: node, Bytes: grown * mb}
							if grown < 0 {
								g.Before, g.After = timeline.RootNode, timeline.RootNode
							}
							b.AddGrowth(g)
						}
						before = node
					}
				}
			}
			rec := b.Snapshot(at + ms)
			lines, _ := memoryOf(rec, func(timeline.FrameID) bool { return true }, func(int) timeline.Nanos { return rec.Duration })
			grown, uncertain := make(map[int]int64), make(map[int]int64)
			for _, l := range lines {
				grown[l.Place.Line], uncertain[l.Place.Line] = l.Grown/mb, l.Uncertain/mb
			}
			for line, want := range c.want {
				if got := grown[line]; got < want-c.within || got > want+c.within {
					t.Errorf("line %d grew by %d MiB, want %d", line, got, want)
				}
				if got, want := uncertain[line], c.uncertain[line]; got < want-c.within || got > want+c.within {
					t.Errorf("line %d: %d MiB are in doubt, want %d", line, got, want)
				}
			}
		})
	}
}

// Of a short line between two that do not grow, what it grew by unseen is its own, too: it was met there at other times.
func TestGrowthBetweenTwoQuietLinesIsOfTheOneBetween(t *testing.T) {
	const ms, mb = timeline.Nanos(time.Millisecond), int64(1 << 20)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	line := func(number int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: "app.py", Line: number}))
	}
	main := b.Thread(timeline.Thread{Main: true})
	for round := range timeline.Nanos(20) {
		at := round * 100 * ms
		b.Set(main, at, line(1), timeline.StatePython, false)
		if met := round%2 == 0; met {
			b.Set(main, at+50*ms, line(2), timeline.StatePython, false)
			b.AddGrowth(timeline.Growth{Start: at + 49*ms, End: at + 50*ms, Before: line(1), After: line(2), Bytes: mb})
			b.AddGrowth(timeline.Growth{Start: at + 50*ms, End: at + 51*ms, Before: line(2), After: line(2), Bytes: 3 * mb})
		} else {
			b.AddGrowth(timeline.Growth{Start: at + 51*ms, End: at + 52*ms, Before: line(1), After: line(3), Bytes: 4 * mb})
		}
		b.Set(main, at+52*ms, line(3), timeline.StateWaiting, false)
		b.SetWait(main, at+52*ms, timeline.WaitSleep, 0)
	}
	rec := b.Snapshot(2000 * ms)
	lines, _ := memoryOf(rec, func(timeline.FrameID) bool { return true }, func(int) timeline.Nanos { return rec.Duration })
	if len(lines) != 1 || lines[0].Place.Line != 2 || lines[0].Grown != 80*mb || lines[0].Uncertain != 40*mb {
		t.Errorf("got %+v", lines)
	}
}

// What a library's own threads touch is of the line that waits for them, where there is one, and no other thread runs lines of the user's.
func TestGrowthInALibrarysThreadsIsOfTheLineThatWaits(t *testing.T) {
	const s, mb = timeline.Nanos(time.Second), int64(1 << 20)
	for name, c := range map[string]struct {
		state  timeline.State
		wait   timeline.Wait
		second timeline.State // of another thread of the user's; StateUnknown: there is none
		want   int64          // MiB of the line
	}{
		"it waits for them":                 {timeline.StateWaiting, timeline.WaitLock, timeline.StateUnknown, 60},
		"it runs":                           {timeline.StatePython, timeline.WaitUnknown, timeline.StateUnknown, 0},
		"it waits for a socket":             {timeline.StateWaiting, timeline.WaitSocket, timeline.StateUnknown, 0},
		"another thread of the user's runs": {timeline.StateWaiting, timeline.WaitLock, timeline.StatePython, 0},
	} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		node := func(file string, line int) timeline.NodeID {
			return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: file, Line: line}))
		}
		main, worker := b.Thread(timeline.Thread{Main: true}), b.Thread(timeline.Thread{})
		b.Set(main, 0, node("app.py", 11), c.state, false)
		b.SetWait(main, 0, c.wait, 0)
		b.Set(worker, 0, node("pandas.py", 306), timeline.StateNative, false)
		if c.second != timeline.StateUnknown {
			b.Set(b.Thread(timeline.Thread{}), 0, node("app.py", 20), c.second, false)
		}
		b.AddGrowth(timeline.Growth{Start: 0, End: s, Before: node("pandas.py", 306), After: node("pandas.py", 306), Bytes: 50 * mb})
		b.AddGrowth(timeline.Growth{Start: s, End: 2 * s, Bytes: 10 * mb}) // in threads without Python
		rec := b.Snapshot(2 * s)
		lines, sums := memoryOf(rec, func(id timeline.FrameID) bool { return rec.Frames[id].File == "app.py" }, func(int) timeline.Nanos { return 2 * s })
		got := int64(0)
		for _, l := range lines {
			got += l.Grown / mb
		}
		if got != c.want || sums[0].Unplaced != (60-c.want)*mb || c.want > 0 && lines[0].Place.Line != 11 {
			t.Errorf("%s: %+v, %+v; want %d MiB", name, lines, sums, c.want)
		}
	}
}
