package significance

import "testing"

func TestLimit(t *testing.T) {
	const ms = 1e6
	for _, c := range []struct {
		text           string
		verdict        Verdict
		before, change float64
		want           bool
	}{
		{"slower=5%", More, 100 * ms, 6 * ms, true},
		{"slower=5%", More, 100 * ms, 5 * ms, false},
		{"slower=5%", WithinNoise, 100 * ms, 6 * ms, false},
		{"slower=5%", Less, 100 * ms, -6 * ms, false},
		{"slower=5%", New, 0, 6 * ms, false},
		{"slower=0%", More, 100 * ms, 1, true},
		{"slower=2ms", More, 100 * ms, 3 * ms, true},
		{"slower=2ms", More, 1 * ms, 2 * ms, false},
		{"slower= 5 %", More, 100 * ms, 6 * ms, true},
	} {
		l, err := ParseLimit(c.text)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if got := l.Exceeded(c.verdict, c.before, c.change); got != c.want {
			t.Errorf("%s of a change of %g after %g (%q): %v, want %v", c.text, c.change, c.before, c.verdict, got, c.want)
		}
	}
	if (Limit{}).Exceeded(More, 1, 1000) {
		t.Error("where there is no limit something exceeds it")
	}
}

func TestNoLimits(t *testing.T) {
	for _, text := range []string{"", "slower", "faster=5%", "slower=-5%", "slower=NaN%", "slower=+Inf%", "slower=5", "slower=-1s", "slower="} {
		if l, err := ParseLimit(text); err == nil {
			t.Errorf("%q is taken for %v", text, l)
		}
	}
}
