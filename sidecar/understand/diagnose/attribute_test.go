package diagnose

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
)

// scaled returns training steps of about the given length.
func scaled(step timeline.Nanos) []phase {
	list := trainingStep()
	total := timeline.Nanos(0)
	for _, p := range list {
		total += p.length
	}
	for i := range list {
		list[i].length = list[i].length * step / total
		list[i].work = list[i].work * step / total
	}
	return list
}

// The trap: steps shorter than the windows. Where the diagnosis says it resolved
// them it is right within 3 points; where not, the bounds hold the truth.
func TestStepsBelowTheWindow(t *testing.T) {
	resolved, most := 0, make(map[timeline.Nanos]float64)
	for _, step := range []timeline.Nanos{80, 105, 130} {
		for _, window := range []timeline.Nanos{100, 167, 500} {
			for _, lag := range []timeline.Nanos{0, 10, 30} {
				for seed := range int64(2) {
					sim := simulation{seed: seed, length: 60_000 * ms, phases: scaled(step * ms), jitter: 0.25, window: window * ms, lag: lag * ms}
					rec, truth := sim.run()
					d := Run(rec).Idle.Devices[0]
					worst := largestError(byLine(d.Causes), truth)
					if d.Certainty.Method == gpuidle.ByRepetition {
						resolved++
						most[window] = max(most[window], worst)
						if d.Certainty.R2 < 0.9 {
							t.Errorf("R² %.2f is called resolved", d.Certainty.R2)
						}
						if worst > 3 {
							t.Errorf("%d ms steps, %d ms windows, lag %d ms, seed %d: %.1f points off (%s)", step, window, lag, seed, worst, d.Certainty.Method)
						}
					}
					checkBounds(t, d.Causes, truth)
				}
			}
		}
	}
	t.Logf("%d of 54 resolved; by window (ms) at most so many points off: %.3v", resolved, most)
	if resolved < 50 {
		t.Errorf("only %d of 54 recordings were resolved", resolved)
	}
}

// A device whose lag varies, or that works off a queue, fits the model less
// well: then the shares are called estimates, with bounds that hold the truth.
func TestWhatDoesNotFitIsAnEstimate(t *testing.T) {
	estimates := 0
	for _, window := range []timeline.Nanos{100, 167, 500} {
		for _, c := range []struct {
			name string
			sim  simulation
		}{
			{"lag 30 ± 15 ms", simulation{lag: 30 * ms, lagJitter: 15 * ms}},
			{"queue", simulation{queue: true}},
			{"queue, 10 s", simulation{queue: true, length: 10_000 * ms}},
			{"3 s", simulation{length: 3000 * ms}},
			{"no jitter", simulation{jitter: 1e-9}},
		} {
			for seed := range int64(3) {
				sim := c.sim
				sim.seed, sim.phases, sim.window = seed, trainingStep(), window*ms
				if sim.jitter == 0 {
					sim.jitter = 0.25
				}
				if sim.length == 0 {
					sim.length = 60_000 * ms
				}
				rec, truth := sim.run()
				d := Run(rec).Idle.Devices[0]
				worst := largestError(byLine(d.Causes), truth)
				t.Logf("%-15s %d ms: %.1f points off, %s; width %.2f", c.name, window, worst, d.Certainty.Method, float64(d.Causes[0].High-d.Causes[0].Low)/2/float64(d.Idle))
				if d.Certainty.Method == gpuidle.ByAverage {
					estimates++
				} else if worst > 3 {
					t.Errorf("%s, %d ms windows: %.1f points off and called %q", c.name, window, worst, d.Certainty.Method)
				}
				checkBounds(t, d.Causes, truth)
			}
		}
	}
	if estimates < 27 {
		t.Errorf("%d of 45 recordings are called estimates; these should mostly be", estimates)
	}
}

