package addtrace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/synth"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/devicework"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// The whole way of a trace: one rank of two, whose clock is off, laid over the
// recording of its cell by a bridge that is off as far as it says, into the
// diagnosis, the report and the picture.
func TestATraceReachesReportAndPicture(t *testing.T) {
	cfg := synth.Config{Seed: 11, Ranks: 2, Steps: 8, DataWait: 8 * time.Millisecond, ClockSkew: 5 * time.Millisecond}
	rec, trace, rank, bridge := recordedRank(t, cfg, 1, 0)
	if rank.Skew == 0 {
		t.Fatal("the rank's clock is right, nothing is tested")
	}
	bridge.Offset += bridge.Error
	rec.Target.PID, rec.GPUs[0].PIDs = 7, []int{7}
	m, err := Into(rec, []*kineto.Trace{trace}, Options{Bridge: bridge})
	if err != nil {
		t.Fatal(err)
	}
	d := diagnose.Run(m.Recording)
	r, err := report.Build(m.Recording, &d, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	exact := m.Error.Seconds() + 1e-9

	checkLanes(t, r, rank, exact)
	checkIdle(t, r, rank, exact)

	svg, err := chart.SVG(r, scene.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for stream := range rank.All.Streams {
		if want := fmt.Sprintf(">GPU 0 stream %d<", stream); !bytes.Contains(svg, []byte(want)) {
			t.Errorf("the picture does not say %q", want)
		}
	}
	if want := wording.Certainty(d.Idle.Certainty)[:40]; !bytes.Contains(svg, []byte(want)) {
		t.Errorf("the picture does not say how exact it is: %q", want)
	}
	if len(svg) > 200<<10 {
		t.Errorf("the picture has %d bytes", len(svg))
	}
}

// checkLanes looks for every kernel in the lanes, and for the first and the last
// of each step where they ran.
func checkLanes(t *testing.T, r *report.View, rank synth.RankAnswers, exact float64) {
	t.Helper()
	type sum struct {
		count   int
		seconds float64
	}
	sums := map[string]sum{}
	var starts, ends []float64
	for _, l := range r.Kernels {
		if _, ok := rank.All.Streams[l.Stream]; !ok || r.Devices[l.Device].Number != 0 || l.ResolutionNS != 0 {
			t.Errorf("a lane of GPU %d, stream %d, at %d ns", l.Device, l.Stream, l.ResolutionNS)
		}
		at := int64(0)
		for i := range l.GapNS {
			s := sums[l.Names[l.Name[i]]]
			sums[l.Names[l.Name[i]]] = sum{s.count + int(l.Count[i]), s.seconds + report.Seconds(l.LengthNS[i])}
			starts = append(starts, report.Seconds(at+l.GapNS[i]))
			at += l.GapNS[i] + l.LengthNS[i]
			ends = append(ends, report.Seconds(at))
		}
	}
	if len(r.Kernels) != len(rank.All.Streams) || len(r.Kernels) < 2 {
		t.Errorf("%d lanes, want %d and several", len(r.Kernels), len(rank.All.Streams))
	}
	for name, want := range rank.All.Kernels {
		if got := sums[name]; got.count != want.Count || math.Abs(got.seconds-float64(want.Sum)/1e9) > 1e-9*float64(want.Count) {
			t.Errorf("%s: %d times in %.9f s, want %d in %d ns", name, got.count, got.seconds, want.Count, want.Sum)
		}
	}
	near := func(times []float64, want int64) bool {
		at := (lead + timeline.Nanos(want-rank.Steps[0].Start)).Seconds()
		return slices.ContainsFunc(times, func(got float64) bool { return math.Abs(got-at) <= exact })
	}
	for _, s := range rank.Steps {
		if !near(starts, s.FirstWork) || !near(ends, s.LastWork) {
			t.Errorf("step %d: no kernel where its first or last one ran", s.Number)
		}
	}
}

func abs(v int64) int64 { return max(v, -v) }

// checkIdle compares the diagnosis with what the device truly did. Outside of
// the trace the samples say idle.
func checkIdle(t *testing.T, r *report.View, rank synth.RankAnswers, exact float64) {
	t.Helper()
	g := r.Devices[0]
	busy := int64(rank.All.KernelTime - rank.All.Idle)
	if abs(g.BusyNS-busy) > 10 || g.BusyNS+g.IdleNS+g.UnknownNS != r.DurationNS || g.UnknownNS > 20e6 {
		t.Errorf("busy %d ns, idle %d and unknown %d of %d; it was busy for %d", g.BusyNS, g.IdleNS, g.UnknownNS, r.DurationNS, busy)
	}
	if r.Idle.Method != string(gpuidle.ByWindows) || strings.Contains(r.Idle.Text, "Estimated") {
		t.Errorf("certainty %q by %q, want exact windows", r.Idle.Text, r.Idle.Method)
	}
	if !strings.Contains(g.Source, "torch.profiler trace") {
		t.Errorf("source %q", g.Source)
	}
	waits, loading := 0.0, 0.0
	for _, s := range rank.Steps {
		waits += float64(s.DataWait) / 1e9
	}
	for _, c := range r.Idle.Causes {
		if c.LowNS != nil || c.HighNS != nil {
			t.Errorf("%s has bounds, want none", c.Text)
		}
		if activity.Cause(c.ID).Kind() == activity.Starvation {
			loading += report.Seconds(c.NS)
		}
	}
	if edges := float64(2*len(rank.Steps)) * exact; math.Abs(loading-waits) > edges {
		t.Errorf("waiting for data %.9f s, want %.9f within %.9f", loading, waits, edges)
	}
}

// saved is the report of a recording as it comes back from a file.
func saved(t *testing.T, rec *timeline.Recording) *report.View {
	t.Helper()
	d := diagnose.Run(rec)
	r, err := report.Build(rec, &d, report.Options{Home: "/home/ann"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r.Document)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = report.Read(text); err != nil {
		t.Fatal(err)
	}
	return r
}

// A saved report and the trace give what the recording and the trace would have given.
func TestATraceGoesIntoASavedReport(t *testing.T) {
	cfg := synth.Config{Seed: 11, Ranks: 2, Steps: 8, DataWait: 8 * time.Millisecond, ClockSkew: 5 * time.Millisecond}
	rec, trace, rank, bridge := recordedRank(t, cfg, 1, 0)
	for i, f := range rec.Frames {
		if f.File == "cell.py" {
			rec.Frames[i].File = "/home/ann/project/train.py"
		}
	}
	rec.GPUs = []timeline.GPU{{Index: 0, Name: "H", PIDs: []int{rec.Target.PID}, OtherProcesses: -1}}
	rec.Wall = timeline.Wall{Begin: bridge, End: bridge}
	before := saved(t, rec)
	r, err := Report(before, &kineto.Set{Traces: []*kineto.Trace{trace}})
	if err != nil {
		t.Fatal(err)
	}
	exact := float64(bridge.Error)/1e9 + 1e-6 // spans of a report end on microseconds
	checkLanes(t, r, rank, exact)
	checkIdle(t, r, rank, exact)

	rec.Target.PID, rec.GPUs[0].PIDs = 7, []int{7}
	m, err := Into(rec, []*kineto.Trace{trace}, Options{Bridge: bridge})
	if err != nil {
		t.Fatal(err)
	}
	direct := saved(t, m.Recording)
	if got, want := causesOf(r), causesOf(direct); got != want {
		t.Errorf("causes\n%s\nwant\n%s", got, want)
	}
	if got, want := r.Headline.Text, direct.Headline.Text; got != want {
		t.Errorf("headline %q, want %q", got, want)
	}
	for i, lane := range r.Kernels {
		if want := direct.Kernels[i]; len(lane.LaunchNS) == 0 || !slices.Equal(lane.Launcher, want.Launcher) || !slices.Equal(lane.LaunchNS, want.LaunchNS) {
			t.Errorf("stream %d was launched by %v, %v ns before; want %v, %v", lane.Stream, lane.Launcher, lane.LaunchNS, want.Launcher, want.LaunchNS)
		}
	}
	if len(r.Threads) != len(before.Threads) || !slices.Equal(r.Spans.Node, before.Spans.Node) {
		t.Error("the stacks were changed")
	}
	note := r.Notes[len(r.Notes)-1]
	if want := "known to " + words.Duration(m.Error); note.ID != "trace-merged" || !strings.HasSuffix(note.Text, want) {
		t.Errorf("note %q, want it to end in %q", note.Text, want)
	}
	if before.Idle.IdleNS == r.Idle.IdleNS || len(before.Kernels) != 0 {
		t.Error("the report that was given was changed, or nothing was")
	}
	again, err := Report(r, &kineto.Set{Traces: []*kineto.Trace{trace}}) // a second time changes nothing
	if err != nil || causesOf(again) != causesOf(r) || len(again.Kernels) != len(r.Kernels) {
		t.Errorf("merged twice: %v", err)
	}
}

// causesOf writes the causes down, times to the tenth of a millisecond.
func causesOf(r *report.View) string {
	var b strings.Builder
	for _, c := range r.Idle.Causes {
		fmt.Fprintf(&b, "%s at %s:%v %.1f ms\n", c.ID, r.FileName(c.File), c.Line != nil, float64(c.NS)/1e6)
	}
	return b.String()
}

func TestATraceOfAnotherTimeGoesIntoNoReport(t *testing.T) {
	rec, trace, _, bridge := recorded(t)
	bridge.Offset += int64(time.Hour)
	rec.Wall = timeline.Wall{Begin: bridge}
	if _, err := Report(saved(t, rec), &kineto.Set{Traces: []*kineto.Trace{trace}}); !errors.Is(err, ErrOtherTime) {
		t.Errorf("error %v, want ErrOtherTime", err)
	}
}

// Traces of devices alone state no process, and the user's own profiler may have written one of before the cell.
func TestTracesThatAProfilerWrote(t *testing.T) {
	wall := int64(1_700_000_000_000_000_000)
	rec := &timeline.Recording{Origin: uptime, Duration: 100 * ms, Target: timeline.Target{PID: 7}}
	rec.Wall.Begin = timeline.Bridge{Offset: uptime - wall, Error: 200}
	rec.Wall.End = timeline.Bridge{Offset: uptime - wall + 1000, Error: 200} // the clock is slewed by 10 ppm
	write := func(name string, at ...timeline.Nanos) TraceFile {
		var events []string
		for _, start := range at {
			drift := int64(start) / 100_000
			events = append(events, fmt.Sprintf(`{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": %.3f, "dur": 5000.000, "args": {"device": 0, "stream": 7}}`,
				float64(int64(start)-drift)/1000))
		}
		path := filepath.Join(t.TempDir(), name)
		text := fmt.Sprintf(`{"baseTimeNanoseconds": %d, "distributedInfo": {"rank": 0}, "traceEvents": [%s]}`, wall, strings.Join(events, ","))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return TraceFile{Path: path}
	}
	first, second, before := write("a.json", 10*ms, 20*ms), write("b.json", 60*ms, 70*ms), write("c.json", -5000*ms)
	first.Began, first.Ended = uptime+int64(2*ms), uptime+int64(40*ms)
	second.Ended = uptime + int64(90*ms)
	merged, _, err := Recorded(context.Background(), rec, Traced{Files: []TraceFile{second, before, first}})
	if err != nil {
		t.Fatal(err)
	}
	devices := devicework.Of(merged)
	want := []timeline.Interval{timeline.Between(2*ms, 40*ms), timeline.Between(60*ms, 90*ms)}
	if len(devices) != 1 || len(devices[0].Exact) != 2 || len(devices[0].Busy) != 4 {
		t.Fatalf("got %+v", devices)
	}
	near := func(a, b timeline.Nanos) bool { return max(a-b, b-a) <= 2 } // of the nanosecond that a text has
	for i, got := range devices[0].Exact {
		if !near(got.Start, want[i].Start) || !near(got.End, want[i].End) {
			t.Errorf("exact %v, want %v", got, want[i])
		}
	}
	for i, start := range []timeline.Nanos{10 * ms, 20 * ms, 60 * ms, 70 * ms} {
		if got := devices[0].Busy[i].Start; !near(got, start) && max(got-start, start-got) > 20*timeline.Nanos(time.Microsecond)/100 {
			t.Errorf("work begins at %v, want %v", got, start)
		}
	}
	if _, _, err := Recorded(context.Background(), rec, Traced{Files: []TraceFile{before}}); !errors.Is(err, ErrOtherTime) {
		t.Errorf("error %v, want ErrOtherTime", err)
	}
}
