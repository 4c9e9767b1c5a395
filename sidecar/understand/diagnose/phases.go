package diagnose

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// PhaseTimes are the times of one process by phases of its training.
type PhaseTimes [origin.NumPhases]timeline.Nanos

// PhaseTime is what one phase of a process's training took.
type PhaseTime struct {
	Process int  // index in Recording.Processes
	Epoch   *int // whose steps alone it is of; nil: of all the recording
	Phase   origin.Phase
	Total   timeline.Nanos
	Share   float64 // of the time after start-up; of start-up itself it is NaN
	// Per is of the steps that had the phase, or where no steps are known of its stretches. It is
	// nil where which steps had it is not known: it is too short for how often the stacks were read.
	Per  *Distribution
	Mean timeline.Nanos // of Per, and without it of all steps; -1: not known, or in no step
	Idle timeline.Nanos // of GPUs, mean over those that the process used; -1: none is known
}

// Distribution is of lengths.
type Distribution struct {
	Count         int
	P50, P95, Max timeline.Nanos
}

// SlowSteps are steps of a process that were longer than others in the same phase first of all.
type SlowSteps struct {
	Process int
	Phase   origin.Phase   // that had more of what they were longer than any other
	Place   activity.Place // of the user's own, most of it; may be none
	Steps   []int          // which, counted from 0 among the process's
	Extra   timeline.Nanos // by how much the phase was longer than in the median step, all together
}

const (
	// LeastReads is how many sampling intervals a phase must last in a step, or a step's excess: what is
	// shorter is right in sum, not each time.
	LeastReads = 3
	// nearlyAll is the share of the steps, or of those that a phase was seen in, which stands for all of them.
	nearlyAll = 0.9
	// SlowBy is from what multiple of the median on a step is slow.
	SlowBy = 1.5
	// leastReason is the part of a slow step's excess that a phase must explain: a step with evaluation, a checkpoint and a
	// log entry has no phase that explains most of it.
	leastReason = 0.25
	maxReasons  = 8
)

// phases fills the diagnosis with the phases of the processes that train: of those whose steps are
// known, of ranks, and else of the one that runs the program.
func phases(s *activity.Stacks, used []*gpuidle.Device, ranks []*timeline.Thread, d *Diagnosis) {
	for _, t := range trainers(s, ranks, d.Steps) {
		t, stretches := whoTrains(s, t)
		if len(stretches) == 0 {
			continue
		}
		devices := devicesOf(s.Rec, used, t.PID)
		if len(devices) == 0 && len(ranks) < 2 {
			devices = used
		}
		var steps []*Step
		for i := range d.Steps {
			if d.Steps[i].Process == t.Process {
				steps = append(steps, &d.Steps[i])
			}
		}
		if len(steps) > 0 {
			stretches = startedUp(stretches, begun(s.Rec, steps[0]))
		}
		interval := timeline.Nanos(s.ReadEvery(t.Process))
		divide(steps, stretches, interval)
		d.NoOptimizer = d.NoOptimizer || len(d.Steps) == 0 && !d.StepsUnknown && withoutOptimizer(s, stretches)
		d.PhasesWithin = max(d.PhasesWithin, phasesWithin(stretches, len(steps), interval))
		d.Phases = append(d.Phases, phaseTimes(t.Process, stretches, steps, devices, interval)...)
		d.Phases = append(d.Phases, epochTimes(t.Process, steps, interval)...)
		d.Slow = append(d.Slow, slowSteps(s, t, steps, interval)...)
	}
}

// phasesWithin is the part of a training's time that a phase may be off: twice the standard deviation of what readings show of it.
//
// Where steps are shorter than the interval each reading is a draw of its own. Where they are longer, each of the two bounds of a phase
// in a step lies anywhere between two readings, which is the less the longer a step is.
func phasesWithin(stretches []activity.PhaseStretch, steps int, interval timeline.Nanos) float64 {
	readings := float64(trainedFor(stretches)) / float64(interval)
	if readings < 1 {
		return 1
	}
	within := 1 / math.Sqrt(readings) // of a phase with half of the time
	if steps > 0 {
		within = min(within, 2*math.Sqrt(float64(2*steps)/12)/readings)
	}
	return within
}

// withoutOptimizer reports whether gradients were computed again and again, as in compiled steps, which may be one stretch, and no
// optimizer of torch was seen to step.
func withoutOptimizer(s *activity.Stacks, stretches []activity.PhaseStretch) bool {
	passes := 0
	for _, p := range stretches {
		switch p.Phase {
		case origin.Backward:
			passes++
		case origin.CompiledStep:
			passes += leastSteps
		}
	}
	return passes >= leastSteps && !slices.ContainsFunc(s.Optimizers(), func(name string) bool { return name != "" })
}

