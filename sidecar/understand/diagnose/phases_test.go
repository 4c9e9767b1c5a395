package diagnose

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

const phaseMS = timeline.Nanos(time.Millisecond)

// plainLoop is a training of 12 steps as most people write it: 200 ms of imports and models, then per step
// 20 ms data, 30 forward, 1 zero_grad, 40 backward, 9 optimizer; every fourth step saves for 100 ms.
func plainLoop(marked bool) *timeline.Recording {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	id := b.Thread(timeline.Thread{RunsCell: true, Main: true})
	const torch = "/v/site-packages/torch/"
	node := func(line int, function, file string) timeline.NodeID {
		own := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "main", File: "/home/me/train.py", Line: line}))
		if function == "" {
			return own
		}
		return b.Child(own, b.Frame(timeline.Frame{Function: function, File: file, Line: 1}))
	}
	model := node(3, "", "")
	data := node(10, "_BaseDataLoaderIter.__next__", torch+"utils/data/dataloader.py")
	forward := node(11, "Module._wrapped_call_impl", torch+"nn/modules/module.py")
	zero := node(12, "Optimizer.zero_grad", torch+"optim/optimizer.py")
	backward := node(13, "Tensor.backward", torch+"_tensor.py")
	recompute := b.Child(backward, b.Frame(timeline.Frame{Function: "Module._wrapped_call_impl", File: torch + "nn/modules/module.py", Line: 1}))
	step := node(14, "SGD.step", torch+"optim/sgd.py")
	save := node(16, "save", torch+"serialization.py")
	at := timeline.Nanos(0)
	do := func(n timeline.NodeID, length timeline.Nanos) {
		b.Set(id, at, n, timeline.StatePython, false)
		at += length * phaseMS
	}
	do(model, 200)
	var marks []timeline.Mark
	for i := range 12 {
		began := at
		if i == 0 {
			began = 0
		}
		do(data, 20)
		do(forward, 30)
		do(zero, 1)
		do(backward, 25)
		do(recompute, 15)
		do(step, 9)
		if i > 0 {
			marks = append(marks, timeline.Mark{Kind: "step", Start: began, End: at, Source: timeline.StepMarked})
		}
		if i%4 == 3 {
			do(save, 100) // in the next step, which begins where this one ended
		}
	}
	for i := 1; i < len(marks); i++ {
		marks[i].Start = marks[i-1].End
	}
	rec := b.Snapshot(at)
	rec.Target.Argv = []string{"python", "/home/me/train.py"}
	rec.Sampling.Interval = time.Millisecond
	if marked {
		rec.Marks = marks
	}
	return rec
}

// A phase that is met in some of the steps that have it, and looks long in these, has the mean of all steps.
func TestWhichStepsHadAPhase(t *testing.T) {
	const interval = phaseMS
	of := func(lengths ...float64) (each []float64) {
		for _, l := range lengths {
			each = append(each, l*float64(phaseMS))
		}
		return each
	}
	long := slices.Repeat(of(5), 18)
	for name, c := range map[string]struct {
		phase origin.Phase
		each  []float64
		count int // 0: not known
		mean  float64
	}{
		"a long one in all steps":       {origin.Loading, slices.Repeat(of(5), 20), 20, 5},
		"forward that was met in some":  {origin.Forward, slices.Repeat(of(4.3), 11), 0, 2.365},
		"forward, long enough, in some": {origin.Forward, slices.Repeat(of(8), 11), 0, 4.4},
		"forward that was missed twice": {origin.Forward, long, 20, 4.5},
		"data in nearly all":            {origin.Loading, long, 18, 5},
		"the optimizer, met once":       {origin.Optimizer, of(5.1), 0, 0.255},
		"an evaluation":                 {origin.Evaluation, of(40, 44), 2, 42},
		"callbacks, some of them long":  {origin.Callbacks, of(0.5, 1, 1, 30, 30), 0, 3.125},
		"the first batch of an epoch":   {origin.Loading, of(1, 1, 1, 200), 0, 10.15},
	} {
		p := PhaseTime{Phase: c.phase}
		p.perStep(c.each, 20, interval)
		count := 0
		if p.Per != nil {
			count = p.Per.Count
		}
		if mean := float64(p.Mean) / float64(phaseMS); count != c.count || math.Abs(mean-c.mean) > 1e-3 {
			t.Errorf("%s: %d steps of %.3f ms, want %d of %.3f", name, count, mean, c.count, c.mean)
		}
	}
}

