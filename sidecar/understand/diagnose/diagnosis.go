// Package diagnose answers two questions about a finished recording: which
// source lines was each GPU waiting for, and what is the bottleneck.
//
// In flow a *timeline.Recording and a function that knows the program's source
// lines, out a Diagnosis; nothing else is read, so a saved recording gives the
// same answer. The package knows neither collectors nor how a diagnosis is shown:
// a Diagnosis holds ids, figures and places, and no text for people. Package
// wording renders it.
//
// Time is counted in integer nanoseconds so that the parts add up exactly:
// busy + idle + unknown is the recording's duration for every device, and the
// causes of a device are its idle time. docs/gpu-idle.md explains the method.
package diagnose

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Diagnosis is what a recording says about its bottleneck and its GPUs.
type Diagnosis struct {
	Headline Headline
	Findings []Finding // the main one first; empty when nothing stands out
	Spent    []Spent   // how the thread that runs the cell spent the recording, most first; adds up to its duration
	GPUs     []GPUTime // one per device with a "gpuN.util" track or a place in Recording.GPUs, by index
	Idle     *Idle     // nil when no device's activity is known
	Steps    []Step    // of each process in order of time: first those of the one whose steps lead, then those of the other ranks
	Ranks    []Rank    // by rank; empty where the recording has none
	Leading  int       // of a launcher: its first rank's process, whose main thread is told of in place of the target's; else 0, the target
	Regions  []Region  // of the marks of kind "region", most total time first
}

// Place is a line of the program; the zero value is none. File is as in the code
// object.
type Place struct {
	File string
	Line int
}

// Spent is the time with one cause at one place.
type Spent struct {
	Cause Cause
	Place Place // zero: none of the user's own lines was on the stack
	Nanos timeline.Nanos
}

// GPUTime is how one device spent the recording: Busy + Idle + Unknown is the
// recording's duration.
type GPUTime struct {
	Device              int // GPU index
	Busy, Idle, Unknown timeline.Nanos
	// Used is false when nothing ran on the device for the recorded program, as
	// far as can be told: its idle time is then nobody's fault.
	Used bool
	// Gaps are the stretches in which the device was idle, neighbours merged, in
	// order of time; the 256 longest when there were more (GapCount tells).
	Gaps     []timeline.Interval
	GapCount int
}

// CauseIdle is the idle time of one cause at one place.
type CauseIdle struct {
	Cause Cause
	Place Place // zero when no line is to blame or several small ones are summed
	Bounded
	Share    float64 // of the idle time, 0..1
	Advice   Advice
	Evidence []timeline.Interval // where most of it lies, in order of time; at most 32
}

// Certainty says how far the division of idle time can be trusted.
type Certainty struct {
	Method  Method
	Window  time.Duration // length of a typical measured window
	Windows int           // how many there were
	Repeats int           // how often the main host state came back
	Lag     time.Duration // the device ran this much behind the host
	R2      float64       // of the regression; NaN when there was none
	HeldOut float64       // the same on windows the regression did not see; NaN when there was none
}

// DeviceIdle divides one device's idle time.
type DeviceIdle struct {
	Device    int
	Idle      timeline.Nanos
	Certainty Certainty
	Causes    []CauseIdle // most first; they add up to Idle exactly
	Kinds     []KindIdle  // the same by kind, most first
}

// Idle is the idle time of the devices that were used (of all of them when none
// was), by cause and line.
type Idle struct {
	Total     timeline.Nanos // the devices' idle times added
	Certainty Certainty      // of the least certain device
	Devices   []DeviceIdle
	Causes    []CauseIdle // over all devices, most first; they add up to Total exactly
	Kinds     []KindIdle  // the same by kind, most first
	Lines     []LineIdle  // the same by source line alone, most first
}

// LineIdle is the idle time charged to a source line, whatever the cause.
type LineIdle struct {
	Place Place
	Nanos timeline.Nanos
}

// Step is one training step: Busy, Idle and Unknown are means over the used
// devices and add up to its length; all of it is Unknown without a device.
type Step struct {
	Process             int // index in Recording.Processes
	Name                string
	Source              timeline.MarkSource
	Start, End          timeline.Nanos
	Busy, Idle, Unknown timeline.Nanos
	DataWait            timeline.Nanos // the responsible thread spent in the loader
}

// Region sums up the marks of one name.
type Region struct {
	Name            string
	Count           int
	Total, P50, P95 timeline.Nanos
}
