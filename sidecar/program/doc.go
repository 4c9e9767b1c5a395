// Package program is the front door for programs outside a notebook: it runs a
// script under a recorder, watches a running process, or follows the cells of a
// running kernel in which nothing of ours is installed, and writes the result
// files.
//
// It starts and stops recordings and shows their reports; how a recording is
// made, diagnosed and drawn comes in as Tools.
package program

import (
	"io"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/recorder"
	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// Tools are what a front door works with, made where the real ones are known.
type Tools struct {
	// Recorder makes the recorder of one process.
	Recorder func(timeline.Target) *recorder.Recorder
	Analyse  func(*timeline.Recording) (*report.View, error)
	// Summary is the report in a few lines for a terminal.
	Summary func(*report.View) []byte
}

// Options of a recording.
type Options struct {
	Results        Naming
	Interval       time.Duration // of the stacks
	FigureInterval time.Duration // of figures
	Messages       io.Writer     // what the user is told; the program's own output is its own
}
