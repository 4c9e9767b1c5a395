package torchtrace

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// rankSummary is what a rank contributes to the comparison of ranks: a figure
// per row of acrossRanks, NaN where it has none.
type rankSummary []float64

var summaryMetrics = []string{"kernel_time_us", "idle_time_pctg", "compute_time_pctg", "non_compute_time_pctg", "comp_comm_overlap_pctg"}

func summarize(v *view) rankSummary {
	times, overlap := temporal(v), commCompOverlap(v)
	s := make(rankSummary, len(summaryMetrics))
	for i, name := range summaryMetrics {
		s[i] = math.NaN()
		for _, t := range []*Table{times, overlap} {
			if c := t.Column(name); c != nil && t.Len() > 0 {
				s[i] = c.Floats[0]
			}
		}
	}
	return s
}

// acrossRanks has a row per figure: its mean over the ranks, and which ranks
// are its extremes.
func acrossRanks(results []*rankResult) *Table {
	t := newTable(TableAcrossRanks, "The ranks together",
		&Column{Name: "metric", Kind: Text},
		&Column{Name: "ranks", Kind: Int},
		&Column{Name: "mean", Kind: Float},
		&Column{Name: "min", Kind: Float},
		&Column{Name: "min_rank", Kind: Int},
		&Column{Name: "max", Kind: Float},
		&Column{Name: "max_rank", Kind: Int})
	for i, name := range summaryMetrics {
		n, sum := 0, 0.0
		least, most := math.Inf(1), math.Inf(-1)
		var leastRank, mostRank int
		for _, r := range results {
			value := r.summary[i]
			if math.IsNaN(value) {
				continue
			}
			n++
			sum += value
			if value < least {
				least, leastRank = value, r.rank
			}
			if value > most {
				most, mostRank = value, r.rank
			}
		}
		if n > 0 {
			t.add(name, n, sum/float64(n), least, leastRank, most, mostRank)
		}
	}
	return t
}

// kernelsTogether adds the ranks' kernels up by name, and names the rank on
// which each takes longest.
func kernelsTogether(results []*rankResult) *Table {
	t := newTable(TableKernelsTogether, "Kernels, all ranks",
		&Column{Name: "kernel_type", Kind: Text},
		&Column{Name: "name", Kind: Text},
		&Column{Name: "ranks", Kind: Int},
		&Column{Name: "count", Kind: Int},
		&Column{Name: "sum_us", HTAName: "sum (us)", Kind: Micros},
		&Column{Name: "mean_us", HTAName: "mean (us)", Kind: Micros},
		&Column{Name: "min_us", HTAName: "min (us)", Kind: Micros},
		&Column{Name: "max_us", HTAName: "max (us)", Kind: Micros},
		&Column{Name: "slowest_rank", Kind: Int}, // by its mean
		&Column{Name: "slowest_mean_us", Kind: Micros})
	type total struct {
		kernelStats
		ranks, slowest int
		slowestMean    float64
	}
	for i, kind := range listedKinds {
		byName := map[string]*total{}
		for _, r := range results {
			for _, k := range r.kernels[i] {
				s := byName[k.name]
				if s == nil {
					s = &total{kernelStats: kernelStats{name: k.name}, slowest: r.rank}
					byName[k.name] = s
				}
				s.merge(k)
				s.ranks++
				if mean := micros(k.sum) / float64(k.count); mean > s.slowestMean {
					s.slowest, s.slowestMean = r.rank, mean
				}
			}
		}
		list := make([]*total, 0, len(byName))
		for _, s := range byName {
			list = append(list, s)
		}
		slices.SortFunc(list, func(a, b *total) int {
			return cmp.Or(cmp.Compare(b.sum, a.sum), strings.Compare(a.name, b.name))
		})
		for _, s := range list {
			t.add(kind.String(), s.name, s.ranks, s.count, micros(s.sum), micros(s.sum)/float64(s.count),
				micros(s.min), micros(s.max), s.slowest, s.slowestMean)
		}
	}
	return t
}

// CompareRuns sets the collectives of several runs side by side: a row per
// collective and run, with the mean time of its kernels told apart into
// transfer and waiting for the last rank.
func CompareRuns(runs []*TraceSet, labels []string) *Table {
	t := newTable("collectives_by_run", "Collectives, run against run",
		&Column{Name: "collective", Kind: Text},
		&Column{Name: "run", Kind: Text},
		&Column{Name: "collectives", Kind: Int},
		&Column{Name: "mean_us", Kind: Micros},
		&Column{Name: "transfer_us", Kind: Micros}, // mean
		&Column{Name: "wait_us", Kind: Micros},     // mean of a rank
		&Column{Name: "straggler", Kind: Int})      // the rank that was last most often
	type sums struct {
		n, kernels               int
		whole, transfer, waiting int64
		last                     map[int]int
	}
	perRun := make([]map[string]*sums, len(runs))
	names := map[string]bool{}
	for i, set := range runs {
		perRun[i] = map[string]*sums{}
		for _, m := range set.meetings() {
			s := perRun[i][m.name]
			if s == nil {
				s = &sums{last: map[int]int{}}
				perRun[i][m.name] = s
				names[m.name] = true
			}
			straggler, transfer := m.transfer()
			s.n++
			s.kernels += len(m.runs)
			s.transfer += transfer
			s.waiting += m.waiting()
			s.whole += m.waiting() + transfer*int64(len(m.runs))
			s.last[straggler]++
		}
	}
	for _, name := range sortedKeys(names) {
		for i := range runs {
			s := perRun[i][name]
			if s == nil {
				continue
			}
			straggler, most := 0, 0
			for _, rank := range sortedKeys(s.last) {
				if s.last[rank] > most {
					straggler, most = rank, s.last[rank]
				}
			}
			kernels := float64(s.kernels)
			t.add(name, labels[i], s.n, micros(s.whole)/kernels, micros(s.transfer)/float64(s.n), micros(s.waiting)/kernels, straggler)
		}
	}
	if t.Len() == 0 {
		t.Note = "no collectives that several ranks share"
	}
	return t
}
