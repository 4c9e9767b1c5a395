package program

import (
	"bytes"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/live"
)

func aScreen(columns, rows int) (*Screen, *bytes.Buffer) {
	var out bytes.Buffer
	return &Screen{To: &out, Size: func() (int, int) { return columns, rows }}, &out
}

func aLook() *live.Now {
	return &live.Now{
		ElapsedNS: 12e9, Cell: 3, Line: &live.Position{Place: "line 2", Text: "train(model)", SinceNS: 5e9},
		Lines: []live.HotLine{{Place: "line 2", Text: "train(model)", SelfNS: 9e9, Share: 0.75}}, CPU: &live.Figure{Value: 1, Limit: 4},
	}
}

// lastFrame is what is on the alternate screen after the last drawing.
func lastFrame(out string) string {
	_, frame, _ := strings.Cut(out[strings.LastIndex(out, home):], home)
	frame, _, _ = strings.Cut(frame, restOfAll)
	return strings.ReplaceAll(frame, restOfLine, "")
}

func TestAScreenIsDrawnInItsPlaceAndGivenBack(t *testing.T) {
	s, out := aScreen(60, 24)
	s.Watch("train.ipynb")
	s.Look(aLook())
	s.Note("[3] 12.0 s: most of it in line 2.")
	s.Rest()
	want := "omni-perf top · train.ipynb\r\n\r\nidle: no cell runs\r\n\r\n[3] 12.0 s: most of it in line 2."
	if got := lastFrame(out.String()); got != want {
		t.Errorf("the screen shows\n%q, want\n%q", got, want)
	}
	if strings.Count(out.String(), enterScreen) != 1 {
		t.Error("the alternate screen was not entered once")
	}
	s.Close()
	_, left, _ := strings.Cut(out.String(), leaveScreen)
	for _, text := range []string{"train.ipynb", "line 2  train(model)", "[3] 12.0 s: most of it in line 2.\n"} {
		if !strings.Contains(left, text) {
			t.Errorf("%q does not stay on the terminal:\n%s", text, left)
		}
	}
	before := out.Len()
	s.Redraw()
	if out.Len() != before {
		t.Error("it is drawn after it was closed")
	}
}

func TestAScreenIsNeverLargerThanItsTerminal(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {20, 6}, {5, 2}, {1, 1}} {
		s, out := aScreen(size[0], size[1])
		s.Watch("a name\x1b[2J of a notebook")
		for range 9 {
			s.Note("something that has ended")
		}
		s.Look(aLook())
		frame := lastFrame(out.String())
		lines := strings.Split(frame, "\r\n")
		if len(lines) > max(size[1]-1, 1) {
			t.Errorf("%d lines of %d", len(lines), size[1])
		}
		for _, line := range lines {
			if n := len([]rune(line)); n > size[0] {
				t.Errorf("%d columns of %d: %q", n, size[0], line)
			}
		}
	}
}

func TestATerminalMayChangeItsSize(t *testing.T) {
	columns := 80
	var out bytes.Buffer
	s := &Screen{To: &out, Size: func() (int, int) { return columns, 24 }}
	s.Watch("train.ipynb")
	s.Look(aLook())
	columns = 18
	s.Redraw()
	if got := strings.SplitN(lastFrame(out.String()), "\r\n", 2)[0]; got != "omni-perf top · t…" {
		t.Errorf("first line %q", got)
	}
}

func TestMessagesArePlainOnAScreen(t *testing.T) {
	s, out := aScreen(80, 24)
	s.Watch("train.ipynb")
	if _, err := s.Write([]byte("omni-perf: cell \x1b]0;evil\x07 runs already\n")); err != nil {
		t.Fatal(err)
	}
	if frame := lastFrame(out.String()); strings.ContainsAny(frame, "\x1b\x07") || !strings.Contains(frame, "runs already") {
		t.Errorf("%q", frame)
	}
}

func TestWithoutATerminalEachLookIsALine(t *testing.T) {
	var out bytes.Buffer
	l := Lines{&out}
	l.Watch("train.ipynb")
	l.Look(aLook())
	l.Rest()
	l.Note("[3] 12.0 s")
	want := "following train.ipynb\nCell [3] · 12 s · line 2 train(model) for 5 s · CPU 1.0 of 4 cores\n[3] 12.0 s\n"
	if got := out.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
