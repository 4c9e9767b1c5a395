package glance

import (
	"math"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// What the machine's other work adds to the standard deviation of a cell's length (docs/decisions/noise-of-cells.md has the
// measurements). Each is for others that use all CPUs, and less where they use less.
const (
	// sharedSpread is of the cell's CPU time: others share its cores and caches.
	sharedSpread = 0.05
	// disturbance is by what the variance grows with the cell's length: each preemption costs it its caches.
	disturbance = 10 * time.Millisecond
	// sharedNoise is of any cell: the kernel's threads and nbclient wait for each other.
	sharedNoise = 40 * time.Millisecond
	// noCPUSpread is of the time for which no CPU was free, which is known at most.
	noCPUSpread = 0.05
	// waitSpread is of the time in which it neither computed nor waited for a CPU: what it waited for waits for CPUs, too.
	waitSpread = 0.3
	// ioSpread is of the time in which the cell waited for input and output, busy machine or not: caches have it, or not.
	ioSpread = 0.5
	// importSpread is of the time of imports, likewise: they read hundreds of files and touch memory that is new.
	importSpread = 0.15
)

// amount is a time of one run twice: as it was measured, and without what the cell waited for a CPU. Only what both
// show is a difference: the one may be the machine's other work, the other is an estimate.
type amount struct {
	absent            bool
	measured, without float64
	noise             float64 // of this cell alone
	busy, busyWithout float64 // of a machine that is busy, which cells of one run have in common
}

// amount is the cell's, with the formatting of a traceback: on a busy machine that is not always distinguished from the cell's own
// work, and then is in its time. elsewhere is the share of the CPUs that others used, where it is not known of the cell.
func (r *Row) amount(elsewhere float64) amount {
	if r.CPUsElsewhere != nil {
		elsewhere = *r.CPUsElsewhere
	}
	used := r.DurationNS
	if r.CPUNS != nil {
		used = *r.CPUNS
	}
	length := r.DurationNS + value(r.TracebackNS)
	noCPU := float64(min(value(r.NoCPUNS), length))
	waited := max(float64(length-used)-noCPU, 0)
	busy := elsewhere * (sharedSpread*float64(used) + waitSpread*waited)
	noise := square(float64(cellNoise)+elsewhere*float64(sharedNoise)) + elsewhere*float64(disturbance)*float64(length) +
		square(ioSpread*float64(value(r.IONS))) + square(importSpread*float64(value(r.ImportNS)))
	return amount{
		measured: float64(length), without: float64(length) - noCPU, noise: math.Sqrt(noise),
		busy: busy, busyWithout: busy + noCPUSpread*noCPU,
	}
}

// and is the time of two cells.
func (a amount) and(b amount) amount {
	return amount{
		measured: a.measured + b.measured, without: a.without + b.without, noise: math.Hypot(a.noise, b.noise),
		busy: a.busy + b.busy, busyWithout: a.busyWithout + b.busyWithout,
	}
}

// elsewhere is the share of the machine's CPUs that others used during a run.
func (d *Document) elsewhere() float64 {
	var used, known float64
	for _, r := range d.Cells {
		if r.CPUsElsewhere != nil {
			used += *r.CPUsElsewhere * float64(r.DurationNS)
			known += float64(r.DurationNS)
		}
	}
	if known == 0 {
		return 0
	}
	return used / known
}

func square(v float64) float64 { return v * v }

const (
	// Cells of scatterLeast and more show how much two runs vary, where there are scatterCells of them.
	scatterLeast = 50 * time.Millisecond
	scatterCells = 4
	// maxSpread is the most that their scatter is taken for: most of them may have been changed.
	maxSpread = 0.12
)

// spreadOf is the standard deviation, relative to a time, that single runs are taken to have: what most cells of the two
// runs show, which did not change, at least significance.AssumedSpread. It is the median deviation of the ratios of
// their times from the median ratio, for two runs, and so does not see the few cells that did change.
func spreadOf(before, after *Document) float64 {
	var ratios []float64
	for to, from := range comparison.Pair(after.codes(), before.codes()) {
		b, a := before.Cells[from].amount(0).without, after.Cells[to].amount(0).without
		if min(a, b) > float64(scatterLeast) {
			ratios = append(ratios, math.Log(a/b))
		}
	}
	if len(ratios) < scatterCells {
		return significance.AssumedSpread
	}
	middle := median(ratios)
	for i, r := range ratios {
		ratios[i] = math.Abs(r - middle)
	}
	const (
		normal = 1.4826 // of a normal distribution: its standard deviation to this median
		few    = 1.25   // of a few cells the median is often too small: by simulation, at 10 and 20 cells 4 to 6 % are false then
	)
	return min(max(few*normal*median(ratios)/math.Sqrt2, significance.AssumedSpread), maxSpread)
}

// median sorts the list; of an even number it is the upper one.
func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// differenceOf compares two sides by both of their amounts.
func differenceOf(before, after []amount, spread, level float64) significance.Difference {
	var sides [2][2][]significance.Reading
	for side, amounts := range [2][]amount{before, after} {
		for _, a := range amounts {
			sides[0][side] = append(sides[0][side], significance.Reading{Value: a.measured, Noise: math.Hypot(a.noise, a.busy), Spread: spread, Absent: a.absent})
			sides[1][side] = append(sides[1][side], significance.Reading{Value: a.without, Noise: math.Hypot(a.noise, a.busyWithout), Spread: spread, Absent: a.absent})
		}
	}
	d, without := significance.Of(sides[0][0], sides[0][1], level), significance.Of(sides[1][0], sides[1][1], level)
	d.Low, d.High = min(d.Low, without.Low), max(d.High, without.High)
	if d.Verdict != without.Verdict {
		d.Verdict = significance.WithinNoise
	}
	return d
}
