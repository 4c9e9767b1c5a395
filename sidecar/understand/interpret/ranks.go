package interpret

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// RankOf is the rank that a process is, and whether it is one: a worker of a rank's own has the
// number of it, too.
func RankOf(rec *timeline.Recording, process int) (int, bool) {
	switch p := &rec.Processes[process]; {
	case p.Role == timeline.RoleRank && p.Rank != nil:
		return *p.Rank, true
	case process == 0 && rec.Target.Rank != nil && p.Role == timeline.RoleScript:
		return rec.Target.Rank.Global, true
	}
	return 0, false
}

// RankThreads are the main threads of ranks, by rank; of a rank that was lost and found again
// the one of which the longest time is known.
func RankThreads(rec *timeline.Recording) []int {
	type rank struct{ number, thread int }
	var ranks []rank
	for process := range rec.Processes {
		number, is := RankOf(rec, process)
		if !is {
			continue
		}
		main := -1
		for i := range rec.Threads {
			if t := &rec.Threads[i]; t.Main && t.Process == process && len(t.Spans) > 0 && (main < 0 || Known(t) > Known(&rec.Threads[main])) {
				main = i
			}
		}
		if main >= 0 {
			ranks = append(ranks, rank{number, main})
		}
	}
	slices.SortStableFunc(ranks, func(a, b rank) int { return cmp.Compare(a.number, b.number) })
	threads := make([]int, len(ranks))
	for i, r := range ranks {
		threads[i] = r.thread
	}
	return threads
}
