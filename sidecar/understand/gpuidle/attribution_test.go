package gpuidle

import (
	"math/rand"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestDivideIsExactAndFits(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	for range 2000 {
		pieces := make([]piece, 1+rng.Intn(8))
		total, at := int64(0), int64(0)
		for i := range pieces {
			length := rng.Int63n(50) // nanoseconds: rounding at its worst
			pieces[i] = piece{start: timeline.Nanos(at), end: timeline.Nanos(at + length), activity: float64(rng.Intn(3)) / 2}
			at += length
			total += length
		}
		idle := timeline.Nanos(rng.Int63n(total + 1))
		divide(pieces, idle)
		sum := timeline.Nanos(0)
		for _, p := range pieces {
			if p.idle < 0 || p.idle > p.end-p.start {
				t.Fatalf("piece of %d got %d", p.end-p.start, p.idle)
			}
			sum += p.idle
		}
		if sum != idle {
			t.Fatalf("parts add up to %d, want %d: %+v", sum, idle, pieces)
		}
	}
}
