package gpuidle

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// window is a stretch over which the mean activity was measured.
type window struct {
	from, at timeline.Nanos
	busy     float64 // share of its time, 0..1
	grain    grain
}

// grain is how finely a window's activity is known.
type grain uint8

const (
	sampled grain = iota // by its mean alone
	exact                // it was busy all the time, or idle all the time
	queued               // exact, and a gap so short that the work after it was launched before it began
)

// idle is the idle time measured in the window.
func (w window) idle() timeline.Nanos {
	return (w.at - w.from) - timeline.Nanos(math.Round(w.busy*float64(w.at-w.from)))
}

const (
	maxColumns     = 20 // host states that the regression distinguishes
	minStateShare  = 0.005
	minWindows     = 12 // fewer say nothing
	windowsPerFree = 3  // windows a state must have to be distinguished
	maxLag         = 80 * time.Millisecond
	lagStep        = 5 * time.Millisecond
	folds          = 5
	waitRidge      = 1.0  // of a window's weight, for states that wait for the device
	ridge          = 1e-3 // of a window's weight: decides only where the data do not
)

// activityModel is what a device did inside windows longer than the host's
// states last. docs/gpu-idle.md derives it.
type activityModel struct {
	profile []level   // in order, over the whole recording
	rate    []float64 // what was found for each column of host states
	lag     timeline.Nanos
	rows    int     // windows it rests on
	r2      float64 // on those windows
	heldOut float64 // R² on windows left out of the fit
	// spread is the largest standard error of any state's idle time that comes
	// from its rate, as a share of the time of all windows: large where two
	// states always come in the same proportion, whatever R² says.
	spread float64
}

// chooseModel fits one rate per state, one per half of each, and a queue of
// launched work, and prefers a later one that predicts held-out windows clearly
// better; nil when nothing useful can be said below the windows.
func chooseModel(h *activity.History, windows []window) *activityModel {
	const clearly, complete = 0.02, 0.99
	model := fitActivity(h, windows)
	better := func(other *activityModel, by float64) {
		if other != nil && !math.IsNaN(other.heldOut) && (model == nil || other.heldOut > model.heldOut+by) {
			model = other
		}
	}
	if model == nil || model.heldOut < complete {
		better(fitActivity(halved(h), windows), clearly)
		better(chooseQueue(h, windows), 0)
	}
	if model == nil || !(model.heldOut >= usefulHeldOut) { // NaN: nothing varies, and nothing is predicted
		return nil
	}
	return model
}

// fitActivity finds the model whose means over the windows are nearest to the
// measured ones; nil when there are too few windows or nothing varies.
func fitActivity(h *activity.History, windows []window) *activityModel {
	u := assignUnknowns(h, len(windows)/windowsPerFree)
	if len(windows) < minWindows || u.k < 2 {
		return nil
	}
	lag := findLag(h, u, sample(windows))
	rows := u.design(h, windows, lag)
	m := &activityModel{lag: lag, rows: len(rows), rate: u.fit(rows, everyFold)}
	for _, s := range h.Stretches {
		m.profile = append(m.profile, level{s.Start + lag, s.End + lag, m.rate[u.of[s.State]]})
	}
	m.r2 = judge(rows, func(row) []float64 { return m.rate }).r2
	m.heldOut = u.predictHeldOut(rows).r2
	m.spread = u.largestSpread(rows, m.rate)
	if math.IsNaN(m.r2) {
		return nil
	}
	return m
}

// findLag returns the delay under which the windows are predicted best. With few
// windows only those the fit has not seen distinguish a good lag from a lucky one.
func findLag(h *activity.History, u *unknowns, windows []window) timeline.Nanos {
	best, bestLoss := timeline.Nanos(0), math.Inf(1)
	try := func(lag timeline.Nanos) {
		// Lags differ in how many windows they can use: the loss is a mean.
		if v := u.predictHeldOut(u.design(h, windows, lag)); v.loss < bestLoss-1e-12 {
			best, bestLoss = lag, v.loss
		}
	}
	for lag := time.Duration(0); lag <= maxLag; lag += lagStep {
		try(timeline.Nanos(lag))
	}
	around := best
	for off := -lagStep + time.Millisecond; off < lagStep; off += time.Millisecond {
		if lag := around + timeline.Nanos(off); off != 0 && lag >= 0 {
			try(lag)
		}
	}
	return best
}