func phaseOf(t *testing.T, d *Diagnosis, phase origin.Phase) PhaseTime {
	t.Helper()
	for _, p := range d.Phases {
		if p.Phase == phase {
			return p
		}
	}
	t.Fatalf("there is no phase %v among %+v", phase, d.Phases)
	return PhaseTime{}
}

func TestPhasesOfAPlainLoop(t *testing.T) {
	d := Run(plainLoop(true))
	for phase, want := range map[origin.Phase]struct{ total, mean timeline.Nanos }{
		origin.Loading: {240, 20}, origin.Forward: {360, 30}, origin.Backward: {480, 40}, origin.Optimizer: {108, 9}, origin.Checkpoint: {300, 100},
	} {
		p := phaseOf(t, &d, phase)
		if p.Total != want.total*phaseMS || p.Mean != want.mean*phaseMS || p.Per == nil || p.Per.Max != want.mean*phaseMS {
			t.Errorf("%v: %+v, want %d ms in all and %d ms each time", phase, p, want.total, want.mean)
		}
	}
	if p := phaseOf(t, &d, origin.ZeroGrad); p.Per != nil || p.Mean != 1*phaseMS {
		t.Errorf("a phase of one sampling interval is counted: %+v", p)
	}
	if p := phaseOf(t, &d, origin.StartUp); p.Total != 200*phaseMS || !math.IsNaN(p.Share) {
		t.Errorf("start-up: %+v, want 200 ms and no share", p)
	}
	for i, s := range d.Steps {
		sum := timeline.Nanos(0)
		for _, part := range s.Phases {
			sum += part
		}
		if sum != s.End-s.Start {
			t.Errorf("the phases of step %d add up to %v of %v", i, sum, s.End-s.Start)
		}
	}
	if len(d.Slow) != 1 || d.Slow[0].Phase != origin.Checkpoint || d.Slow[0].Place.Line != 16 || len(d.Slow[0].Steps) != 2 || d.Slow[0].Extra != 200*phaseMS {
		t.Errorf("slow steps: %+v, want the two of the checkpoint in line 16", d.Slow)
	}
}

// The first epoch has the steps 2 to 7, with one checkpoint, the second the others, with another one.
// The last read in a step is one read before the first of what follows: half of what is between them is taken for that.
func TestACheckpointIsNotInTheStepBeforeIt(t *testing.T) {
	rec := plainLoop(true)
	for i := range rec.Marks {
		rec.Marks[i].End += phaseMS // as if the phases had been seen a little early
		if i > 0 {
			rec.Marks[i].Start += phaseMS
		}
	}
	d := Run(rec)
	if p := phaseOf(t, &d, origin.Checkpoint); p.Per == nil || p.Per.Count != 2 {
		t.Errorf("%+v, want a checkpoint in two steps", p)
	}
}

