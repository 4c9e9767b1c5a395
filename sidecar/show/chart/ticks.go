package chart

import (
	"fmt"
	"math"
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
	switch {
	case duration >= 86400:
		return s, func(t float64) string { return fmt.Sprintf("%.4g d", t/86400) }
	case duration >= 1:
		return s, func(t float64) string { return fmt.Sprintf("%.3g s", t) }
	case duration >= 0.001:
		return s, func(t float64) string { return fmt.Sprintf("%.6g ms", t*1e3) }
	}
	return s, func(t float64) string { return fmt.Sprintf("%.6g µs", t*1e6) }
}

func clockLabel(t, step float64) string {
	whole := func(unit float64) float64 { return math.Floor(t/unit + 1e-9) }
	switch {
	case step < 60 && t < 60 || t == 0 && step < 60:
		return fmt.Sprintf("%.0f s", t)
	case step < 60:
		return fmt.Sprintf("%.0f:%02.0f", whole(60), math.Round(math.Mod(t, 60)))
	case step < 3600 && t < 3600:
		return fmt.Sprintf("%.0f min", t/60)
	case step < 3600:
		return fmt.Sprintf("%.0f:%02.0f h", whole(3600), math.Round(math.Mod(t, 3600)/60))
	case step < 86400 && t < 2*86400:
		return fmt.Sprintf("%.0f h", t/3600)
	case step < 86400:
		return fmt.Sprintf("%.1f d", t/86400)
	}
	return fmt.Sprintf("%.0f d", t/86400)
}
