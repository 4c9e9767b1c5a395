// Package significance reports whether a figure differs between two sides, each of which
// was measured once or several times, and how sure that is.
//
// In flow Readings, out flows a Difference with an interval and a verdict. The package
// knows no report: it is statistics only.
package significance

import (
	"cmp"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Reading is a figure as one run gave it.
type Reading struct {
	Value float64
	// Noise is the standard deviation that the way of measuring gives it, not the
	// variation of the program between runs. 0: it was measured exactly.
	Noise float64
	// Over and Under bound by how much the value may be too large or too small, whatever
	// chance did. Several runs of a side replace them, too.
	Over, Under float64
	// Spread is the standard deviation between runs of an unchanged program, relative to the value, that is taken of a
	// side with this one reading; 0: AssumedSpread.
	Spread float64
	// Absent: what the figure is of does not exist in that run.
	Absent bool
}

// Verdict says what a difference amounts to.
type Verdict string

// The verdicts. They are in documents, and the viewer's words.
const (
	WithinNoise Verdict = ""     // the interval has 0 in it
	Less        Verdict = "less" // after than before
	More        Verdict = "more"
	New         Verdict = "new"  // more, of something that was not there before
	Gone        Verdict = "gone" // less, of something that is there no more
)

// Difference is how a figure differs: after minus before.
type Difference struct {
	Before, After float64 // means of the sides
	// Low and High bound the difference, with the level that was asked for.
	Low, High float64
	Verdict   Verdict
}

// Change is after minus before.
func (d Difference) Change() float64 { return d.After - d.Before }

// AssumedSpread is the standard deviation between runs of an unchanged program, relative
// to the figure, that is assumed of a side that was measured once, which cannot show it.
// It makes single runs that differ by less than 8 % no difference (1.96·√2·3 %).
//
// It is an assumption, for machines that have nothing else to do: what nobody controls, as
// the size of the environment or the order in which modules were linked, alone makes
// several percent (Mytkowicz et al., "Producing wrong data without doing anything obviously
// wrong", ASPLOS 2009; Kalibera and Jones, "Rigorous benchmarking in reasonable time",
// ISMM 2013, on how many runs show it). Several runs of each side replace it.
const AssumedSpread = 0.03

// Of compares two sides, each with one Reading or more. The interval has the true
// difference in it with the probability level, above 0 and below 1.
//
//   - Several readings on both sides: Welch's t interval (B. L. Welch, Biometrika 34, 1947),
//     with the degrees of freedom of Welch and Satterthwaite. A side's variance is at least
//     what the noise of measuring makes it: readings that agree by chance prove nothing.
//   - One on a side: its variance is that of its noise and of its Spread, or that of the
//     other side, if that is larger; to the interval come the bounds of its error.
func Of(before, after []Reading, level float64) Difference {
	a, b := sideOf(before), sideOf(after)
	if len(before) == 1 && len(after) > 1 {
		a.borrow(b)
	}
	if len(after) == 1 && len(before) > 1 {
		b.borrow(a)
	}
	d := Difference{Before: a.mean, After: b.mean}
	half := quantile(level, freedom(a, b)) * math.Sqrt(a.variance+b.variance)
	d.Low, d.High = d.Change()-half-b.over-a.under, d.Change()+half+b.under+a.over
	switch {
	case d.Low > 0 && a.absent:
		d.Verdict = New
	case d.High < 0 && b.absent:
		d.Verdict = Gone
	case d.Low > 0:
		d.Verdict = More
	case d.High < 0:
		d.Verdict = Less
	}
	return d
}

// side is one side summed up.
type side struct {
	mean     float64
	variance float64 // of the mean
	freedom  float64 // degrees of freedom of the variance; +Inf: it is known
	over     float64 // by which the mean may be too large
	under    float64
	absent   bool
	borrowed bool // the variance is the other side's, of which there is one estimate then
}

func sideOf(readings []Reading) side {
	values := make([]float64, len(readings))
	s := side{absent: true}
	noise := 0.0
	for i, r := range readings {
		values[i] = r.Value
		noise += r.Noise * r.Noise / float64(len(readings))
		s.absent = s.absent && r.Absent
	}
	if len(values) == 1 {
		spread := cmp.Or(readings[0].Spread, AssumedSpread) * values[0]
		return side{
			mean: values[0], variance: noise + spread*spread, freedom: math.Inf(1), over: readings[0].Over, under: readings[0].Under, absent: s.absent,
		}
	}
	var variance float64
	s.mean, variance = stat.MeanVariance(values, nil)
	s.variance = max(variance, noise) / float64(len(values))
	s.freedom = float64(len(values) - 1)
	return s
}

// borrow takes the variance of single readings over from a side that has several, if
// it is larger than what is assumed.
func (s *side) borrow(other side) {
	if v := other.variance * (other.freedom + 1); v > s.variance {
		s.variance, s.freedom, s.borrowed = v, other.freedom, true
	}
}

// freedom is Welch's and Satterthwaite's number for the variance of a difference.
func freedom(a, b side) float64 {
	sum := a.variance + b.variance
	if sum == 0 {
		return math.Inf(1)
	}
	switch {
	case a.borrowed:
		return b.freedom
	case b.borrowed:
		return a.freedom
	}
	part := a.variance*a.variance/a.freedom + b.variance*b.variance/b.freedom
	if part == 0 {
		return math.Inf(1)
	}
	return sum * sum / part
}

// quantile is how many standard deviations an interval of that level reaches to
// each side.
func quantile(level, freedom float64) float64 {
	tail := (1 + level) / 2
	if freedom > 1e6 {
		return distuv.UnitNormal.Quantile(tail)
	}
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(tail)
}
