package addtrace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/synth"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/devicework"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

const (
	ms = timeline.Nanos(time.Millisecond)

	// lead is how long the cell ran before the trace's first event.
	lead = 40 * ms
	// uptime is what CLOCK_MONOTONIC said when the cell started.
	uptime = int64(987_654_321_000)
)

// recorded makes a trace of one rank and the recording of the cell it was taken
// in, whose GPU was sampled every 20 ms.
func recorded(t *testing.T) (*timeline.Recording, *kineto.Trace, synth.RankAnswers, timeline.Bridge) {
	t.Helper()
	return recordedRank(t, synth.Config{Seed: 5, Steps: 6, DataWait: 8 * time.Millisecond}, 0, 50)
}

// recordedRank does so for one rank of several, whose GPU was sampled as busy by
// the given percentage throughout.
func recordedRank(t *testing.T, cfg synth.Config, number int, sampled float64) (*timeline.Recording, *kineto.Trace, synth.RankAnswers, timeline.Bridge) {
	t.Helper()
	texts := make([]bytes.Buffer, max(cfg.Ranks, 1))
	writers := make([]io.Writer, len(texts))
	for i := range texts {
		writers[i] = &texts[i]
	}
	answers, err := synth.Generate(cfg, writers)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(path, texts[number].Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := kineto.Load(context.Background(), []string{path}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trace := set.Traces[0]
	rank := answers.Ranks[number]
	first := trace.UnixNs(rank.Steps[0].Start)
	length := timeline.Nanos(rank.Steps[len(rank.Steps)-1].End - rank.Steps[0].Start)
	wall := first - int64(lead)
	b := timeline.NewBuilder(timeline.Options{Origin: uptime, StartedAt: time.Unix(0, wall)})
	duration := lead + length + 30*ms
	util := b.Track(timeline.TrackSpec{ID: "gpu0.util", Kind: timeline.KindRate, Unit: "%", Source: "NVML sample buffer", Resolution: 20 * time.Millisecond, Device: 0, Limit: 100})
	for at := 20 * ms; at <= duration; at += 20 * ms {
		util.Add(at, sampled)
	}
	main := b.Thread(timeline.Thread{NativeID: launcher(trace), Main: true, RunsCell: true})
	loop := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "cell.py", Line: 2, FirstLine: 1}))
	fetch := b.Child(loop, b.Frame(timeline.Frame{Function: "__next__", File: "/x/site-packages/torch/utils/data/dataloader.py", Line: 701, FirstLine: 690}))
	b.Set(main, 0, loop, timeline.StatePython, false)
	for _, s := range rank.Steps {
		start := timeline.Nanos(trace.UnixNs(s.Start) - wall)
		b.Set(main, start, fetch, timeline.StateWaiting, false)
		b.Set(main, start+timeline.Nanos(s.DataWait), loop, timeline.StatePython, false)
	}
	b.Describe(func(r *timeline.Recording) {
		r.GPUs = []timeline.GPU{{Index: 0, Name: "GPU", Source: "NVML sample buffer"}}
	})
	return b.Snapshot(duration), trace, rank, timeline.Bridge{Offset: uptime - wall, Error: 300}
}

// launcher is the thread that launches a trace's work.
func launcher(trace *kineto.Trace) int { return int(trace.Threads[trace.Calls.Thread[0]].TID) }

func lanesOf(m *Merged) []devicework.Lane { return devicework.Lanes(m.Recording, devicework.MaxBlocks) }

func track(t *testing.T, rec *timeline.Recording, id string) timeline.Track {
	t.Helper()
	for _, tr := range rec.Tracks {
		if tr.ID == id {
			return tr
		}
	}
	t.Fatalf("there is no track %s", id)
	return timeline.Track{}
}

// busy sums a track's busy time between two times.
func busy(tr timeline.Track, from, to timeline.Nanos) float64 {
	sum := 0.0
	for _, p := range tr.Points {
		if a, b := max(p.From, from), min(p.At, to); a < b {
			sum += p.Value / 100 * float64(b-a)
		}
	}
	return sum
}

