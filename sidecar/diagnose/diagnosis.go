// Package diagnose answers two questions about a finished recording: which
// source lines was each GPU waiting for, and what is the bottleneck.
//
// In flow a *timeline.Recording and a function that knows the program's source
// lines, out a Diagnosis; nothing else is read, so a saved recording gives the
// same answer. The package knows neither collectors nor how a diagnosis is shown.
//
// Time is counted in integer nanoseconds so that the parts add up exactly:
// busy + idle + unknown is the recording's duration for every device, and the
// causes of a device are its idle time. docs/gpu-idle.md explains the method.
package diagnose

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// Diagnosis is what a recording says about its GPUs and its bottleneck.
type Diagnosis struct {
	GPUs     []GPUTime // one per device with a "gpuN.util" track or a place in Recording.GPUs, by index
	Idle     *Idle     // nil when no device's activity is known
	Steps    []Step    // of the marks of kind "step", in order
	Regions  []Region  // of the marks of kind "region", most total time first
	Findings []Finding // the main one first; empty when nothing stands out
}

// Interval is a stretch of the recording.
type Interval struct{ Start, End timeline.Nanos }

// Nanos returns the interval's length.
func (i Interval) Nanos() timeline.Nanos { return i.End - i.Start }

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
	Gaps     []Interval
	GapCount int
}

// Cause is why a GPU had nothing to do.
type Cause string

// The causes, as they stand in the report.
const (
	DataLoading  Cause = "data loading"
	InputOutput  Cause = "input/output"
	PythonCPU    Cause = "Python on the CPU"
	NativeCPU    Cause = "native code on the CPU"
	GILWait      Cause = "waiting for the GIL"
	Waiting      Cause = "waiting for a lock, another thread or a sleep"
	NoCPU        Cause = "waiting for a free CPU"
	Transfer     Cause = "host–device copy or synchronisation"
	Communicate  Cause = "communication between ranks"
	Compilation  Cause = "compilation and warm-up"
	Checkpoint   Cause = "checkpoint or serialisation"
	BeforeFirst  Cause = "set-up before the first GPU work"
	NoWork       Cause = "no GPU work launched in this cell"
	UnknownCause Cause = "unknown"
)

// CauseIdle is the idle time of one cause at one source line.
type CauseIdle struct {
	Cause Cause
	Nanos timeline.Nanos
	Share float64 // of the idle time, 0..1
	File  string  // as in the code object; empty when no line is to blame or several small ones are summed
	Line  int     // 0 as File
	Hint  string  // a concrete change; may be empty
	// Low and High bound Nanos by what the windows allow: the truth lies between
	// them whatever the device did inside its windows. They are close together
	// where a window saw one cause only.
	Low, High timeline.Nanos
	Evidence  []Interval // where most of it lies, in order of time; at most 32
}

// Method is how idle time was divided inside a measured window.
type Method string

const (
	// ByWindows: the causes last longer than the windows, which tell them apart.
	ByWindows Method = "windows"
	// ByRepetition: a regression over repeated steps looked below the windows.
	ByRepetition Method = "repetition"
	// ByAverage: neither was possible; the shares are estimates within bounds.
	ByAverage Method = "average"
	// ByAbsence: no GPU work was seen, there is nothing to divide.
	ByAbsence Method = "absence"
)

// Certainty says how far the division of idle time can be trusted.
type Certainty struct {
	Method  Method
	Window  time.Duration // length of a typical measured window
	Windows int           // how many there were
	Repeats int           // how often the main host state came back
	Lag     time.Duration // the device ran this much behind the host
	R2      float64       // of the regression; NaN when there was none
	HeldOut float64       // the same on windows the regression did not see; NaN when there was none
	Text    string        // one line for the table's heading
}

// DeviceIdle divides one device's idle time.
type DeviceIdle struct {
	Device    int
	Idle      timeline.Nanos
	Certainty Certainty
	Causes    []CauseIdle // most first; they add up to Idle exactly
}

// Idle is the idle time of the devices that were used (of all of them when none
// was), by cause and line.
type Idle struct {
	Total     timeline.Nanos // the devices' idle times added
	Certainty Certainty      // of the least certain device
	Devices   []DeviceIdle
	Causes    []CauseIdle // over all devices, most first; they add up to Total exactly
	Lines     []LineIdle  // the same by source line alone, most first
}

// LineIdle is the idle time charged to a source line, whatever the cause.
type LineIdle struct {
	File  string
	Line  int
	Nanos timeline.Nanos
}

// Step is one training step: Busy, Idle and Unknown are means over the used
// devices and add up to its length; all of it is Unknown without a device.
type Step struct {
	Name                string
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

// Severity ranks a finding.
type Severity string

const (
	Info    Severity = "info"    // worth knowing
	Warning Severity = "warning" // costs a good part of the time or may break the program
)

// Finding is a bottleneck or hazard with its figure and what to do about it.
type Finding struct {
	ID       string // stable: "dataloader-bound"
	Severity Severity
	Text     string // one sentence with the figure it rests on
	File     string // the line it is about; may be empty
	Line     int
	Hint     string
	Evidence []Interval     // may be empty
	Cost     timeline.Nanos // what removing it could save at most; 0 when unknown
}
