package flame

import "math"

// cellStep is the power of two nearest to the microseconds of a column.
func cellStep(perColumn float64) float64 {
	step := 1.0
	for step*math.Sqrt2 < perColumn {
		step *= 2
	}
	for step/math.Sqrt2 > perColumn && step > 1.0/(1<<20) {
		step /= 2
	}
	return step
}

// scatter maps a cell of time to 0 … 1 without a pattern, always the same:
// murmur3's finaliser.
func scatter(cell float64) float64 {
	n := int64(cell)
	h := uint32(n) ^ uint32(n>>32)*0x9e3779b1
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return float64(h^h>>16) / (1 << 32)
}

// Instants is one instant for each column of from … to (microseconds), the time that the column shows: the scattered
// one of the cell of absolute time in the column's middle. Cells are a power of two of
// microseconds, about as long as a column, so that they stay when the viewer pans, and
// what it paints unzoomed is what the picture shows. The viewer has the same rule (viewer/src/columns.ts), held to the
// same numbers by viewer/testdata.
func Instants(from, to float64, columns int) []float64 {
	column := (to - from) / float64(columns)
	step := cellStep(column)
	at := make([]float64, columns)
	for c := range at {
		cell := math.Floor((from + (float64(c)+0.5)*column) / step)
		at[c] = (cell + scatter(cell)) * step
	}
	return at
}