// Steps are of 10 ms, and one lasts as long as a validation in it. The stacks are read every 20 ms, and show the validation
// where they show it. When the steps ended is known exactly, and the validation was in one of them.
func TestAShortValidationIsInTheStepThatItMadeLonger(t *testing.T) {
	const interval, long = 20 * phaseMS, 10
	type times map[int]timeline.Nanos // by step: 0 is the long one
	for name, c := range map[string]struct {
		length   timeline.Nanos // of the long step
		from, to timeline.Nanos // of the validation, as the stacks show it, from that step's begin on
		want     times
		other    timeline.Nanos // what is of no known phase
	}{
		"seen from the step before to the step behind": {40, -8, 20, times{0: 28}, 0},
		"seen behind the step":                         {40, 45, 58, times{0: 13}, 0},
		"longer than the step":                         {40, -10, 50, times{-1: 10, 0: 40, 1: 10}, 0},
		"long, and a little in another step":           {500, -5, 500, times{0: 500}, 5},
		"behind all steps":                             {40, 138, 400, times{}, 2},
		"with steps that the program counts in it":     {100, -50, 150, times{-5: 10, -4: 10, -3: 10, -2: 10, -1: 10, 0: 100, 1: 10, 2: 10, 3: 10, 4: 10, 5: 10}, 0},
	} {
		var steps []*Step
		at, begin := timeline.Nanos(0), timeline.Nanos(0)
		for i := range 2*long + 1 {
			length := 10 * phaseMS
			if i == long {
				begin, length = at, c.length*phaseMS
			}
			steps = append(steps, &Step{Start: at, End: at + length})
			at += length
		}
		from, to := begin+c.from*phaseMS, begin+c.to*phaseMS
		divide(steps, []activity.PhaseStretch{
			{Start: 0, End: from, Phase: origin.Optimizer}, {Start: from, End: to, Phase: origin.Evaluation}, {Start: to, End: at, Phase: origin.Loading},
		}, interval)
		other := timeline.Nanos(0)
		for i, s := range steps {
			all := timeline.Nanos(0)
			for _, part := range s.Phases {
				all += part
			}
			if got := s.Phases[origin.Evaluation]; got != c.want[i-long]*phaseMS || all != s.End-s.Start {
				t.Errorf("%s: step %d has %v ms of it, want %d; its phases add up to %v of %v", name, i-long, float64(got)/float64(phaseMS), c.want[i-long], all, s.End-s.Start)
			}
			other += s.Phases[origin.OtherPhase]
		}
		if other != c.other*phaseMS {
			t.Errorf("%s: %v ms of no known phase, want %d", name, float64(other)/float64(phaseMS), c.other)
		}
	}
}

func TestPhasesOfEachEpoch(t *testing.T) {
	rec := plainLoop(true)
	for i := range rec.Marks {
		epoch := i / 6
		rec.Marks[i].Batch.Epoch = &epoch
	}
	d := Run(rec)
	found := make(map[int]map[origin.Phase]PhaseTime)
	for _, p := range d.Phases {
		if p.Epoch == nil {
			continue
		}
		if found[*p.Epoch] == nil {
			found[*p.Epoch] = make(map[origin.Phase]PhaseTime)
		}
		found[*p.Epoch][p.Phase] = p
	}
	if len(found) != 2 {
		t.Fatalf("%d epochs, want 2: %+v", len(found), d.Phases)
	}
	for epoch, steps := range []int{6, 5} {
		forward, save := found[epoch][origin.Forward], found[epoch][origin.Checkpoint]
		if forward.Total != timeline.Nanos(steps)*30*phaseMS || forward.Per == nil || forward.Per.Count != steps {
			t.Errorf("epoch %d: forward %+v, want %d times 30 ms", epoch, forward, steps)
		}
		if save.Total != 100*phaseMS || save.Per == nil || save.Per.Count != 1 {
			t.Errorf("epoch %d: checkpoint %+v, want once 100 ms", epoch, save)
		}
		share := 0.0
		for _, p := range found[epoch] {
			share += p.Share
		}
		if math.Abs(share-1) > 1e-9 {
			t.Errorf("epoch %d: the shares add up to %v", epoch, share)
		}
	}
}

// A loop that changes its parameters itself has gradients, and no optimizer.
func TestATrainingWithoutAnOptimizer(t *testing.T) {
	for file, want := range map[string]bool{"/v/site-packages/torch/optim/sgd.py": false, "/home/me/mine.py": true} {
		rec := plainLoop(false)
		for i := range rec.Frames {
			if f := &rec.Frames[i]; f.Function == "SGD.step" {
				f.File = file
			}
		}
		if d := Run(rec); d.NoOptimizer != want {
			t.Errorf("with %s the training has no optimizer: %v, want %v", file, d.NoOptimizer, want)
		}
	}
}

