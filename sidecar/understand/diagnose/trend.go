package diagnose

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// A trend is looked for in trainings of so many steps; the first tenth warm up and are left out.
const (
	trendSteps = 60
	warmUp     = 10 // the first step of this part
	parts      = 4  // that the others are divided into
	trendBy    = 1.2
	// trendByComputing is where other programs have the CPUs: they make computing slower, too, as they share its caches.
	trendByComputing = 1.5
	trendNoise       = 4 // standard errors by which the last part must be slower than the first
	// grownShare is the growth of resident memory that is said beside a trend, of what it was at first.
	grownShare = 0.1
	// growthReason is the part of what steps became longer by that a phase, and a line, must have to be named.
	growthReason = 0.5
)

// stepsSlowDown is of a training whose steps become longer: the last quarter's median is longer than the first one's,
// beyond noise, and those between are not shorter than the first. How long steps would have taken had they stayed
// as at first is what is lost, by the medians: what single steps took longer, as a checkpoint does, is no part of it.
// Of several trainings the one that took longest is judged. While other programs have the CPUs it is the computing in steps.
func stepsSlowDown(e *evidence) measured {
	timed := longestTraining(e.timedSteps())
	if len(timed) < trendSteps {
		return nothing
	}
	by, length := trendBy, (*Step).length
	crowded := e.stacks.OthersTakeCPUs && e.bystanders.AllBusy(e.always())
	if crowded {
		by, length = trendByComputing, e.computingIn(timed)
	}
	steps := timed[len(timed)/warmUp:]
	size := len(steps) / parts
	var medians [parts]float64
	for i := range parts {
		medians[i] = medianOf(steps[i*size:(i+1)*size], length)
		if medians[i] < medians[0] {
			return nothing
		}
	}
	first, last := steps[:size], steps[len(steps)-size:]
	medians[parts-1] = medianOf(last, length)
	noise := math.Hypot(medianError(first, length), medianError(last, length))
	if !(medians[0] > 0) || medians[parts-1] < by*medians[0] || medians[parts-1]-medians[0] < trendNoise*noise || !worked(first, last, by) {
		return nothing
	}
	f := Finding{Against: medians[parts-1] / medians[0], Count: int64(len(timed)), Computed: crowded, Cores: math.NaN()}
	for _, m := range medians[1:] {
		f.Time += timeline.Nanos(max(m-medians[0], 0) * float64(size))
	}
	for _, s := range steps[size:] {
		f.Evidence = append(f.Evidence, timeline.Between(s.Start, s.End))
	}
	f.Cost = f.Time
	f.Name, f.Place = e.slowedIn(first, last)
	f.Bytes = e.grownBetween(first, last)
	return e.of(f)
}

const (
	// sameBatches is how many steps with another number of samples, and all with the same one, are of another training;
	// the last batch of an epoch is alone.
	sameBatches = 8
	// longPause is from what multiple of the median step on a step may have the setting up of another training in it …
	longPause = 10
	// … which it has where so many steps after it are of another length than those before.
	aroundPause = 15
)

// trainings are the stretches of steps that are of one training each: one ends where another optimizer steps, where the
// samples of steps change for good, and where a long step is followed by steps of another length. That step is in neither if what sets
// the next training up is in it; else, as with an evaluation, it is the last one of the training before.
func trainings(steps []*Step) (list [][]*Step) {
	if len(steps) == 0 {
		return nil
	}
	usual := medianOf(steps, (*Step).length)
	begin, changes := 0, batchesChange(steps)
	for i, s := range steps {
		if i == begin {
			continue
		}
		paused := s.length() >= longPause*usual && otherLevel(steps[max(i-aroundPause, begin):i], steps[i+1:min(i+1+aroundPause, len(steps))])
		if s.Anew || changes[i] || paused {
			end := i
			if paused && !s.setsUp() {
				end++
			}
			list = append(list, steps[begin:end])
			if begin = i; paused {
				begin++
			}
		}
	}
	return append(list, steps[begin:])
}

// setsUp reports whether most of a step may have set a training up, which none of the phases of a step does.
func (s *Step) setsUp() bool {
	if s.Phases == nil {
		return true
	}
	most, _ := s.Phases.excess(PhaseTimes{})
	return slices.Contains([]origin.Phase{origin.OtherPhase, origin.StartUp, origin.Transfer}, most)
}

// longestTraining is the one that took most time.
func longestTraining(steps []*Step) (longest []*Step) {
	most := timeline.Nanos(0)
	for _, part := range trainings(steps) {
		time := timeline.Nanos(0)
		for _, s := range part {
			time += s.End - s.Start
		}
		if time > most {
			longest, most = part, time
		}
	}
	return longest
}

// batchesChange are the steps from which on steps have another number of samples than before.
func batchesChange(steps []*Step) map[int]bool {
	at := make(map[int]bool)
	var now, next int64
	from, count := 0, 0
	for i, s := range steps {
		switch n := s.Batch.Samples; {
		case n == 0:
		case now == 0:
			now = n
		case n == now:
			count = 0
		case count > 0 && n == next:
			if count++; count == sameBatches {
				at[from], now, count = true, next, 0
			}
		default:
			next, from, count = n, i, 1
		}
	}
	return at
}

