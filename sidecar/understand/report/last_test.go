package report_test

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func TestWhereARecordingEnded(t *testing.T) {
	r := sketch.CpuCell().View()
	place, ago := r.LastPlace()
	stacks := r.LastStacks()
	if !strings.HasPrefix(place, "line ") || ago != 0 {
		t.Errorf("it ended in %q, %v before", place, ago)
	}
	if len(stacks) == 0 || !stacks[0].Main || len(stacks[0].Frames) == 0 {
		t.Fatalf("the last stacks are %+v", stacks)
	}
	for _, s := range stacks {
		if s.Main != (s.Thread == stacks[0].Thread) || len(s.Frames) == 0 {
			t.Errorf("%+v", s)
		}
	}
}

// What a notebook's kernel does between two statements of a cell, as it compiles the next one, hides the cell's line for no more than a moment.
func TestTheLineBeforeTheKernelsOwnWork(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	for own, want := range map[timeline.Nanos]string{4 * ms: "line 2", 400 * ms: ""} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) {
			r.Target.PID, r.Target.Cell = 7, &timeline.Cell{File: "/tmp/ipykernel_7/1.py", Text: "x = 1\nsleep()\n"}
		})
		main := b.Thread(timeline.Thread{PID: 7, Main: true, RunsCell: true})
		line := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/tmp/ipykernel_7/1.py", Line: 2}))
		kernel := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "run_ast_nodes", File: "/usr/lib/python3/site-packages/IPython/core/interactiveshell.py", Line: 3}))
		b.Set(main, 0, line, timeline.StatePython, false)
		b.Set(main, 500*ms, kernel, timeline.StatePython, false)
		rec := b.Snapshot(500*ms + own)
		diagnosis := diagnose.Options{}.Run(rec)
		d, err := report.Build(rec, &diagnosis, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if place, ago := d.LastPlace(); !strings.HasPrefix(place, want) || (place == "") != (want == "") || want != "" && ago != own.Duration() {
			t.Errorf("%v: %q, %v before; want %q", own.Duration(), place, ago, want)
		}
	}
}

// A signal for what the process's own code did is of the thread that ran, not of the main one, which waits for it.
func TestTheLineOfTheThreadThatCrashed(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	died := func(signal int, others ...timeline.State) string {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) { r.Target.PID = 7 })
		line := func(function string, number int) timeline.NodeID {
			return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: function, File: "/u/a.py", Line: number}))
		}
		main := b.Thread(timeline.Thread{PID: 7, Main: true})
		b.Set(main, 0, line("<module>", 9), timeline.StateWaiting, false)
		for i, state := range others {
			b.Set(b.Thread(timeline.Thread{PID: 7, NativeID: 8 + i, Name: "loader"}), 0, line("load", 3+i), state, false)
		}
		rec := b.Snapshot(300 * ms)
		diagnosis := diagnose.Options{}.Run(rec)
		d, err := report.Build(rec, &diagnosis, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		place, _ := d.DiedIn(signal)
		return place
	}
	const crash, kill = 11, 9
	for _, c := range []struct {
		signal int
		others []timeline.State
		want   string
	}{
		{crash, []timeline.State{timeline.StateNative, timeline.StateWaiting}, "a.py:3, load, in the thread 'loader'"},
		{kill, []timeline.State{timeline.StateNative}, "a.py:9"},
		{crash, []timeline.State{timeline.StateWaiting}, "a.py:9"},
		{crash, []timeline.State{timeline.StateNative, timeline.StatePython}, "a.py:9"}, // which of them is not known
	} {
		if got := died(c.signal, c.others...); got != c.want {
			t.Errorf("signal %d, others %v: %q, want %q", c.signal, c.others, got, c.want)
		}
	}
}

func TestFramesThatWereLeftOutHaveNoLine(t *testing.T) {
	s := report.LastStack{Thread: "MainThread", Frames: []report.LastFrame{
		{Function: "f", File: "/u/a.py", Line: 3, Times: 150}, {Function: "… about 20000 frames, most of f", File: "/u/a.py"}, {Function: "g", File: "/u/a.py", Line: 9, Text: "f(x)"},
	}}
	want := "MainThread, the innermost call first:\n  a.py:3, f (150 times one above the other)\n  … about 20000 frames, most of f\n  a.py:9, g: f(x)\n"
	if got := s.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
