package pystack

import (
	"math"
	"testing"
	"time"
)

func TestSamplingTakesLittleFromAProgramThatUsesAllCPUs(t *testing.T) {
	const half = 30 * time.Second
	for _, c := range []struct {
		name        string
		so          time.Duration
		free, cores float64
		want        float64
	}{
		{"the first stretch", 19 * time.Second, 0, 2, 0.05},
		{"a CPU is free", half, 1, 2, 0.05},
		{"no CPU of two is free", half, 0, 2, 0.008},
		{"most of a CPU is free, in short gaps", half, 0.8, 2, 0.008},
		{"more is free", half, 0.85, 2, 0.029},
		{"no CPU of many is free", half, 0, 64, 0.05},
		{"no CPU of two is free for long", 80 * time.Second, 0, 2, 0.004},
		{"none is for an hour", time.Hour, 0, 2, 0.002},
		{"one is after an hour", time.Hour, 1, 2, 0.05},
	} {
		got := limit{budget: 0.05, taken: 0.004}.now(c.so, func() (free, cores float64) { return c.free, c.cores })
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g of a core, want %g", c.name, got, c.want)
		}
	}
	if got := (limit{budget: 0.05, taken: 0.004}).now(time.Hour, nil); got != 0.05 {
		t.Errorf("where nothing says what is free: %g of a core, want 0.05", got)
	}
}

func TestWithoutALimitThereIsNone(t *testing.T) {
	none := func() (free, cores float64) { return 0, 2 }
	if got := (limit{budget: -1, taken: 0.004}).now(time.Minute, none); got >= 0 {
		t.Errorf("%g of a core, want no limit", got)
	}
}
