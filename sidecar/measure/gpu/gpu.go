// Package gpu watches graphics processors while a recording runs: engine
// activity, memory, power, clock, temperature, throttling, and whose processes
// are on them.
//
// A Driver is opened once per sidecar, in the background; Collect then writes
// one group of tracks per Device into a timeline until it is stopped. The
// figures come from a Device, of which NVML is the one implementation here.
//
// Nothing in this package runs on the stack sampler's thread. Any call into a
// driver may fail at any time: the lane it was for ends with the reason and the
// others go on.
package gpu

import (
	"errors"
	"math"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Errors a caller decides on; the others are sentences about one call.
var (
	ErrNoDriver    = errors.New("no NVIDIA driver")
	ErrUnsupported = errors.New("not supported by this device or driver")
	ErrNoData      = errors.New("nothing new")
	ErrLost        = errors.New("the GPU was lost: it fell off the bus or the driver was replaced")
)

// Device is one GPU, or one MIG instance of one. Its methods may be called from
// one goroutine at a time.
type Device interface {
	Info() Info
	// Activities opens the sources of engine activity the device offers, the
	// finest first. Each recording opens its own: they remember what was read.
	Activities() ([]Activity, error)
	Memory() (Memory, error)
	Processes() ([]Process, error)
	Power() (watts float64, err error)
	Energy() (joules float64, err error) // of the whole GPU since its driver was loaded
	Clock() (megahertz float64, err error)
	Temperature() (celsius float64, err error)
	Throttle() (Throttle, error)
	Errors() (Errors, error)
}

// Info says which device it is.
type Info struct {
	Index     int // position in this package's list; MIG instances count each
	UUID      string
	Name      string
	Driver    string
	Simulated bool
}

// Memory in bytes.
type Memory struct{ Used, Total uint64 }

// Process is a process on a device. PID is numbered as the driver sees fit: by
// the host or by the container. Bytes is 0 when unknown.
type Process struct {
	PID   int
	Bytes uint64
}

// Throttle says whether and why the device runs slower than it could; Reasons
// is empty when it does not.
type Throttle struct{ Reasons []timeline.ThrottleReason }

// Metric is one figure of an activity window.
type Metric int

const (
	Util      Metric = iota // share of time the engine worked, %
	SM                      // mean share of multiprocessors with work, %
	Tensor                  // tensor cores, %
	Occupancy               // resident warps of those possible, %
	DRAM                    // memory bandwidth of that possible, %
	PCIeTx                  // device to host, B/s
	PCIeRx                  // host to device, B/s
	numMetrics
)

// Window holds the means over (From, At], CLOCK_MONOTONIC nanoseconds; NaN where
// a metric is unknown.
type Window struct {
	From, At int64
	Values   [numMetrics]float64
}

func newWindow(from, at int64) Window {
	w := Window{From: from, At: at}
	for i := range w.Values {
		w.Values[i] = math.NaN()
	}
	return w
}

// Activity reads a device's activity as windows that follow each other.
type Activity interface {
	Source() string // "GPM", "NVML sample buffer"
	// Period is how often Read is worth calling at most.
	Period() time.Duration
	// Resolution is the length of a window as measured so far; 0 before the first.
	Resolution() time.Duration
	// Read returns the windows that ended since the last call; none is no error.
	Read() ([]Window, error)
	// Finish is Read for the last time.
	Finish() ([]Window, error)
	Close()
}
