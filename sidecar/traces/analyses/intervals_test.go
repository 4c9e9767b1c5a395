package analyses

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// bitmap marks the nanoseconds at which some span of a kind runs: the slow,
// obvious way to say what union, overlap and layered must give.
type bitmap [200]bool

func mark(spans []span, keep func(*span) bool) (b bitmap) {
	for i := range spans {
		if keep(&spans[i]) {
			for at := spans[i].start; at < spans[i].end(); at++ {
				b[at] = true
			}
		}
	}
	return b
}

func (b *bitmap) count(where func(at int) bool) (n int64) {
	for at := range b {
		n += int64(count(b[at] && where(at)))
	}
	return n
}

func randomSpans(random *rand.Rand) []span {
	v := recording{}
	for range random.IntN(30) {
		start := random.Int64N(150)
		v.spans = append(v.spans, span{start: start, dur: random.Int64N(50), kind: KernelKind(random.IntN(3)), launch: kineto.None})
	}
	v.sort()
	return v.spans
}

func TestIntervalsAgainstBitmaps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 500 {
		spans := randomSpans(random)
		var maps [3]bitmap
		var layers [3][]interval
		for i, kind := range listedKinds {
			maps[i] = mark(spans, ofKind(kind))
			layers[i] = union(spans, ofKind(kind))
			if got, want := timeline.Total(layers[i]), maps[i].count(func(int) bool { return true }); got != want {
				t.Fatalf("round %d: union of %v lasts %d, want %d", round, kind, got, want)
			}
			for j := 1; j < len(layers[i]); j++ {
				if layers[i][j].Start <= layers[i][j-1].End {
					t.Fatalf("round %d: intervals %v are not apart", round, layers[i])
				}
			}
		}
		both := maps[0].count(func(at int) bool { return maps[1][at] })
		if got := timeline.Total(timeline.Common(layers[0], layers[1])); got != both {
			t.Fatalf("round %d: overlap %d, want %d", round, got, both)
		}
		window := between(50, 100)
		inside := maps[0].count(func(at int) bool { return 50 <= at && at < 100 })
		if got := timeline.Total(timeline.Clip(layers[0], window)); got != inside {
			t.Fatalf("round %d: clipped to %d, want %d", round, got, inside)
		}
		sums := layered(1, layers[:]...)
		for bits := 1; bits < 8; bits++ {
			var want int64
			for at := range maps[0] {
				want += int64(count(count(maps[0][at])|count(maps[1][at])<<1|count(maps[2][at])<<2 == bits))
			}
			if sums[bits] != want {
				t.Fatalf("round %d: layers %03b last %d, want %d", round, bits, sums[bits], want)
			}
		}
	}
}

// TestDescribe: the figures are pandas' for pd.Series([4, 1, 3, 2, 10]).describe().
func TestDescribe(t *testing.T) {
	s := describe([]float64{4, 1, 3, 2, 10})
	want := summary{5, 4, math.Sqrt(12.5), 1, 2, 3, 4, 10}
	if s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	one := describe([]float64{7})
	if one.count != 1 || one.mean != 7 || !math.IsNaN(one.std) || one.p25 != 7 {
		t.Errorf("got %+v", one)
	}
	if none := describe(nil); none.count != 0 || !math.IsNaN(none.mean) {
		t.Errorf("got %+v", none)
	}
}

// TestKernelStatsMerge: merging gives what adding one by one gives.
func TestKernelStatsMerge(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var whole, a, b kernelStats
	for i := range 1000 {
		dur := random.Int64N(1e6)
		whole.add(dur)
		if i < 300 {
			a.add(dur)
		} else {
			b.add(dur)
		}
	}
	a.merge(&b)
	if a.count != whole.count || a.sum != whole.sum || a.min != whole.min || a.max != whole.max ||
		math.Abs(a.std()-whole.std()) > 1e-6*whole.std() {
		t.Errorf("got %+v, want %+v", a, whole)
	}
}

func TestHistogramBins(t *testing.T) {
	var h histogram
	for _, us := range []int64{0, 1, 2, 3, 4, 1000} {
		h.add(us * 1000)
	}
	var from []float64
	var counts []int
	h.each(func(lo, hi float64, count int, _ int64) {
		if count > 0 {
			from, counts = append(from, lo), append(counts, count)
		}
	})
	if !slices.Equal(from, []float64{0, 1, 2, 4, 512}) || !slices.Equal(counts, []int{1, 1, 2, 1, 1}) {
		t.Errorf("got %v %v", from, counts)
	}
}
