package diagnose

import (
	"fmt"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
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
		at    Place
		asked []string // beside those of lines that launch
	}{
		{"a script", nil, []timeline.Frame{script}, text, Sync, Place{scriptFile, 7}, []string{scriptFile + ":7"}},
		{"a script that cannot be read", nil, []timeline.Frame{script}, nil, Waiting, Place{scriptFile, 7}, []string{scriptFile + ":7"}},
		{"a script's module", nil, []timeline.Frame{script, module}, text, Sync, Place{moduleFile, 3}, []string{moduleFile + ":3"}},
		{"a cell's module", cell, []timeline.Frame{inCell, module}, text, Sync, Place{moduleFile, 3}, []string{moduleFile + ":3"}},
		{"a library under the script", nil, []timeline.Frame{script, library}, text, Lock, Place{scriptFile, 7}, nil},
		{"a library alone", nil, []timeline.Frame{library}, text, Lock, Place{library.File, 300}, nil},
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

func TestTextMeansNothingWithoutADevice(t *testing.T) {
	frames := []timeline.Frame{{Function: "main", File: scriptFile, Line: 7}}
	for device, want := range map[bool]Cause{true: Checkpoint, false: InOut} {
		r := readings{lines: map[string]string{scriptFile + ":7": "np.save(file, table)"}}
		rec := &timeline.Recording{Frames: frames}
		s := newStacks(rec, NewSource(rec, r.line))
		s.device = device
		if got, _ := s.classify([]timeline.FrameID{0}, timeline.StateIO, 0); got != want {
			t.Errorf("device used %v: %q, want %q", device, got, want)
		}
	}
}

// The text of a line that computes is asked for only where a GPU was used.
func TestTextOfComputingLinesIsNotRead(t *testing.T) {
	frames := []timeline.Frame{{Function: "main", File: scriptFile, Line: 7}}
	for device, want := range map[bool]int{true: 1, false: 0} {
		var r readings
		rec := &timeline.Recording{Frames: frames}
		s := newStacks(rec, NewSource(rec, r.line))
		s.device = device
		s.classify([]timeline.FrameID{0}, timeline.StatePython, 0)
		if got := len(slices.Compact(r.asked)); got != want {
			t.Errorf("device used %v: asked for %q", device, r.asked)
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
	inline := &timeline.Recording{Target: timeline.Target{Argv: []string{"python", "-c", "import time\ntime.sleep(1)", "x"}}}
	if got := NewSource(inline, nil).Line("<string>", 2); got != "time.sleep(1)" {
		t.Errorf("code given by -c: %q", got)
	}
	if got := NewSource(rec, nil).Line(scriptFile, 1); got != "" {
		t.Errorf("a file without a reader: %q", got)
	}
}
