package chart

import (
	"math"
	"sort"
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
	columns := make([]int, n)
	for c, at := range instants(duration, n) {
		columns[c] = sort.Search(len(spans), func(i int) bool { return spans[i].end > at })
		if i := columns[c]; i == len(spans) || spans[i].start > at {
			columns[c] = -1
		}
	}
	return columns
}

// instants is one instant for each of n columns, in seconds: the scattered one of
// the cell of absolute time in the column's middle. Cells are a power of two of
// microseconds, about as long as a column, so that those of the viewer
// (viewer/src/columns.ts, held to the same numbers by viewer/testdata) stay when it
// pans, and what it paints unzoomed is what the picture shows.
func instants(duration float64, n int) []float64 {
	column := duration * 1e6 / float64(n)
	step := cellStep(column)
	at := make([]float64, n)
	for c := range at {
		cell := math.Floor((float64(c) + 0.5) * column / step)
		at[c] = (cell + scatter(cell)) * step / 1e6
	}
	return at
}

// cellStep is the power of two nearest to the microseconds of a column.
func cellStep(column float64) float64 {
	step := 1.0
	for step*math.Sqrt2 < column {
		step *= 2
	}
	for step/math.Sqrt2 > column && step > 1.0/(1<<20) {
		step /= 2
	}
	return step
}

// scatter maps a cell of time to 0 … 1 without a pattern, always the same
// (murmur3's finaliser): a report always gives the same picture.
func scatter(cell float64) float64 {
	n := int64(cell)
	h := uint32(n) ^ uint32(n>>32)*0x9e3779b1
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return float64(h^h>>16) / (1 << 32)
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
