// Package program is the front door for programs outside a notebook: it runs a
// script, or a launcher of scripts, under a recorder, watches a running process, or
// follows the cells of a running kernel in which nothing of ours is installed, and
// writes the result files, or shows an Audience what runs, as it runs. It lists the kernels that can be followed.
//
// It starts and stops recordings and shows their reports; how a recording is
// made, diagnosed and drawn comes in as Tools.
package program

import (
	"io"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Tools are what a front door works with, made where the real ones are known.
type Tools struct {
	// Recorder makes the recorder of one process.
	Recorder func(timeline.Target) *recorder.Recorder
	Analyse  func(*timeline.Recording) (*report.View, error)
	// AnalyseTraced does so for a program in which torch.profiler has written traces; nil: they are not read.
	AnalyseTraced func(*timeline.Recording, addtrace.Traced) (*report.View, error)
	Version       string
	// Stack reads the stack of a process's main thread once, root first.
	Stack func(pid int) ([]timeline.Frame, error)
	// Cell reads the cell that runs on a kernel's main thread from the kernel's memory, which
	// may be of another moment than a stack that was read.
	Cell func(pid int) (text string, executionCount int, err error)
	// Follower makes who looks at one recording in progress; for an Audience.
	Follower func() *live.Follower
	// Folder makes a private folder; nil: programs cannot report their steps.
	Folder func() (Private, error)
	// Summary is the report in a few lines for a terminal.
	Summary func(*report.View) []byte
}

// Private is a folder that only the user can read.
type Private struct {
	Socket   string // where marks are received
	StepHook string // where the step hook can be written
	Rings    string // where processes leave what their GPUs did
	Remove   func()
}

// Options of a recording.
type Options struct {
	Results        Naming
	Folder         *Folder       // that the results of a kernel lie in, with a page that lists them; nil: none
	Interval       time.Duration // of the stacks
	FigureInterval time.Duration // of figures …
	FigureLater    time.Duration // … and from timeline.FirstFigures on; 0: the same
	Children       recorder.Children
	Terminal       bool              // Messages go to a terminal: progress is shown
	PartialEvery   time.Duration     // between reports while it runs; a minute if 0
	Rank           *timeline.Rank    // of a distributed run; nil: none
	Worker         *Worker           // that the target is; nil: of no engine
	Marks          string            // the socket on which an attached process sends its marks; empty: it sends none
	Cells          string            // a file with cells that an attached process runs functions of, as it is at the end; empty: none
	Open           func(path string) // shows a page that was written; nil: nobody asked for it
	Audience       Audience          // is shown what runs, in place of results; nil: nobody
	NoStepHook     bool              // programs that import torch are left without a hook for their steps
	Torch          *Torch            // what torch.profiler records in the program's processes; nil: it is not run
	Nsys           *Nsys             // records it, too; nil: it does not
	Exact          string            // the library by which processes record each piece of work of their GPUs; empty: they do not
	Waiter         Waiter            // waits for us, and for the script if we cannot; nil: nobody
	Messages       io.Writer         // for the user; the program's own output is separate
	// Judge is shown the report of a script that has ended; nil: nobody judges it.
	Judge func(*report.View)
	// Send is given the report of a program or process when its results are written, and which they are; nil: nobody.
	Send     func(r *report.View, written []string)
	gathered *gathered // takes the cells of a kernel, in place of results; nil: nobody
}
