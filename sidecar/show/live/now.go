// Package live says what a recording in progress is doing: where the program is now, its
// hottest lines so far, steps, CPU, memory, and what a GPU waits for.
//
// In flow, about once a second, the last stretch of a recording (timeline.Builder.Recent)
// and the steps that the program has reported; out flows a Now, plain data that package panel
// draws. What happened before the stretch is in a Follower's running sums, so a look costs
// the same after an hour as after a second. The package reads no process and no clock.
package live

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// Now is one look at a recording in progress. A nil pointer is not known; shares are of 1.
type Now struct {
	ElapsedNS int64  `json:"elapsed_ns"`
	Cell      int    `json:"cell"` // execution count; 0: no cell, or its number is not known
	Name      string `json:"name"` // of the cell, as --name gave it
	// Line is where the cell (or script) spent most of the last second, Inner the line of
	// the user's own that this one called; nil where it is the same, or there is none.
	Line  *Position `json:"line"`
	Inner *Position `json:"inner"`
	Doing *Doing    `json:"doing"`
	Lines []HotLine `json:"lines"` // longest first
	// Without is the share of the time in which none of the user's own lines was on the stack.
	Without float64  `json:"without"`
	Steps   *Steps   `json:"steps"`
	CPU     *Figure  `json:"cpu"`    // cores, of the process and its descendants
	Memory  *Figure  `json:"memory"` // bytes
	Devices []Device `json:"devices"`
	Idle    *Idle    `json:"idle"` // nil: no device is in use, or none idles
	History History  `json:"history"`
	Alarms  []Alarm  `json:"alarms,omitempty"`
}

// Position is a line of the user's own.
type Position struct {
	Place    string `json:"place"` // "line 3", "train.py:40"; empty of the only line there is
	Function string `json:"function"`
	Text     string `json:"text"`
	// SinceNS is for how long it has been there without a break; 0: it comes and goes.
	SinceNS int64 `json:"since_ns"`
}

// Doing is what the thread that runs the cell did most of the last seconds.
type Doing struct {
	Cause activity.Cause `json:"cause"`
	Share float64        `json:"share"` // of those seconds
}

// HotLine is a line with the time spent in it and in what it called that is not the user's own.
type HotLine struct {
	Place    string  `json:"place"`
	Function string  `json:"function"`
	Text     string  `json:"text"`
	SelfNS   int64   `json:"self_ns"`
	Share    float64 `json:"share"` // of the time that was seen
}

// Steps is how far a training loop is.
type Steps struct {
	Count     *int64   `json:"count"` // nil: only the rate is known, from the stacks
	Total     *int64   `json:"total"` // nil: the program did not say
	PerSecond *float64 `json:"per_second"`
	LeftNS    *int64   `json:"left_ns"` // needs Total and PerSecond
}

// Figure is a value and what it cannot exceed; 0: no limit is known.
type Figure struct {
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
}

// Device is a GPU.
type Device struct {
	Index int  `json:"index"`
	Used  bool `json:"used"` // by this program, so far
	// Simulated: of a fake driver, which is said wherever it is shown.
	Simulated bool     `json:"simulated"`
	Busy      *float64 `json:"busy"` // share of the last second
	Memory    *Figure  `json:"memory"`
}

// Idle is what the devices in use were waiting for in the last seconds.
type Idle struct {
	Share  float64        `json:"share"` // of those seconds
	Cause  activity.Cause `json:"cause"`
	Place  string         `json:"place"`
	Text   string         `json:"text"`
	OfIdle float64        `json:"of_idle"` // the cause's share of the idle time
	Sure   bool           `json:"sure"`    // the bounds allow no other main cause
}

// History is a value for each of the last looks, oldest first; nil where none was known.
type History struct {
	CPU  []*float64 `json:"cpu"`  // share of the cores
	Busy []*float64 `json:"busy"` // of the devices in use, their mean
}

// Progress is how far the program itself says it is.
type Progress struct {
	Steps  int64 // marked so far; 0: it marks none
	Total  int64 // 0: not known
	LastNS int64 // CLOCK_MONOTONIC of the last one
}

const (
	// Window is the stretch that a look is given: long enough to distinguish causes, short
	// enough to be "now" and cheap.
	Window = 4 * timeline.Nanos(1e9)
	second = timeline.Nanos(1e9)
)
