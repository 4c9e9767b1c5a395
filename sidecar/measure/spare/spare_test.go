package spare

import (
	"math"
	"testing"
	"time"
)

func TestWhatIsDoneWhereFewCPUsAreFree(t *testing.T) {
	for _, test := range []struct {
		so       time.Duration
		free     float64
		share    float64
		interval time.Duration
	}{
		{19 * time.Second, 0, 1, 20 * time.Millisecond},
		{20 * time.Second, 0, 0, 100 * time.Millisecond},
		{time.Hour, 0.8, 0, 100 * time.Millisecond},
		{time.Hour, 0.85, 0.5, 60 * time.Millisecond},
		{time.Hour, 1.5, 1, 20 * time.Millisecond},
	} {
		cpus := CPUs(func() (free, cores float64) { return test.free, 2 })
		if share, _ := cpus.Share(test.so); math.Abs(share-test.share) > 1e-9 {
			t.Errorf("after %v with %g CPUs free: %g, want %g", test.so, test.free, share, test.share)
		}
		if got := cpus.Interval(test.so, 20*time.Millisecond, 100*time.Millisecond); (got - test.interval).Abs() > time.Microsecond {
			t.Errorf("after %v with %g CPUs free: each %v, want %v", test.so, test.free, got, test.interval)
		}
	}
	if share, _ := CPUs(nil).Share(time.Hour); share != 1 {
		t.Errorf("%g where it is not known what is free, want all", share)
	}
}