// otherLevel reports whether steps are of another length than those before, beyond noise: short ones differ by more each time.
func otherLevel(before, after []*Step) bool {
	if len(before) < aroundPause || len(after) < aroundPause {
		return false
	}
	a, b := medianOf(before, (*Step).length), medianOf(after, (*Step).length)
	noise := math.Hypot(medianError(before, (*Step).length), medianError(after, (*Step).length))
	return max(a, b) >= trendBy*min(a, b) && math.Abs(a-b) >= trendNoise*noise
}

// worked reports that steps do not just have more to do: where it is known how much that was, what they took for a sample,
// or a token, is longer as well.
func worked(first, last []*Step, by float64) bool {
	for _, amount := range []func(*Step) int64{
		func(s *Step) int64 { return s.Batch.Tokens },
		func(s *Step) int64 { return s.Batch.Samples },
	} {
		var known [2][]*Step
		for i, steps := range [][]*Step{first, last} {
			for _, s := range steps {
				if amount(s) > 0 {
					known[i] = append(known[i], s)
				}
			}
		}
		if 2*len(known[0]) < len(first) || 2*len(known[1]) < len(last) {
			continue
		}
		each := func(s *Step) float64 { return s.length() / float64(amount(s)) }
		return medianOf(known[1], each) >= by*medianOf(known[0], each)
	}
	return true
}

// computingIn is for how long the main thread computed in each of some steps.
func (e *evidence) computingIn(steps []*Step) func(*Step) float64 {
	spans := make([]timeline.Interval, len(steps))
	for i, s := range steps {
		spans[i] = timeline.Between(s.Start, s.End)
	}
	times := make(map[*Step]float64, len(steps))
	for _, span := range e.main.Thread.Spans {
		if span.State.Computes() {
			timeline.Overlap(spans, span.Start, span.End, func(i int, part timeline.Nanos) { times[steps[i]] += float64(part) })
		}
	}
	return func(s *Step) float64 { return times[s] }
}

// timedSteps are the steps of the process in question whose ends are known by marks, not by samples.
func (e *evidence) timedSteps() (list []*Step) {
	if e.main.Thread == nil {
		return nil
	}
	for i := range e.diagnosis.Steps {
		if s := &e.diagnosis.Steps[i]; s.Process == e.main.Process && (s.Source == timeline.StepMarked || s.Source == timeline.StepOptimizer) {
			list = append(list, s)
		}
	}
	return list
}

func (s *Step) length() float64 { return float64(s.End - s.Start) }

func sorted(steps []*Step, of func(*Step) float64) []float64 {
	list := make([]float64, len(steps))
	for i, s := range steps {
		list[i] = of(s)
	}
	slices.Sort(list)
	return list
}

func medianOf(steps []*Step, of func(*Step) float64) float64 {
	return stat.Quantile(0.5, stat.Empirical, sorted(steps, of), nil)
}

// medianError is the standard error of a median, by the quartiles of the figures, which outliers do not move.
func medianError(steps []*Step, of func(*Step) float64) float64 {
	all := sorted(steps, of)
	quartiles := stat.Quantile(0.75, stat.Empirical, all, nil) - stat.Quantile(0.25, stat.Empirical, all, nil)
	const normal = 1.349 // quartiles of a normal distribution, in standard deviations
	return 1.253 * quartiles / normal / math.Sqrt(float64(len(all)))
}

// slowedIn is the phase that has most of what the last steps are longer than the first ones, and the line of it that has most of
// that; no phase where it is the rest, and neither where none has half of it.
func (e *evidence) slowedIn(first, last []*Step) (phase string, at activity.Place) {
	if first[0].Phases == nil || last[0].Phases == nil {
		return "", at
	}
	mean := func(steps []*Step) (sum PhaseTimes, all timeline.Nanos) {
		for _, s := range steps {
			for i, time := range s.Phases {
				sum[i] += time
			}
			all += s.End - s.Start
		}
		for i := range sum {
			sum[i] /= timeline.Nanos(len(steps))
		}
		return sum, all / timeline.Nanos(len(steps))
	}
	usual, before := mean(first)
	now, after := mean(last)
	which, extra := now.excess(usual)
	if float64(extra) < growthReason*float64(after-before) {
		return "", at
	}
	in := func(steps []*Step) timeline.Interval {
		return timeline.Between(steps[0].Start, steps[len(steps)-1].End)
	}
	grown := e.stacks.TimesIn(e.main.Thread, which, in(last))
	for place, time := range e.stacks.TimesIn(e.main.Thread, which, in(first)) {
		grown[place] -= time
	}
	at = activity.MostOf(grown)
	if float64(grown[at]) < growthReason*float64(extra)*float64(len(last)) {
		at = activity.Place{}
	}
	if which == origin.OtherPhase {
		return "", at
	}
	return which.String(), at
}

// grownBetween is by how much resident memory grew between two stretches of steps; 0 where that is not worth a word.
func (e *evidence) grownBetween(first, last []*Step) int64 {
	t := e.stacks.Track("rss")
	if t == nil {
		return 0
	}
	mean := func(steps []*Step) float64 {
		var values []float64
		for _, p := range t.Points {
			if p.At > steps[0].Start && p.At <= steps[len(steps)-1].End {
				values = append(values, p.Value)
			}
		}
		return stat.Mean(values, nil)
	}
	before, after := mean(first), mean(last)
	if !(after-before >= grownShare*before) {
		return 0
	}
	return int64(after - before)
}
