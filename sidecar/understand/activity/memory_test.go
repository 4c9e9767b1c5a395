package activity

import (
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Growth is charged to the innermost line of the user's own; where the line changed between two
// readings of lines of which nothing else is known, to both lines in equal parts, which are uncertain. What was given back is the process's.
func TestGrowthIsByTheInnermostOwnLine(t *testing.T) {
	const s, mb = timeline.Nanos(time.Second), int64(1 << 20)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	stack := func(frames ...timeline.Frame) (node timeline.NodeID) {
		for _, f := range frames {
			node = b.Child(node, b.Frame(f))
		}
		return node
	}
	load := timeline.Frame{Function: "load", File: "app.py", Line: 3}
	read := timeline.Frame{Function: "read_csv", File: "pandas/io.py", Line: 600}
	direct, library := stack(load), stack(load, read)
	other := stack(timeline.Frame{Function: "load", File: "app.py", Line: 4})
	foreign := stack(read)
	for i, g := range []timeline.Growth{
		{Before: direct, After: library, Bytes: 10 * mb}, // one line
		{Before: library, After: other, Bytes: 4 * mb},   // two lines
		{Before: foreign, After: foreign, Bytes: 3 * mb},
		{Before: other, After: foreign, Bytes: 2 * mb},
		{Bytes: -5 * mb},
	} {
		g.Start, g.End = timeline.Nanos(i)*s, timeline.Nanos(i+1)*s
		b.AddGrowth(g)
	}
	rec := b.Snapshot(10 * s)
	lines, sums := memoryOf(rec, func(id timeline.FrameID) bool { return rec.Frames[id].File == "app.py" }, func(int) timeline.Nanos { return rec.Duration })
	if len(lines) != 2 || lines[0].Place != (Place{"app.py", 3}) || lines[0].Grown != 12*mb || lines[0].Uncertain != 2*mb {
		t.Errorf("got %+v", lines)
	}
	if lines[1].Place != (Place{"app.py", 4}) || lines[1].Grown != 3*mb || lines[1].Uncertain != 3*mb || len(lines[1].When) != 2 {
		t.Errorf("got %+v", lines[1])
	}
	if want := (GrowthSum{Grown: 19 * mb, Unplaced: 4 * mb, Released: 5 * mb, Kept: 14 * mb}); len(sums) != 1 || sums[0] != want {
		t.Errorf("got %+v, want %+v", sums, want)
	}
}

// When a line's memory grew: growth that is close together is one stretch, and those that grew most are kept.
func TestWhenALineGrewMost(t *testing.T) {
	line := GrowthLine{}
	for _, g := range [][3]int64{{0, 10, 5}, {12, 20, 5}, {100, 101, 7}, {200, 210, 30}, {300, 301, 1}} {
		line.When = append(line.When, Growing{timeline.Between(timeline.Nanos(g[0]), timeline.Nanos(g[1])), g[2]})
	}
	want := []timeline.Interval{timeline.Between(0, 20), timeline.Between(200, 210)}
	if got := line.Most(2, 5); !slices.Equal(got, want) {
		t.Errorf("it grew at %v, want %v", got, want)
	}
}

// What made the peak is what rose through each of its bytes last: memory that a line takes and gives back again counts once.
func TestWhatMadeThePeak(t *testing.T) {
	const s, mb = timeline.Nanos(time.Second), int64(1 << 20)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	line := func(n int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "load", File: "app.py", Line: n}))
	}
	for i, g := range []struct {
		line  int
		bytes int64
	}{{1, 100}, {2, 300}, {0, -300}, {2, 300}, {0, -350}, {3, 400}, {0, -200}, {4, 150}, {5, 60}, {0, -500}, {6, 200}} {
		node := timeline.RootNode
		if g.line > 0 {
			node = line(g.line)
		}
		b.AddGrowth(timeline.Growth{Start: timeline.Nanos(i) * s, End: timeline.Nanos(i+1) * s, Before: node, After: node, Bytes: g.bytes * mb})
	}
	lines, _ := memoryOf(b.Snapshot(20*s), func(timeline.FrameID) bool { return true }, func(int) timeline.Nanos { return 20 * s })
	got := make(map[int]int64)
	for _, l := range lines {
		got[l.Place.Line] = l.AtPeak / mb
	}
	for n, want := range map[int]int64{1: 50, 2: 0, 3: 200, 4: 150, 5: 60, 6: 0} {
		if got[n] != want {
			t.Errorf("line %d: %d, want %d", n, got[n], want)
		}
	}
}