// A loop of compiled steps that waits for none of them is one stretch, and has steps all the same.
func TestCompiledStepsAreNotKnownSingly(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	id := b.Thread(timeline.Thread{RunsCell: true, Main: true})
	node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "main", File: "/home/me/train.py", Line: 10}))
	traced := node
	for _, f := range []timeline.Frame{{Function: "_cpp_pjit.<locals>.cache_miss", File: "jax/_src/pjit.py"}, {Function: "step", File: "/home/me/train.py"}, {Function: "value_and_grad.<locals>.value_and_grad_f", File: "jax/_src/api.py"}} {
		if f.Line = 1; f.Function != "step" {
			f.File = "/v/site-packages/" + f.File
		}
		traced = b.Child(traced, b.Frame(f))
	}
	b.Set(id, 0, traced, timeline.StatePython, false)
	b.Set(id, 100*phaseMS, node, timeline.StateWaiting, false)
	d := Run(b.Snapshot(500 * phaseMS))
	if p := phaseOf(t, &d, origin.CompiledStep); p.Total != 400*phaseMS || !d.NoOptimizer {
		t.Errorf("compiled steps %+v, and that single ones are not known: %v", p, d.NoOptimizer)
	}
}

func TestPhasesWithoutSteps(t *testing.T) {
	rec := plainLoop(false)
	d := Run(rec)
	if p := phaseOf(t, &d, origin.Backward); p.Total != 480*phaseMS || p.Share < 0.3 || p.Share > 0.35 {
		t.Errorf("backward: %+v", p)
	}
}

// A training that the program runs in a thread, which its main thread waits for, has the phases of that thread.
func TestPhasesOfATrainingInAThread(t *testing.T) {
	inMain, rec := Run(plainLoop(true)), plainLoop(true)
	trains := rec.Threads[0]
	trains.Main, trains.RunsCell, trains.Name = false, false, "train"
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Set(b.Thread(timeline.Thread{RunsCell: true, Main: true}), 0, timeline.RootNode, timeline.StateWaiting, false)
	rec.Threads = append(b.Snapshot(rec.Duration).Threads, trains)
	inThread := Run(rec)
	if len(inThread.Phases) == 0 || len(inThread.Phases) != len(inMain.Phases) || len(inThread.Slow) != 1 || inThread.Slow[0].Place.Line != 16 {
		t.Fatalf("phases %+v, slow steps %+v", inThread.Phases, inThread.Slow)
	}
	for i, p := range inThread.Phases {
		if want := inMain.Phases[i]; p.Phase != want.Phase || p.Total != want.Total {
			t.Errorf("%v: %v, want %v: %v", p.Phase, p.Total, want.Phase, want.Total)
		}
	}
}

// A notebook cell that only loads data, or saves something, is no training.
func TestThereAreNoPhasesWithoutATraining(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	id := b.Thread(timeline.Thread{RunsCell: true, Main: true})
	b.Set(id, 0, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "save", File: "/v/site-packages/torch/serialization.py"})), timeline.StatePython, false)
	if d := Run(b.Snapshot(50 * phaseMS)); len(d.Phases) != 0 {
		t.Errorf("phases %+v", d.Phases)
	}
}

// A function that is called evaluate and trains is no evaluation.
func TestAFunctionThatTrainsIsNoEvaluation(t *testing.T) {
	rec := plainLoop(true)
	for i := range rec.Frames {
		if rec.Frames[i].Function == "main" {
			rec.Frames[i].Function = "evaluate"
		}
	}
	d := Run(rec)
	for _, p := range d.Phases {
		if p.Phase == origin.Evaluation {
			t.Errorf("evaluation: %+v", p)
		}
	}
	phaseOf(t, &d, origin.Forward)
}

// Batches of two workers that come in pairs make every second step long, which is then no slow one.
func TestWhatIsFrequentIsNotSlow(t *testing.T) {
	d := Run(growing(0, func(i int) timeline.Nanos { return timeline.Nanos(i%2) * 300 * ms }).record())
	if len(d.Slow) > 0 {
		t.Errorf("%+v", d.Slow)
	}
	d = Run(growing(0, func(i int) timeline.Nanos { return timeline.Nanos(i%10/9) * 300 * ms }).record())
	if len(d.Slow) != 1 || len(d.Slow[0].Steps) != 10 {
		t.Errorf("one in ten: %+v", d.Slow)
	}
	d = Run(growing(0, func(i int) timeline.Nanos { return timeline.Nanos(i%5/3)*300*ms + timeline.Nanos(i%10/9)*500*ms }).record())
	if len(d.Slow) != 1 || len(d.Slow[0].Steps) != 10 {
		t.Errorf("one in ten beside four that are longer, too: %+v", d.Slow)
	}
}

