package rankstrip

import (
	"math/rand/v2"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

const ms = int64(1e6)

// step is one of a rank: from when to when, and of it in collectives (−1: not known).
type step struct{ start, end, waiting int64 }

// reportOf is a report of ranks with these steps. Their stacks were read every ms.
func reportOf(ranks ...[]step) *report.View {
	interval := ms
	d := &report.Document{Targets: []report.Target{{}}, DurationNS: 1e12}
	for rank, steps := range ranks {
		d.Processes = append(d.Processes, report.Process{Stacks: report.Stacks{Read: true, IntervalNS: &interval}})
		d.Ranks = append(d.Ranks, report.Rank{Process: rank, Rank: rank})
		for _, s := range steps {
			one := report.Step{Process: rank, StartNS: s.start, EndNS: s.end}
			if s.waiting >= 0 {
				one.CollectiveNS = &s.waiting
			}
			d.Steps = append(d.Steps, one)
		}
	}
	return &report.View{Document: d}
}

// synchronous are ranks whose steps begin and end together, each when the slowest has done its own work.
func synchronous(ranks, steps int, own func(rank, step int) int64) [][]step {
	all := make([][]step, ranks)
	at := int64(0)
	for k := range steps {
		longest := int64(0)
		for rank := range ranks {
			longest = max(longest, own(rank, k))
		}
		for rank := range ranks {
			all[rank] = append(all[rank], step{at, at + longest + 10*ms, longest + 10*ms - own(rank, k)})
		}
		at += longest + 10*ms
	}
	return all
}

var large = Bounds{Rows: 128, Cells: 1 << 20}

// levels writes a row as a word: a letter for each cell.
func levels(row Row) (word string) {
	for _, c := range row.Cells {
		word += string("?.oOX"[c.Level+1])
	}
	return word
}

func rows(s *Strip) (words []string) {
	for _, r := range s.Rows {
		words = append(words, levels(r))
	}
	return words
}

func wantRows(t *testing.T, s *Strip, want ...string) {
	t.Helper()
	if s == nil {
		t.Fatalf("no strip, want %q", want)
	}
	got := rows(s)
	if len(got) != len(want) {
		t.Fatalf("rows %q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("row %d is %q, want %q", i, got[i], want[i])
		}
	}
}

// The steps of all ranks are equally long; it is the own time that shows who is late.
func TestAStragglerIsLongInEachStep(t *testing.T) {
	s := Of(reportOf(synchronous(4, 6, func(rank, _ int) int64 {
		if rank == 1 {
			return 90 * ms
		}
		return 20 * ms
	})...), large)
	wantRows(t, s, "......", "XXXXXX", "......", "......")
	if r := s.Slowest(); r == nil || r.Number != 1 || r.Longest != 6 || r.Steps != 6 || r.More != 70*ms {
		t.Errorf("the slowest is %+v, want rank 1 in 6 of 6 steps, by 70 ms", r)
	}
	if c := s.Rows[1].Cells[2]; c.Own != 90*ms || c.Median != 20*ms || c.Length != 100*ms || c.Nth != 3 || c.Rank != 1 || s.ByLength {
		t.Errorf("its third step: %+v", c)
	}
}

func TestOneSlowStepIsOneCell(t *testing.T) {
	s := Of(reportOf(synchronous(3, 5, func(rank, step int) int64 {
		if rank == 2 && step == 3 {
			return 60 * ms
		}
		return 40 * ms
	})...), large)
	wantRows(t, s, ".....", ".....", "...O.")
	if r := s.Slowest(); r == nil || r.Number != 2 || r.Longest != 1 || r.Steps != 5 {
		t.Errorf("the slowest is %+v", r)
	}
}

// Stacks that are read each 20 ms show a rank that is 15 ms longer in each step in some of them only: it is the mean
// that says by how much it is.
func TestLongerByALittleInEachStep(t *testing.T) {
	coarse := reportOf(synchronous(2, 60, func(rank, step int) int64 {
		switch {
		case rank == 0:
			return 10 * ms
		case step%6 == 0: // as it is seen
			return 50 * ms
		}
		return 20 * ms
	})...)
	interval := 20 * ms
	for i := range coarse.Processes {
		coarse.Processes[i].Stacks.IntervalNS = &interval
	}
	r := Of(coarse, large).Slowest()
	if r == nil || r.Number != 1 || r.Longest != 10 || !r.EachStep() || r.PerStep != (10*40+50*10)*ms/60 {
		t.Errorf("the slowest is %+v, want rank 1, in each step", r)
	}
	seldom := *r
	if seldom.More = 10 * r.PerStep; seldom.EachStep() {
		t.Errorf("%+v is longer in some steps, by much", seldom)
	}
	few := Of(reportOf(synchronous(2, 60, func(rank, step int) int64 {
		if rank == 1 && step%20 == 9 {
			return 500 * ms
		}
		return 10 * ms
	})...), large).Slowest()
	if few == nil || few.Longest != 3 || few.EachStep() || few.All != 60 {
		t.Errorf("the slowest is %+v, want rank 1 in 3 steps of 60", few)
	}
}

func TestRanksThatDoTheSameAreAllAlike(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	s := Of(reportOf(synchronous(8, 50, func(int, int) int64 { return 40*ms + random.Int64N(2*ms) })...), large)
	for i, word := range rows(s) {
		for _, letter := range word {
			if letter != '.' {
				t.Errorf("row %d is %q", i, word)
				break
			}
		}
	}
	if r := s.Slowest(); r != nil {
		t.Errorf("%+v is the slowest of ranks that do the same", r)
	}
}

// What is shorter than the sampling resolves is no difference.
func TestStepsThatAreShorterThanTheSamplingResolvesAreAlike(t *testing.T) {
	s := Of(reportOf(synchronous(3, 4, func(rank, _ int) int64 { return int64(rank+1) * ms })...), large)
	wantRows(t, s, "....", "....", "....")
}

// Where no rank was seen in a collective the lengths of the steps are compared.
func TestWithoutCollectivesLengthsAreCompared(t *testing.T) {
	var ranks [][]step
	for rank := range 3 {
		var steps []step
		for k := range int64(4) {
			long := int64(50)
			if rank == 1 {
				long = 65
			}
			steps = append(steps, step{k * 70 * ms, (k*70 + long) * ms, 0})
		}
		ranks = append(ranks, steps)
	}
	s := Of(reportOf(ranks...), large)
	if wantRows(t, s, "....", "OOOO", "...."); !s.ByLength {
		t.Error("it does not say that it is by length")
	}
}

// Of a step whose stacks are not known nothing is said, and the others are compared without it.
func TestAStepWhoseStacksAreNotKnownIsUnknown(t *testing.T) {
	ranks := synchronous(4, 4, func(rank, _ int) int64 {
		if rank == 3 {
			return 90 * ms
		}
		return 20 * ms
	})
	ranks[3][1].waiting = -1
	s := Of(reportOf(ranks...), large)
	wantRows(t, s, "....", "....", "....", "X?XX")
	if r := s.Slowest(); r.Longest != 3 || r.Steps != 3 {
		t.Errorf("the slowest is %+v, want 3 of the 3 steps that are known", r)
	}
}

// Steps are the same by when they were: the third one of a rank that joined late is the fifth of the others.
func TestRanksThatJoinLateOrEndEarly(t *testing.T) {
	ranks := synchronous(4, 8, func(rank, step int) int64 {
		if rank == 2 || step == 4 { // in the fifth all are slow
			return 80 * ms
		}
		return 20 * ms
	})
	ranks[0], ranks[1] = ranks[0][:5], ranks[1][2:]
	s := Of(reportOf(ranks...), large)
	wantRows(t, s, ".....", "......", "XXXX.XXX", "........")
	if c := s.Rows[1].Cells[2]; c.Nth != 3 || c.Median != 80*ms {
		t.Errorf("the third step of the rank that joined late is compared with %+v", c)
	}
	// One that died before the others began, as far as they are known, is compared with nobody.
	alone := [][]step{{{0, 10 * ms, 0}, {10 * ms, 20 * ms, 0}, {20 * ms, 30 * ms, 0}}, {{50 * ms, 60 * ms, 5 * ms}, {60 * ms, 70 * ms, 5 * ms}, {70 * ms, 80 * ms, 5 * ms}}}
	wantRows(t, Of(reportOf(alone...), large), "???", "???")
}

// Ranks that do not train in step have steps of their own lengths.
func TestRanksWithOtherCountsOfSteps(t *testing.T) {
	var twice, once []step
	for k := range int64(8) {
		twice = append(twice, step{k * 50 * ms, (k + 1) * 50 * ms, 0})
	}
	for k := range int64(4) {
		once = append(once, step{k * 100 * ms, (k + 1) * 100 * ms, 0})
	}
	s := Of(reportOf(twice, twice, once), large)
	wantRows(t, s, "........", "........", "XXXX")
}

func TestWhatIsTooLittleHasNoStrip(t *testing.T) {
	two := synchronous(3, 2, func(int, int) int64 { return 20 * ms })
	if s := Of(reportOf(two...), large); s != nil {
		t.Errorf("of two steps: %+v", s)
	}
	one := synchronous(1, 9, func(int, int) int64 { return 20 * ms })
	if s := Of(reportOf(one[0], nil), large); s != nil {
		t.Errorf("of one rank: %+v", s)
	}
	if s := Of(reportOf(), large); s != nil {
		t.Errorf("of nothing: %+v", s)
	}
}

// A thousand ranks are pooled, and no hot one is lost.
func TestAThousandRanksArePooled(t *testing.T) {
	r := reportOf(synchronous(1000, 40, func(rank, step int) int64 {
		if rank == 613 || rank == 20 && step == 17 {
			return 90 * ms
		}
		return 20 * ms
	})...)
	s := Of(r, Bounds{Rows: 128, Cells: 2048})
	if len(s.Rows) != 125 || s.Pooled != 8 || s.Joined != 4 {
		t.Fatalf("%d rows of %d ranks each, %d steps in a cell", len(s.Rows), s.Pooled, s.Joined)
	}
	cells, hot := 0, 0
	for i, row := range s.Rows {
		cells += len(row.Cells)
		for _, c := range row.Cells {
			if c.Level == Longest {
				if hot++; c.Rank != 613 && (c.Rank != 20 || c.Nth != 18) {
					t.Errorf("row %d has a hot cell of rank %d, step %d", i, c.Rank, c.Nth)
				}
			} else if c.Level != Alike {
				t.Errorf("row %d: %+v", i, c)
			}
		}
	}
	if cells > 2048 || hot != 11 {
		t.Errorf("%d cells, %d of them hot, want those of rank 613 and one of rank 20", cells, hot)
	}
	if row := s.Rows[613/8]; row.First != 608 || row.Last != 615 || levels(row) != "XXXXXXXXXX" {
		t.Errorf("row %+v", row)
	}
	if r := s.Slowest(); r.Number != 613 || r.Longest != 40 {
		t.Errorf("the slowest is %+v", r)
	}
}

// Whatever a document has as steps, the rows are of its ranks, in order of time and within the bounds.
func TestAnyStepsMakeRowsWithinBounds(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 11))
		ranks := make([][]step, 1+random.IntN(9))
		for rank := range ranks {
			for range random.IntN(12) {
				start := random.Int64N(200) * ms
				length := random.Int64N(60) * ms
				ranks[rank] = append(ranks[rank], step{start, start + length, random.Int64N(length+1) - 1})
			}
		}
		bounds := Bounds{Rows: 1 + random.IntN(6), Cells: random.IntN(20)}
		s := Of(reportOf(ranks...), bounds)
		if s == nil {
			continue
		}
		cells := 0
		for i, row := range s.Rows {
			cells += len(row.Cells)
			for k, c := range row.Cells {
				if c.Rank < row.First || c.Rank > row.Last || c.Level < Unknown || c.Level > Longest || c.Own > c.Length || k > 0 && c.Start < row.Cells[k-1].Start {
					t.Fatalf("seed %d, row %d: %+v", seed, i, c)
				}
			}
		}
		if len(s.Rows) > bounds.Rows || cells > max(bounds.Cells, 0)+len(s.Rows) {
			t.Errorf("seed %d: %d rows, %d cells, bounds %+v", seed, len(s.Rows), cells, bounds)
		}
		for _, r := range s.Ranks {
			if r.Longest > r.Steps || r.More < 0 || r.Longest > 0 && r.More == 0 {
				t.Errorf("seed %d: %+v", seed, r)
			}
		}
	}
}

func BenchmarkAThousandRanks(b *testing.B) {
	r := reportOf(synchronous(1000, 200, func(rank, step int) int64 { return int64(20+(rank*step)%7) * ms })...)
	for b.Loop() {
		Of(r, Bounds{Rows: 128, Cells: 4096})
	}
}
