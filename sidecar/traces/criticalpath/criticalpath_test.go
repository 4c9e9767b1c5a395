package criticalpath

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A step of 100: the main thread launches work on stream 0 at 10 (runs 20 to 50) and 20 (50 to 70), and on stream 1, which it makes wait
// for stream 0, at 30 (71 to 90); then it waits for the device from 40 on.
func step() *Events {
	return &Events{
		Start: 0, End: 100, Main: 0, Threads: 1, Busy: make([][]Busy, 1), Short: 30,
		Calls: []Call{
			{Start: 10, End: 15}, {Start: 20, End: 25}, {Start: 28, End: 29, Orders: true}, {Start: 30, End: 35},
			{Start: 40, End: 92, Waits: true},
		},
		Work: []Work{
			{Start: 20, End: 50, Stream: 0, Call: 0}, {Start: 50, End: 70, Stream: 0, Call: 1}, {Start: 71, End: 90, Stream: 1, Call: 3},
		},
	}
}

func written(path []Stretch, g *Graph) string {
	var list []string
	for _, s := range path {
		what := s.Delay.String()
		if s.Delay == NoDelay {
			what = "host"
			if w := g.Activities[s.Activity].Work; w >= 0 {
				what = fmt.Sprintf("work %d", w)
			}
		}
		list = append(list, fmt.Sprintf("%s %d–%d", what, s.Start, s.End))
	}
	return strings.Join(list, ", ")
}

