package analyses

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
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
	s.p25, s.p50, s.p75 = pandasQuantile(values, 0.25), pandasQuantile(values, 0.5), pandasQuantile(values, 0.75)
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

// pandasQuantile is pandas' quantile() of sorted values, with linear interpolation,
// for what HolisticTraceAnalysis computes by it. Everywhere else a quantile is
// gonum's stat.Empirical: the smallest value that so large a share does not exceed.
func pandasQuantile(sorted []float64, q float64) float64 {
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

// summaryColumns are the columns of a describe(), named as HTA does.
func summaryColumns(htaPrefix, unit string, kind table.Kind) []*table.Column {
	columns := []*table.Column{{Name: "count", HTAName: htaPrefix + "count", Kind: table.Int}}
	for _, c := range [][2]string{{"mean", "mean"}, {"std", "std"}, {"min", "min"},
		{"p25", "25%"}, {"p50", "50%"}, {"p75", "75%"}, {"max", "max"}} {
		columns = append(columns, &table.Column{Name: c[0] + unit, HTAName: htaPrefix + c[1], Kind: kind})
	}
	return columns
}

// values are the cells for summaryColumns.
func (s summary) values() []any {
	return []any{s.count, s.mean, s.std, s.min, s.p25, s.p50, s.p75, s.top}
}

// histogram counts durations in bins [0,1), [1,2), [2,4), [4,8) … µs.
type histogram struct {
	counts [48]int
	sums   [48]int64
}

func (h *histogram) add(ns int64) {
	bin := 0
	for us := ns / 1000; us > 0 && bin < len(h.counts)-1; us >>= 1 {
		bin++
	}
	h.counts[bin]++
	h.sums[bin] += ns
}

func (h *histogram) merge(o *histogram) {
	for bin := range h.counts {
		h.counts[bin] += o.counts[bin]
		h.sums[bin] += o.sums[bin]
	}
}

// each calls f for every bin up to the last that has something.
func (h *histogram) each(f func(from, to float64, count int, sum int64)) {
	last := len(h.counts) - 1
	for last >= 0 && h.counts[last] == 0 {
		last--
	}
	for bin := 0; bin <= last; bin++ {
		from := 0.0
		if bin > 0 {
			from = math.Ldexp(1, bin-1)
		}
		f(from, math.Ldexp(1, bin), h.counts[bin], h.sums[bin])
	}
}
