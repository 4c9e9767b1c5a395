package program

import (
	"fmt"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// moduleLevel is co_name of a cell's own code.
const moduleLevel = "<module>"

// position is where a kernel's main thread was when its stack was read.
type position struct {
	cell     string // co_filename of the cell that runs; empty: none does, or it awaits
	file     string // of the innermost line of the user's own
	line     int
	function string
	own      bool // code of the user's own runs, which may be no cell's: a callback
	idle     bool // the kernel's event loop runs and executes no cell: it is idle, or a cell awaits
}

// The event loop of a kernel, and ipykernel's method that it executes a cell in.
const (
	eventLoop = ".run_forever"
	executes  = ".execute_request"
)

// positionIn reads a stack, root first. A cell is known by its name in ipykernel, or is
// called as fixed.
func positionIn(stack []timeline.Frame, fixed string) (p position) {
	executing := false
	for _, f := range stack {
		owner := origin.ByName(f.File).Owner
		if f.File == fixed {
			owner = origin.Cell
		}
		if owner == origin.Cell && f.Function == moduleLevel && p.cell == "" {
			p.cell = f.File
		}
		switch {
		case strings.HasSuffix(f.Function, eventLoop) && !executing:
			p.idle = true
		case strings.HasSuffix(f.Function, executes):
			p.idle, executing = false, true
		}
		if owner.Own() {
			p.own, p.file, p.line, p.function = true, f.File, f.Line, f.Function
		}
	}
	return p
}

func (p position) String() string {
	switch {
	case p.cell == "":
		return ""
	case p.file != p.cell:
		return fmt.Sprintf("%s, %s", words.Clean(placeIn(p.file, p.line), words.MaxName), words.Clean(p.function, words.MaxName))
	case p.function == moduleLevel:
		return fmt.Sprintf("line %d", p.line)
	}
	return fmt.Sprintf("line %d, %s", p.line, words.Clean(p.function, words.MaxName))
}

func placeIn(file string, line int) string {
	if origin.ByName(file).Owner == origin.Cell {
		return fmt.Sprintf("line %d of another cell", line)
	}
	return fmt.Sprintf("%s:%d", words.ShortFile(file), line)
}