// trainers are the main threads of the processes that may train, the leading one first.
func trainers(s *activity.Stacks, ranks []*timeline.Thread, steps []Step) (list []*timeline.Thread) {
	add := func(t *timeline.Thread) {
		if !slices.ContainsFunc(list, func(known *timeline.Thread) bool { return known.Process == t.Process }) {
			list = append(list, t)
		}
	}
	runs := s.About.Runs
	if len(steps) > 0 && (len(runs) == 0 || s.Rec.Threads[runs[0]].Process != steps[0].Process) {
		for i := range s.Rec.Threads {
			if t := &s.Rec.Threads[i]; t.Main && t.Process == steps[0].Process && len(t.Spans) > 0 {
				add(t)
			}
		}
	}
	for _, t := range ranks {
		add(t)
	}
	if len(list) == 0 && len(runs) > 0 {
		add(&s.Rec.Threads[runs[0]])
	}
	return list
}

// whoTrains is the thread of a process that trains, with its phases: the given one, and where no training was seen of that, as of a
// main thread that only waits for the one it has started, the one that trained for longest.
func whoTrains(s *activity.Stacks, given *timeline.Thread) (trains *timeline.Thread, stretches []activity.PhaseStretch) {
	if stretches = s.Phases(given); len(stretches) > 0 {
		return given, stretches
	}
	longest := timeline.Nanos(0)
	for i := range s.Rec.Threads {
		t := &s.Rec.Threads[i]
		if t == given || t.Process != given.Process || t.Internal {
			continue
		}
		list := s.Phases(t)
		if length := trainedFor(list); length > longest {
			longest, trains, stretches = length, t, list
		}
	}
	return trains, stretches
}

// trainedFor is the time of phases without start-up.
func trainedFor(stretches []activity.PhaseStretch) (sum timeline.Nanos) {
	for _, p := range stretches {
		if p.Phase != origin.StartUp {
			sum += p.End - p.Start
		}
	}
	return sum
}

// begun is from when on a training has started up, whose first known step it is: that is from its begin on, as another step, which
// is none of the report, had ended then; where it is the first of all, as in a cell or by a call, from its end on.
func begun(rec *timeline.Recording, first *Step) timeline.Nanos {
	if first.Source == timeline.StepSampled || first.Source == timeline.StepOptimizer && rec.Target.Cell == nil {
		return first.Start
	}
	return first.End
}

// startedUp are phases without a start-up from a time on: where the first steps are short no stack may have shown that it was over.
func startedUp(stretches []activity.PhaseStretch, from timeline.Nanos) (list []activity.PhaseStretch) {
	for _, p := range stretches {
		if p.Phase == origin.StartUp && p.End > from {
			if p.Start < from {
				list = append(list, activity.PhaseStretch{Start: p.Start, End: from, Phase: p.Phase})
			}
			p.Start, p.Phase = max(p.Start, from), origin.OtherPhase
		}
		list = append(list, p)
	}
	return list
}

// divide divides steps, which are in order of time, by the phases.
func divide(steps []*Step, stretches []activity.PhaseStretch, interval timeline.Nanos) {
	spans := make([]timeline.Interval, len(steps))
	for i, s := range steps {
		spans[i] = timeline.Between(s.Start, s.End)
		s.Phases = &PhaseTimes{}
	}
	for _, p := range stretches {
		timeline.Overlap(spans, p.Start, p.End, func(i int, part timeline.Nanos) { steps[i].Phases[p.Phase] += part })
	}
	for _, p := range stretches {
		if betweenSteps(p.Phase) {
			gather(steps, spans, p, interval)
		}
	}
}

// betweenSteps reports whether a phase begins and ends between two steps of an optimizer, so that one step has all of it.
func betweenSteps(p origin.Phase) bool { return p == origin.Evaluation || p == origin.Checkpoint }

// sliver is the part of an evaluation, or of a checkpoint, that says nothing about the step that it seems to be in.
const sliver = 0.1

