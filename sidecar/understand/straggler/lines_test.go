package straggler

import (
	"math/rand/v2"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const millisecond = timeline.Nanos(1e6)

var load, compute = Place{"train.py", 7}, Place{"train.py", 8}

// stepping is a rank whose steps take 100 ms: it loads, computes, and waits for the others for what is left.
func stepping(rank, steps int, loads func(step int) timeline.Nanos) Lane {
	l := Lane{Process: rank, Rank: rank}
	for k := range steps {
		at := timeline.Nanos(k) * 100 * millisecond
		loaded := at + loads(k)
		l.Spans = append(l.Spans, Span{timeline.Between(at, loaded), None, load}, Span{timeline.Between(loaded, loaded+20*millisecond), None, compute},
			Span{timeline.Between(loaded+20*millisecond, at+100*millisecond), "all_reduce", Place{"train.py", 9}})
		l.Steps = append(l.Steps, timeline.Between(at, at+100*millisecond))
	}
	return l
}

// noisy is about so many milliseconds, never twice the same.
func noisy(random *rand.Rand, ms float64) func(int) timeline.Nanos {
	return func(int) timeline.Nanos {
		return timeline.Nanos(ms * (1 + 0.2*random.NormFloat64()) * float64(millisecond))
	}
}

func TestARankThatIsSlowInALineIsMarkedThere(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, ranks := range []int{2, 4, 8, 64} {
		var lanes []Lane
		for rank := range ranks {
			ms := 2.0
			if rank == 1 {
				ms = 50
			}
			lanes = append(lanes, stepping(rank, 31, noisy(random, ms)))
		}
		list := CompareLines(lanes)
		if len(list) != 2 {
			t.Fatalf("%d ranks: %+v, want the two lines outside of the collective", ranks, list)
		}
		got := list[0]
		if got.Place != load || got.Rank != 1 || got.Ranks != ranks || !got.More || got.Steps != 31 || got.Above != 31 {
			t.Errorf("%d ranks: %+v, want rank 1 marked in the line that loads, in each of its 31 steps", ranks, got)
		}
		if got.Most < 45*millisecond || got.Median > 3*millisecond || got.Low < 30*millisecond || got.High > 60*millisecond || got.Low > got.High {
			t.Errorf("%d ranks: %v per step, the rank in the middle %v, %v to %v more", ranks, got.Most, got.Median, got.Low, got.High)
		}
		if list[1].Place != compute || list[1].More {
			t.Errorf("%d ranks: marked where they do the same: %+v", ranks, list[1])
		}
	}
}

// Where ranks do the same no row is marked, however often one looks.
func TestRanksThatDoTheSameAreNotMarked(t *testing.T) {
	marked, rows := 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		for _, ranks := range []int{2, 3, 8} {
			var lanes []Lane
			for rank := range ranks {
				lanes = append(lanes, stepping(rank, 20, noisy(random, 40)))
			}
			for _, l := range CompareLines(lanes) {
				rows++
				if l.More {
					marked++
				}
			}
		}
	}
	t.Logf("%d of %d rows are marked", marked, rows)
	if rows != 1800 || marked > 9 {
		t.Errorf("%d of %d rows are marked, want one in a hundred runs at most", marked, rows)
	}
}

// Machines that are all a little different have no rank that is.
func TestOneOfManyDifferentRanksIsNotMarked(t *testing.T) {
	var lanes []Lane
	for rank := range 16 {
		lanes = append(lanes, stepping(rank, 20, func(int) timeline.Nanos { return timeline.Nanos(20+2*rank) * millisecond }))
	}
	if list := CompareLines(lanes); list[0].Place != load || list[0].Most != 50*millisecond || list[0].More || list[0].P95 != 50*millisecond || list[0].Median != 34*millisecond {
		t.Errorf("%+v, want 50 ms beside 34 ms of the rank in the middle, not marked", list[0])
	}
}

// One slow step is a matter of that step: the strip shows it.
func TestOneSlowStepMarksNoLine(t *testing.T) {
	var lanes []Lane
	for rank := range 4 {
		lanes = append(lanes, stepping(rank, 31, func(step int) timeline.Nanos {
			if rank == 2 && step == 12 {
				return 75 * millisecond
			}
			return 2 * millisecond
		}))
	}
	for _, l := range CompareLines(lanes) {
		if l.More {
			t.Errorf("marked: %+v", l)
		}
	}
}

func TestRanksWithFewStepsAreNotCompared(t *testing.T) {
	same := func(int) timeline.Nanos { return millisecond }
	if list := CompareLines([]Lane{stepping(0, 31, same), stepping(1, 4, same), {}}); list != nil {
		t.Errorf("got %+v", list)
	}
	if list := CompareLines([]Lane{stepping(0, 31, same), stepping(1, 4, same), stepping(2, 9, same)}); len(list) == 0 || list[0].Ranks != 2 {
		t.Errorf("got %+v, want two ranks compared", list)
	}
	if list := CompareLines(nil); list != nil {
		t.Errorf("of nothing %+v", list)
	}
}

func TestTimeInCollectivesByStep(t *testing.T) {
	l := stepping(0, 3, func(step int) timeline.Nanos { return timeline.Nanos(10+10*step) * millisecond })
	l.Spans = l.Spans[:7] // of the third step only the begin is known
	got := l.InCollectives()
	if len(got) != 3 || got[0] == nil || *got[0] != 70*millisecond || got[1] == nil || *got[1] != 60*millisecond || got[2] != nil {
		t.Errorf("got %v", got)
	}
}
