package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Ending says how a cell ended: "ok", "error: ValueError", "kernel died"; empty where that is not known.
func (c *Cell) Ending() string {
	switch {
	case c.Exception != nil:
		return "error: " + *c.Exception
	case c.Outcome == OutcomeUnknown:
		return ""
	}
	return strings.ReplaceAll(string(c.Outcome), "-", " ")
}

// shortly before its end a program's own line may be the last one, though others were seen since: of a notebook's
// kernel, as it compiles the next statement of the cell.
const shortly = 100 * time.Millisecond

// LastPlace is the line of the user's own that a recording ended in, as far as it was seen, with the function and
// the text: what a cell hangs in; and for how long others were seen since. Empty where none was seen.
func (v *View) LastPlace() (place string, before time.Duration) {
	main := v.MainThread()
	if main < 0 {
		return "", 0
	}
	stack, at, before := v.lastOwn(main)
	if at < 0 {
		return "", 0
	}
	return v.placeIn(stack, at), before
}

// DiedIn is LastPlace of a process that a signal ended. One for what the process's own code did comes from a thread that ran: where
// the main thread waited, and one other ran code of the user's own, it is the line of that one.
func (v *View) DiedIn(signal int) (place string, before time.Duration) {
	main := v.MainThread()
	if one := v.onlyRunner(main); one >= 0 && diagnose.Crash(signal) && v.lastWaits(main) {
		stack, at, before := v.lastOwn(one)
		return v.placeIn(stack, at) + ", in the thread '" + words.Clean(v.Threads[one].Name, words.MaxName) + "'", before
	}
	return v.LastPlace()
}

// onlyRunner is the only thread of the program beside the main one that ran code of the user's own when it was seen for the last time, as
// the main thread was; -1 where there is none, or where there are several.
func (v *View) onlyRunner(main int) int {
	if main < 0 || len(v.History(main)) == 0 {
		return -1
	}
	end := v.History(main)[len(v.History(main))-1].End
	one := -1
	for i := range v.Threads {
		t, history := &v.Threads[i], v.History(i)
		if i == main || t.Process != v.Program() || t.Internal || v.lastWaits(i) || time.Duration(end-history[len(history)-1].End) > shortly {
			continue
		}
		if _, at, _ := v.lastOwn(i); at < 0 {
			continue
		}
		if one >= 0 {
			return -1
		}
		one = i
	}
	return one
}

// lastWaits reports whether a thread waited when it was seen for the last time, or never was.
func (v *View) lastWaits(thread int) bool {
	for _, span := range slices.Backward(v.History(thread)) {
		if span.Node > 0 {
			return span.State == StateWaiting || span.State == StateIO
		}
	}
	return true
}

// lastOwn is the last stack of a thread with a line of the user's own, which one that is, and for how long others were seen since.
func (v *View) lastOwn(thread int) (stack []int, at int, before time.Duration) {
	end := int64(-1)
	for _, span := range slices.Backward(v.History(thread)) {
		if span.Node <= 0 {
			continue
		}
		if end < 0 {
			end = span.End
		}
		if before = time.Duration(end - span.End); before > shortly {
			break
		}
		stack = v.stackOf(span)
		if at = slices.IndexFunc(stack, func(frame int) bool { return v.Functions[v.FunctionOf(frame)].Code.Own() }); at >= 0 {
			return stack, at, before
		}
	}
	return nil, -1, 0
}

// placeIn is the line of a frame, with its function, its text, and what it called.
func (v *View) placeIn(stack []int, at int) string {
	function, line := v.FunctionOf(stack[at]), v.LineOf(stack[at])
	file := v.Functions[function].File
	place := fmt.Sprintf("line %d", line)
	if !v.IsCell(file) {
		place = fmt.Sprintf("%s:%d", words.ShortFile(v.FileName(&file)), line)
	}
	if name := v.Functions[function].Name; name != "" && name != "<module>" {
		place += ", " + words.Clean(name, words.MaxName)
	}
	if text := v.Text(file, line); text != "" {
		place += ": " + words.Clean(text, words.MaxName)
	}
	if at > 0 { // a call of a library's
		place += " → " + words.Clean(v.FunctionName(v.FunctionOf(stack[0])), words.MaxName)
	}
	return place
}