// TestPath: the path goes from the first launch over both streams to the call that waited, and to the end of the step.
func TestPath(t *testing.T) {
	g := Build(step())
	want := "host 0–15, launching 15–20, work 0 20–50, work 1 50–70, queued 70–71, work 2 71–90, host 90–100"
	if got := written(g.Path(), g); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestReplay: with the recorded lengths the step takes as long as it took; without some of them what else there is decides.
func TestReplay(t *testing.T) {
	g := Build(step())
	without := func(work ...int32) Change {
		c := Change{Less: make([]int64, len(g.Activities))}
		for i := range g.Activities {
			if slices.Contains(work, g.Activities[i].Work) {
				c.Less[i] = g.Activities[i].Length()
			}
		}
		return c
	}
	delays := Change{}
	delays.Without[Queued], delays.Without[Launching] = true, true
	for name, c := range map[string]struct {
		change Change
		want   int64
	}{
		"as recorded":             {Change{}, 100},
		"without the first work":  {without(0), 80}, // the second, which was launched at 25, begins 5 later, as the first did
		"without the last work":   {without(2), 81},
		"without any work":        {without(0, 1, 2), 50}, // the host alone
		"without delays":          {delays, 94},
		"usual delays, no longer": {Change{Usual: true}, 100},
	} {
		if got := g.Replay(c.change); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestHandover: the path goes through the thread of autograd while the main thread waits for it.
func TestHandover(t *testing.T) {
	g := Build(&Events{
		Start: 0, End: 100, Main: 0, Autograd: []int32{1}, Threads: 2, Short: 30,
		Busy:  [][]Busy{{{5, 20}, {80, 95}}, {{30, 50}, {55, 75}}},
		Calls: []Call{{Start: 60, End: 65, Thread: 1}},
		Work:  []Work{{Start: 66, End: 70, Call: 0}},
	})
	want := "host 0–20, handed_over 20–30, host 30–65, host 65–75, handed_over 75–80, host 80–100"
	if got := written(g.Path(), g); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestNotRecorded: what the graph does not know is a delay with its reason, never a work's or the host's time.
func TestNotRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		events Events
		want   string
	}{
		"the device is busy with earlier work": {Events{
			End: 10, Calls: []Call{{Start: 5, End: 6}},
			Work: []Work{{Start: -20, End: 40, Call: -1, Earlier: true}, {Start: 40, End: 60, Call: 0}},
		}, "work 0 0–40, work 1 40–60"},
		"the launch is not recorded": {Events{
			End: 10, Work: []Work{{Start: 20, End: 60, Call: -1}},
		}, "unknown 0–20, work 0 20–60"},
		"the device waits for something else": {Events{
			End: 10, Calls: []Call{{Start: 1, End: 2}}, Work: []Work{{Start: 50, End: 60, Call: 0}},
		}, "host 0–2, waited 2–50, work 0 50–60"},
		"clocks differ: the work begins before its launch": {Events{
			End: 10, Calls: []Call{{Start: 5, End: 7}}, Work: []Work{{Start: 4, End: 60, Call: 0}},
		}, "host 0–5, work 0 5–60"},
		"nothing happens": {Events{End: 10}, "host 0–10"},
	} {
		e := c.events
		e.Threads, e.Busy, e.Short = 1, make([][]Busy, 1), 30
		g := Build(&e)
		if got := written(g.Path(), g); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// TestCopyThatBlocks: the host goes on when its copy has ended, which the call waited for.
func TestCopyThatBlocks(t *testing.T) {
	g := Build(&Events{
		End: 100, Threads: 1, Busy: make([][]Busy, 1), Short: 30,
		Calls: []Call{{Start: 0, End: 5}, {Start: 10, End: 90}},
		Work:  []Work{{Start: 6, End: 70, Call: 0}, {Start: 70, End: 85, Call: 1, Copy: true}},
	})
	want := "host 0–5, launching 5–6, work 0 6–70, work 1 70–85, host 85–100"
	if got := written(g.Path(), g); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// checkGraph tests what holds of every graph.
func checkGraph(t *testing.T, e *Events) {
	t.Helper()
	g := Build(e)
	recorded, at := g.Recorded(), e.Start
	if got := g.Replay(Change{}); got != recorded {
		t.Fatalf("replayed %d, recorded %d", got, recorded)
	}
	last := int32(0)
	for _, s := range g.Path() {
		if s.Start != at {
			t.Fatalf("the path has a gap from %d to %d", at, s.Start)
		}
		at, last = s.End, s.Activity
	}
	if at-e.Start != recorded {
		t.Fatalf("the path ends at %d, the recording at %d", at-e.Start, recorded)
	}
	// Without some activities all is no longer, and no more shorter than those of them on the path are long.
	c, most := Change{Less: make([]int64, len(g.Activities))}, int64(0)
	for i := range g.Activities {
		if i%3 == 0 {
			c.Less[i] = g.Activities[i].Length()
		}
	}
	for i := last; i >= 0; i = g.last(int(i)).on {
		most += c.Less[i]
	}
	if saved := recorded - g.Replay(c); saved < 0 || saved > most {
		t.Fatalf("saved %d, of %d on the path", saved, most)
	}
}

// random makes events of any kind: clocks that differ, work that overlaps, calls of several threads.
func random(r *rand.Rand) *Events {
	e := &Events{Start: r.Int64N(50), Threads: 3, Autograd: []int32{1}, Busy: make([][]Busy, 3), Short: 30}
	e.End = e.Start + 500 + r.Int64N(500)
	for thread := range e.Busy {
		for at := e.Start + r.Int64N(40); at < e.End; at += r.Int64N(60) {
			end := at + r.Int64N(30)
			e.Busy[thread] = append(e.Busy[thread], Busy{at, end})
			e.Calls = append(e.Calls, Call{at, end, int32(thread), r.IntN(8) == 0, r.IntN(8) == 0})
			at = end
		}
	}
	for at := e.Start - 100; at < e.End+300; at += r.Int64N(25) {
		w := Work{Start: at, End: at + r.Int64N(40), Stream: int32(r.IntN(3)), Call: int32(r.IntN(len(e.Calls)+3)) - 3, Copy: r.IntN(3) == 0}
		if w.Call < 0 {
			w.Call, w.Earlier = -1, r.IntN(2) == 0
		}
		e.Work = append(e.Work, w)
	}
	return e
}

func TestRandomGraphs(t *testing.T) {
	for seed := range uint64(500) {
		checkGraph(t, random(rand.New(rand.NewPCG(seed, 1))))
	}
}

// TestLinear: twice the events take about twice the time, not four times.
func TestLinear(t *testing.T) {
	size := func(n int) int {
		e := &Events{Threads: 1, Busy: make([][]Busy, 1), Short: 30, End: int64(n) * 10}
		for i := range n {
			at := int64(i) * 10
			e.Calls = append(e.Calls, Call{Start: at, End: at + 4})
			e.Work = append(e.Work, Work{Start: at + 5, End: at + 14, Call: int32(i)})
		}
		g := Build(e)
		return len(g.Activities) + len(g.waits)
	}
	if one, two := size(2000), size(4000); two > 2*one+16 {
		t.Errorf("%d activities and waits of 2,000 launches, %d of 4,000", one, two)
	}
}

func FuzzBuild(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, x, y uint64) { checkGraph(t, random(rand.New(rand.NewPCG(x, y)))) })
}
