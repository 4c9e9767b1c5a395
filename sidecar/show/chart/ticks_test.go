package chart

import (
	"testing"
)

func TestTicksAreRoundAndFewerThanAsked(t *testing.T) {
	for d := 1e-6; d < 1e9; d *= 1.37 {
		step, label := tickStep(d, 15)
		if n := d / step; n > 15.01 || n < 1 && d > 1e-5 {
			t.Errorf("%v s: %v ticks", d, n)
		}
		seen := make(map[string]bool)
		for i := 0; float64(i)*step <= d; i++ {
			l := label(float64(i) * step)
			if seen[l] {
				t.Errorf("%v s: two ticks read %q", d, l)
			}
			seen[l] = true
		}
	}
	if step, label := tickStep(1.03, 15); step != 0.1 || label(0.3) != "0.3 s" || label(1) != "1 s" {
		t.Errorf("1.03 s: %v %q %q", step, label(0.3), label(1))
	}
	const days = 86400.0
	for at, want := range map[float64]string{0: "0 h", days: "24 h", 2 * days: "2.0 d", 2.25 * days: "2.3 d", 2.5 * days: "2.5 d"} {
		if step, label := tickStep(3*days, 15); step != 6*3600 || label(at) != want {
			t.Errorf("3 d: step %v, %v s reads %q, want %q", step, at, label(at), want)
		}
	}
	if step, label := tickStep(7200, 15); step != 600 || label(3000) != "50 min" || label(4200) != "1:10 h" {
		t.Errorf("2 h: %v %q %q", step, label(3000), label(4200))
	}
	if step, label := tickStep(60, 15); step != 5 || label(0) != "0 s" || label(55) != "55 s" || label(60) != "1:00" {
		t.Errorf("60 s: %v %q %q %q", step, label(0), label(55), label(60))
	}
}
