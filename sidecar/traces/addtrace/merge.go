// Package addtrace lays torch.profiler traces over the recording of the cell in
// which they were taken.
//
// In flow a finished timeline.Recording and the kineto.Traces of the same
// process, one per cycle of a schedule, out flow the same recording with exact GPU
// activity in place of the sampled one, the kernels of each stream as lanes and the
// operators' and kernels' figures, which a report takes.
// The package knows neither charts nor diagnosis: both read what they always
// read.
//
// A trace says when kernels ran to the nanosecond, a driver's sample says how
// busy a device was in the last tenth of a second. Where both exist the trace
// is right; outside the time it covers the samples stay.
package addtrace

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Options of Into; the zero value is usable.
type Options struct {
	// Bridge converts times since the epoch to CLOCK_MONOTONIC. The zero value
	// takes the recording's own start, which is known to a millisecond only.
	Bridge timeline.Bridge
	// Device converts the trace's device numbers (CUDA ordinals) to the
	// recording's (NVML indices), which CUDA_VISIBLE_DEVICES can make differ.
	// nil means they are the same.
	Device func(ordinal int) int
	// MaxWindows bounds the points of a device's busy track; 0 = 16,384.
	MaxWindows int
	// MaxKernels bounds the kernels of all lanes; 0 = 20,000.
	MaxKernels int
}

func (o Options) withDefaults(rec *timeline.Recording) Options {
	if o.Bridge == (timeline.Bridge{}) {
		o.Bridge = BridgeOf(rec)
	}
	if o.Device == nil {
		o.Device = func(ordinal int) int { return ordinal }
	}
	if o.MaxWindows <= 0 {
		o.MaxWindows = 1 << 14
	}
	if o.MaxKernels <= 0 {
		o.MaxKernels = 20_000
	}
	return o
}

// BridgeOf relates the wall clock to CLOCK_MONOTONIC as the recording measured it at
// its start; where it did not, by its start, which was read on both clocks one after
// the other.
func BridgeOf(rec *timeline.Recording) timeline.Bridge {
	if rec.Wall.Begin != (timeline.Bridge{}) {
		return rec.Wall.Begin
	}
	return timeline.Bridge{Offset: rec.Origin - rec.StartedAt.UnixNano(), Error: int64(time.Millisecond)}
}

// ErrOtherTime means that the trace was not taken during the recording.
var ErrOtherTime = errors.New("the trace was not taken during this recording")

var errNoEvents = errors.New("the trace holds no events")

// Merged is what Into returns.
type Merged struct {
	Recording *timeline.Recording // a copy; tracks that did not change are shared
	Lanes     []Lane              // by device, then stream
	// Covered are the parts of the recording that the traces cover, in their order.
	Covered []timeline.Interval
	// Error is how exact the traces' place in the recording is; the distances
	// inside a trace are exact.
	Error   time.Duration
	ofTorch bool // all of them are torch.profiler's
	// OnDevice: something ran on a device. Else the traces know of the host only, and
	// nothing about devices is exact.
	OnDevice bool
}

// Into merges traces, in the order of time, into the recording that they were taken in.
func Into(rec *timeline.Recording, traces []*kineto.Trace, opts Options) (*Merged, error) {
	opts = opts.withDefaults(rec)
	opts.MaxKernels /= max(1, len(traces))
	opts.MaxWindows /= max(1, len(traces))
	out := *rec
	out.Tracks, out.GPUs, out.Notes = slices.Clone(rec.Tracks), slices.Clone(rec.GPUs), slices.Clone(rec.Notes)
	m := &Merged{Recording: &out, Error: time.Duration(opts.Bridge.Error), ofTorch: true}
	for _, trace := range traces {
		clock := converter{rec: rec, trace: trace, bridge: opts.Bridge}
		covered, err := clock.within(timeline.Nanos(opts.Bridge.Error))
		if err != nil {
			return nil, err
		}
		m.Covered = append(m.Covered, covered)
		m.ofTorch = m.ofTorch && trace.From == kineto.FromTorch
		events := clock.byDevice(opts.Device)
		for _, device := range events {
			again := slices.ContainsFunc(m.Lanes, func(l Lane) bool { return l.Device == device.device })
			replaceActivity(&out, rec, again, device, covered, trace, opts)
		}
		m.OnDevice = m.OnDevice || len(events) > 0
		m.Lanes = joinLanes(m.Lanes, lanes(events, trace, opts.MaxKernels))
	}
	if m.OnDevice {
		out.Notes = append(out.Notes, timeline.Note{ID: timeline.NoteExact, What: exactWhat, Reason: m.exact()})
	}
	return m, nil
}