func TestExactActivityReplacesTheSampled(t *testing.T) {
	rec, trace, rank, bridge := recorded(t)
	m, err := Into(rec, []*kineto.Trace{trace}, Options{Bridge: bridge})
	if err != nil {
		t.Fatal(err)
	}
	util := track(t, m.Recording, "gpu0.util")
	want := float64(rank.All.KernelTime - rank.All.Idle)
	if got := busy(util, m.Covered[0].Start, m.Covered[0].End); math.Abs(got-want) > 1 {
		t.Errorf("busy %.0f ns, want %.0f", got, want)
	}
	if m.Covered[0].Start != lead || m.Error != 300 {
		t.Errorf("covered from %v with error %v, want %v and 300ns", m.Covered[0].Start, m.Error, lead)
	}
	if got := busy(util, 0, lead); math.Abs(got-0.5*float64(lead)) > 1 {
		t.Errorf("before the trace %.0f ns busy, want half of it as sampled", got)
	}
	last := timeline.Nanos(0)
	for _, p := range util.Points {
		if p.From < last || p.At <= p.From {
			t.Fatalf("window %v to %v after one that ends at %v", p.From, p.At, last)
		}
		last = p.At
	}
	if old := track(t, rec, "gpu0.util"); old.Source != "NVML sample buffer" || len(old.Points) == len(util.Points) {
		t.Error("the recording given was changed")
	}
	if !strings.Contains(util.Source, "torch.profiler trace, outside it NVML sample buffer") {
		t.Errorf("source %q", util.Source)
	}
}

func TestDiagnosisReadsTheExactIdle(t *testing.T) {
	rec, trace, rank, bridge := recorded(t)
	m, err := Into(rec, []*kineto.Trace{trace}, Options{Bridge: bridge})
	if err != nil {
		t.Fatal(err)
	}
	d := diagnose.Run(m.Recording)
	if len(d.GPUs) != 1 || d.Idle == nil {
		t.Fatalf("%d GPUs and idle %v, want one GPU with its idle time", len(d.GPUs), d.Idle)
	}
	// Outside the trace the samples say half busy.
	outside := (m.Recording.Duration - (m.Covered[0].End - m.Covered[0].Start)) / 2
	covered := int64(m.Covered[0].End - m.Covered[0].Start)
	want := covered - (rank.All.KernelTime - rank.All.Idle) + int64(outside)
	sampledEnd := m.Recording.Duration % (20 * ms) // the last, unfinished window is unknown
	if got := int64(d.GPUs[0].Idle); math.Abs(float64(got-want)) > float64(sampledEnd)+10 {
		t.Errorf("idle %d ns, want %d (within %d)", got, want, sampledEnd)
	}
	var waits int64
	for _, s := range rank.Steps {
		waits += s.DataWait
	}
	var loading timeline.Nanos
	for _, c := range d.Idle.Causes {
		if c.Cause.Kind() == activity.Starvation {
			loading += c.Nanos
		}
	}
	if got := int64(loading); float64(got) < 0.95*float64(waits) || float64(got) > 1.1*float64(waits) {
		t.Errorf("waiting for data: %v, want %v", time.Duration(got), time.Duration(waits))
	}
	before := diagnose.Run(rec)
	if before.GPUs[0].Idle == d.GPUs[0].Idle {
		t.Error("the merge changed nothing")
	}
}

func TestLanesHoldEveryKernel(t *testing.T) {
	rec, trace, rank, bridge := recorded(t)
	m, err := Into(rec, []*kineto.Trace{trace}, Options{Bridge: bridge})
	if err != nil {
		t.Fatal(err)
	}
	if len(lanesOf(m)) != 1 || lanesOf(m)[0].Stream != 7 {
		t.Fatalf("%d lanes, want stream 7 alone", len(lanesOf(m)))
	}
	l := lanesOf(m)[0]
	sums := map[string]int64{}
	for i := range l.Start {
		sums[l.Names[l.Name[i]]] += int64(l.End[i] - l.Start[i])
	}
	for name, want := range rank.All.Kernels {
		if sums[name] != want.Sum {
			t.Errorf("%s ran %d ns, want %d", name, sums[name], want.Sum)
		}
	}
	if l.Resolution != 0 {
		t.Errorf("resolution %v of a lane that has every kernel", l.Resolution)
	}
	var delays, want timeline.Nanos
	threads := make(map[int]int)
	for i, launched := range l.Launched {
		threads[launched.Thread]++
		delays += l.Start[i] - launched.At
	}
	calls := make(map[int64]int64)
	for i, correlation := range trace.Calls.Correlation {
		calls[correlation] = trace.Calls.Start[i]
	}
	for i, correlation := range trace.Device.Correlation {
		want += timeline.Nanos(trace.Device.Start[i] - calls[correlation])
	}
	if threads[launcher(trace)] == 0 || threads[0] > 0 {
		t.Errorf("launches by thread %v", threads)
	}
	if delays != want || want == 0 {
		t.Errorf("from launch to begin %d ns, want %d", delays, want)
	}
}

