package report

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// Blocked is a line of the user's own in which threads were blocked in a system call, and what they waited for.
type Blocked struct {
	File     int    `json:"file"`
	Line     int    `json:"line"`
	Function *int   `json:"function"`
	Process  int    `json:"process"`
	Call     string `json:"call"`
	Kind     string `json:"kind"`
	// Object is a file's path, or whom a socket is connected to; empty: not known, or left out by the user's wish.
	Object    string `json:"object"`
	BlockedNS int64  `json:"blocked_ns"` // summed over threads
	MainNS    int64  `json:"main_ns"`    // of it, of the thread that runs the cell, or of the process's main thread
	LongestNS int64  `json:"longest_ns"`
	Times     int    `json:"times"` // as far as readings tell them apart
}

// maxBlocked bounds the table; what is further down was waited for the least.
const maxBlocked = 300

func (b *builder) blocked() {
	own := func(id timeline.FrameID) bool { return b.names.code(b.rec.Frames[id]).Own() }
	list := activity.BlockedOn(b.rec, func(t *timeline.Thread) int { return b.owner(t.Process, t.PID) }, own)
	for _, w := range list[:min(len(list), maxBlocked)] {
		b.wanted[w.Place] = true
		object := b.rec.Objects[w.Object]
		name := clean(object.Name)
		if object.Kind == timeline.ObjectFile || object.Kind == timeline.ObjectFolder {
			name = b.names.file(object.Name)
		}
		b.doc.Blocked = append(b.doc.Blocked, Blocked{
			File: b.codes.file(w.Place.File), Line: w.Place.Line, Function: pointer(b.codes.functionOf(w.Function)), Process: b.placed(w.Process),
			Call: clean(object.Call), Kind: string(object.Kind), Object: name, BlockedNS: int64(w.Time), MainNS: int64(w.Main), LongestNS: int64(w.Longest), Times: w.Times,
		})
	}
}

func (c *checker) blocked() {
	for i := range c.d.Blocked {
		w := &c.d.Blocked[i]
		c.index("blocked.file", w.File, len(c.d.Files))
		c.indexOrNull("blocked.function", w.Function, len(c.d.Functions))
		c.index("blocked.process", w.Process, len(c.d.Processes))
		c.must(w.Line > 0 && w.Line <= math.MaxInt32, "blocked.line is %d", w.Line)
		c.must(slices.Contains(timeline.ObjectKinds(), timeline.ObjectKind(w.Kind)), "blocked.kind is %q", w.Kind)
		c.amount("blocked.blocked_ns", w.BlockedNS)
		c.amount("blocked.main_ns", w.MainNS)
		c.amount("blocked.longest_ns", w.LongestNS)
		c.count("blocked.times", w.Times)
	}
}
