package main

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is an estimate with its 95 % confidence interval.
type Interval struct{ Mean, Low, High float64 }

// meanOf is the arithmetic mean of measurements that are independent of each other, with Student's interval.
func meanOf(values []float64) Interval {
	mean, deviation := stat.MeanStdDev(values, nil)
	n := float64(len(values))
	if n < 2 {
		return Interval{mean, math.Inf(-1), math.Inf(1)}
	}
	quantile := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975)
	half := quantile * deviation / math.Sqrt(n)
	return Interval{mean, mean - half, mean + half}
}

// fewestRanked is how many pairs the signed-rank interval needs to be one of 95 %.
const fewestRanked = 6

// ratioOf estimates the ratio behind one measured for each pair. It works on the logarithms, so that a
// pair disturbed one way weighs as much as one disturbed the other way, and by ranks (Hodges and Lehmann's
// estimator with Wilcoxon's signed-rank interval), so that a few pairs in which the machine did something
// else do not decide. A few pairs get a geometric mean with Student's interval.
func ratioOf(ratios []float64) Interval {
	logs := make([]float64, len(ratios))
	for i, ratio := range ratios {
		logs[i] = math.Log(ratio)
	}
	of := meanOf(logs)
	if len(logs) >= fewestRanked {
		of = signedRank(logs)
	}
	return Interval{math.Exp(of.Mean), math.Exp(of.Low), math.Exp(of.High)}
}

// signedRank is the median of the means of all pairs of values, each with itself too.
func signedRank(values []float64) Interval {
	var means []float64
	for i := range values {
		for j := i; j < len(values); j++ {
			means = append(means, (values[i]+values[j])/2)
		}
	}
	slices.Sort(means)
	n, all := float64(len(values)), len(means)
	// The normal approximation to the signed-rank statistic, with its correction for continuity.
	outside := float64(all)/2 - 0.5 - 1.96*math.Sqrt(n*(n+1)*(2*n+1)/24)
	k := max(0, int(outside))
	return Interval{(means[(all-1)/2] + means[all/2]) / 2, means[k], means[all-1-k]}
}
