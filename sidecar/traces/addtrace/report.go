package addtrace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/formats"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/understand/devicework"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// loading is what is read of traces. byShape keeps operators with different inputs apart.
func loading(byShape, oneProcess bool) kineto.Options {
	opts := figuresAsked(byShape)
	return kineto.Options{Inputs: opts.Inputs(), SkipPython: true, OneProcess: oneProcess}
}

// Traced is what a profiler wrote while a recording was made.
type Traced struct {
	Files   []TraceFile
	ByShape bool // operators with different inputs are told apart
	PID     int  // of the process that wrote them; 0: the recording's target
	// Each says that the traces are of the processes that they name, as those of a profiler of the whole machine are.
	Each bool
	// KernelWait is the gap up to which a device was between queued kernels, where its work is exactly known; 0: the default.
	KernelWait time.Duration
	// OutOfMemory are allocations on devices that failed meanwhile.
	OutOfMemory []report.Failure
	// Allocations are those of the cell, where each was recorded.
	Allocations *report.RecordedAllocations
	// TorchMemory is what torch's allocator said of each device before and after.
	TorchMemory []report.TorchDevice
}

// TraceFile is a trace and when its profiler recorded, on CLOCK_MONOTONIC. Without Ended that is not known; without Began
// alone, devices may have had work when it began, which is not in the trace: it is known from the first event of a device on.
type TraceFile struct {
	Path         string
	Began, Ended int64
}

// Recorded merges the traces of a finished recording's process into it, and gives what a
// report of it takes. Its errors are sentences about the files.
func Recorded(ctx context.Context, rec *timeline.Recording, traced Traced) (*timeline.Recording, report.Options, error) {
	var paths []string
	recorded := make(map[string]timeline.Interval)
	for _, f := range traced.Files {
		paths = append(paths, f.Path)
		if f.Ended > f.Began {
			stretch := timeline.Between(fromFirstEvent, timeline.Nanos(f.Ended-rec.Origin))
			if f.Began > 0 {
				stretch.Start = timeline.Nanos(f.Began - rec.Origin)
			}
			recorded[f.Path] = stretch
		}
	}
	set, err := formats.Load(ctx, paths, loading(traced.ByShape, !traced.Each))
	if err != nil {
		return nil, report.Options{}, err
	}
	slices.SortStableFunc(set.Traces, func(a, b *kineto.Trace) int { return cmp.Compare(a.UnixNs(a.First), b.UnixNs(b.First)) })
	if err := leaveOutOtherTimes(rec, set); err != nil {
		return nil, report.Options{}, err
	}
	m, err := Into(rec, set.Traces, Options{Recorded: recorded, PID: traced.PID, Each: traced.Each})
	if err != nil {
		return nil, report.Options{}, err
	}
	return m.Recording, report.Options{Torch: m.figures(set, traced)}, nil
}

// leaveOutOtherTimes removes traces that were not taken during the recording, if others were: the user's own profiler
// may have written one of before.
func leaveOutOtherTimes(rec *timeline.Recording, set *kineto.Set) (err error) {
	set.Traces = slices.DeleteFunc(set.Traces, func(t *kineto.Trace) bool {
		bridge := rec.BridgeAt(0)
		_, other := converter{rec: rec, trace: t, bridge: bridge}.within(timeline.Nanos(bridge.Error))
		err = cmp.Or(err, other)
		return other != nil
	})
	if len(set.Traces) > 0 {
		return nil
	}
	return err
}

// File merges the trace in a file, or those of a folder that were taken during the
// recording, into a report. Its errors are sentences about the traces.
func File(ctx context.Context, v *report.View, path string) (*report.View, error) {
	set, err := formats.Load(ctx, []string{path}, loading(false, false))
	if err != nil {
		return nil, err
	}
	all := set.Traces
	var names []string
	set.Traces = nil
	for _, t := range all {
		if rank := v.Target().Rank; rank != nil && len(all) > 1 && t.Rank != *rank {
			continue
		}
		switch _, err = within(v, t); {
		case err == nil:
			set.Traces, names = append(set.Traces, t), append(names, t.File)
		case !errors.Is(err, ErrOtherTime):
			return nil, err
		}
	}
	switch {
	case len(set.Traces) > 1 && overlap(set.Traces):
		return nil, fmt.Errorf("%d traces were taken during this recording; name one: %s", len(names), words.List(names))
	case len(set.Traces) > 0:
		return Report(v, set)
	case err == nil:
		err = fmt.Errorf("no trace in %s is of the recording's rank", path)
	}
	return nil, err
}

// within is the part of a report's recording that a trace covers.
func within(v *report.View, trace *kineto.Trace) (timeline.Interval, error) {
	rec := &restored{Recording: &timeline.Recording{StartedAt: v.StartedAt, Duration: timeline.Nanos(v.DurationNS)}, view: v}
	rec.clock()
	bridge := rec.bridge()
	return converter{rec: rec.Recording, trace: trace, bridge: bridge}.within(timeline.Nanos(bridge.Error))
}

