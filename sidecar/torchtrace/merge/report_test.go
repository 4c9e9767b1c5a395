package merge

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/chart"
	"github.com/omni-perf/omni-perf/sidecar/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/synth"
	"github.com/omni-perf/omni-perf/sidecar/wording"
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
	m, err := Into(rec, trace, Options{Bridge: bridge, Device: func(int) int { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	d := diagnose.Run(m.Recording)
	r, err := report.Build(m.Recording, &d, report.Options{Kernels: m.Kernels()})
	if err != nil {
		t.Fatal(err)
	}
	exact := m.Error.Seconds() + 1e-9

	checkLanes(t, r, rank, exact)
	checkIdle(t, r, rank, exact)

	svg, err := chart.SVG(r, chart.Options{})
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
	if r.Idle.Method != string(diagnose.ByWindows) || strings.Contains(r.Idle.Text, "Estimated") {
		t.Errorf("certainty %q by %q, want exact windows", r.Idle.Text, r.Idle.Method)
	}
	if !strings.Contains(g.Source, source) {
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
		if diagnose.Cause(c.ID).Kind() == diagnose.Starvation {
			loading += report.Seconds(c.NS)
		}
	}
	if edges := float64(2*len(rank.Steps)) * exact; math.Abs(loading-waits) > edges {
		t.Errorf("waiting for data %.9f s, want %.9f within %.9f", loading, waits, edges)
	}
}