// sample takes blocks of windows from all over a long recording: some hundred
// show the lag as well as ten thousand.
func sample(windows []window) []window {
	const enough, block = 600, 20
	if len(windows) <= enough {
		return windows
	}
	every := len(windows)/enough + 1
	var out []window
	for i := 0; i < len(windows); i += block * every {
		out = append(out, windows[i:min(i+block, len(windows))]...)
	}
	return out
}

// unknowns are what a model finds one number each for: host states, or several
// small ones together.
type unknowns struct {
	of     []int // host state → unknown
	k      int
	shared int    // the unknown of the states without one of their own; -1 = none
	waits  []bool // unknown → the host waits for the device there
}

// assignUnknowns gives the states with most time an unknown each; the others,
// and those too short to matter, share one.
func assignUnknowns(h *activity.History, room int) *unknowns {
	times := h.Times()
	total := timeline.Nanos(0)
	for _, t := range times {
		total += t
	}
	order := make([]int, 0, len(times))
	for i, t := range times {
		if float64(t) >= minStateShare*float64(total) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(times[b], times[a]) })
	own := min(len(order), maxColumns, max(room-1, 1))
	rest := total
	for _, state := range order[:own] {
		rest -= times[state]
	}
	u := &unknowns{of: make([]int, len(times)), k: own + 1, shared: own}
	if rest == 0 {
		u.k, u.shared = own, -1
	}
	for i := range u.of {
		u.of[i] = u.k - 1
	}
	u.waits = make([]bool, u.k)
	for rank, state := range order[:own] {
		u.of[state] = rank
		u.waits[rank] = h.States[state].Cause == activity.Sync
	}
	return u
}

// row is one window's equation: its activity is the sum over the host's states
// of the share spent there times that state's rate.
type row struct {
	entries []entry
	busy    float64
	fold    int
}

// design writes the equations for a device that runs lag behind its host.
// Neighbouring windows go to the same fold: they know of each other.
func (u *unknowns) design(h *activity.History, windows []window, lag timeline.Nanos) []row {
	rows := make([]row, 0, len(windows))
	shares := make([]float64, u.k)
	var entries []entry // of all rows
	block := max(len(windows)/(folds*4), 1)
	next := 0
	for w, win := range windows {
		from, at := win.from-lag, win.at-lag
		if from < 0 {
			continue
		}
		clear(shares)
		for next < len(h.Stretches) && h.Stretches[next].End <= from {
			next++
		}
		for i := next; i < len(h.Stretches) && h.Stretches[i].Start < at; i++ {
			s := h.Stretches[i]
			shares[u.of[s.State]] += float64(min(s.End, at) - max(s.Start, from))
		}
		first := len(entries)
		for c, share := range shares {
			if share > 0 {
				entries = append(entries, entry{c, share / float64(at-from)})
			}
		}
		rows = append(rows, row{entries[first:len(entries):len(entries)], win.busy, w / block % folds})
	}
	return rows
}

const (
	everyFold = -1
	// tolerance is the error of a window's activity beyond which it counts
	// linearly, not squared: a machine that stopped for half a second must not
	// decide what all the other windows say (Huber 1964).
	tolerance = 0.05
	reweights = 3
)

// fit solves the equations of all folds but one, by least squares with
// large errors weighed down.
func (u *unknowns) fit(rows []row, without int) []float64 {
	var rate []float64
	for range reweights {
		n := u.weigh(rows, without, rate)
		rate = n.solve(u.prior(n), u.ridges())
	}
	return rate
}