// lastStack is the stack that a thread was seen with last, the innermost frame first; empty if it never was. What comes
// after it, as while the sampler had no CPU, is not known.
func (v *View) lastStack(thread int) (stack []int) {
	for _, span := range slices.Backward(v.History(thread)) {
		if span.Node > 0 {
			return v.stackOf(span)
		}
	}
	return nil
}

// stackOf is a span's stack, the innermost frame first.
func (v *View) stackOf(span Span) []int {
	stack := v.Stack(span.Node, len(v.Nodes.Parent))
	slices.Reverse(stack)
	return stack
}

// LastStack is what a thread did when its process was read for the last time.
type LastStack struct {
	Thread string      `json:"thread"`
	Main   bool        `json:"main"`
	Frames []LastFrame `json:"frames"` // innermost first
}

// LastFrame is a function and where it was.
type LastFrame struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Text     string `json:"text"` // of the line; empty where it is not known
	// Times is how often it called itself there, one after the other, as far as the stack was read; 0: it did not.
	Times int `json:"times,omitempty"`
}

// Of the last stacks so many are kept.
const (
	lastThreads = 64
	lastFrames  = 40
)

// String is the stack as text, a line for each frame.
func (s LastStack) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, the innermost call first:\n", words.Clean(s.Thread, words.MaxName))
	for _, f := range s.Frames {
		line := "  " + words.Clean(f.Function, words.MaxName)
		if f.Line > 0 { // else it is in place of frames that were left out
			line = fmt.Sprintf("  %s:%d, %s", words.ShortFile(f.File), f.Line, words.Clean(f.Function, words.MaxName))
		}
		if f.Text != "" {
			line += ": " + words.Clean(f.Text, words.MaxName)
		}
		if f.Times > 0 {
			line += " (" + words.Count(int64(f.Times)) + " times one above the other)"
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// LastXid is the last error that the driver of a GPU reported; code 0: there was none.
func (v *View) LastXid() (number, code int) {
	last := int64(-1)
	for i := range v.Devices {
		for _, x := range v.Devices[i].Xids {
			if x.AtNS > last {
				last, number, code = x.AtNS, v.Devices[i].Number, x.Code
			}
		}
	}
	return number, code
}

// LastResident is what the program had resident when it was seen for the last time; 0: not known.
func (v *View) LastResident() int64 {
	t := v.HostTrack("rss")
	if t == nil {
		return 0
	}
	for _, value := range slices.Backward(t.Value) {
		if value > 0 && value < math.MaxInt64/2 {
			return int64(value)
		}
	}
	return 0
}

// LastStacks are those of the program's threads, the main one first; the notebook's machinery and ours is left out.
func (v *View) LastStacks() (stacks []LastStack) {
	for i := range v.Threads {
		t := &v.Threads[i]
		stack := v.lastStack(i)
		if t.Process != v.Program() || t.Internal || len(stack) == 0 || len(stacks) == lastThreads {
			continue
		}
		s := LastStack{Thread: t.Name, Main: i == v.MainThread()}
		for at, frame := range stack {
			if at > 0 && frame == stack[at-1] {
				last := &s.Frames[len(s.Frames)-1]
				last.Times = max(last.Times, 1) + 1
				continue
			}
			if len(s.Frames) == lastFrames {
				break
			}
			function, line := v.FunctionOf(frame), v.LineOf(frame)
			file := v.Functions[function].File
			s.Frames = append(s.Frames, LastFrame{Function: v.FunctionName(function), File: v.FileName(&file), Line: line, Text: v.Text(file, line)})
		}
		stacks = append(stacks, s)
	}
	slices.SortStableFunc(stacks, func(a, b LastStack) int {
		switch {
		case a.Main == b.Main:
			return 0
		case a.Main:
			return -1
		}
		return 1
	})
	return stacks
}
