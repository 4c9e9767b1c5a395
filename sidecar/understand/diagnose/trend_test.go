package diagnose

import (
	"math"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
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

// twoTrainings are 100 steps of 20 ms, and 100 of 60 ms that another optimizer makes; change is asked what a step's mark is.
func twoTrainings(pause timeline.Nanos, change func(i int, m *timeline.Mark)) scene {
	var acts []act
	var marks []timeline.Mark
	at := timeline.Nanos(0)
	for i := range 200 {
		length := timeline.Nanos(20+40*(i/100)) * ms
		start := at
		if i == 100 {
			acts, at = append(acts, act{pause, 5, "", "", timeline.StateWaiting, 0}), at+pause
		}
		acts, at = append(acts, act{length, 3, site + "torch/_tensor.py", "Tensor.backward", timeline.StateNative, 0}), at+length
		m := timeline.Mark{Kind: "step", Start: start, End: at, Source: timeline.StepOptimizer}
		if change != nil {
			change(i, &m)
		}
		marks = append(marks, m)
	}
	return scene{acts: acts, change: func(b *timeline.Builder) {
		for _, m := range marks {
			b.Mark(m)
		}
	}}
}

// Steps of another training are no slower ones of the first: where another optimizer steps, where batches are larger, behind a pause.
func TestTwoTrainingsAreNoTrend(t *testing.T) {
	for name, s := range map[string]scene{
		"another optimizer": twoTrainings(2*ms, func(i int, m *timeline.Mark) { m.Anew = i == 100 }),
		"a pause":           twoTrainings(sec, nil),
		"larger batches":    twoTrainings(2*ms, func(i int, m *timeline.Mark) { m.Batch.Samples = int64(32 + 64*(i/100)) }),
		"longer texts": twoTrainings(2*ms, func(i int, m *timeline.Mark) {
			m.Batch.Tokens = int64(1000+i) * int64(m.End-m.Start) / int64(20*ms)
		}),
	} {
		for _, f := range Run(s.record()).Findings {
			if f.ID == StepsSlowDown {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
	d := Run(twoTrainings(2*ms, nil).record()) // which could be one
	findingOfID(t, &d, StepsSlowDown)
}

// shortSteps are 300 of some 20 ms, with much noise; what more says is done before some of them.
func shortSteps(level func(i int) timeline.Nanos, more func(i int) *act) scene {
	var acts []act
	var marks []timeline.Mark
	at := timeline.Nanos(0)
	for i := range 300 {
		start := at
		if a := more(i); a != nil {
			acts, at = append(acts, *a), at+a.length
		}
		backward := level(i) + timeline.Nanos(i*7919%97)*ms/4
		acts, at = append(acts, act{backward, 3, site + "torch/_tensor.py", "Tensor.backward", timeline.StateNative, 0}), at+backward
		marks = append(marks, timeline.Mark{Kind: "step", Start: start, End: at, Source: timeline.StepOptimizer})
	}
	return scene{acts: acts, change: func(b *timeline.Builder) {
		for _, m := range marks {
			b.Mark(m)
		}
	}}
}

// The steps after a long one differ from those before by noise alone: another training it is not, and it is a slow one.
func TestALongStepAmongShortOnesIsSlow(t *testing.T) {
	save := act{600 * ms, 9, site + "torch/serialization.py", "save", timeline.StatePython, 0}
	d := Run(shortSteps(func(int) timeline.Nanos { return 10 * ms }, func(i int) *act {
		if i%10 != 5 {
			return nil
		}
		return &save
	}).record())
	if len(d.Slow) != 1 || len(d.Slow[0].Steps) != 30 {
		t.Errorf("%+v, want all 30 steps that save", d.Slow)
	}
}

// A training ends with a checkpoint, and the next one's steps are longer: the step with the checkpoint is a slow one, that in
// which the next model is made is not.
func TestWhatSetsUpATrainingIsNoSlowStep(t *testing.T) {
	level := func(i int) timeline.Nanos { return timeline.Nanos(10+100*(i/150)) * ms }
	for slow, between := range map[bool]act{
		true:  {5 * sec, 9, site + "torch/serialization.py", "save", timeline.StatePython, 0},
		false: {5 * sec, 5, "", "", timeline.StatePython, 0},
	} {
		d := Run(shortSteps(level, func(i int) *act {
			if i != 150 {
				return nil
			}
			return &between
		}).record())
		found := slices.ContainsFunc(d.Slow, func(s SlowSteps) bool { return slices.Contains(s.Steps, 150) })
		if found != slow || slow && d.Slow[0].Phase != origin.Checkpoint {
			t.Errorf("%+v, want the step 150 among them: %t", d.Slow, slow)
		}
		for _, s := range d.Slow {
			if s.Steps[len(s.Steps)-1] > 150 {
				t.Errorf("a step of the second training is compared with the first one: %+v", s)
			}
		}
	}
}

// What sets another training up is in none of its steps, as with the first one.
func TestTheFirstStepOfAnotherOptimizerIsNone(t *testing.T) {
	d := Run(twoTrainings(sec, func(i int, m *timeline.Mark) { m.Anew = i == 100 }).record())
	if len(d.Steps) != 199 || !d.Steps[100].Anew || d.Steps[100].Start == d.Steps[99].End || len(d.Slow) > 0 {
		t.Errorf("%d steps, then %+v; slow: %+v", len(d.Steps), d.Steps[100], d.Slow)
	}
	d = Run(twoTrainings(sec, func(_ int, m *timeline.Mark) { m.Anew = true }).record()) // an optimizer for each step
	if len(d.Steps) != 200 {
		t.Errorf("%d steps", len(d.Steps))
	}
}

// A line of the user's own that becomes slower is named, which is in no phase; and what single steps took longer costs nothing.
func TestTheLineThatBecomesSlowerIsNamed(t *testing.T) {
	s := growing(0, nil)
	var acts []act
	var marks []timeline.Mark
	at := timeline.Nanos(0)
	for i := range 100 {
		length := 30*ms + timeline.Nanos(i)*ms
		if i == 50 {
			length += 20 * sec
		}
		acts = append(acts, act{10 * ms, 3, site + "torch/_tensor.py", "Tensor.backward", timeline.StateNative, 0},
			act{10 * ms, 5, "", "", timeline.StatePython, 0}, act{length, 8, "", "", timeline.StatePython, 0})
		marks = append(marks, timeline.Mark{Kind: "step", Start: at, End: at + 20*ms + length, Source: timeline.StepOptimizer})
		at += 20*ms + length
	}
	s.acts, s.change = acts, func(b *timeline.Builder) {
		for _, m := range marks {
			b.Mark(m)
		}
	}
	d := Run(s.record())
	f := findingOfID(t, &d, StepsSlowDown)
	if f.Name != "" || f.Place.Line != 8 || f.Time > 4*sec {
		t.Errorf("in %q at %+v, %v", f.Name, f.Place, f.Time)
	}
}

// Where other programs have the CPUs, it is the computing in steps that is compared, and the time without a CPU is not.
func TestATrendBesideOtherPrograms(t *testing.T) {
	crowd := func(s scene) scene {
		return s.with(s.change, func(b *timeline.Builder) {
			b.Track(timeline.TrackSpec{ID: "cpu.system", Kind: timeline.KindRate, Device: -1, Limit: 2}).AddWindow(0, 20*sec, 2)
			b.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindRate, Device: -1, Limit: 2}).AddWindow(0, 20*sec, 0.5)
		})
	}
	d := Run(crowd(growing(0.03, nil)).record())
	if f := findingOfID(t, &d, StepsSlowDown); !f.Computed {
		t.Errorf("%+v", f)
	}
	waits := growing(0.03, nil)
	for i := 1; i < len(waits.acts); i += 2 {
		waits.acts[i].state = timeline.StateOff
	}
	for _, f := range Run(crowd(waits).record()).Findings {
		if f.ID == StepsSlowDown {
			t.Errorf("without a CPU: %+v", f)
		}
	}
}
