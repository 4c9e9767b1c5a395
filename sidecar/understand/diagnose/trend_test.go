package diagnose

import (
	"math"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// growing is a training of 100 steps: 40 ms of forward, and 60 ms of backward that grow by a share of themselves with each
// step; more is added to step i.
func growing(by float64, more func(i int) timeline.Nanos) scene {
	var acts []act
	var marks []timeline.Mark
	at := timeline.Nanos(0)
	for i := range 100 {
		backward := timeline.Nanos(60 * (1 + by*float64(i)) * float64(ms))
		if more != nil {
			backward += more(i)
		}
		acts = append(acts,
			act{40 * ms, 2, torchModule, "Module._wrapped_call_impl", timeline.StateNative, 0},
			act{backward, 3, site + "torch/_tensor.py", "Tensor.backward", timeline.StateNative, 0})
		length := 40*ms + backward
		marks = append(marks, timeline.Mark{Kind: "step", Start: at, End: at + length, Source: timeline.StepOptimizer})
		at += length
	}
	return scene{acts: acts, change: func(b *timeline.Builder) {
		for _, m := range marks {
			b.Mark(m)
		}
	}}
}

// Steps that become longer are said with how much that cost, the phase that grew and what the memory grew by meanwhile.
func TestStepsThatBecomeSlowerAreSaid(t *testing.T) {
	s := growing(0.01, nil)
	marked := s.change
	d := Run(s.with(marked, func(b *timeline.Builder) {
		rss := b.Track(timeline.TrackSpec{ID: "rss", Kind: timeline.KindGauge, Device: -1})
		for i := range 130 {
			rss.Add(timeline.Nanos(i)*100*ms, 4e9+3e7*float64(i))
		}
	}).record())
	f := findingOfID(t, &d, StepsSlowDown)
	// The first quarter begins after ten steps and its middle is step 21: 40 + 60·1.21; the last one's is 88: 40 + 60·1.88.
	if want := (40 + 60*1.88) / (40 + 60*1.21); math.Abs(f.Against-want) > 0.02 {
		t.Errorf("%.3f times as long, want %.3f", f.Against, want)
	}
	if f.Name != "backward" || f.Place.Line != 3 || f.Count != 100 {
		t.Errorf("%d steps, in %q at %+v", f.Count, f.Name, f.Place)
	}
	cost := timeline.Nanos(0)
	for i := 32; i < 100; i++ {
		cost += timeline.Nanos(60 * 0.01 * float64(max(i-21, 0)) * float64(ms))
	}
	if math.Abs(float64(f.Time-cost)) > 0.05*float64(cost) {
		t.Errorf("it cost %v, want %v", f.Time, cost)
	}
	if f.Bytes < 2e9 || f.Bytes > 4e9 {
		t.Errorf("memory grew by %d", f.Bytes)
	}
}

// What is no trend is not said: few steps, one slow part in the middle, a warm-up, noise, a last step that saves.
func TestWhatIsNoTrend(t *testing.T) {
	noise := func(i int) timeline.Nanos { return timeline.Nanos(i*7919%97) * ms } // up to as long as the step
	for name, s := range map[string]scene{
		"even":              growing(0, nil),
		"a slow middle":     growing(0, func(i int) timeline.Nanos { return timeline.Nanos(i/40%2) * 100 * ms }),
		"a warm-up":         growing(0, func(i int) timeline.Nanos { return timeline.Nanos(max(10-i, 0)) * 100 * ms }),
		"noise":             growing(0, noise),
		"a last step":       growing(0, func(i int) timeline.Nanos { return timeline.Nanos(i/99) * 5 * sec }),
		"it becomes faster": growing(0, func(i int) timeline.Nanos { return timeline.Nanos(100-i) * ms }),
	} {
		for _, f := range Run(s.record()).Findings {
			if f.ID == StepsSlowDown {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
	few := growing(0.05, nil)
	few.acts = few.acts[:80]
	rec := few.record()
	rec.Marks = rec.Marks[:40]
	for _, f := range Run(rec).Findings {
		if f.ID == StepsSlowDown {
			t.Errorf("of 40 steps: %+v", f)
		}
	}
}