// checkBounds wants the truth of every line within the bounds of its causes.
func checkBounds(t *testing.T, causes []gpuidle.CauseTime, truth map[int]timeline.Nanos) {
	t.Helper()
	low, high := make(map[int]timeline.Nanos), make(map[int]timeline.Nanos)
	for _, c := range causes {
		if c.Low > c.Nanos || c.High < c.Nanos {
			t.Errorf("line %d: %d is not within [%d, %d]", c.Place.Line, c.Nanos, c.Low, c.High)
		}
		low[c.Place.Line] += c.Low
		high[c.Place.Line] += c.High
	}
	for l, n := range truth {
		if high[l] == 0 {
			continue // folded into the rows without a line
		}
		if n < low[l]-ms || n > high[l]+ms {
			t.Errorf("line %d: the truth %v is not within [%v, %v]", l, n.Duration(), low[l].Duration(), high[l].Duration())
		}
	}
}

// Phases of three windows and more are distinguished by the windows themselves.
func TestLongPhasesAreRightWithinTwoPoints(t *testing.T) {
	for _, window := range []timeline.Nanos{20, 100, 167, 500} {
		for seed := range int64(5) {
			rng := rand.New(rand.NewSource(seed))
			phases := []phase{
				{line: 1, library: dataloaderFile, function: "_MultiProcessingDataLoaderIter._next_data", state: timeline.StateWaiting, launches: 0},
				{line: 3, state: timeline.StateNative, launches: 0.97},
				{line: 8, state: timeline.StatePython, launches: 0.02},
				{line: 9, library: "/x/site-packages/torch/serialization.py", function: "save", state: timeline.StateIO, launches: 0},
			}
			for i := range phases {
				phases[i].length = window * ms * timeline.Nanos(3+rng.Intn(6))
			}
			rec, truth := simulation{seed: seed, length: window * ms * 200, phases: phases, jitter: 0.01, window: window * ms}.run()
			d := Run(rec).Idle.Devices[0]
			if worst := largestError(byLine(d.Causes), truth); worst > 2 {
				t.Errorf("%d ms windows, seed %d: %.2f points off (%s)", window, seed, worst, d.Certainty.Method)
			}
		}
	}
}

// Windows as short as the work itself, as kernel times from CUDA's activities
// are, need no model: they say it all.
func TestExactTimesNeedNoModel(t *testing.T) {
	rec, truth := simulation{seed: 1, length: 20_000 * ms, phases: trainingStep(), jitter: 0.25, workJitter: 0.25, window: ms / 2, queue: true}.run()
	d := Run(rec).Idle.Devices[0]
	if worst := largestError(byLine(d.Causes), truth); d.Certainty.Method != gpuidle.ByWindows || worst > 0.5 {
		t.Errorf("%.2f points off, %q; want at most 0.5, by the windows alone", worst, d.Certainty.Method)
	}
}

// Every sum holds to the nanosecond, whatever the recording.
func TestSumsAreExact(t *testing.T) {
	for seed := range int64(40) {
		rng := rand.New(rand.NewSource(seed))
		phases := trainingStep()
		for i := range phases {
			phases[i].length = timeline.Nanos(rng.Int63n(int64(300*ms)) + 1)
			phases[i].launches = rng.Float64()
			phases[i].line = rng.Intn(10)
		}
		sim := simulation{
			seed: seed, length: timeline.Nanos(rng.Int63n(int64(20_000*ms)) + 1), phases: phases, jitter: rng.Float64(),
			window: timeline.Nanos(rng.Int63n(int64(700*ms)) + 1e6), lag: timeline.Nanos(rng.Int63n(int64(90 * ms))),
			queue: seed%3 == 0, idleTail: timeline.Nanos(rng.Int63n(int64(2000 * ms))),
		}
		rec, _ := sim.run()
		checkSums(t, fmt.Sprint("seed ", seed), rec, Run(rec))
	}
}

