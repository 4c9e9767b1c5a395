package gpuidle

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// level is a stretch of assumed activity of a device, 0..1.
type level struct {
	start, end timeline.Nanos
	activity   float64
}

// launchQueue describes a device as a queue: each host state launches an amount
// of work, the device works it off in order, and some states wait until nothing
// is left. It fits asynchronous devices whose work does not grow when the host
// dawdles, where a rate per state is off by some points.
type launchQueue struct {
	work     []float64 // column → device time launched: ns per visit, or ns per ns of host time
	perVisit bool
	drains   []bool // column → the host waits there until the queue is empty
}

// visit is a stay of the host in one column of a model.
type visit struct {
	start, end timeline.Nanos
	column     int
}

// visits joins a host's stretches by column. What is in the shared column
// for a moment is counted to the visit it interrupts.
func (u *unknowns) visits(h *activity.History) []visit {
	const moment = timeline.Nanos(3e6)
	var out []visit
	for _, s := range h.Stretches {
		c := u.of[s.State]
		if n := len(out); n > 0 && (out[n-1].column == c || c == u.shared && s.End-s.Start < moment) {
			out[n-1].end = s.End
			continue
		}
		out = append(out, visit{s.Start, s.End, c})
	}
	return out
}

// levels runs the queue over the visits.
func (q *launchQueue) levels(list []visit, out []level) []level {
	queued := 0.0
	for _, v := range list {
		length := float64(v.end - v.start)
		if q.drains[v.column] {
			out = append(out, level{v.start, v.end, 1})
			queued = 0
			continue
		}
		rate := q.work[v.column]
		if q.perVisit {
			rate /= length
		}
		if queued+(rate-1)*length >= 0 { // never empty
			out = append(out, level{v.start, v.end, 1})
			queued += (rate - 1) * length
			continue
		}
		empty := v.start + timeline.Nanos(queued/(1-rate))
		if empty > v.start {
			out = append(out, level{v.start, empty, 1})
		}
		if empty < v.end {
			out = append(out, level{empty, v.end, rate})
		}
		queued = 0
	}
	return out
}

// meanLevels calls see with each window's mean over the levels.
func meanLevels(levels []level, windows []window, see func(w window, mean float64)) {
	next := 0
	for _, w := range windows {
		for next < len(levels) && levels[next].end <= w.from {
			next++
		}
		sum := 0.0
		for i := next; i < len(levels) && levels[i].start < w.at; i++ {
			sum += levels[i].activity * float64(min(levels[i].end, w.at)-max(levels[i].start, w.from))
		}
		see(w, sum/float64(w.at-w.from))
	}
}

// huber is the loss of one window's error.
func huber(e float64) float64 {
	if e = math.Abs(e); e > tolerance {
		return tolerance * (e - tolerance/2)
	}
	return e * e / 2
}

// queueFit is a search for the queue that explains some windows best.
type queueFit struct {
	visits  []visit
	windows []window
	buffer  []level
	budget  int // visits the search may still run over
}

func (f *queueFit) loss(q *launchQueue) float64 {
	f.budget -= len(f.visits)
	f.buffer = q.levels(f.visits, f.buffer[:0])
	sum := 0.0
	meanLevels(f.buffer, f.windows, func(w window, mean float64) { sum += huber(mean - w.busy) })
	return sum
}

const nowhere = -1

// try moves work to a state, from another one or from nowhere, and takes it back
// unless the loss is less than best.
func (f *queueFit) try(q *launchQueue, to, from int, change, best float64) (float64, bool) {
	oldTo, oldFrom := q.work[to], 0.0
	q.work[to] = max(oldTo+change, 0)
	if from != nowhere {
		oldFrom = q.work[from]
		q.work[from] = max(oldFrom-change, 0)
	}
	if loss := f.loss(q); loss < best*(1-1e-6) {
		return loss, true
	}
	q.work[to] = oldTo
	if from != nowhere {
		q.work[from] = oldFrom
	}
	return best, false
}

// search improves one parameter after the other by smaller and smaller steps:
// the loss has kinks wherever the queue runs empty, so there is no slope to use.
func (f *queueFit) search(q *launchQueue, scale []float64) float64 {
	best := f.loss(q)
	for step := 0.5; step > 0.01 && f.budget > 0; {
		improved := false
		for c := range q.work {
			for other := range q.work {
				// More or less work in one state; or some of it in another, where
				// the two come one after the other.
				from := other
				if other == c {
					from = nowhere
				}
				for _, change := range []float64{step * scale[c], -step * scale[c]} {
					if loss, ok := f.try(q, c, from, change, best); ok {
						best, improved = loss, true
						break
					}
				}
			}
		}
		if !improved {
			step /= 2
		}
	}
	return best
}

// searchBudget bounds a fit to some tens of milliseconds.
const searchBudget = 2_000_000