// exactWhat is what a merged trace makes exact.
const exactWhat = "GPU activity"

// maxStretches is how many covered stretches a sentence names.
const maxStretches = 4

// exact says what is exact now, and how far.
func (m *Merged) exact() string {
	var stretches []string
	for i, c := range m.Covered {
		if i == maxStretches && len(m.Covered) > maxStretches+1 {
			stretches = append(stretches, words.Plural(len(m.Covered)-i, "other stretch", "other stretches"))
			break
		}
		stretches = append(stretches, "from "+words.Fixed(c.Start.Seconds(), 3)+" to "+words.Fixed(c.End.Seconds(), 3)+" s")
	}
	by, lies := "trace", "the trace lies"
	if len(m.Covered) > 1 {
		by, lies = "traces", "the traces lie"
	}
	if m.ofTorch {
		by = "torch.profiler " + by
	}
	return fmt.Sprintf("exact %s, by the %s; where %s in the recording is known to %s", words.List(stretches), by, lies, words.Duration(m.Error))
}

func (m *Merged) sentence() string { return exactWhat + ": " + m.exact() }

// converter brings a trace's times to the recording's.
type converter struct {
	rec    *timeline.Recording
	trace  *kineto.Trace
	bridge timeline.Bridge
}

func (c converter) at(start int64) timeline.Nanos {
	return timeline.Nanos(c.bridge.ToBase(c.trace.UnixNs(start)) - c.rec.Origin)
}

// within is the part of the recording that the trace covers. Clocks agree to slack.
func (c converter) within(slack timeline.Nanos) (timeline.Interval, error) {
	covered, ok := c.covered()
	if !ok {
		return covered, errNoEvents
	}
	switch {
	case covered.End < -slack:
		return covered, fmt.Errorf("%w: it ended %s before the recording began", ErrOtherTime, words.Duration(-covered.End.Duration()))
	case covered.Start > c.rec.Duration+slack:
		return covered, fmt.Errorf("%w: it began %s after the recording had ended", ErrOtherTime, words.Duration((covered.Start - c.rec.Duration).Duration()))
	}
	covered.Start, covered.End = max(0, covered.Start), min(c.rec.Duration, covered.End)
	return covered, nil
}

// covered is from the trace's first event to its last. Before and after, the
// profiler may not have been running: no kernel there does not mean idle.
func (c converter) covered() (timeline.Interval, bool) {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	see := func(start, dur int64) { first, last = min(first, start), max(last, start+max(0, dur)) }
	t := c.trace
	for _, columns := range [][2][]int64{
		{t.Device.Start, t.Device.Dur}, {t.Calls.Start, t.Calls.Dur}, {t.Ops.Start, t.Ops.Dur}, {t.Python.Start, t.Python.Dur},
	} {
		for row, start := range columns[0] {
			see(start, columns[1][row])
		}
	}
	if first > last {
		return timeline.Interval{}, false
	}
	return timeline.Between(c.at(first), c.at(last)), true
}

// deviceEvents are a device's events on the recording's clock, by start.
type deviceEvents struct {
	device int
	events []event
}

type event struct {
	start, end timeline.Nanos
	stream     int64
	name       kineto.Sym
}

// maxDevices bounds the numbers that a damaged file may give devices.
const maxDevices = 1 << 10

// byDevice sorts the trace's device events out.
func (c converter) byDevice(number func(int) int) []deviceEvents {
	d := &c.trace.Device
	found := map[int][]event{}
	for row := range d.Len() {
		ordinal := int(d.Device[row])
		if ordinal < 0 || ordinal >= maxDevices {
			ordinal = 0
		}
		start := c.at(d.Start[row])
		e := event{max(0, start), min(c.rec.Duration, start+timeline.Nanos(max(0, d.Dur[row]))), d.Stream[row], d.Name[row]}
		if e.start < e.end {
			found[number(ordinal)] = append(found[number(ordinal)], e)
		}
	}
	var list []deviceEvents
	for device, events := range found {
		slices.SortFunc(events, func(a, b event) int { return compare(a.start, b.start, a.end, b.end) })
		list = append(list, deviceEvents{device, events})
	}
	slices.SortFunc(list, func(a, b deviceEvents) int { return a.device - b.device })
	return list
}

func compare(a, b, a2, b2 timeline.Nanos) int {
	switch {
	case a < b || a == b && a2 < b2:
		return -1
	case a == b && a2 == b2:
		return 0
	}
	return 1
}