func checkSums(t *testing.T, what string, rec *timeline.Recording, d Diagnosis) {
	t.Helper()
	for _, g := range d.GPUs {
		if sum := g.Busy + g.Idle + g.Unknown; sum != rec.Duration || g.Busy < 0 || g.Idle < 0 || g.Unknown < 0 {
			t.Errorf("%s: busy %d + idle %d + unknown %d = %d, want %d", what, g.Busy, g.Idle, g.Unknown, sum, rec.Duration)
		}
	}
	spent := timeline.Nanos(0)
	for _, p := range d.Spent {
		spent += p.Nanos
	}
	if spent != rec.Duration {
		t.Errorf("%s: the thread's time adds up to %d, want %d", what, spent, rec.Duration)
	}
	for _, f := range d.Findings {
		if len(d.Headline.Limits) > len(d.Findings) || d.Headline.Finding >= len(d.Findings) || math.IsNaN(f.Value) || f.Low > f.Time || f.High < f.Time {
			t.Errorf("%s: finding %+v", what, f)
		}
	}
	if d.Idle == nil {
		return
	}
	total := timeline.Nanos(0)
	for _, dev := range d.Idle.Devices {
		sum := timeline.Nanos(0)
		for _, c := range dev.Causes {
			sum += c.Nanos
		}
		kinds := timeline.Nanos(0)
		for _, k := range dev.Kinds {
			kinds += k.Nanos
		}
		if kinds != sum {
			t.Errorf("%s: the kinds of cause add up to %d, the causes to %d", what, kinds, sum)
		}
		for _, g := range d.GPUs {
			if g.Device == dev.Device && (g.Idle != dev.Idle || sum != dev.Idle) {
				t.Errorf("%s: GPU %d idle %d, its causes %d, want both %d", what, dev.Device, dev.Idle, sum, g.Idle)
			}
		}
		total += dev.Idle
	}
	sum := timeline.Nanos(0)
	for _, c := range d.Idle.Causes {
		sum += c.Nanos
	}
	if sum != d.Idle.Total || total != d.Idle.Total {
		t.Errorf("%s: causes %d, devices %d, total %d", what, sum, total, d.Idle.Total)
	}
	for _, s := range d.Steps {
		if s.Busy < 0 || s.Idle < 0 || s.Unknown < 0 || s.Busy+s.Idle+s.Unknown != s.End-s.Start {
			t.Errorf("%s: step %+v does not add up", what, s)
		}
	}
}

// Other threads must not be counted: the idle time stays the same.
func TestEightBusyThreadsDoNotChangeTheSum(t *testing.T) {
	sim := simulation{seed: 5, length: 20_000 * ms, phases: trainingStep(), jitter: 0.25, window: 100 * ms}
	alone, _ := sim.run()
	sim.threads = 8
	crowded, _ := sim.run()
	a, b := Run(alone).Idle, Run(crowded).Idle
	if a.Total != b.Total || fmt.Sprint(byLine(a.Causes)) != fmt.Sprint(byLine(b.Causes)) {
		t.Errorf("idle %v by line %v alone, %v by line %v with eight threads", a.Total, byLine(a.Causes), b.Total, byLine(b.Causes))
	}
}

func TestUnknownTimeIsNeitherBusyNorIdle(t *testing.T) {
	rec, _ := simulation{seed: 1, length: 10_000 * ms, phases: trainingStep(), jitter: 0.2, window: 100 * ms, idleTail: 3000 * ms}.run()
	g := Run(rec).GPUs[0]
	if g.Unknown != 3000*ms {
		t.Errorf("unknown %v, want 3 s", g.Unknown.Duration())
	}
}

func TestNoGPUWorkIsNobodysFault(t *testing.T) {
	phases := []phase{{line: 8, state: timeline.StatePython, length: 100 * ms}}
	rec, _ := simulation{seed: 1, length: 5000 * ms, phases: phases, window: 100 * ms}.run()
	d := Run(rec)
	if d.GPUs[0].Used || d.Idle.Certainty.Method != gpuidle.ByAbsence {
		t.Errorf("used %v, certainty %q; want an unused device", d.GPUs[0].Used, d.Idle.Certainty.Method)
	}
	if c := d.Idle.Causes; len(c) != 1 || c[0].Cause != activity.NoWork || c[0].Nanos != d.Idle.Total {
		t.Errorf("causes %+v, want all of it without GPU work", c)
	}
	checkSums(t, "no work", rec, d)
}