// weigh sums the equations up, each with the weight its error under rate gives it.
func (u *unknowns) weigh(rows []row, without int, rate []float64) *normal {
	n := newNormal(u.k)
	for _, r := range rows {
		if r.fold == without {
			continue
		}
		weight := 1.0
		if rate != nil {
			if e := math.Abs(r.busy - r.predict(rate)); e > tolerance {
				weight = tolerance / e
			}
		}
		n.addRow(r.entries, r.busy, weight)
	}
	return n
}

func (r row) predict(rate []float64) float64 {
	sum := 0.0
	for _, e := range r.entries {
		sum += e.value * rate[e.column]
	}
	return sum
}

// verdict is how well rates predict windows.
type verdict struct {
	r2   float64 // plain, large errors and all; NaN where the activity does not vary
	loss float64 // mean of Huber's
}

func (u *unknowns) predictHeldOut(rows []row) verdict {
	var rates [folds][]float64
	for f := range rates {
		rates[f] = u.fit(rows, f)
	}
	return judge(rows, func(r row) []float64 { return rates[r.fold] })
}

func judge(rows []row, rates func(row) []float64) verdict {
	n := math.Max(float64(len(rows)), 1)
	mean := 0.0
	for _, r := range rows {
		mean += r.busy / n
	}
	var left, total, loss float64
	for _, r := range rows {
		e := math.Abs(r.busy - r.predict(rates(r)))
		left += e * e
		total += (r.busy - mean) * (r.busy - mean)
		if e <= tolerance {
			loss += e * e / 2
		} else {
			loss += tolerance * (e - tolerance/2)
		}
	}
	if total <= n*1e-6 {
		return verdict{math.NaN(), loss / n}
	}
	return verdict{1 - left/total, loss / n}
}

// prior is what each unknown is where the windows say nothing: its activity as
// if a window's were spread evenly, but busy where the host waits for the device.
func (u *unknowns) prior(n *normal) []float64 {
	prior := naivePrior(n)
	for i, waits := range u.waits {
		if waits {
			prior[i] = 1
		}
	}
	return prior
}

// ridges are the priors' weights: next to nothing, or a window's where the prior
// is more than a guess.
func (u *unknowns) ridges() []float64 {
	list := make([]float64, u.k)
	for i := range list {
		list[i] = ridge
		if u.waits[i] {
			list[i] = waitRidge
		}
	}
	return list
}

func naivePrior(n *normal) []float64 {
	prior := make([]float64, n.k)
	for i := range prior {
		weight := 0.0
		for j := range n.k {
			weight += n.a[i*n.k+j] // Σ_w X[w,i], as each row adds up to 1
		}
		if weight > 0 {
			prior[i] = min(max(n.b[i]/weight, 0), 1)
		}
	}
	return prior
}

// largestSpread returns max over k of se(r_k) · share of time in k, with the
// standard errors of weighted least squares: sqrt(σ² (XᵀX)⁻¹). The limits 0 and 1
// only make them smaller.
func (u *unknowns) largestSpread(rows []row, rate []float64) float64 {
	n, ridges := u.weigh(rows, everyFold, rate), u.ridges()
	free := n.rows - float64(n.k)
	if free <= 0 {
		return math.Inf(1)
	}
	a := mat.NewSymDense(n.k, nil)
	for i := range n.k {
		for j := range i {
			a.SetSym(i, j, n.a[i*n.k+j])
		}
		a.SetSym(i, i, n.a[i*n.k+i]+ridges[i])
	}
	var factor mat.Cholesky
	if !factor.Factorize(a) {
		return math.Inf(1)
	}
	var inverse mat.SymDense
	if factor.InverseTo(&inverse) != nil {
		return math.Inf(1)
	}
	variance := n.residual(rate) / free
	worst := 0.0
	for i := range n.k {
		time := 0.0
		for j := range n.k {
			time += n.a[i*n.k+j]
		}
		worst = math.Max(worst, math.Sqrt(variance*inverse.At(i, i))*time/n.rows)
	}
	return worst
}