func TestDevicesAreRenumbered(t *testing.T) {
	rec, trace, _, bridge := recorded(t)
	rec.Target.PID = 7
	rec.GPUs = append(rec.GPUs, timeline.GPU{Index: 3, PIDs: []int{7}})
	m, err := Into(rec, []*kineto.Trace{trace}, Options{Bridge: bridge})
	if err != nil {
		t.Fatal(err)
	}
	if tr := track(t, m.Recording, "gpu3.util"); tr.Device != 3 || tr.Source != "torch.profiler trace" {
		t.Errorf("device %d, source %q", tr.Device, tr.Source)
	}
	if got := track(t, m.Recording, "gpu0.util").Source; got != "NVML sample buffer" {
		t.Errorf("the other device's source is %q", got)
	}
}

func TestBridgeFromTheRecordingsStart(t *testing.T) {
	rec, trace, _, bridge := recorded(t)
	if got := rec.BridgeAt(0); got.Offset != bridge.Offset || got.Error < bridge.Error {
		t.Errorf("bridge %+v, want offset %d and a larger error", got, bridge.Offset)
	}
	m, err := Into(rec, []*kineto.Trace{trace}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Covered[0].Start != lead {
		t.Errorf("covered from %v, want %v", m.Covered[0].Start, lead)
	}
}

func TestTraceOfAnotherTimeIsRefused(t *testing.T) {
	rec, trace, _, bridge := recorded(t)
	bridge.Offset += int64(time.Hour)
	if _, err := Into(rec, []*kineto.Trace{trace}, Options{Bridge: bridge}); !errors.Is(err, ErrOtherTime) {
		t.Errorf("error %v, want ErrOtherTime", err)
	}
	if _, err := Into(rec, []*kineto.Trace{{}}, Options{Bridge: bridge}); err == nil {
		t.Error("an empty trace was merged")
	}
}

// The real clocks of this machine: a kernel stamped with the wall clock between
// two readings of CLOCK_MONOTONIC must land between them.
func TestMeasuredBridgePlacesAKernel(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{})
	before := timeline.Monotonic()
	stamp := timeline.Realtime()
	after := timeline.Monotonic()
	text := fmt.Sprintf(`{"distributedInfo": {"rank": 0}, "traceEvents": [
{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": %d.%03d, "dur": 1.000, "args": {"stream": 7, "correlation": 1}},
{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 9, "tid": 9, "ts": %d.%03d, "dur": 5.000, "args": {}}]}`,
		stamp/1000, stamp%1000, stamp/1000, stamp%1000)
	path := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := kineto.Load(context.Background(), []string{path}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := b.Snapshot(b.Since(timeline.Monotonic()) + timeline.Nanos(time.Second))
	bridge := timeline.Measure(timeline.Monotonic, timeline.Realtime)
	m, err := Into(rec, set.Traces[:1], Options{Bridge: bridge})
	if err != nil {
		t.Fatal(err)
	}
	start := lanesOf(m)[0].Start[0]
	slack := timeline.Nanos(bridge.Error)
	if low, high := b.Since(before)-slack, b.Since(after)+slack; start < low || start > high {
		t.Errorf("the kernel starts at %v, want %v to %v", start, low, high)
	}
}

// Traces of several cycles are merged together: each has its stretch, the samples stay between them.
func TestTracesOfSeveralCycles(t *testing.T) {
	rec, first, _, bridge := recorded(t)
	second := *first
	second.Meta.BaseTime += int64(2 * (first.Last - first.First))
	longer := *rec
	longer.Duration = 4 * rec.Duration
	m, err := Into(&longer, []*kineto.Trace{first, &second}, Options{Bridge: bridge})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Covered) != 2 || m.Covered[0].End > m.Covered[1].Start || !m.OnDevice {
		t.Fatalf("covered %v", m.Covered)
	}
	util := track(t, m.Recording, "gpu0.util")
	a, b := busy(util, m.Covered[0].Start, m.Covered[0].End), busy(util, m.Covered[1].Start, m.Covered[1].End)
	if a == 0 || math.Abs(a-b) > 1 {
		t.Errorf("busy for %v and %v ns in two traces that are the same", a, b)
	}
	if want := "torch.profiler trace, outside it NVML sample buffer"; util.Source != want {
		t.Errorf("the activity is from %q, want %q", util.Source, want)
	}
	alone, err := Into(&longer, []*kineto.Trace{first}, Options{Bridge: bridge})
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range lanesOf(m) {
		one := lanesOf(alone)[i]
		n := len(one.Start)
		if len(l.Start) != 2*n || len(l.Names) != len(one.Names) || l.Stream != one.Stream {
			t.Fatalf("stream %d has %d kernels of %d names, want twice %d of %d", l.Stream, len(l.Start), len(l.Names), n, len(one.Names))
		}
		for k := range n {
			if l.Name[k] != l.Name[n+k] || l.End[k]-l.Start[k] != l.End[n+k]-l.Start[n+k] {
				t.Fatalf("kernel %d differs from that of the other trace", k)
			}
		}
	}
	if note := m.Recording.Notes[len(m.Recording.Notes)-1]; strings.Count(note.Reason, " to ") != 3 || !strings.Contains(note.Reason, " and from ") {
		t.Errorf("the note is %q", note.Reason)
	}
}