func TestWhoseActivityItIs(t *testing.T) {
	phases := []phase{{line: 8, state: timeline.StatePython, length: 100 * ms, launches: 0.1}}
	for _, c := range []struct {
		name     string
		gpus     []timeline.GPU
		activity float64
		used     bool
	}{
		{"ours", []timeline.GPU{{PIDs: []int{1}}}, 0.1, true},
		{"no process listed, little activity: a desktop", []timeline.GPU{{}}, 0.1, false},
		{"no process listed, much activity: a container that hides them", []timeline.GPU{{}}, 0.6, true},
		{"others' processes, ours on the next GPU", []timeline.GPU{{OtherProcesses: 1}, {Index: 1, PIDs: []int{1}}}, 0.6, false},
		{"others' processes, no numbers matched anywhere", []timeline.GPU{{OtherProcesses: 1}}, 0.6, true},
		{"processes unknown", []timeline.GPU{{OtherProcesses: -1}}, 0.1, true},
	} {
		phases[0].launches = c.activity
		rec, _ := simulation{seed: 1, length: 3000 * ms, phases: phases, window: 100 * ms}.run()
		rec.GPUs = c.gpus
		if got := Run(rec).GPUs[0].Used; got != c.used {
			t.Errorf("%s: used %v, want %v", c.name, got, c.used)
		}
	}
}

func TestRecordingWithoutGPU(t *testing.T) {
	rec, _ := simulation{seed: 1, length: 1000 * ms, phases: trainingStep()}.run()
	rec.GPUs = nil
	if d := Run(rec); d.Idle != nil || len(d.GPUs) != 0 {
		t.Errorf("idle %+v of %d GPUs, want none", d.Idle, len(d.GPUs))
	}
}

// Two devices: the one that is fed serially waits for the other. The sums hold
// for each and together.
func TestTwoDevices(t *testing.T) {
	rec, _ := simulation{seed: 1, length: 10_000 * ms, phases: trainingStep(), jitter: 0.2, window: 100 * ms}.run()
	second := rec.Tracks[0]
	second.ID, second.Device = "gpu1.util", 1
	second.Points = nil
	for _, p := range rec.Tracks[0].Points {
		p.Value /= 2
		second.Points = append(second.Points, p)
	}
	rec.Tracks = append(rec.Tracks, second)
	rec.GPUs = append(rec.GPUs, timeline.GPU{Index: 1, PIDs: []int{1}})
	d := Run(rec)
	checkSums(t, "two devices", rec, d)
	if len(d.Idle.Devices) != 2 || d.Idle.Devices[1].Idle <= d.Idle.Devices[0].Idle {
		t.Errorf("idle %+v, want more on the second", d.Idle.Devices)
	}
}

// A rank's own process answers for its device.
func TestRankAnswersForItsDevice(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	for pid := 1; pid <= 2; pid++ {
		id := b.Thread(timeline.Thread{PID: pid, Main: true, RunsCell: pid == 1})
		node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "train", File: "/home/u/train.py", Line: 10 * pid}))
		b.Set(id, 0, node, timeline.StatePython, false)
	}
	for i := range 2 {
		w := b.Track(timeline.TrackSpec{ID: fmt.Sprintf("gpu%d.util", i), Kind: timeline.KindRate, Device: i})
		for at := timeline.Nanos(0); at < 2000*ms; at += 100 * ms {
			w.AddWindow(at, at+100*ms, 30)
		}
	}
	b.Describe(func(r *timeline.Recording) {
		r.GPUs = []timeline.GPU{{Index: 0, PIDs: []int{1}}, {Index: 1, PIDs: []int{2}}}
	})
	for i, dev := range Run(b.Snapshot(2000 * ms)).Idle.Devices {
		if c := dev.Causes[0]; c.Place.Line != 10*(i+1) {
			t.Errorf("GPU %d: line %d is blamed, want %d", i, c.Place.Line, 10*(i+1))
		}
	}
}

