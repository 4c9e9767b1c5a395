package export

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// maxStepNames bounds the values of the label "step". Servers keep a series for each value, and have limits of
// thousands for all series of a user.
const maxStepNames = 16

// stepNames are the training steps of one process as values of a label, in order of time: "3", or "100-199"
// where there are many. The zero value has none.
type stepNames []namedStep

type namedStep struct {
	start, end int64
	name       string
}

// stepNamesOf names the steps of a process.
func stepNamesOf(r *report.View, process int) (names stepNames) {
	for _, s := range r.Steps {
		if s.Process == process && s.EndNS > s.StartNS {
			names = append(names, namedStep{start: s.StartNS, end: s.EndNS})
		}
	}
	slices.SortStableFunc(names, func(a, b namedStep) int { return cmp.Compare(a.start, b.start) })
	size := (len(names) + maxStepNames - 1) / maxStepNames
	for i := range names {
		first := i / size * size
		if last := min(first+size, len(names)) - 1; last > first {
			names[i].name = fmt.Sprintf("%d-%d", first, last)
		} else {
			names[i].name = fmt.Sprint(first)
		}
		if i > 0 { // steps of one process follow each other; a damaged document's do not count twice
			names[i].start = max(names[i].start, names[i-1].end)
			names[i].end = max(names[i].end, names[i].start)
		}
	}
	return names
}

// cut divides a stretch of time by the steps. The parts add up to it.
func (n stepNames) cut(start, end int64) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		first, _ := slices.BinarySearchFunc(n, start, func(s namedStep, at int64) int { return cmp.Compare(s.end, at+1) })
		for _, s := range n[first:] {
			if s.start >= end {
				break
			}
			if s.start > start && !yield("", s.start-start) {
				return
			}
			from, to := max(s.start, start), min(s.end, end)
			if to > from && !yield(s.name, to-from) {
				return
			}
			start = max(start, to)
		}
		if start < end {
			yield("", end-start)
		}
	}
}
