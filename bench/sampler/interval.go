package main

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a mean with its 95 % confidence interval.
type Interval struct{ Mean, Low, High float64 }

// meanOf is the arithmetic mean of measurements that are independent of each other.
func meanOf(values []float64) Interval {
	mean, half := meanAndHalf(values)
	return Interval{mean, mean - half, mean + half}
}

// ratioOf is the geometric mean of ratios, one for each pair: taken of their logarithms, so that a pair
// that was disturbed one way weighs as much as one disturbed the other way.
func ratioOf(ratios []float64) Interval {
	logs := make([]float64, len(ratios))
	for i, ratio := range ratios {
		logs[i] = math.Log(ratio)
	}
	mean, half := meanAndHalf(logs)
	return Interval{math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)}
}

func meanAndHalf(values []float64) (mean, half float64) {
	mean, deviation := stat.MeanStdDev(values, nil)
	n := float64(len(values))
	if n < 2 {
		return mean, math.Inf(1)
	}
	quantile := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975)
	return mean, quantile * deviation / math.Sqrt(n)
}
