package chart

import (
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// The lane of resident memory and the table of its lines have the same peak: the exact one, else the most that was seen by any reading.
func TestOnePeakOnAPage(t *testing.T) {
	const s, mib = timeline.Nanos(time.Second), 1 << 20
	for name, c := range map[string]struct {
		exact, largest int64
		lane, note     string
	}{
		"exact":    {160 * mib, 150 * mib, "160 MiB", "peak 160 MiB · "},
		"at least": {0, 150 * mib, "≥ 150 MiB", "peak at least 150 MiB · "},
	} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) {
			p := timeline.Process{PID: 7, ParentIndex: -1, Role: timeline.RoleScript, CPU: -1}
			p.Memory.Peak, p.Memory.Growth = c.exact, timeline.GrowthReading{Reads: 100, Interval: s / 100, First: mib, Last: mib, Largest: c.largest}
			r.Target, r.Processes = timeline.Target{PID: 7, Argv: []string{"app.py"}}, []timeline.Process{p}
		})
		node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "load", File: "app.py", Line: 3, FirstLine: 1}))
		main := b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true, OnCPU: -1})
		b.Set(main, 0, node, timeline.StatePython, false)
		b.AddGrowth(timeline.Growth{Start: s, End: 2 * s, Before: node, After: node, Bytes: 149 * mib})
		w := b.Track(timeline.TrackSpec{ID: "rss", Kind: timeline.KindGauge, Unit: "B", PID: 7, Device: -1})
		w.Add(0, mib)
		w.Add(2*s, 120*mib)
		w.Add(4*s, 2*mib)
		r, err := report.Build(b.Snapshot(4*s), nil, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, lane := range tracksOf(r, gpuSummary{}, 4) {
			if lane.id == residentTrack && (lane.value != c.lane || !strings.Contains(lane.about, "peak "+c.lane+"\n")) {
				t.Errorf("%s: lane %q, %q, want %q", name, lane.value, lane.about, c.lane)
			}
		}
		if note := memoryTable(r).note; !strings.HasPrefix(note, c.note) {
			t.Errorf("%s: %q, want %q", name, note, c.note)
		}
	}
}
