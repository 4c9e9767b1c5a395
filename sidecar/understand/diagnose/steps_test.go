package diagnose

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestStepsShareTheTime(t *testing.T) {
	s := scene{acts: []act{
		{sec, 1, dataloaderFile, "_SingleProcessDataLoaderIter._next_data", timeline.StatePython, 0}, training,
	}, times: 3, gpus: 1}
	s.change = func(b *timeline.Builder) {
		b.Mark(timeline.Mark{Kind: "step", Start: 2 * sec, End: 4*sec + 500*ms})
		b.Mark(timeline.Mark{Kind: "step", Start: 0, End: 2 * sec})
		b.Mark(timeline.Mark{Kind: "region", Name: "fit", Start: 0, End: 3 * sec})
		b.Mark(timeline.Mark{Kind: "region", Name: "eval", Start: 3 * sec, End: 4 * sec})
		b.Mark(timeline.Mark{Kind: "region", Name: "eval", Start: 4 * sec, End: 4*sec + 100*ms})
	}
	rec := s.record()
	d := Run(rec)
	checkSums(t, "steps", rec, d)
	want := []Step{
		{Start: 0, End: 2 * sec, Busy: sec, Idle: sec, DataWait: sec},
		{Start: 2 * sec, End: 4*sec + 500*ms, Busy: sec, Idle: 1500 * ms, DataWait: 1500 * ms},
	}
	if len(d.Steps) != 2 {
		t.Fatalf("%d steps, want 2", len(d.Steps))
	}
	for i := range want {
		if d.Steps[i] != want[i] {
			t.Errorf("step %d: %+v, want %+v", i, d.Steps[i], want[i])
		}
	}
	if len(d.Regions) != 2 || d.Regions[0].Name != "fit" {
		t.Fatalf("regions %+v, want fit first", d.Regions)
	}
	if r := d.Regions[1]; r.Count != 2 || r.Total != 1100*ms || r.P50 != 100*ms || r.P95 != sec {
		t.Errorf("eval %+v, want 2 times, 1.1 s, median 100 ms, 95th percentile 1 s", r)
	}
}

func TestStepsWithoutGPUAreUnknown(t *testing.T) {
	s := scene{acts: twoLines, change: func(b *timeline.Builder) {
		b.Mark(timeline.Mark{Kind: "step", Start: 0, End: sec})
	}}
	if got := Run(s.record()).Steps[0]; got.Unknown != sec {
		t.Errorf("%+v, want all of it unknown", got)
	}
}
