package significance

import (
	"math"
	"math/rand/v2"
	"testing"
)

func readings(noise float64, values ...float64) []Reading {
	out := make([]Reading, len(values))
	for i, v := range values {
		out[i] = Reading{Value: v, Noise: noise}
	}
	return out
}

func TestOf(t *testing.T) {
	gone := []Reading{{Absent: true}}
	for _, c := range []struct {
		name          string
		before, after []Reading
		low, high     float64
		verdict       Verdict
	}{
		// Single runs: ±1.96·√(2·0.03²)·100 around the difference.
		{"the same once", readings(0, 100), readings(0, 100), -8.32, 8.32, WithinNoise},
		{"a little more", readings(0, 100), readings(0, 107), -1.61, 15.61, WithinNoise},
		{"more", readings(0, 100), readings(0, 120), 10.82, 29.18, More},
		{"less", readings(0, 120), readings(0, 100), -29.18, -10.82, Less},
		{"runs that vary more", []Reading{{Value: 100, Spread: 0.1}}, []Reading{{Value: 120, Spread: 0.1}}, -10.62, 50.62, WithinNoise},
		{"noise of measuring", readings(10, 100), readings(10, 120), -9.20, 49.20, WithinNoise},
		{"too large before", []Reading{{Value: 120, Over: 30}}, readings(0, 100), -29.18, 19.18, WithinNoise},
		{"too large after", readings(0, 120), []Reading{{Value: 100, Over: 30}}, -59.18, -10.82, Less},
		{"too small after", readings(0, 120), []Reading{{Value: 100, Under: 30}}, -29.18, 19.18, WithinNoise},
		{"new", gone, readings(1, 20), 17.72, 22.28, New},
		{"gone", readings(1, 20), gone, -22.28, -17.72, Gone},
		{"new but within noise", gone, readings(12, 20), -3.55, 43.55, WithinNoise},
		// Welch: 95 % of means 10 and 12, variances 1 and 1 of three each: 4 degrees of freedom, t = 2.776.
		{"Welch", readings(0, 9, 10, 11), readings(0, 11, 12, 13), -0.267, 4.267, WithinNoise},
		{"Welch, further apart", readings(0, 9, 10, 11), readings(0, 13, 14, 15), 1.733, 6.267, More},
		{"runs that agree by chance", readings(3, 10, 10, 10), readings(3, 12, 12, 12), -4.80, 8.80, WithinNoise},
		{"all exact and equal", readings(0, 10, 10), readings(0, 10, 10), 0, 0, WithinNoise},
		{"all exact", readings(0, 10, 10), readings(0, 11, 11), 1, 1, More},
		// One run against four of standard deviation 2: 3 degrees of freedom, t = 3.182, √(4+1).
		{"one against several", readings(0, 20), readings(0, 18, 18, 22, 22), -8.22, 8.22, WithinNoise},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Of(c.before, c.after, 0.95)
			if math.Abs(got.Low-c.low) > 0.01 || math.Abs(got.High-c.high) > 0.01 || got.Verdict != c.verdict {
				t.Errorf("[%.3f, %.3f] %q, want [%.3f, %.3f] %q", got.Low, got.High, got.Verdict, c.low, c.high, c.verdict)
			}
		})
	}
}

func TestSidesSwappedSwapTheSign(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		side := func() []Reading {
			out := make([]Reading, 1+r.IntN(4))
			for i := range out {
				out[i] = Reading{Value: r.ExpFloat64() * 100, Noise: r.ExpFloat64(), Over: r.ExpFloat64(), Under: r.ExpFloat64(), Absent: r.IntN(4) == 0}
			}
			return out
		}
		a, b := side(), side()
		d, e := Of(a, b, 0.99), Of(b, a, 0.99)
		opposite := map[Verdict]Verdict{Less: More, More: Less, New: Gone, Gone: New, WithinNoise: WithinNoise}
		if math.Abs(d.Low+e.High) > 1e-6 || math.Abs(d.High+e.Low) > 1e-6 || e.Verdict != opposite[d.Verdict] {
			t.Fatalf("%v and %v: %+v, swapped %+v", a, b, d, e)
		}
		if math.IsNaN(d.Low) || d.Low > d.Change()+1e-9 || d.High < d.Change()-1e-9 {
			t.Fatalf("%v and %v: %+v", a, b, d)
		}
	}
}

// Of runs of one and the same program, a verdict that there is a difference is wrong; it
// is given about as often as the level says.
func TestFalseAlarmsAreAsManyAsStated(t *testing.T) {
	const rounds = 20_000
	for _, c := range []struct {
		name          string
		before, after int
		least, most   float64 // of false alarms at a level of 95 %
	}{
		{"five runs against five", 5, 5, 0.035, 0.055}, {"three against three", 3, 3, 0.02, 0.055}, {"two against six", 2, 6, 0.02, 0.08}, {"one against five", 1, 5, 0.03, 0.06},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(c.before*10+c.after)))
			side := func(n int) []Reading {
				out := make([]Reading, n)
				for i := range out {
					out[i].Value = 100 + 6*r.NormFloat64()
				}
				return out
			}
			wrong := 0
			for range rounds {
				if Of(side(c.before), side(c.after), 0.95).Verdict != WithinNoise {
					wrong++
				}
			}
			if share := float64(wrong) / rounds; share < c.least || share > c.most {
				t.Errorf("%.1f %% of the verdicts are wrong, want %.1f to %.1f %%", 100*share, 100*c.least, 100*c.most)
			}
		})
	}
}
