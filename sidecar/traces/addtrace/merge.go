// Package addtrace lays torch.profiler traces over the recording of the cell in
// which they were taken.
//
// In flow a finished timeline.Recording and the kineto.Traces of the same
// process, one per cycle of a schedule, out flow the same recording with what devices
// did (timeline.DeviceWork), which package devicework puts in place of the sampled
// activity, and the operators' and kernels' figures, which a report takes.
// The package knows neither charts nor diagnosis: both read what they always
// read.
//
// A trace says when kernels ran to the nanosecond, a driver's sample says how
// busy a device was in the last tenth of a second. Where both exist the trace
// is right; outside the time it covers the samples stay.
package addtrace

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/understand/devicework"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Options of Into; the zero value is usable.
type Options struct {
	// Bridge converts times since the epoch to CLOCK_MONOTONIC; the zero value: Recording.BridgeAt.
	Bridge timeline.Bridge
	// Recorded are the stretches in which the profilers of the traces ran, by the names of their files: then all that
	// devices did meanwhile is in the trace. Of a trace without one, that is so from its first event to its last.
	Recorded map[string]timeline.Interval
	// PID is of the process that wrote the traces; 0: the recording's target. Each: a trace is of the process that it names.
	PID  int
	Each bool
}

// ErrOtherTime means that the trace was not taken during the recording.
var ErrOtherTime = errors.New("the trace was not taken during this recording")

var errNoEvents = errors.New("the trace holds no events; torch.profiler records the operators of the thread that it was started in, and what autograd runs for it")

// Merged is what Into returns.
type Merged struct {
	Recording *timeline.Recording // a copy; tracks that did not change are shared
	// Covered are the parts of the recording that the traces cover, in their order.
	Covered []timeline.Interval
	// Steps are how many steps each of them has.
	Steps []int
	// Error is how exact the traces' place in the recording is; the distances
	// inside a trace are exact.
	Error time.Duration
	// OnDevice: something ran on a device. Else the traces know of the host only, and
	// nothing about devices is exact.
	OnDevice bool
}

// Into merges traces, in the order of time, into the recording that they were taken in.
func Into(rec *timeline.Recording, traces []*kineto.Trace, opts Options) (*Merged, error) {
	out := *rec
	out.Work = slices.Clone(rec.Work)
	m := &Merged{}
	for _, trace := range traces {
		clock := converter{rec: rec, trace: trace, bridge: opts.Bridge}
		if clock.bridge == (timeline.Bridge{}) {
			clock.bridge = rec.BridgeAt(0)
			clock.bridge = rec.BridgeAt(clock.at(trace.First))
		}
		m.Error = max(m.Error, time.Duration(clock.bridge.Error))
		covered, err := clock.within(timeline.Nanos(clock.bridge.Error))
		if err != nil {
			return nil, err
		}
		m.Covered = append(m.Covered, covered)
		pid := cmp.Or(opts.PID, rec.Target.PID)
		if opts.Each && trace.Process.PID > 0 {
			pid = int(trace.Process.PID)
		}
		m.Steps = append(m.Steps, clock.steps(pid))
		work := clock.work()
		work.PID, work.Error, work.Complete = pid, time.Duration(clock.bridge.Error), []timeline.Interval{clock.complete(covered, opts.Recorded)}
		m.OnDevice = m.OnDevice || len(work.Activities) > 0
		out.Work = append(out.Work, work)
	}
	if !m.OnDevice {
		out.Work = rec.Work
	}
	m.Recording = devicework.Into(&out)
	return m, nil
}

// converter brings a trace's times to the recording's.
type converter struct {
	rec    *timeline.Recording
	trace  *kineto.Trace
	bridge timeline.Bridge
}

func (c converter) at(start int64) timeline.Nanos {
	return timeline.Nanos(c.bridge.ToBase(c.trace.UnixNs(start)) - c.rec.Origin)
}

