package snapshot

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// randomHistory allocates and frees at few addresses: some frees are lost, some are of what was there before the history.
func randomHistory(rnd *rand.Rand, events int, timed bool) *Snapshot {
	var list []Event
	for i := range events {
		e := Event{Address: 1 + rnd.Int64N(30), Size: rnd.Int64N(1 << 20), Stack: 0}
		if timed {
			e.TimeUs = 1e15 + int64(i)*7
		}
		switch rnd.IntN(9) {
		case 0, 1, 2, 3:
			e.Action = Alloc
		case 4:
			e.Action = FreeRequested
		case 5:
			e.Action = OutOfMemory
		case 6:
			e.Action = SegmentAlloc
		default:
			e.Action = FreeCompleted
		}
		list = append(list, e)
	}
	return history(list...)
}

// At each moment what has a band and what has none are all that is allocated, exactly.
func TestBandsAndTheRestAreAll(t *testing.T) {
	rnd := rand.New(rand.NewPCG(25, 13))
	for range 300 {
		s := randomHistory(rnd, 2+rnd.IntN(300), rnd.IntN(2) == 0)
		most, points := 1+rnd.IntN(40), 2+rnd.IntN(50)
		peak := s.peaks()[0]
		b := s.bandsOf(peak.device, most, points)
		if len(b.List) > most || len(b.List) > b.Count {
			t.Fatalf("%d bands of %d, at most %d", len(b.List), b.Count, most)
		}
		r, k := newReplay(s, peak.device), 0
		for i, e := range s.history(peak.device) {
			r.apply(e)
			if k == len(b.At) || b.At[k] != i {
				continue
			}
			sum := int64(0)
			for _, rest := range b.Rest[k] {
				if rest < 0 {
					t.Fatalf("after event %d the rest of a category is %d bytes", i, rest)
				}
				sum += rest
			}
			for _, band := range b.List {
				if band.From <= i && i < band.To {
					sum += band.Size
				}
			}
			if sum != r.total || b.Total[k] != r.total || b.Reserved[k] != r.reserved {
				t.Fatalf("after event %d bands and the rest are %d bytes of %d", i, sum, r.total)
			}
			k++
		}
		if k != len(b.At) {
			t.Fatalf("%d of %d moments", k, len(b.At))
		}
		if len(b.At) > points+5 {
			t.Fatalf("%d moments, asked for %d", len(b.At), points)
		}
		if peak.event >= 0 && slices.Max(b.Total) != peak.total {
			t.Errorf("the peak is %d bytes, want %d", slices.Max(b.Total), peak.total)
		}
	}
}

// An allocation ends when its address is allocated anew, too, and lasts to the end where nobody frees it.
func TestEachAllocationHasABand(t *testing.T) {
	s := history(
		Event{Action: FreeCompleted, Address: 9, Size: 50, TimeUs: 1000}, // from before
		Event{Action: Alloc, Address: 1, Size: 100, TimeUs: 1010},
		Event{Action: Alloc, Address: 2, Size: 10, TimeUs: 1020},
		Event{Action: FreeRequested, Address: 1, TimeUs: 1030},
		Event{Action: FreeCompleted, Address: 1, TimeUs: 1040},
		Event{Action: Alloc, Address: 2, Size: 30, TimeUs: 1050}, // its free was lost
		Event{Action: Alloc, Address: 3, Size: 0, TimeUs: 1060},  // of nothing
	)
	b := s.bandsOf(s.peaks()[0].device, 10, 4)
	want := []Band{
		{From: -1, To: 0, FromUs: -1, ToUs: 0, Size: 50, Address: 9, Category: CategoryEarly},
		{From: 1, To: 4, FromUs: 10, ToUs: 40, Size: 100, Address: 1, Category: CategoryNoStack},
		{From: 2, To: 5, FromUs: 20, ToUs: 50, Size: 10, Address: 2, Category: CategoryNoStack},
		{From: 5, To: 7, FromUs: 50, ToUs: -1, Size: 30, Address: 2, Category: CategoryNoStack},
	}
	if !slices.Equal(b.List, want) {
		t.Errorf("bands\n%+v, want\n%+v", b.List, want)
	}
	if b.Count != 5 || b.Events != 7 {
		t.Errorf("%d allocations in %d events", b.Count, b.Events)
	}
}

// Of many those have a band that had most for longest.
func TestTheBandsAreThoseThatMatter(t *testing.T) {
	var list []Event
	for i := range int64(50) {
		list = append(list, Event{Action: Alloc, Address: 100 + i, Size: 10}, Event{Action: FreeCompleted, Address: 100 + i})
	}
	list = append([]Event{{Action: Alloc, Address: 1, Size: 5}}, list...) // half as large, for the whole time
	s := history(list...)
	b := s.bandsOf(s.peaks()[0].device, 1, 10)
	if len(b.List) != 1 || b.List[0].Address != 1 || b.Count != 51 {
		t.Errorf("bands %+v of %d", b.List, b.Count)
	}
}

func TestWithoutAHistoryThereAreNoBands(t *testing.T) {
	if b := history().bandsOf(0, 10, 10); b != nil {
		t.Errorf("bands %+v", b)
	}
}

// Steps that are shorter than what lies between two moments are as high as they were: nothing beats with the moments.
func TestShortStepsStayAsHighAsTheyWere(t *testing.T) {
	var list []Event
	for step := range int64(200) {
		for i := range int64(50) {
			list = append(list, Event{Action: Alloc, Address: 100*step + i + 1, Size: 10})
		}
		for i := range int64(50) {
			list = append(list, Event{Action: FreeCompleted, Address: 100*step + i + 1})
		}
	}
	s := history(list...)
	b := s.bandsOf(s.peaks()[0].device, 1, 80) // five steps lie between two of them
	lowest, highest := 0, 0
	for _, total := range b.Total {
		if total >= 490 {
			highest++
		}
		if total <= 10 {
			lowest++
		}
	}
	if highest < 40 || lowest < 40 {
		t.Errorf("of %d moments %d are of a step's highest, %d of its lowest", len(b.Total), highest, lowest)
	}
}
