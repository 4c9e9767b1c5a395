package batches

import (
	"math/rand/v2"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// The samples of steps after batches without one are right or not known, whichever batches were read. Where most were not, and
// an epoch's begin is among these, a batch left out cannot be told from one that was fetched ahead.
func TestLeftOutStepsAndUnreadBatches(t *testing.T) {
	for _, test := range []struct{ read, wrong, known float64 }{
		{read: 1, known: 0.8},
		{read: 0.7, wrong: 0.001, known: 0.8},
		{read: 0.4, wrong: 0.002, known: 0.75},
		{read: 0.15, wrong: 0.01, known: 0.6},
	} {
		wrong, known, all := 0, 0, 0
		for seed := range uint64(500) {
			l, own := leavesOut(rand.New(rand.NewPCG(seed, 1)), test.read)
			_, worked := Of(&l.rec, 0, l.steps[1:]) // as a hook has them
			for i, w := range worked {
				if all++; w.Samples > 0 {
					known++
				}
				if w.Samples > 0 && w.Samples != own[i+1] {
					wrong++
				}
			}
		}
		if share := float64(wrong) / float64(known); share > test.wrong {
			t.Errorf("with %v of the batches read %d of %d are wrong, %v", test.read, wrong, known, share)
		}
		if share := float64(known) / float64(all); share < test.known {
			t.Errorf("with %v of the batches read %v of the steps are known", test.read, share)
		}
	}
}

// leavesOut is a training of two epochs that leaves out up to three steps of each, and the samples of those that it made.
func leavesOut(r *rand.Rand, read float64) (l *loop, own []int64) {
	const batches, size = 40, 64
	l = newLoop(1, timeline.Loader{Batch: size, DropLast: r.IntN(2) == 0})
	var samples int64
	for range 2 {
		l.begin()
		left := make(map[int]bool)
		for range r.IntN(4) {
			left[r.IntN(batches)] = true
		}
		for i := range batches + 1 {
			if l.every, l.asked = 2, 1; r.Float64() < read {
				l.asked = 0
			}
			if l.ask(0, batches*size); i == batches {
				break
			}
			if samples += size; !left[i] {
				l.step()
				own, samples = append(own, samples), 0
			}
		}
	}
	return l, own
}
