package diagnose

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// window is a stretch over which the mean activity was measured.
type window struct {
	from, at timeline.Nanos
	busy     float64 // share of its time, 0..1
}

const (
	maxColumns     = 20 // host states told apart by the regression
	minWindows     = 12 // fewer say nothing
	windowsPerFree = 3  // windows a state must have to be told apart
	maxLag         = 80 * time.Millisecond
	lagStep        = 5 * time.Millisecond
	folds          = 5
	ridge          = 1e-3 // of a window's weight: decides only where the data do not
)

// activityModel is the device's mean activity in each host state, found from
// windows longer than the states last. docs/gpu-idle.md derives it.
type activityModel struct {
	host    *host
	column  []int     // host state → column
	rate    []float64 // column → activity 0..1
	lag     timeline.Nanos
	rows    int     // windows it rests on
	r2      float64 // on those windows
	heldOut float64 // R² on windows left out of the fit
	// spread is the largest standard error of any state's idle time that comes
	// from its rate, as a share of the time of all windows: large where two
	// states always come in the same proportion, whatever R² says.
	spread float64
}

// chooseModel fits one rate per state and one per half of each, and takes the
// latter where it foretells unseen windows clearly better; nil when nothing
// useful can be said below the windows.
func chooseModel(h *host, windows []window) *activityModel {
	const clearly = 0.02
	model := fitActivity(h, windows)
	if finer := fitActivity(h.halved(), windows); finer != nil && (model == nil || finer.heldOut > model.heldOut+clearly) {
		model = finer
	}
	if model == nil || model.heldOut < usefulHeldOut {
		return nil
	}
	return model
}

// fitActivity finds the model whose means over the windows are nearest to the
// measured ones; nil when there are too few windows or nothing varies.
func fitActivity(h *host, windows []window) *activityModel {
	columns, k := assignColumns(h, len(windows)/windowsPerFree)
	if len(windows) < minWindows || k < 2 {
		return nil
	}
	var best *activityModel
	bestError := math.Inf(1)
	try := func(lag timeline.Nanos) {
		parts := design(h, columns, k, windows, lag)
		all := sum(parts)
		rate := all.solve(naivePrior(all), ridge)
		// Lags differ in how many windows they can use: compare means. With few
		// windows only those the fit has not seen tell a good lag from a lucky one.
		if e := heldOutError(parts, all) / math.Max(all.rows, 1); e < bestError-1e-12 {
			bestError = e
			best = &activityModel{host: h, column: columns, rate: rate, lag: lag, rows: int(all.rows)}
			best.r2, best.heldOut = determination(all, rate, e*all.rows)
			best.spread = largestSpread(all, rate)
		}
	}
	for lag := time.Duration(0); lag <= maxLag; lag += lagStep {
		try(timeline.Nanos(lag))
	}
	around := best.lag
	for off := -lagStep + time.Millisecond; off < lagStep; off += time.Millisecond {
		if lag := around + timeline.Nanos(off); off != 0 && lag >= 0 {
			try(lag)
		}
	}
	if math.IsNaN(best.r2) {
		return nil
	}
	return best
}

// assignColumns gives the states with most time a column each; the others share
// the last one.
func assignColumns(h *host, room int) (columns []int, k int) {
	times := h.times()
	order := make([]int, 0, len(times))
	for i, t := range times {
		if t > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(min(max(times[b]-times[a], -1), 1)) })
	columns = make([]int, len(times))
	k = min(len(order), maxColumns, max(room, 1))
	for i := range columns {
		columns[i] = k - 1
	}
	for rank, state := range order {
		columns[state] = min(rank, k-1)
	}
	return columns, k
}

// design sums up the equations "activity of window w = Σ share of w spent in
// state k · rate of k", the host lag earlier, in as many parts as there are
// folds. Neighbouring windows go to the same fold: they know of each other.
func design(h *host, columns []int, k int, windows []window, lag timeline.Nanos) [folds]*normal {
	var parts [folds]*normal
	for i := range parts {
		parts[i] = newNormal(k)
	}
	shares := make([]float64, k)
	entries := make([]entry, 0, k)
	block := max(len(windows)/(folds*4), 1)
	next := 0
	for w, win := range windows {
		from, at := win.from-lag, win.at-lag
		if from < 0 {
			continue
		}
		clear(shares)
		for next < len(h.stretches) && h.stretches[next].end <= from {
			next++
		}
		for i := next; i < len(h.stretches) && h.stretches[i].start < at; i++ {
			s := h.stretches[i]
			shares[columns[s.state]] += float64(min(s.end, at) - max(s.start, from))
		}
		entries = entries[:0]
		for c, share := range shares {
			if share > 0 {
				entries = append(entries, entry{c, share / float64(at-from)})
			}
		}
		parts[w/block%folds].addRow(entries, win.busy)
	}
	return parts
}

func sum(parts [folds]*normal) *normal {
	all := newNormal(parts[0].k)
	for _, p := range parts {
		all = all.plus(p, 1)
	}
	return all
}

// naivePrior is each state's activity as if a window's were spread evenly.
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

// heldOutError is Σ (y − ŷ)² when every part is predicted from the others.
func heldOutError(parts [folds]*normal, all *normal) float64 {
	left := 0.0
	for _, part := range parts {
		if part.rows == 0 {
			continue
		}
		rest := all.plus(part, -1)
		left += part.residual(rest.solve(naivePrior(rest), ridge))
	}
	return left
}

// determination returns R² on the windows themselves and on windows left out of
// the fit; NaN where the activity does not vary.
func determination(all *normal, rate []float64, heldOut float64) (r2, r2HeldOut float64) {
	total := all.spread(all.y / math.Max(all.rows, 1))
	if total <= all.rows*1e-6 {
		return math.NaN(), math.NaN()
	}
	return 1 - all.residual(rate)/total, 1 - heldOut/total
}

// largestSpread returns max over k of se(r_k) · share of time in k, with the
// standard errors of ordinary least squares: sqrt(σ² (XᵀX)⁻¹). The limits 0 and 1
// only make them smaller.
func largestSpread(n *normal, rate []float64) float64 {
	free := n.rows - float64(n.k)
	if free <= 0 {
		return math.Inf(1)
	}
	a := mat.NewSymDense(n.k, nil)
	for i := range n.k {
		for j := range i + 1 {
			a.SetSym(i, j, n.a[i*n.k+j])
		}
		a.SetSym(i, i, n.a[i*n.k+i]+ridge)
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
	for k := range n.k {
		time := 0.0
		for j := range n.k {
			time += n.a[k*n.k+j]
		}
		worst = math.Max(worst, math.Sqrt(variance*inverse.At(k, k))*time/n.rows)
	}
	return worst
}
