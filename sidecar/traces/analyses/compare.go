package analyses

import "github.com/omni-perf/omni-perf/sidecar/traces/table"

// collectivesOf pairs the collectives of ranks.
func collectivesOf(ranks []Rank) []collective {
	for i, q := range questions {
		if q.tables[0] != TableCollectives {
			continue
		}
		var of []rankParts[commRuns]
		for _, r := range ranks {
			parts := rankParts[commRuns]{rank: r.Number}
			for _, p := range r.Parts {
				parts.parts = append(parts.parts, p.answered[i].(commRuns))
			}
			of = append(of, parts)
		}
		perRank, _ := joinRuns(of)
		all, _ := pairUp(perRank)
		return all
	}
	return nil
}

// ClockOffsets estimates the ranks' clock offsets from the collectives they
// share, in ns ahead of the lowest rank; ranks that share none are absent.
func ClockOffsets(ranks []Rank) map[int]int64 { return clockOffsets(collectivesOf(ranks)) }

// TableRuns is what CompareRuns makes.
const TableRuns = "collectives_by_run"

// CompareRuns sets the collectives of several runs side by side: a row per
// collective and run, with the mean time of its kernels divided into
// transfer and waiting for the last rank.
func CompareRuns(runs [][]Rank, labels []string) *table.Table {
	t := table.New(TableRuns, "Collectives, run against run",
		&table.Column{Name: "collective", Kind: table.Text},
		&table.Column{Name: "run", Kind: table.Text},
		&table.Column{Name: "collectives", Kind: table.Int},
		&table.Column{Name: "mean_us", Kind: table.Micros},
		&table.Column{Name: "transfer_us", Kind: table.Micros}, // mean
		&table.Column{Name: "wait_us", Kind: table.Micros},     // mean of a rank
		&table.Column{Name: "straggler", Kind: table.Int})      // the rank that was last most often
	type sums struct {
		n, kernels               int
		whole, transfer, waiting int64
		last                     map[int]int
	}
	perRun := make([]map[string]*sums, len(runs))
	names := map[string]bool{}
	for i, ranks := range runs {
		perRun[i] = map[string]*sums{}
		for _, c := range collectivesOf(ranks) {
			s := perRun[i][c.name]
			if s == nil {
				s = &sums{last: map[int]int{}}
				perRun[i][c.name] = s
				names[c.name] = true
			}
			straggler, transfer := c.transfer()
			s.n++
			s.kernels += len(c.runs)
			s.transfer += transfer
			s.waiting += c.waiting()
			s.whole += c.waiting() + transfer*int64(len(c.runs))
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
			t.Add(name, labels[i], s.n, micros(s.whole)/kernels, micros(s.transfer)/float64(s.n), micros(s.waiting)/kernels, straggler)
		}
	}
	if t.Len() == 0 {
		t.Note = "no collectives that several ranks share"
	}
	return t
}
