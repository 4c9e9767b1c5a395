package chart

import (
	"sort"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/flame"
)

// raster divides a history into n columns and picks for each the span that held
// at one instant; -1 where there was none.
//
// A column holds many spans: a second of a minute is 15 pixels wide. Showing the
// longest of each column would hide what takes 40 % everywhere, so the instant
// is anywhere about its column: shares of the picture's area come out as shares of
// time, at every depth, and no rhythm of the program aliases with the columns.
// A column is always one stack that did run.
func raster(spans []span, n int, duration float64) []int {
	picked := make([]int, n)
	for c, at := range instants(duration, n) {
		picked[c] = sort.Search(len(spans), func(i int) bool { return spans[i].end > at })
		if i := picked[c]; i == len(spans) || spans[i].start > at {
			picked[c] = -1
		}
	}
	return picked
}

// instants is one instant for each of n columns, in seconds.
func instants(duration float64, n int) []float64 {
	at := flame.Instants(0, duration*1e6, n)
	for c := range at {
		at[c] /= 1e6
	}
	return at
}

// run is a stretch of columns with the same key.
type run struct {
	from, to int // columns, to excluded
	key      int32
}

// runsOf joins neighbouring columns of the same key; key 0 is nothing and left
// out.
func runsOf(n int, key func(column int) int32) []run {
	var runs []run
	last := int32(0)
	for c := range n {
		k := key(c)
		switch {
		case k == 0:
		case k == last:
			runs[len(runs)-1].to = c + 1
		default:
			runs = append(runs, run{c, c + 1, k})
		}
		last = k
	}
	return runs
}
