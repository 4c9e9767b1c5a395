package gpuidle

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Bounded is an estimated part of a GPU's idle time. Low and High bound it: where a
// model looked inside the windows they are its bounds, else what the windows allow
// whatever the device did inside them. They are close together where a window saw
// one cause only.
type Bounded struct {
	Nanos, Low, High timeline.Nanos
}

// exactly is a time without doubt.
func exactly(n timeline.Nanos) Bounded { return Bounded{n, n, n} }

func (b *Bounded) add(o Bounded) {
	b.Nanos, b.Low, b.High = b.Nanos+o.Nanos, b.Low+o.Low, b.High+o.High
}

// tighten brings the bounds nearer where a model allows.
func (b *Bounded) tighten(width timeline.Nanos) {
	b.Low, b.High = max(b.Low, b.Nanos-width), min(b.High, b.Nanos+width)
}

// within keeps the bounds around the time, and inside what there was.
func (b *Bounded) within(idle timeline.Nanos) {
	b.Low, b.High = min(b.Low, b.Nanos), max(min(b.High, idle), b.Nanos)
}

// mostFirst leaves out the rows that no window saw and orders the others, most first.
func mostFirst[T any](rows []T, time func(*T) *Bounded) []T {
	rows = slices.DeleteFunc(rows, func(row T) bool { b := time(&row); return b.High == 0 && b.Nanos == 0 })
	slices.SortStableFunc(rows, func(x, y T) int { return cmp.Compare(time(&y).Nanos, time(&x).Nanos) })
	return rows
}
