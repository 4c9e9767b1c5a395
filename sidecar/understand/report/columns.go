package report

import (
	"encoding/json"
	"math"
	"strconv"
)

// Frames are functions at lines: columns of equal length.
type Frames struct {
	Function Column `json:"function"`
	Line     Column `json:"line"` // 0: none
}

// Nodes are stacks: a caller's node and a leaf's frame, columns of equal length.
// Node 0 is the empty stack, its frame means nothing; a parent precedes its children.
type Nodes struct {
	Parent Column `json:"parent"`
	Frame  Column `json:"frame"`
}

// Spans are every thread's history, one thread after the other, in columns of equal
// length but for First and Incomplete.
type Spans struct {
	First Column `json:"first"` // index of each thread's first span, and at last the number of all
	// GapUS is the time since the end of the thread's span before; of its first since
	// the origin.
	GapUS      Column `json:"gap_us"`
	LengthUS   Column `json:"length_us"`
	Node       Column `json:"node"`
	State      Column `json:"state"`      // index into Enumerations.State
	Incomplete Column `json:"incomplete"` // indices of spans whose stack was cut, ascending
}

// Column is a list of integers. It is written by hand since a long cell has 10⁵ of
// them, on the way from its end to its chart.
type Column []int64

// MarshalJSON writes the list; an empty one is no null.
func (c Column) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 2+4*len(c))
	out = append(out, '[')
	for i, v := range c {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, v, 10)
	}
	return append(out, ']'), nil
}

// Track is one figure over time. Value i of a rate is the mean over
// (AtUS[i-1], AtUS[i]], of a gauge the value at AtUS[i].
type Track struct {
	ID           string    `json:"id"`             // "cpu", "rss", "gpu.util"
	Name         string    `json:"name,omitempty"` // of what it is, where there are several: of "tasks.waiting" the coroutine
	Kind         TrackKind `json:"kind"`
	Unit         string    `json:"unit"`
	Source       string    `json:"source"`
	ResolutionNS *int64    `json:"resolution_ns"`
	Host         int       `json:"host"`
	Process      *int      `json:"process"`
	Thread       *int      `json:"thread"`
	Device       *int      `json:"device"`
	Limit        *float64  `json:"limit"`
	AtUS         Column    `json:"at_us"` // ascending
	Value        Figures   `json:"value"`
	Mean         *float64  `json:"mean"`  // over time, unknown stretches left out
	Peak         *float64  `json:"peak"`  // of all that was measured
	Ended        *string   `json:"ended"` // why it stopped early
}

// TrackKind is how a track's values are meant.
type TrackKind string

// The kinds of tracks.
const (
	Rate  TrackKind = "rate"
	Gauge TrackKind = "gauge"
)

// Figures are numbers that may be unknown: NaN here, null in JSON.
type Figures []float64

// MarshalJSON writes the list. Figures that single precision holds are written as
// short as it allows.
func (f Figures) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 2+8*len(f))
	out = append(out, '[')
	for i, v := range f {
		if i > 0 {
			out = append(out, ',')
		}
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			out = append(out, "null"...)
		case v == math.Trunc(v) && math.Abs(v) < 1<<53:
			out = strconv.AppendInt(out, int64(v), 10)
		case float64(float32(v)) == v:
			out = strconv.AppendFloat(out, v, 'g', -1, 32)
		default:
			out = strconv.AppendFloat(out, v, 'g', -1, 64)
		}
	}
	return append(out, ']'), nil
}

// UnmarshalJSON reads null as NaN.
func (f *Figures) UnmarshalJSON(text []byte) error {
	var values []*float64
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	*f = make(Figures, len(values))
	for i, v := range values {
		(*f)[i] = math.NaN()
		if v != nil {
			(*f)[i] = *v
		}
	}
	return nil
}

// KernelLane is what one stream of one device ran, where a trace recorded it:
// columns of equal length, blocks in order that do not overlap.
type KernelLane struct {
	Device int   `json:"device"`
	Stream int64 `json:"stream"` // as in the trace
	// ResolutionNS is 0 when every event has a block of its own; else events closer
	// together than it were joined, and Count shows how many.
	ResolutionNS int64    `json:"resolution_ns"`
	GapNS        Column   `json:"gap_ns"` // since the end of the block before; of the first since the origin
	LengthNS     Column   `json:"length_ns"`
	Name         Column   `json:"name"` // index into Names; the longest of joined events
	Count        Column   `json:"count"`
	Names        []string `json:"names"`
	// LaunchNS is the time from the begin of the call that queued an event to that of the event, Launcher the thread
	// that called; -1: not known. Absent where it is of none; of joined events it is the longest's.
	LaunchNS Column `json:"launch_ns,omitempty"`
	Launcher Column `json:"launcher,omitempty"`
}