// The operators and kernels of traces are in the report, summed up over them.
func TestFiguresOfTraces(t *testing.T) {
	rec, trace, rank, bridge := recorded(t)
	rec.Wall.Begin = bridge
	rec.Target = timeline.Target{PID: 7}
	rec.Processes = []timeline.Process{{PID: 7, ParentIndex: -1, Role: "kernel", CPU: -1}}
	merged, opts, err := Recorded(context.Background(), rec, Traced{Files: []TraceFile{{Path: trace.File}}})
	if err != nil {
		t.Fatal(err)
	}
	d := diagnose.Run(merged)
	v, err := report.Build(merged, &d, opts)
	if err != nil {
		t.Fatal(err)
	}
	var device, kernels int64
	for _, o := range v.Operators {
		device += *o.SelfDeviceNS
	}
	for _, k := range v.KernelTimes {
		kernels += k.TotalNS
	}
	if len(v.Operators) == 0 || kernels == 0 || device > kernels {
		t.Errorf("%d operators with %d ns, %d kernels with %d ns", len(v.Operators), device, len(v.KernelTimes), kernels)
	}
	if got := v.Traces; len(got) != 1 || got[0].Steps != len(rank.Steps) || got[0].ErrorNS != bridge.Error || got[0].Events != trace.Records || got[0].Damaged {
		t.Errorf("traces %+v, want one of %d steps", got, len(rank.Steps))
	}
}

// TestATraceOfAnotherProfiler is not called torch's.
func TestATraceOfAnotherProfiler(t *testing.T) {
	rec, trace, _, bridge := recorded(t)
	other := *trace
	other.From = kineto.FromOther
	m, err := Into(rec, []*kineto.Trace{&other}, Options{Bridge: bridge})
	if err != nil {
		t.Fatal(err)
	}
	if util := track(t, m.Recording, "gpu0.util"); !strings.HasPrefix(util.Source, "trace of another profiler") {
		t.Errorf("the activity is from %q", util.Source)
	}
	if text := devicework.Sentence(m.Recording); strings.Contains(text, "torch") || !strings.Contains(text, " s (trace of another profiler), its place") {
		t.Errorf("got %s", text)
	}
}

// A step that the profiler stopped in is none: the recording has no end of it.
func TestAStepThatTheRecordingDoesNotEndIsNone(t *testing.T) {
	rec, trace, answers, _ := recorded(t)
	ends := make([]timeline.Nanos, len(answers.Steps))
	for i, s := range answers.Steps {
		ends[i] = timeline.Nanos(trace.UnixNs(s.End)-trace.UnixNs(answers.Steps[0].Start)) + lead
	}
	whole := len(ends)
	for _, c := range []struct {
		marked, want int
	}{{0, whole}, {whole, whole}, {whole - 1, whole - 1}} { // without marks it is not known
		rec.Marks = nil
		for _, end := range ends[:c.marked] {
			rec.Marks = append(rec.Marks, timeline.Mark{Kind: "step", End: end})
		}
		m, err := Into(rec, []*kineto.Trace{trace}, Options{})
		if err != nil || m.Steps[0] != c.want {
			t.Errorf("%d ends are marked: %d steps, want %d; %v", c.marked, m.Steps[0], c.want, err)
		}
	}
}
