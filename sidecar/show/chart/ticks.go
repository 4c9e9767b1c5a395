package chart

import (
	"fmt"
	"math"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// tickStep chooses a round distance for at most about n ticks over a duration,
// and how to label them.
func tickStep(duration, n float64) (float64, func(float64) string) {
	least := duration / max(n, 2)
	if least > 0.5 {
		for _, s := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400} {
			if s >= least {
				return s, func(t float64) string { return clockLabel(t, s) }
			}
		}
	}
	s := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*s >= least {
			s *= m
			break
		}
	}
	decimals := max(-int(math.Floor(math.Log10(s)+1e-9)), 0)
	switch {
	case duration >= 86400:
		return s, func(t float64) string { return words.Significant(t/86400, 4) + " d" }
	case duration >= 1:
		return s, func(t float64) string { return words.Short(t, decimals) + " s" }
	case duration >= 0.001:
		return s, func(t float64) string { return words.Short(t*1e3, max(decimals-3, 0)) + " ms" }
	}
	return s, func(t float64) string { return words.Short(t*1e6, max(decimals-6, 0)) + " µs" }
}

// clockLabel writes a multiple of a step of a second or more: 20 s, 1:20, 5 min, 1:05 h, 7 h, 2.5 d.
func clockLabel(t, step float64) string {
	switch {
	case step < 60:
		return parts(t, 1, "s", "")
	case step < 3600:
		return parts(t, 60, "min", " h")
	case step < 86400 && t < 2*86400:
		return words.Fixed(t/3600, 0) + " h"
	case step < 86400:
		return words.Fixed(t/86400, 1) + " d"
	}
	return words.Fixed(t/86400, 0) + " d"
}

// parts writes a time in a unit, from 60 of them on as two parts.
func parts(t, unit float64, name, of string) string {
	n := int(math.Round(t / unit))
	if n < 60 {
		return fmt.Sprintf("%d %s", n, name)
	}
	return fmt.Sprintf("%d:%02d%s", n/60, n%60, of)
}
