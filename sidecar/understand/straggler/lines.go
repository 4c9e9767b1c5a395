package straggler

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// LineTimes compares the ranks by the time that each spent in one line per step, outside of collectives.
type LineTimes struct {
	Place  Place
	Ranks  int            // that were compared
	Median timeline.Nanos // per step, of the rank in the middle
	P95    timeline.Nanos // which 95 % of the ranks do not exceed
	Lane   int            // of those that were compared: the rank that spent most
	Rank   int            // its number
	Most   timeline.Nanos // its time per step
	// Low and High bound by how much that rank spent more per step than the others on the mean, from how the times of
	// single steps vary. More: it is beyond chance, and worth a step's while.
	Low, High timeline.Nanos
	More      bool
	Steps     int // of that rank
	Above     int // of them, in which it spent more than what is halfway from the others' mean to its own
}

const (
	// leastCompared is how many steps a rank must have to be compared by them.
	leastCompared = 5
	// lineRows bounds the lines that are compared: those in which a rank differs most from the one in the middle.
	lineRows = 20
	// worthLine is the share of the median step from which on a line is worth a row, worthMore that from which on a
	// difference is.
	worthLine, worthMore = 0.005, 0.02
	// chance is the probability at which ranks that do the same are marked in one row or more.
	chance = 0.01
	// outlying is how many times the usual distance from the median a rank must be away, of robustFrom ranks and more:
	// machines that are all a little different have no straggler.
	outlying, robustFrom = 3.5, 5
	// normal makes the median absolute deviation of a normal distribution its standard deviation.
	normal = 1.4826
)

// CompareLines compares ranks by line, those lines first in which one rank differs most from the rank in the middle.
// Ranks with fewer than five steps are left out; nil where fewer than two are left.
func CompareLines(lanes []Lane) []LineTimes {
	var ranks []int
	var lengths []timeline.Nanos
	for i, l := range lanes {
		if len(l.Steps) >= leastCompared && len(l.Spans) > 0 {
			ranks = append(ranks, i)
			for _, s := range l.Steps {
				lengths = append(lengths, s.Nanos())
			}
		}
	}
	if len(ranks) < 2 {
		return nil
	}
	slices.Sort(lengths)
	step := float64(lengths[len(lengths)/2])
	means := make(map[Place][]mean) // of the ranks that were there, in order
	for k, i := range ranks {
		lanes[i].eachStep(func(_ int, at Place, part timeline.Nanos) {
			if of := means[at]; len(of) == 0 || of[len(of)-1].rank != k {
				means[at] = append(of, mean{rank: k})
			}
			of := means[at]
			of[len(of)-1].time += float64(part) / float64(len(lanes[i].Steps))
		})
	}
	var list []LineTimes
	for place, of := range means {
		most := slices.MaxFunc(of, func(a, b mean) int { return cmp.Compare(a.time, b.time) })
		if most.time < worthLine*step {
			continue
		}
		n := len(ranks)
		sorted := make([]float64, n)
		for i, m := range of {
			sorted[i] = m.time
		}
		slices.Sort(sorted)
		list = append(list, LineTimes{
			Place: place, Ranks: n, Median: timeline.Nanos(sorted[(n-1)/2]), P95: timeline.Nanos(sorted[int(math.Ceil(0.95*float64(n)))-1]),
			Lane: ranks[most.rank], Rank: lanes[ranks[most.rank]].Rank, Most: timeline.Nanos(most.time), Steps: len(lanes[ranks[most.rank]].Steps),
			More: most.time-sorted[(n-1)/2] >= worthMore*step && isOutlier(sorted),
		})
	}
	slices.SortFunc(list, func(a, b LineTimes) int {
		return cmp.Or(cmp.Compare(b.Most-b.Median, a.Most-a.Median), cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line))
	})
	level := 1 - chance/float64(len(list)*len(ranks)+1) // each of these might be the one by chance
	list = list[:min(len(list), lineRows)]
	for i := range list {
		list[i].judge(lanes, ranks, level)
	}
	return list
}

// mean is what one rank spent in a line per step.
type mean struct {
	rank int // of those that are compared
	time float64
}

// isOutlier reports whether the largest of some values is far from the others; of few values that cannot be judged.
func isOutlier(sorted []float64) bool {
	n := len(sorted)
	if n < robustFrom {
		return true
	}
	median := sorted[(n-1)/2]
	away := make([]float64, n)
	for i, v := range sorted {
		away[i] = math.Abs(v - median)
	}
	slices.Sort(away)
	spread := max(normal*away[(n-1)/2], significance.AssumedSpread*median)
	return sorted[n-1]-median >= outlying*spread
}

// judge compares the single steps of the rank that spent most with those of the others, of which each step is their mean.
func (t *LineTimes) judge(lanes []Lane, ranks []int, level float64) {
	own := make([]significance.Reading, t.Steps)
	var others []significance.Reading
	var having []float64 // how many of the others had so many steps
	for _, i := range ranks {
		l := lanes[i]
		if i == t.Lane {
			l.eachStep(func(step int, at Place, part timeline.Nanos) {
				if at == t.Place {
					own[step].Value += float64(part)
				}
			})
			continue
		}
		for len(others) < len(l.Steps) {
			others, having = append(others, significance.Reading{}), append(having, 0)
		}
		for step := range l.Steps {
			having[step]++
		}
		l.eachStep(func(step int, at Place, part timeline.Nanos) {
			if at == t.Place {
				others[step].Value += float64(part)
			}
		})
	}
	for step := range others {
		others[step].Value /= having[step]
	}
	d := significance.Of(others, own, level)
	t.Low, t.High = timeline.Nanos(d.Low), timeline.Nanos(d.High)
	t.More = t.More && d.Low > 0
	for _, r := range own {
		if r.Value > d.Before+d.Change()/2 {
			t.Above++
		}
	}
}

// eachStep visits what a lane did within its steps, outside of collectives.
func (l Lane) eachStep(visit func(step int, at Place, part timeline.Nanos)) {
	next := 0
	for k, step := range l.Steps {
		for next > 0 && l.Spans[next-1].End > step.Start {
			next--
		}
		for ; next < len(l.Spans) && l.Spans[next].Start < step.End; next++ {
			s := &l.Spans[next]
			if part := min(s.End, step.End) - max(s.Start, step.Start); part > 0 && s.In == None && s.Place.Line > 0 {
				visit(k, s.Place, part)
			}
		}
	}
}