// Of the first steps no stack showed the model: what they did is no start-up, which the first step of all had ended.
func TestNothingOfAStepIsStartUp(t *testing.T) {
	for _, script := range []bool{true, false} {
		s := growing(0, nil)
		s.script = script
		for i := range 4 {
			s.acts[i] = act{s.acts[i].length, 5, "", "", timeline.StatePython, 0}
		}
		rec := s.record()
		if script {
			rec.Target.Argv, rec.Sources = []string{"python", cellFile}, nil
		}
		d := Run(rec)
		if d.Steps[0].Phases == nil {
			t.Fatal("no phases")
		}
		for i, want := range map[int]timeline.Nanos{0: 0, 1: 0} {
			if i == 0 && !script { // in a cell it has all that came before
				want = 100 * ms
			}
			if got := d.Steps[i].Phases[origin.StartUp]; got != want {
				t.Errorf("script: %t, step %d: %v of start-up, want %v", script, i, got, want)
			}
		}
		sum := timeline.Nanos(0)
		for _, p := range d.Phases {
			sum += p.Total
		}
		if sum != rec.Duration {
			t.Errorf("the phases are %v of %v", sum, rec.Duration)
		}
	}
}

// The steps are those of one optimizer, in line 4; another one steps in line 6 of each.
func TestAnotherOptimizerIsNamed(t *testing.T) {
	var acts []act
	var marks []timeline.Mark
	step := func(line int) act {
		return act{10 * ms, line, site + "torch/optim/adam.py", "Adam.step", timeline.StateNative, 0}
	}
	at := timeline.Nanos(0)
	for range 20 {
		acts = append(acts, act{20 * ms, 6, site + "torch/_tensor.py", "Tensor.backward", timeline.StateNative, 0}, step(6), step(4))
		marks = append(marks, timeline.Mark{Kind: "step", Start: at, End: at + 40*ms, Source: timeline.StepOptimizer})
		at += 40 * ms
	}
	for other, want := range map[string]*Optimizers{"": nil, "SGD": {Place: activity.Place{File: cellFile, Line: 4}, Other: "SGD", At: activity.Place{File: cellFile, Line: 6}}} {
		s := scene{acts: acts, change: func(b *timeline.Builder) {
			for _, m := range marks {
				b.Mark(m)
			}
			if other != "" {
				b.Mark(timeline.Mark{Kind: "optimizer", Name: other, Start: 30 * ms, End: 30 * ms})
			}
		}}
		if d := Run(s.record()); len(d.Steps) != 20 || !reflect.DeepEqual(d.Optimizers, want) {
			t.Errorf("%q: %d steps, %+v", other, len(d.Steps), d.Optimizers)
		}
	}
}

func TestPhasesAreKnownTheBetterTheMoreOftenStacksAreRead(t *testing.T) {
	second := timeline.Nanos(1e9)
	training := []activity.PhaseStretch{{Start: 0, End: 7 * second, Phase: origin.StartUp}, {Start: 7 * second, End: 8 * second, Phase: origin.Forward}}
	for _, c := range []struct {
		what     string
		steps    int
		interval timeline.Nanos
		want     float64
	}{
		{"no steps, each ms", 0, second / 1000, 0.0316},
		{"steps of 16 ms, each ms", 60, second / 1000, 0.0063},
		{"steps of 16 ms, each 10 ms", 60, second / 100, 0.063},
		{"steps that are shorter than the interval", 1000, second / 100, 0.1},
		{"read once", 10, 2 * second, 1},
	} {
		if got := phasesWithin(training, c.steps, c.interval); math.Abs(got-c.want) > 0.01*c.want {
			t.Errorf("%s: within %.4f, want %.4f", c.what, got, c.want)
		}
	}
}
