package timeline

import (
	"testing"
	"time"
)

func TestIntervalsAreWrittenAsPeopleWriteThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Nanosecond: "1 ns", 50 * time.Microsecond: "50 µs", 1500 * time.Microsecond: "1.5 ms", time.Second: "1000 ms",
	} {
		if got := IntervalText(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
