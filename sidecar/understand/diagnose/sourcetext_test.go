package diagnose

import (
	"fmt"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

const (
	scriptFile = "/home/u/train.py"
	moduleFile = "/home/u/lib/metrics.py"
)

// readings remembers which lines were asked for.
type readings struct {
	lines map[string]string // by "file:line"
	asked []string
}

func (r *readings) line(file string, line int) string {
	at := fmt.Sprintf("%s:%d", file, line)
	r.asked = append(r.asked, at)
	return r.lines[at]
}

// askingResults alternates between 200 ms of work on the device and 100 ms in
// which the thread has the stack given, outermost first, the device idle.
func askingResults(cell *timeline.Cell, stack ...timeline.Frame) *timeline.Recording {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target.Cell = cell
		r.GPUs = []timeline.GPU{{Index: 0, PIDs: []int{1}}}
	})
	main := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Main: true, RunsCell: true})
	launching := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "main", File: "/usr/lib/python3.12/json/encoder.py", Line: 5}))
	asking := timeline.RootNode
	for _, f := range stack {
		asking = b.Child(asking, b.Frame(f))
	}
	util := b.Track(timeline.TrackSpec{ID: "gpu0.util", Kind: timeline.KindRate, Unit: "%", Device: 0})
	at := timeline.Nanos(0)
	for range 20 {
		b.Set(main, at, launching, timeline.StatePython, false)
		b.Set(main, at+200*ms, asking, timeline.StateWaiting, false)
		util.AddWindow(at, at+200*ms, 100)
		util.AddWindow(at+200*ms, at+300*ms, 0)
		at += 300 * ms
	}
	return b.Snapshot(at)
}

func TestTextOfFilesNamesTheCause(t *testing.T) {
	script := timeline.Frame{Function: "train", File: scriptFile, Line: 7}
	module := timeline.Frame{Function: "accuracy", File: moduleFile, Line: 3}
	library := timeline.Frame{Function: "wait", File: "/usr/lib/python3.12/threading.py", Line: 300}
	cell := &timeline.Cell{File: cellFile, Text: "accuracy(net)"}
	inCell := timeline.Frame{Function: "<module>", File: cellFile, Line: 1}
	text := map[string]string{
		scriptFile + ":7": "\tright += hits[n].item()", moduleFile + ":3": "return good.sum().item()",
		"/usr/lib/python3.12/threading.py:300": "x.item()",
	}
	for _, c := range []struct {
		name  string
		cell  *timeline.Cell
		stack []timeline.Frame
		lines map[string]string
		cause activity.Cause
		at    activity.Place
		asked []string // beside those of lines that launch
	}{
		{"a script", nil, []timeline.Frame{script}, text, activity.Sync, activity.Place{File: scriptFile, Line: 7}, []string{scriptFile + ":7"}},
		{"a script that cannot be read", nil, []timeline.Frame{script}, nil, activity.Waiting, activity.Place{File: scriptFile, Line: 7}, []string{scriptFile + ":7"}},
		{"a script's module", nil, []timeline.Frame{script, module}, text, activity.Sync, activity.Place{File: moduleFile, Line: 3}, []string{moduleFile + ":3"}},
		{"a cell's module", cell, []timeline.Frame{inCell, module}, text, activity.Sync, activity.Place{File: moduleFile, Line: 3}, []string{moduleFile + ":3"}},
		{"a library under the script", nil, []timeline.Frame{script, library}, text, activity.Lock, activity.Place{File: scriptFile, Line: 7}, nil},
		{"a library alone", nil, []timeline.Frame{library}, text, activity.Lock, activity.Place{File: library.File, Line: 300}, nil},
	} {
		r := readings{lines: c.lines}
		got := Options{Line: r.line}.Run(askingResults(c.cell, c.stack...)).Idle.Causes
		if len(got) == 0 || got[0].Cause != c.cause || got[0].Place != c.at {
			t.Errorf("%s: causes %+v, want %s at %+v first", c.name, got, c.cause, c.at)
		}
		slices.Sort(r.asked)
		if asked := slices.Compact(r.asked); !slices.Equal(asked, c.asked) {
			t.Errorf("%s: asked for the text of %q, want %q", c.name, asked, c.asked)
		}
	}
}
