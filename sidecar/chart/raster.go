package chart

import "sort"

// raster divides a history into n columns and picks for each the span that held
// at one instant within it; -1 where there was none.
//
// A column holds many spans: a second of a minute is 15 pixels wide. Showing the
// longest of each column would hide what takes 40 % everywhere, so the instant
// is anywhere in its column: shares of the picture's area come out as shares of
// time, at every depth, and no rhythm of the program aliases with the columns.
// A column is always one stack that did run.
func raster(spans []span, n int, duration float64) []int {
	columns := make([]int, n)
	step := duration / float64(n)
	for c := range columns {
		at := (float64(c) + scatter(uint64(c))) * step
		columns[c] = sort.Search(len(spans), func(i int) bool { return spans[i].end > at })
		if i := columns[c]; i == len(spans) || spans[i].start > at {
			columns[c] = -1
		}
	}
	return columns
}

// scatter maps numbers to 0 … 1 without a pattern, the same ones each time
// (splitmix64): a report always gives the same picture.
func scatter(n uint64) float64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return float64((n^n>>31)>>11) / (1 << 53)
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
