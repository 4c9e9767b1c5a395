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
	trendNoise = 4 // standard errors by which the last part must be slower than the first
	// grownShare is the growth of resident memory that is said beside a trend, of what it was at first.
	grownShare = 0.1
)

// stepsSlowDown is of a training whose steps become longer: the last quarter's median is longer than the first one's,
// beyond noise, and those between are not shorter than the first. How long steps would have taken had they stayed
// as at first is what is lost.
func stepsSlowDown(e *evidence) measured {
	timed := e.timedSteps()
	if len(timed) < trendSteps || e.stacks.OthersTakeCPUs && e.bystanders.AllBusy(e.always()) {
		return nothing
	}
	steps := timed[len(timed)/warmUp:]
	size := len(steps) / parts
	var medians [parts]float64
	for i := range parts {
		medians[i] = medianOf(steps[i*size : (i+1)*size])
		if medians[i] < medians[0] {
			return nothing
		}
	}
	first, last := steps[:size], steps[len(steps)-size:]
	noise := math.Hypot(medianError(first), medianError(last))
	if medians[parts-1] < trendBy*medians[0] || medians[parts-1]-medians[0] < trendNoise*noise {
		return nothing
	}
	f := Finding{Against: medians[parts-1] / medians[0], Count: int64(len(timed)), Cores: math.NaN()}
	for _, s := range steps[size:] {
		f.Time += max(s.End-s.Start-timeline.Nanos(medians[0]), 0)
		f.Evidence = append(f.Evidence, timeline.Between(s.Start, s.End))
	}
	f.Cost = f.Time
	f.Name, f.Place = e.slowedIn(first, last)
	f.Bytes = e.grownBetween(first, last)
	return e.of(f)
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

func lengths(steps []*Step) []float64 {
	list := make([]float64, len(steps))
	for i, s := range steps {
		list[i] = float64(s.End - s.Start)
	}
	slices.Sort(list)
	return list
}

func medianOf(steps []*Step) float64 { return stat.Quantile(0.5, stat.Empirical, lengths(steps), nil) }

// medianError is the standard error of a median, by the quartiles of the lengths, which outliers do not move.
func medianError(steps []*Step) float64 {
	all := lengths(steps)
	quartiles := stat.Quantile(0.75, stat.Empirical, all, nil) - stat.Quantile(0.25, stat.Empirical, all, nil)
	const normal = 1.349 // quartiles of a normal distribution, in standard deviations
	return 1.253 * quartiles / normal / math.Sqrt(float64(len(all)))
}

// slowedIn is the phase that has most of what the last steps are longer than the first ones, and the line it was in;
// neither where no phase has half of it.
func (e *evidence) slowedIn(first, last []*Step) (phase string, at activity.Place) {
	if first[0].Phases == nil || last[0].Phases == nil {
		return "", at
	}
	mean := func(steps []*Step) (sum PhaseTimes, all timeline.Nanos) {
		for _, s := range steps {
			for i, time := range s.Phases {
				sum[i] += time / timeline.Nanos(len(steps))
			}
			all += (s.End - s.Start) / timeline.Nanos(len(steps))
		}
		return sum, all
	}
	usual, before := mean(first)
	now, after := mean(last)
	which, extra := now.excess(usual)
	if which == origin.OtherPhase || float64(extra) < leastReason*float64(after-before) {
		return "", at
	}
	return which.String(), e.stacks.ChargedIn(e.main.Thread, which, timeline.Between(last[0].Start, last[len(last)-1].End))
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