// gather puts an evaluation or a checkpoint into the step that it was in. Where a step ends is known better than where a phase
// begins, by two reads: of the steps that are so near to it, it was in the one that shares most time with it. What it has of
// other steps is exchanged for what that one has of other phases. What finds no room there is right in sum and stays, but for a
// sliver of it, which is of no known phase.
func gather(steps []*Step, spans []timeline.Interval, p activity.PhaseStretch, interval timeline.Nanos) {
	near, length := 2*interval, p.End-p.Start
	home, most, outside := -1, timeline.Nanos(0), length+2*near
	timeline.Overlap(spans, p.Start-near, p.End+near, func(i int, part timeline.Nanos) {
		if outside -= part; part > most {
			home, most = i, part
		}
	})
	if outside > most {
		home = -1
	}
	var before, behind timeline.Nanos // what it has of steps before that one, and behind it
	timeline.Overlap(spans, p.Start, p.End, func(i int, part timeline.Nanos) {
		switch {
		case i < home:
			before += part
		case i > home:
			behind += part
		}
	})
	timeline.Overlap(spans, p.Start, p.End, func(i int, part timeline.Nanos) {
		if i == home || i < home && before > near || i > home && behind > near { // else the program's steps are within it
			return
		}
		from := steps[i].Phases
		if home >= 0 {
			part -= from.exchange(steps[home].Phases, p.Phase, part)
		}
		if float64(part) <= sliver*float64(length) {
			from[p.Phase] -= part
			from[origin.OtherPhase] += part
		}
	})
}

// exchange gives so much of a phase to another step, for as much of what that one has of other phases, and returns how much it took.
func (p *PhaseTimes) exchange(with *PhaseTimes, phase origin.Phase, amount timeline.Nanos) (given timeline.Nanos) {
	for given < amount {
		other := -1
		for i, time := range with {
			if i != int(phase) && time > 0 && !betweenSteps(origin.Phase(i)) && (other < 0 || time > with[other]) {
				other = i
			}
		}
		if other < 0 {
			break
		}
		part := min(amount-given, with[other])
		with[other], p[other] = with[other]-part, p[other]+part
		with[phase], p[phase] = with[phase]+part, p[phase]-part
		given += part
	}
	return given
}

// phaseTimes sums the phases up, those with most time first.
func phaseTimes(process int, stretches []activity.PhaseStretch, steps []*Step, devices []*gpuidle.Device, interval timeline.Nanos) (list []PhaseTime) {
	var times [origin.NumPhases][]timeline.Interval
	for _, p := range stretches {
		times[p.Phase] = append(times[p.Phase], timeline.Between(p.Start, p.End))
	}
	training := trainedFor(stretches)
	for phase, where := range times {
		if len(where) == 0 {
			continue
		}
		p := PhaseTime{Process: process, Phase: origin.Phase(phase), Total: timeline.Total(where), Idle: idleIn(where, devices)}
		if p.Share = math.NaN(); p.Phase != origin.StartUp {
			p.Share = float64(p.Total) / float64(training)
		}
		each := inSteps(p.Phase, steps)
		if len(steps) == 0 {
			for _, i := range where {
				each = append(each, float64(i.Nanos()))
			}
		}
		p.perStep(each, len(steps), interval)
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b PhaseTime) int { return cmp.Compare(b.Total, a.Total) })
	return list
}

// inSteps is how long a phase took in each of the steps that had it.
func inSteps(phase origin.Phase, steps []*Step) (each []float64) {
	for _, s := range steps {
		if part := s.Phases[phase]; part > 0 {
			each = append(each, float64(part))
		}
	}
	return each
}

// inEachStep are the phases without which there is no step.
var inEachStep = []origin.Phase{origin.Forward, origin.Backward, origin.Optimizer, origin.CompiledStep}

// perStep fills in how long it took each time, of so many steps; without steps each is a stretch.
//
// A short phase is met in some of the steps that have it, and looks long in these. Its length in single steps is given where it lasts
// long enough on average over all steps and was seen in nearly all of them; and where it was long in nearly each step that it was
// seen in, as an evaluation or a checkpoint now and then.
func (p *PhaseTime) perStep(each []float64, steps int, interval timeline.Nanos) {
	slices.Sort(each)
	sum, least := timeline.Nanos(0), LeastReads*interval
	for _, part := range each {
		sum += timeline.Nanos(part)
	}
	always, all := slices.Contains(inEachStep, p.Phase), max(steps, len(each))
	lasts := sum >= least*timeline.Nanos(all) && float64(len(each)) >= nearlyAll*float64(all)
	rare := steps > 0 && !always && len(each) > 0 && each[int((1-nearlyAll)*float64(len(each)))] >= float64(least)
	if lasts && always && steps > 0 { // in the others it was not seen
		each = append(make([]float64, steps-len(each), steps), each...)
	}
	p.Mean = -1
	switch {
	case len(each) > 0 && (lasts || rare):
		p.Per, p.Mean = distribution(each), sum/timeline.Nanos(len(each))
	case steps > 0 && sum > 0:
		p.Mean = sum / timeline.Nanos(steps)
	}
}

// maxEpochs is of how many epochs the phases are told apart.
const maxEpochs = 200