// overlap reports whether traces were taken at the same time: then they are of several
// processes, or copies, and no cycles of one.
func overlap(list []*kineto.Trace) bool {
	list = slices.SortedFunc(slices.Values(list), func(a, b *kineto.Trace) int { return cmp.Compare(a.UnixNs(a.First), b.UnixNs(b.First)) })
	for i := 1; i < len(list); i++ {
		if list[i].UnixNs(list[i].First) < list[i-1].UnixNs(list[i-1].Last) {
			return true
		}
	}
	return false
}

// Report merges the traces of one process, in the order of time, into a report: the kernels
// become its lanes, the exact activity takes the place of the sampled one, and idle time is
// diagnosed anew. All else stays as it was recorded.
func Report(v *report.View, set *kineto.Set) (*report.View, error) {
	rec := restore(v)
	m, err := Into(rec.Recording, set.Traces, Options{Bridge: rec.bridge()})
	if err != nil {
		return nil, err
	}
	found := diagnose.Options{Line: rec.line}.Run(m.Recording)
	again, err := report.Build(m.Recording, &found, report.Options{Home: home, Line: rec.line, Torch: m.figures(set, Traced{})})
	if err != nil {
		return nil, fmt.Errorf("the trace does not fit the report: %w", err)
	}
	doc := *v.Document
	p := patch{from: again, to: &doc, raw: rec}
	p.torch()
	if m.OnDevice {
		p.devices()
		p.idle()
		p.findings()
		first, last := m.Covered[0], m.Covered[len(m.Covered)-1]
		doc.Notes = append(slices.Clone(v.Notes), report.Note{
			ID: "trace-merged", Args: map[string]any{"start_ns": int64(first.Start), "end_ns": int64(last.End), "error_ns": int64(m.Error)},
			Text: devicework.Sentence(m.Recording),
		})
	}
	return report.Check(&doc)
}

// patch takes what a trace changes from one report into another.
type patch struct {
	from *report.View
	to   *report.Document
	raw  *restored
	// device is the index in to of each device in from.
	device []int
}

// devices takes over times, sources, activity and kernels, by the devices' numbers.
func (p *patch) devices() {
	p.to.Devices, p.to.Tracks = slices.Clone(p.to.Devices), slices.Clone(p.to.Tracks)
	for _, d := range p.from.Devices {
		at := slices.IndexFunc(p.to.Devices, func(o report.Device) bool { return o.Number == d.Number })
		if at < 0 {
			at = len(p.to.Devices)
			p.to.Devices = append(p.to.Devices, report.Device{Host: d.Host, Number: d.Number, Name: d.Name})
		}
		o := &p.to.Devices[at]
		o.BusyNS, o.IdleNS, o.UnknownNS, o.Used = d.BusyNS, d.IdleNS, d.UnknownNS, d.Used
		o.Source, o.ResolutionNS, o.Processes = d.Source, d.ResolutionNS, []int{}
		for _, process := range d.Processes {
			o.Processes = append(o.Processes, p.process(process))
		}
		p.device = append(p.device, at)
	}
	for i := range p.from.Devices {
		activity := p.from.DeviceTrack(i, "gpu.util")
		if activity == nil {
			continue
		}
		track, device := *activity, p.device[i]
		track.Device = &device
		at := slices.IndexFunc(p.to.Tracks, func(t report.Track) bool { return t.ID == track.ID && t.Device != nil && *t.Device == device })
		if at < 0 {
			p.to.Tracks = append(p.to.Tracks, track)
		} else {
			p.to.Tracks[at] = track
		}
	}
	p.to.Kernels = nil
	for _, lane := range p.from.Kernels {
		lane.Device = p.device[lane.Device]
		lane.Launcher = slices.Clone(lane.Launcher)
		for i, thread := range lane.Launcher {
			lane.Launcher[i] = p.thread(thread)
		}
		p.to.Kernels = append(p.to.Kernels, lane)
	}
}

// torch takes over the operators and kernels, whose process is the target's.
func (p *patch) torch() {
	d := p.from.Document
	p.to.Operators, p.to.KernelTimes, p.to.Traces = slices.Clone(d.Operators), slices.Clone(d.KernelTimes), slices.Clone(d.Traces)
	for i := range p.to.Operators {
		p.to.Operators[i].Process = p.process(p.to.Operators[i].Process)
	}
	for i := range p.to.KernelTimes {
		p.to.KernelTimes[i].Process = p.process(p.to.KernelTimes[i].Process)
	}
	for i := range p.to.Traces {
		p.to.Traces[i].Process = p.process(p.to.Traces[i].Process)
	}
}

