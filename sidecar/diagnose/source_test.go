package diagnose

import (
	"fmt"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
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
// which the thread stands on the stack given, outermost first, the device idle.
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
		cause Cause
		hint  string
		at    line
		asked []string // beside those of lines that launch
	}{
		{"a script", nil, []timeline.Frame{script}, text, Transfer, hintSync, line{scriptFile, 7}, []string{scriptFile + ":7"}},
		{"a script that cannot be read", nil, []timeline.Frame{script}, nil, Waiting, hintSleep, line{scriptFile, 7}, []string{scriptFile + ":7"}},
		{"a script's module", nil, []timeline.Frame{script, module}, text, Transfer, hintSync, line{moduleFile, 3}, []string{moduleFile + ":3"}},
		{"a cell's module", cell, []timeline.Frame{inCell, module}, text, Transfer, hintSync, line{moduleFile, 3}, []string{moduleFile + ":3"}},
		{"a library under the script", nil, []timeline.Frame{script, library}, text, Waiting, hintSleep, line{scriptFile, 7}, nil},
		{"a library alone", nil, []timeline.Frame{library}, text, Waiting, hintSleep, line{library.File, 300}, nil},
	} {
		r := readings{lines: c.lines}
		got := Options{Line: r.line}.Run(askingResults(c.cell, c.stack...)).Idle.Causes
		want := CauseIdle{Cause: c.cause, Hint: c.hint, File: c.at.file, Line: c.at.number}
		if len(got) == 0 || got[0].Cause != want.Cause || got[0].Hint != want.Hint || got[0].File != want.File || got[0].Line != want.Line {
			t.Errorf("%s: causes %+v, want %+v first", c.name, got, want)
		}
		slices.Sort(r.asked)
		if asked := slices.Compact(r.asked); !slices.Equal(asked, c.asked) {
			t.Errorf("%s: asked for the text of %q, want %q", c.name, asked, c.asked)
		}
	}
}

func TestTextMeansNothingWithoutADevice(t *testing.T) {
	frames := []timeline.Frame{{Function: "main", File: scriptFile, Line: 7}}
	for device, want := range map[bool]Cause{true: Checkpoint, false: InputOutput} {
		r := readings{lines: map[string]string{scriptFile + ":7": "np.save(file, table)"}}
		rec := &timeline.Recording{}
		s := newStacks(rec, NewSource(rec, r.line))
		s.device = device
		if got, _, _ := s.classify(frames, timeline.StateIO); got != want || len(r.asked) > 0 != device {
			t.Errorf("device used %v: %q, asked for the text of %q; want %q", device, got, r.asked, want)
		}
	}
}

func TestSourceLines(t *testing.T) {
	rec := &timeline.Recording{
		Target:  timeline.Target{Cell: &timeline.Cell{File: cellFile, Text: "a\n  b\t"}},
		Sources: []timeline.Source{{File: cellFile, Text: "an equal cell's"}, {File: "/tmp/other.py", Text: "c"}},
	}
	asked := 0
	s := NewSource(rec, func(file string, line int) string {
		asked++
		return fmt.Sprintf("  %s %d ", file, line)
	})
	for _, c := range []struct {
		file string
		line int
		want string
	}{
		{cellFile, 1, "a"}, {cellFile, 2, "b"}, {cellFile, 3, ""}, {cellFile, 0, ""}, {"/tmp/other.py", 1, "c"}, {"/tmp/other.py", 2, ""},
		{scriptFile, 0, ""}, {scriptFile, -1, ""}, {scriptFile, 4, scriptFile + " 4"},
	} {
		if got := s.Line(c.file, c.line); got != c.want {
			t.Errorf("%s:%d is %q, want %q", c.file, c.line, got, c.want)
		}
	}
	if asked != 1 {
		t.Errorf("asked for %d lines of files, want 1: cells exist only in the kernel", asked)
	}
	if got := NewSource(rec, nil).Line(scriptFile, 1); got != "" {
		t.Errorf("a file without a reader: %q", got)
	}
}
