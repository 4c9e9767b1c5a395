package torchtrace

import (
	"math"
	"slices"
)

// summary is pandas' describe(): sample standard deviation, quartiles with
// linear interpolation; NaN where there are too few values.
type summary struct {
	count                   int
	mean, std               float64
	min, p25, p50, p75, top float64
}

// describe summarises values, which it sorts.
func describe(values []float64) summary {
	nan := math.NaN()
	s := summary{len(values), nan, nan, nan, nan, nan, nan, nan}
	if len(values) == 0 {
		return s
	}
	s.mean, s.std = meanStd(values)
	slices.Sort(values)
	s.min, s.top = values[0], values[len(values)-1]
	s.p25, s.p50, s.p75 = quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75)
	return s
}

// meanStd returns mean and sample standard deviation (NaN for one value).
func meanStd(values []float64) (mean, std float64) {
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	for _, v := range values {
		std += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(std / float64(len(values)-1))
}

// quantile of sorted values, with linear interpolation.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
