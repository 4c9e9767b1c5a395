package gpuidle

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// DeviceTime is how one device spent the recording: Busy + Idle + Unknown is the
// recording's duration.
type DeviceTime struct {
	Device              int // GPU index
	Busy, Idle, Unknown timeline.Nanos
	// Used is false when nothing ran on the device for the recorded program, as
	// far as is known: its idle time is then nobody's fault.
	Used bool
	// Gaps are the stretches in which the device was idle, neighbours merged, in
	// order of time; the 256 longest when there were more (see GapCount).
	Gaps     []timeline.Interval
	GapCount int
}

// CauseTime is the idle time of one cause at one place.
type CauseTime struct {
	Cause activity.Cause
	Place activity.Place // zero when no line is to blame or several small ones are summed
	Bounded
	Share    float64             // of the idle time, 0..1
	Evidence []timeline.Interval // where most of it lies, in order of time; at most 32
}

// Method is how idle time was divided inside a measured window.
type Method string

const (
	// ByExact: begin and end of all work are known in stretches that hold nearly all of the idle time.
	ByExact Method = "exact"
	// ByWindows: the causes last longer than the windows, which distinguish them.
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
	Window  time.Duration // length of a typical measured window; 0: all is exact
	Windows int           // how many there were, beside what is exact
	Repeats int           // how often the main host state came back
	Lag     time.Duration // the device ran this much behind the host
	R2      float64       // of the regression; NaN when there was none
	HeldOut float64       // the same on windows the regression did not see; NaN when there was none
	// Exact is the part of the recording in which begin and end of all work are known; KernelWait the gap up to which
	// the device was between queued kernels there. 0: nothing is exact.
	Exact, Recorded timeline.Nanos
	KernelWait      time.Duration
}

// DeviceBreakdown divides one device's idle time.
type DeviceBreakdown struct {
	Device    int
	Idle      timeline.Nanos
	Certainty Certainty
	Causes    []CauseTime // most first; they add up to Idle exactly
	Kinds     []KindTime  // the same by kind, most first
}

// Breakdown is the idle time of the devices that were used (of all of them when none
// was), by cause and line.
type Breakdown struct {
	Total     timeline.Nanos // the devices' idle times added
	Certainty Certainty      // of the least certain device
	Devices   []DeviceBreakdown
	Causes    []CauseTime // over all devices, most first; they add up to Total exactly
	Kinds     []KindTime  // the same by kind, most first
	Lines     []LineTime  // the same by source line alone, most first
}

// LineTime is the idle time charged to a source line, whatever the cause.
type LineTime struct {
	Place activity.Place
	Nanos timeline.Nanos
}