// epochTimes are the phases of the steps of each epoch, as far as the program has numbered them.
func epochTimes(process int, steps []*Step, interval timeline.Nanos) (list []PhaseTime) {
	of := make(map[int][]*Step)
	for _, s := range steps {
		if epoch := s.Batch.Epoch; epoch != nil {
			of[*epoch] = append(of[*epoch], s)
		}
	}
	epochs := slices.Sorted(maps.Keys(of))
	for _, epoch := range epochs[:min(len(epochs), maxEpochs)] {
		var times PhaseTimes
		var all timeline.Nanos
		for _, s := range of[epoch] {
			for phase, part := range s.Phases {
				times[phase] += part
				all += part
			}
		}
		first := len(list)
		for phase, total := range times {
			if total == 0 {
				continue
			}
			p := PhaseTime{Process: process, Epoch: &epoch, Phase: origin.Phase(phase), Total: total, Share: float64(total) / float64(all), Idle: -1}
			p.perStep(inSteps(p.Phase, of[epoch]), len(of[epoch]), interval)
			list = append(list, p)
		}
		slices.SortStableFunc(list[first:], func(a, b PhaseTime) int { return cmp.Compare(b.Total, a.Total) })
	}
	return list
}

func distribution(lengths []float64) *Distribution {
	slices.Sort(lengths)
	at := func(p float64) timeline.Nanos { return timeline.Nanos(stat.Quantile(p, stat.Empirical, lengths, nil)) }
	return &Distribution{Count: len(lengths), P50: at(0.5), P95: at(0.95), Max: at(1)}
}

// idleIn is how long devices were idle in some intervals, on average over them.
func idleIn(where []timeline.Interval, devices []*gpuidle.Device) timeline.Nanos {
	var known, idle timeline.Nanos
	for _, d := range devices {
		d.During(where, func(_ int, measured, unused timeline.Nanos) {
			known += measured
			idle += unused
		})
	}
	if known == 0 {
		return -1
	}
	return idle / timeline.Nanos(len(devices))
}

// tooMany is the share of a training's steps that are no slow ones: what is slow is rare. A loader with two workers may hand
// out batches in pairs; and while other programs have the CPUs short steps are of very different lengths. A slow one is slow beside these.
const tooMany = 1. / 3

// slowSteps says what the slow ones of a process's steps had that the others of the same training had not.
func slowSteps(s *activity.Stacks, t *timeline.Thread, steps []*Step, interval timeline.Nanos) (list []SlowSteps) {
	number := make(map[*Step]int, len(steps))
	for i, step := range steps {
		number[step] = i
	}
	type reason struct {
		phase origin.Phase
		place activity.Place
	}
	index := make(map[reason]int)
	for _, training := range trainings(steps) {
		slow, length, usual := slowOf(training, interval)
		for _, step := range slow {
			phase, extra := step.Phases.excess(usual)
			if float64(extra) < leastReason*float64(step.End-step.Start-length) {
				continue
			}
			r := reason{phase, s.ChargedIn(t, phase, timeline.Between(step.Start, step.End))}
			at, known := index[r]
			if !known {
				at = len(list)
				index[r] = at
				list = append(list, SlowSteps{Process: t.Process, Phase: r.phase, Place: r.place})
			}
			list[at].Steps, list[at].Extra = append(list[at].Steps, number[step]), list[at].Extra+extra
		}
	}
	slices.SortStableFunc(list, func(a, b SlowSteps) int { return cmp.Compare(b.Extra, a.Extra) })
	return list[:min(len(list), maxReasons)]
}

// slowOf are the slow steps of a training, and how long its median step and the phases of it are.
func slowOf(steps []*Step, interval timeline.Nanos) (slow []*Step, length timeline.Nanos, usual PhaseTimes) {
	if len(steps) < leastSteps {
		return nil, 0, usual
	}
	middle := func(of func(*Step) timeline.Nanos) timeline.Nanos {
		all := make([]timeline.Nanos, len(steps))
		for i, step := range steps {
			all[i] = of(step)
		}
		return timeline.Median(all)
	}
	length = middle(func(s *Step) timeline.Nanos { return s.End - s.Start })
	for phase := range usual {
		usual[phase] = middle(func(s *Step) timeline.Nanos { return s.Phases[phase] })
	}
	least := SlowBy * float64(length)
	if often := stat.Quantile(1-tooMany, stat.Empirical, sorted(steps, (*Step).length), nil); often >= least {
		least = SlowBy * often
	}
	for _, step := range steps {
		if took := step.End - step.Start; float64(took) >= least && took-length >= LeastReads*interval {
			slow = append(slow, step)
		}
	}
	return slow, length, usual
}

// excess is the phase that took longest compared with what is usual, and by how much.
func (p *PhaseTimes) excess(usual PhaseTimes) (phase origin.Phase, extra timeline.Nanos) {
	for i, time := range p {
		if more := time - usual[i]; more > extra {
			phase, extra = origin.Phase(i), more
		}
	}
	return phase, extra
}