// fitQueue finds the launch queue behind the windows; start is the rate model's
// answer. Both ways work may grow and, for states in which the host may wait for
// the device, whether it does, are tried.
func fitQueue(list []visit, windows []window, rates []float64, mayDrain, isDrain []bool) *launchQueue {
	k := len(rates)
	typical := typicalVisits(list, k)
	var best *launchQueue
	bestLoss := math.Inf(1)
	for _, perVisit := range []bool{true, false} {
		q := &launchQueue{work: slices.Clone(rates), perVisit: perVisit, drains: slices.Clone(isDrain)}
		scale := make([]float64, k)
		for c := range scale {
			scale[c] = 1
			if perVisit {
				scale[c] = typical[c]
				q.work[c] *= typical[c]
			}
		}
		f := &queueFit{visits: list, windows: windows, budget: searchBudget}
		loss := f.search(q, scale)
		for c := range k {
			if !mayDrain[c] || f.budget <= 0 {
				continue
			}
			other := &launchQueue{work: slices.Clone(q.work), perVisit: perVisit, drains: slices.Clone(q.drains)}
			other.drains[c] = !other.drains[c]
			if l := f.search(other, scale); l < loss*0.98 {
				q, loss = other, l
			}
		}
		if loss < bestLoss {
			best, bestLoss = q, loss
		}
	}
	return best
}

// typicalVisits returns the median length of a visit by column, at least 1 ns.
func typicalVisits(list []visit, k int) []float64 {
	lengths := make([][]timeline.Nanos, k)
	for _, v := range list {
		lengths[v.column] = append(lengths[v.column], v.end-v.start)
	}
	out := make([]float64, k)
	for c, l := range lengths {
		out[c] = 1
		if len(l) > 0 {
			slices.Sort(l)
			out[c] = max(float64(l[len(l)/2]), 1)
		}
	}
	return out
}

// chooseQueue fits a queue to the windows, and to either half of them: the
// halves predict each other, and their disagreement is the uncertainty.
func chooseQueue(h *activity.History, windows []window) *activityModel {
	u := assignUnknowns(h, len(windows)/windowsPerFree)
	if len(windows) < 2*minWindows || u.k < 2 {
		return nil
	}
	rates := u.fit(u.design(h, windows, 0), everyFold)
	mayDrain := make([]bool, u.k)
	for state, c := range u.of {
		cause := h.States[state].Cause
		mayDrain[c] = mayDrain[c] || cause == activity.Sync || cause == activity.Copy || cause == activity.Waiting || cause == activity.Lock || cause == activity.Native
	}
	list := u.visits(h)
	fit := func(part []window) *launchQueue {
		part = part[:min(len(part), 400)] // enough for a dozen numbers
		from, at := part[0].from, part[len(part)-1].at
		first, _ := slices.BinarySearchFunc(list, from, func(v visit, t timeline.Nanos) int {
			if v.end <= t {
				return -1
			}
			return 1
		})
		last := first
		for last < len(list) && list[last].start < at {
			last++
		}
		return fitQueue(list[first:last], part, rates, mayDrain, u.waits)
	}
	half := len(windows) / 2
	early, late := windows[:half], windows[half:]
	byEarly, byLate := fit(early), fit(late)
	whole := fit(windows[len(windows)/4:])
	m := &activityModel{rate: whole.work, rows: len(windows), profile: whole.levels(list, nil)}
	levelsEarly, levelsLate := byEarly.levels(list, nil), byLate.levels(list, nil)
	m.r2 = explained(windows, m.profile, windows, m.profile)
	m.heldOut = explained(early, levelsLate, late, levelsEarly)
	m.spread = disagreement(h, windows, levelsEarly, levelsLate)
	return m
}

// explained is R² over two sets of windows, each with its own levels.
func explained(a []window, levelsA []level, b []window, levelsB []level) float64 {
	var left, sum, squares, n float64
	see := func(w window, mean float64) {
		left += (w.busy - mean) * (w.busy - mean)
		sum += w.busy
		squares += w.busy * w.busy
		n++
	}
	meanLevels(levelsA, a, see)
	meanLevels(levelsB, b, see)
	total := squares - sum*sum/n
	if total <= n*1e-6 {
		return math.NaN()
	}
	return 1 - left/total
}

// disagreement is the largest difference of a state's idle time between two
// descriptions of the device, halved, as a share of the windows' time.
func disagreement(h *activity.History, windows []window, a, b []level) float64 {
	idle := make([]timeline.Nanos, len(h.States))
	for _, seg := range attribute(h, windows, &activityModel{profile: a}).segments {
		idle[seg.state] += seg.idle
	}
	total := timeline.Nanos(0)
	for _, seg := range attribute(h, windows, &activityModel{profile: b}).segments {
		idle[seg.state] -= seg.idle
		total += seg.end - seg.start
	}
	worst := timeline.Nanos(0)
	for _, n := range idle {
		worst = max(worst, n, -n)
	}
	return float64(worst) / 2 / float64(max(total, 1))
}