// idle takes over what the devices waited for, in all and in each step and line.
func (p *patch) idle() {
	p.to.Idle = nil
	if old := p.from.Idle; old != nil {
		idle := *old
		idle.Causes, idle.Devices = p.causes(old.Causes), nil
		for _, d := range old.Devices {
			d.Device, d.Causes = p.device[d.Device], p.causes(d.Causes)
			idle.Devices = append(idle.Devices, d)
		}
		p.to.Idle = &idle
	}
	p.to.Steps = slices.Clone(p.to.Steps)
	for i := range min(len(p.to.Steps), len(p.from.Steps)) { // the same marks, in the same order
		p.to.Steps[i].BusyNS, p.to.Steps[i].IdleNS = p.from.Steps[i].BusyNS, p.from.Steps[i].IdleNS
	}
	type key struct{ file, line, process int }
	idle := make(map[key]int64)
	for _, l := range p.from.Lines {
		if file := p.file(&l.File); file != nil {
			idle[key{*file, l.Line, p.process(l.Process)}] = l.IdleNS
		}
	}
	p.to.Lines = slices.Clone(p.to.Lines)
	for i := range p.to.Lines {
		l := &p.to.Lines[i]
		l.IdleNS = idle[key{l.File, l.Line, l.Process}]
	}
}

func (p *patch) causes(list []report.Cause) []report.Cause {
	out := slices.Clone(list)
	for i := range out {
		c := &out[i]
		c.File, c.Function = p.file(c.File), p.function(c.Function)
		if c.File == nil {
			c.Line, c.Function = nil, nil
		}
	}
	return out
}

// process is the index in the report of a process of the other.
func (p *patch) process(i int) int { return p.raw.process(p.from.Processes[i].PID) }

// thread is the index in the report of a thread of the other; -1: none.
func (p *patch) thread(i int64) int64 {
	if i < 0 {
		return -1
	}
	from := &p.from.Threads[i]
	return int64(slices.IndexFunc(p.to.Threads, func(t report.Thread) bool {
		return t.NativeID == from.NativeID && t.Process == p.process(from.Process)
	}))
}

// file is the index in the report of a file of the other, by the restored name.
func (p *patch) file(i *int) *int {
	if i == nil {
		return nil
	}
	from := p.from.Files[*i]
	for at, f := range p.to.Files {
		if sameCount(from.ExecutionCount, f.ExecutionCount) && (from.Name == f.Name || from.Name == p.raw.raw[at]) {
			return &at
		}
	}
	return nil
}

func sameCount(a, b *int) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func (p *patch) function(i *int) *int {
	if i == nil {
		return nil
	}
	f := p.from.Functions[*i]
	file := p.file(&f.File)
	at := slices.IndexFunc(p.to.Functions, func(o report.Function) bool {
		return file != nil && o.File == *file && o.Name == f.Name && o.FirstLine == f.FirstLine
	})
	if at < 0 {
		return nil
	}
	return &at
}

// ofActivity are the findings that rest on when devices worked: the trace knows
// better. Of all others the recording knew more than the report.
var ofActivity = []diagnose.FindingID{
	diagnose.GPUWaitsForData, diagnose.GPUWaitsForLaunches, diagnose.GPUWaitsForHost, diagnose.GPUWaitsForIO, diagnose.GPUWaitsForCheckpoint,
	diagnose.GPUWaitsForCompilation, diagnose.GPUWaitsForRanks, diagnose.GPUWaitsForWaits, diagnose.GPUWaitsForContention,
	diagnose.GPUWaitsForCopies, diagnose.GPUWaitsForSync, diagnose.GPUWaitsAtStart, diagnose.GPUWaitsAtExit, diagnose.GPUIdleUndecided, diagnose.GPUIdle, diagnose.GPUBusy,
	diagnose.GPUUnused, diagnose.SomeGPUsIdle, diagnose.SyncInLoop,
}

func isOfActivity(f report.Finding) bool {
	return slices.Contains(ofActivity, diagnose.FindingID(f.ID))
}

// findings takes over those of activity, before the others, and the headline if it
// mentions one of them, now or before.
func (p *patch) findings() {
	headline, from := p.to.Headline, p.from.Headline
	var list []report.Finding
	for _, f := range p.from.Findings {
		if isOfActivity(f) {
			f.File, f.Function = p.file(f.File), p.function(f.Function)
			if f.File == nil {
				f.Line, f.Function = nil, nil
			}
			list = append(list, f)
		}
	}
	kept := make(map[int]int) // where the others are now
	for i, f := range p.to.Findings {
		if !isOfActivity(f) {
			kept[i] = len(list)
			list = append(list, f)
		}
	}
	isAbout := func(h report.Headline, findings []report.Finding) bool {
		return h.Finding != nil && isOfActivity(findings[*h.Finding])
	}
	switch {
	case isAbout(from, p.from.Findings):
		at := slices.IndexFunc(list, func(f report.Finding) bool { return f.ID == p.from.Findings[*from.Finding].ID })
		headline = report.Headline{Kind: from.Kind, Finding: &at, Text: from.Text, Hint: from.Hint}
	case isAbout(headline, p.to.Findings) || headline.Finding == nil && headline.Kind == report.HeadlineSummary:
		headline = report.Headline{Kind: report.HeadlineSummary, Text: from.Text, Hint: from.Hint}
	case headline.Finding != nil:
		at := kept[*headline.Finding]
		headline.Finding = &at
	}
	headline.Limits = []int{}
	for _, i := range p.to.Headline.Limits {
		if at, ok := kept[i]; ok {
			headline.Limits = append(headline.Limits, at)
		}
	}
	if list == nil {
		list = []report.Finding{}
	}
	p.to.Findings, p.to.Headline = list, headline
}
