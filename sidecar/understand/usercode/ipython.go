package usercode

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// role is what a frame means for the stack it is in.
type role uint8

const (
	other     role = iota // a library's, the standard library's, or nobody's
	own                   // a function of the user's own
	cellLevel             // the module level of a cell
	magicBody             // the module level of what a magic compiles from its body or line
	kernel                // the kernel's machinery
	runner                // the standard library's, of event loops and the start of programs; ours, around an engine's tasks
	eventLoop             // a turn of the event loop: what is below it is a task
	ours                  // our extension's
)

// meaning is what there is to know about a frame, whatever is above and below it.
type meaning struct {
	role      role
	shown     timeline.Frame   // as the user typed it
	id        timeline.FrameID // of shown in the new tree, once interned
	interned  bool
	region    region         // of a cell's module level
	recorded  bool           // it is the module level of the recorded cell
	phase     timeline.Phase // around a cell, that begins with it
	cellMagic bool           // it calls a cell magic, which has the cell's text for its body
	runsCode  bool           // it calls a cell's code, and then what prints its exception
	displays  bool           // it is called with the value of a cell's last expression
	// startsThread: one of threading's own frames, which are above every thread's.
	startsThread bool
	// customizes: it runs a sitecustomize as the interpreter starts, the one that omni-perf run has placed first.
	customizes bool
	// passesOn: ours, around what would have been called without us. It is as if it were not there.
	passesOn bool
}

// meaningOf reads a frame's file and function; means is what that means as a library's.
func meaningOf(f timeline.Frame, owner origin.Owner, means origin.Meanings, t *texts) meaning {
	m := meaning{shown: f, displays: means&origin.Displays != 0}
	for _, p := range phases {
		if means&p.means != 0 {
			m.phase = p.phase
		}
	}
	switch owner {
	case origin.Ours:
		if m.role = ours; means&origin.RunsTask != 0 { // around a task of an engine: what it calls is the task's
			m.role = runner
		}
		m.passesOn = means&origin.Decorates != 0
	case origin.Cell:
		m.role = own
		if r, ok := t.of(f); ok {
			m.shown, m.region = r.frame(f), r
			if f.Function == moduleLevel {
				m.role, m.recorded = cellLevel, f.File == t.recorded
			}
		}
	case origin.Script, origin.Module:
		m.role = own
	case origin.Generated:
		switch {
		case isMagicBody(f):
			m.role = magicBody
		case magicFiles[f.File]:
			if r, ok := t.ofMagic(f); ok {
				m.role, m.shown = own, r.frame(f)
				m.shown.Function = strings.TrimPrefix(f.Function, timeitPrefix)
			}
		}
	case origin.Machinery:
		m.role = kernel
		m.cellMagic, m.runsCode = means&origin.RunsCellMagic != 0, means&origin.RunsCode != 0
	case origin.Standard, origin.Interpreter:
		switch {
		case means&origin.TurnsLoop != 0:
			m.role = eventLoop
		case means&origin.RunsLoop != 0:
			m.role = runner
		case means&origin.StartsThread != 0:
			m.startsThread = true
		}
		m.customizes = means&origin.Customizes != 0
	}
	return m
}

// phases are begun by functions that mean so.
var phases = []struct {
	means origin.Meanings
	phase timeline.Phase
}{
	{origin.Prepares, timeline.PhasePrepare}, {origin.RunsCallbacks, timeline.PhaseCallbacks},
	{origin.PrintsTraceback, timeline.PhaseTraceback}, {origin.FlushesFigures, timeline.PhaseFigures},
	{origin.RunsTorchProfiler, timeline.PhaseTorchTrace},
}

// magicFiles are the co_filenames of what IPython's magics compile (IPython/core/magics/execution.py).
// %prun hands its text to cProfile, which has "<string>" as exec has.
var magicFiles = map[string]bool{"<timed exec>": true, "<timed eval>": true, "<magic-timeit>": true, "<string>": true}

// timeitPrefix is what functions defined in %%timeit are qualified by.
const timeitPrefix = "inner.<locals>."

// isMagicBody recognises the frame that runs a magic's body; %timeit's is a function.
func isMagicBody(f timeline.Frame) bool {
	if f.File == "<magic-timeit>" {
		return f.Function == "inner"
	}
	return magicFiles[f.File] && f.Function == moduleLevel
}