func TestSetUpBeforeTheFirstWork(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	id := b.Thread(timeline.Thread{PID: 1, Main: true, RunsCell: true})
	at := func(l int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: "/home/u/train.py", Line: l}))
	}
	b.Set(id, 0, at(1), timeline.StatePython, false)
	b.Set(id, 2000*ms, at(2), timeline.StatePython, false)
	w := b.Track(timeline.TrackSpec{ID: "gpu0.util", Kind: timeline.KindRate})
	for t := timeline.Nanos(0); t < 4000*ms; t += 100 * ms {
		value := 0.0
		if t >= 2000*ms {
			value = 40
		}
		w.AddWindow(t, t+100*ms, value)
	}
	causes := Run(b.Snapshot(4000 * ms)).Idle.Causes
	if len(causes) != 2 || causes[0].Cause != activity.SetUp || causes[0].Nanos != 2000*ms || causes[1].Cause != activity.Python {
		t.Errorf("causes %+v, want 2 s of set-up and 1.2 s of Python", causes)
	}
}

func TestCertaintyNamesItsGrounds(t *testing.T) {
	rec, _ := simulation{seed: 1, length: 60_000 * ms, phases: trainingStep(), jitter: 0.25, window: 167 * ms, lag: 10 * ms}.run()
	c := Run(rec).Idle.Certainty
	if c.Method != gpuidle.ByRepetition || c.Window != 167*time.Millisecond || c.Lag != 10*time.Millisecond || c.Repeats < 400 || c.Repeats > 520 {
		t.Errorf("certainty %+v, want about 470 repeats under 167 ms windows with 10 ms lag", c)
	}
}

func BenchmarkRunOneHour(b *testing.B) {
	rec, _ := simulation{seed: 1, length: 3_600_000 * ms, phases: trainingStep(), jitter: 0.25, window: 100 * ms, lag: 10 * ms}.run()
	for b.Loop() {
		Run(rec)
	}
}

// Windows that are all alike show nothing of what happens within them.
func TestWindowsThatAreAllAlike(t *testing.T) {
	acts := []act{
		{20 * ms, 1, dataloaderFile, inline, timeline.StatePython, 50}, {20 * ms, 8, "", "", timeline.StatePython, 50},
		{10 * ms, 9, "", "", timeline.StateIO, 50},
	}
	d := Run(scene{acts: acts, times: 100, gpus: 1, window: 100 * ms}.record())
	times := map[activity.Kind]timeline.Nanos{activity.Starvation: 2 * sec, activity.Host: 2 * sec, activity.InputOutput: sec}
	for _, k := range d.Idle.Kinds {
		if k.Low > 0 || k.High < times[k.Kind] {
			t.Errorf("%s is bounded by %v and %v; it had %v in windows that were half idle", k.Kind, k.Low.Duration(), k.High.Duration(), times[k.Kind].Duration())
		}
	}
}

// A device that works off what was launched, for about as long at every step
// however long the host takes: a rate per state is off by up to ten points here.
func TestQueueOfLaunchedWork(t *testing.T) {
	resolved := 0
	for _, workJitter := range []float64{0.01, 0.05} {
		for _, window := range []timeline.Nanos{100, 167, 500} {
			for seed := range int64(3) {
				rec, truth := simulation{
					seed: seed, length: 60_000 * ms, phases: trainingStep(), jitter: 0.25, workJitter: workJitter, window: window * ms, queue: true,
				}.run()
				d := Run(rec).Idle.Devices[0]
				worst := largestError(byLine(d.Causes), truth)
				t.Logf("%d ms windows, work ± %.0f %%: %.1f points off, %s", window, 100*workJitter, worst, d.Certainty.Method)
				checkBounds(t, d.Causes, truth)
				if d.Certainty.Method != gpuidle.ByRepetition {
					continue
				}
				resolved++
				if worst > 3 {
					t.Errorf("%d ms windows, seed %d: %.1f points off and called %q", window, seed, worst, d.Certainty.Method)
				}
			}
		}
	}
	if resolved < 12 {
		t.Errorf("only %d of 18 recordings were resolved", resolved)
	}
}
