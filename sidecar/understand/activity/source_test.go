package activity

import (
	"fmt"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

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

func TestTextMeansNothingWithoutADevice(t *testing.T) {
	frames := []timeline.Frame{{Function: "main", File: scriptFile, Line: 7}}
	for device, want := range map[bool]Cause{true: Checkpoint, false: InOut} {
		line := func(string, int) string { return "np.save(file, table)" }
		rec := &timeline.Recording{Frames: frames}
		s := NewStacks(rec, NewSource(rec, line))
		s.UsesGPU = device
		if got, _ := s.classify([]timeline.FrameID{0}, timeline.StateIO, 0); got != want {
			t.Errorf("device used %v: %q, want %q", device, got, want)
		}
	}
}

// The text of a line that computes is asked for only where a GPU was used.
func TestTextOfComputingLinesIsNotRead(t *testing.T) {
	frames := []timeline.Frame{{Function: "main", File: scriptFile, Line: 7}}
	for device, want := range map[bool]bool{true: true, false: false} {
		asked := 0
		line := func(string, int) string { asked++; return "" }
		rec := &timeline.Recording{Frames: frames}
		s := NewStacks(rec, NewSource(rec, line))
		s.UsesGPU = device
		s.classify([]timeline.FrameID{0}, timeline.StatePython, 0)
		if (asked > 0) != want {
			t.Errorf("device used %v: asked for %d lines", device, asked)
		}
	}
}

// A line is in the loops of its own function, whatever is written between.
func TestLoopsAroundALine(t *testing.T) {
	text := "for outer in x:\n    def f():\n        for i in range(n):  # rows\n# a comment\n            if i:\n\n                async for j in k:\n                    a\n        b\nc\n"
	s := NewSource(&timeline.Recording{Sources: []timeline.Source{{File: cellFile, Text: text}}}, nil)
	for line, want := range map[int]string{8: "[for j in k: for i in range(n):  # rows]", 5: "[for i in range(n):  # rows]", 9: "[]", 10: "[]", 2: "[for outer in x:]", 99: "[]"} {
		if got := fmt.Sprint(s.Loops(cellFile, line)); got != want {
			t.Errorf("line %d is in %s, want %s", line, got, want)
		}
	}
}

// A statement goes as far as its brackets do, and a block may have a header of several lines.
func TestStatementsOfSeveralLines(t *testing.T) {
	text := "a = f(\n    1,  # (\n    \"(\",\n)\nwith (\n    b(),\n    c,\n):\n    for d in (\n        e\n    ):\n        g([\n            h\n        ])"
	s := NewSource(&timeline.Recording{Sources: []timeline.Source{{File: cellFile, Text: text}}}, nil)
	for line, want := range map[int]string{1: `1 a = f( 1,  # ( "(", )`, 3: `1 a = f( 1,  # ( "(", )`, 6: "5 with ( b(), c, ):", 9: "9 for d in ( e ):", 13: "12 g([ h ])"} {
		if first, got := s.statement(cellFile, line); fmt.Sprint(first, " ", got) != want {
			t.Errorf("line %d is of %d %s, want %s", line, first, got, want)
		}
	}
	if got, want := fmt.Sprint(s.headers(cellFile, 12)), "[{9 for d in ( e ):} {5 with ( b(), c, ):}]"; got != want {
		t.Errorf("headers %s, want %s", got, want)
	}
}