// steps counts the steps of a trace. The last one is none where the recording, which knows when steps ended, has no end of it: the
// profiler stopped in it, at the end of a cell, say.
func (c converter) steps(pid int) int {
	all := analyses.HostSteps(c.trace)
	if len(all) == 0 {
		return 0
	}
	last := timeline.Between(c.at(all[len(all)-1].Start), c.at(all[len(all)-1].End))
	process := max(slices.IndexFunc(c.rec.Processes, func(p timeline.Process) bool { return p.PID == pid }), 0)
	known := false
	for _, m := range c.rec.Marks {
		if m.Kind != "step" || m.Process != process {
			continue
		}
		if known = true; m.End > last.Start+last.Nanos()/2 && m.End <= last.End+timeline.Nanos(afterStep) {
			return len(all)
		}
	}
	if known {
		return len(all) - 1
	}
	return len(all)
}

// afterStep is how much later than the trace's annotation a step's end may be marked.
const afterStep = 5 * time.Millisecond

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

// maxDevices bounds the numbers that a damaged file may give devices.
const maxDevices = 1 << 10

var workKinds = [...]timeline.WorkKind{kineto.ClassMemcpy: timeline.WorkCopy, kineto.ClassMemset: timeline.WorkMemset, kineto.ClassMTIA: timeline.WorkKernel}

// work is what the trace knows of devices.
func (c converter) work() timeline.DeviceWork {
	w := timeline.DeviceWork{Source: sourceOf(c.trace), DeviceName: deviceName(c.trace)}
	d := &c.trace.Device
	launches := c.launches()
	for row := range d.Len() {
		ordinal := int(d.Device[row])
		if ordinal < 0 || ordinal >= maxDevices {
			ordinal = 0
		}
		start := c.at(d.Start[row])
		a := timeline.DeviceActivity{
			Interval: timeline.Between(start, c.at(d.End(row))), Device: ordinal, Stream: d.Stream[row],
			Kind: workKinds[d.Class[row]], Name: c.trace.Text(d.Name[row]), Launch: launches[d.Correlation[row]],
		}
		if a.Start < c.rec.Duration && a.End > 0 && a.Start < a.End {
			w.Activities = append(w.Activities, a)
		}
	}
	return w
}

// launches are the calls that queued work, by their correlation.
func (c converter) launches() map[int64]timeline.Launch {
	calls := &c.trace.Calls
	launches := make(map[int64]timeline.Launch, calls.Len())
	for row, correlation := range calls.Correlation {
		if thread := int(calls.Thread[row]); correlation != kineto.None && thread < len(c.trace.Threads) {
			launches[correlation] = timeline.Launch{Thread: int(max(c.trace.Threads[thread].TID, 0)), At: c.at(calls.Start[row])}
		}
	}
	return launches
}

// mostEvents are fewer events of devices than Kineto has room for (ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB, 128 MB of
// records of some 200 bytes): in a trace with more, the last ones may be missing.
const mostEvents = 300_000

// fromFirstEvent is the start of a stretch that begins with the first event of a device.
const fromFirstEvent = timeline.Nanos(math.MinInt64)

// complete is the stretch in which no event of a device is missing in the trace.
func (c converter) complete(covered timeline.Interval, recorded map[string]timeline.Interval) timeline.Interval {
	d := &c.trace.Device
	if r, known := recorded[c.trace.File]; known {
		if r.Start == fromFirstEvent && d.Len() > 0 {
			r.Start = c.at(slices.Min(d.Start))
		}
		covered = timeline.Between(max(0, r.Start), min(c.rec.Duration, r.End))
	}
	if d.Len() > mostEvents {
		last := int64(math.MinInt64)
		for row := range d.Len() {
			last = max(last, d.End(row))
		}
		covered.End = min(covered.End, c.at(last))
	}
	return covered
}

// sourceOf is what the merged track says it comes from.
func sourceOf(trace *kineto.Trace) string {
	if trace.From != kineto.FromTorch {
		return "trace of another profiler"
	}
	return "torch.profiler trace"
}

func deviceName(trace *kineto.Trace) string {
	if len(trace.Meta.Devices) > 0 {
		return trace.Meta.Devices[0]
	}
	return ""
}