// What the interpreter gives back when the program's own code has ended was kept to the last line, whenever a reading showed it.
func TestWhatIsKeptIsJudgedWhenTheOwnCodeEnds(t *testing.T) {
	const s, ms, mb = timeline.Nanos(time.Second), timeline.Nanos(time.Millisecond), int64(1 << 20)
	for name, c := range map[string]struct {
		start, end     timeline.Nanos
		ticks          int
		bytes          int64
		released, kept int64
	}{
		"before it":                       {7 * s, 7*s + ms, 1, -50, 50, 150},
		"after it":                        {8*s + ms, 8*s + 2*ms, 1, -200, 0, 200},
		"between two readings around it":  {8*s - ms/2, 8*s + ms/2, 1, -200, 0, 200},
		"from then on, for long":          {8*s - ms, 8*s + 99*ms, 100, -200, 0, 200},
		"all the time, of a long program": {6*s + 2*ms, 10*s + 2*ms, 2000, -100, 50, 150},
		"growth around it":                {8*s - ms/2, 8*s + ms/2, 1, 10, 0, 210},
		"growth after it":                 {9 * s, 9*s + ms, 1, 10, 0, 200},
	} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) {
			r.Target = timeline.Target{PID: 1, Argv: []string{"python", "/u/leak.py"}}
			r.Processes = []timeline.Process{{PID: 1, Role: timeline.RoleScript, ParentIndex: -1}}
		})
		main := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Main: true})
		node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/u/leak.py", Line: 4}))
		b.Set(main, 0, node, timeline.StatePython, false)
		b.Set(main, 8*s, timeline.RootNode, timeline.StateNative, false)
		b.AddGrowth(timeline.Growth{Start: 0, End: s, Before: node, After: node, Bytes: 200 * mb})
		b.AddGrowth(timeline.Growth{Start: c.start, End: c.end, Ticks: c.ticks, Bytes: c.bytes * mb})
		rec := b.Snapshot(20 * s)
		stacks := NewStacks(rec, NewSource(rec, nil))
		_, sums := memoryOf(rec, func(timeline.FrameID) bool { return true }, stacks.CodeEnd)
		if got := sums[0]; (got.Released+mb/2)/mb != c.released || (got.Kept+mb/2)/mb != c.kept {
			t.Errorf("%s: %.1f MiB given back, %.1f kept; want %d and %d", name, float64(got.Released)/float64(mb), float64(got.Kept)/float64(mb), c.released, c.kept)
		}
	}
}

func memoryOf(rec *timeline.Recording, own func(timeline.FrameID) bool, codeEnd func(process int) timeline.Nanos) ([]GrowthLine, []GrowthSum) {
	return Memory(rec, Touches(rec, func(t *timeline.Thread) int { return t.Process }, own), own, codeEnd)
}

// A thread that sleeps touches no memory. In a loop that takes some and then sleeps most readings find it asleep: it is of what ran
// next to that, and uncertain.
func TestWhatSleepsTouchesNoMemory(t *testing.T) {
	const ms, mb = timeline.Nanos(time.Millisecond), int64(1 << 20)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	line := func(number int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "loop", File: "app.py", Line: number}))
	}
	takes, sleeps := line(2), line(3)
	main := b.Thread(timeline.Thread{Main: true})
	for turn := range timeline.Nanos(10) {
		at := turn * 10 * ms
		if turn%3 == 0 { // else too short to be met
			b.Set(main, at, takes, timeline.StatePython, false)
		}
		b.Set(main, at+ms, sleeps, timeline.StateWaiting, false)
		b.SetWait(main, at+ms, timeline.WaitSleep, 0)
		g := timeline.Growth{Start: at - ms, End: at + 2*ms, Before: sleeps, After: sleeps, Bytes: 2 * mb}
		if turn%3 == 0 {
			g.Start, g.Before = at, takes
		}
		b.AddGrowth(g)
	}
	rec := b.Snapshot(100 * ms)
	lines, _ := memoryOf(rec, func(timeline.FrameID) bool { return true }, func(int) timeline.Nanos { return rec.Duration })
	if len(lines) != 1 || lines[0].Place != (Place{"app.py", 2}) || lines[0].Grown != 20*mb || lines[0].Uncertain != 20*mb {
		t.Errorf("got %+v", lines)
	}
}
