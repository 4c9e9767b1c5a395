package snapshot

import (
	"cmp"
	"container/heap"
	"slices"
)

// Bands are what a device had allocated over its history: the allocations that had most memory for longest one by one, the
// others summed up. All times are numbers of events; an allocation that was there before the first has From -1.
type Bands struct {
	Device int
	Times  []int64 // µs since the first event, of each of At; nil: not recorded
	At     []int   // the events at which sums are known, ascending: the first, the last, and of each stretch between those with least and most
	List   []Band  // by From, then Address
	// By At: what is allocated in all, what of it is in none of List by category, and what is reserved.
	Total, Reserved []int64
	Rest            [][]int64
	Peak            int // which of At is that
	Events          int
	Count           int // how many allocations there are in all
}

// Band is one allocation.
type Band struct {
	From, To int   // the events that allocated and freed it; Events: it is still held
	FromUs   int64 // µs since the first event; -1: before it, or not recorded
	ToUs     int64 // -1: still held, or not recorded
	Size     int64
	Address  int64
	Stack    StackID
	Category Category
}

// weight is how much it matters: bytes times events.
func (b *Band) weight() float64 { return float64(b.Size) * float64(b.To-b.From) }

// least is a heap of bands of which the one that matters least is the first.
type least []Band

func (l least) Len() int           { return len(l) }
func (l least) Less(i, j int) bool { return l[i].weight() < l[j].weight() }
func (l least) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *least) Push(x any)        { *l = append(*l, x.(Band)) }
func (l *least) Pop() any {
	old := *l
	last := old[len(old)-1]
	*l = old[:len(old)-1]
	return last
}

// lives walks a device's history and calls ended for each allocation, when it is over or the history is.
func (s *Snapshot) lives(device int, ended func(Band)) {
	events := s.history(device)
	began := make(map[int64]Band)
	end := func(address int64, at int) {
		if b, live := began[address]; live {
			b.To = at
			delete(began, address)
			ended(b)
		}
	}
	begin := newReplay(s, device)
	for address, a := range begin.live {
		began[address] = Band{From: -1, Size: a.size, Address: address, Stack: a.stack, Category: s.category(a)}
	}
	for i, e := range events {
		switch e.Action {
		case Alloc:
			end(e.Address, i) // its free was lost
			began[e.Address] = Band{From: i, Size: e.Size, Address: e.Address, Stack: e.Stack, Category: s.Category(e.Stack)}
		case FreeCompleted:
			end(e.Address, i)
		}
	}
	left := make([]int64, 0, len(began))
	for address := range began {
		left = append(left, address)
	}
	slices.Sort(left)
	for _, address := range left {
		end(address, len(events))
	}
}

// bandsOf finds the bands of a device: at most so many one by one, and sums at some points.
func (s *Snapshot) bandsOf(peak moment, most, points int) *Bands {
	events := s.history(peak.device)
	if len(events) == 0 || most <= 0 {
		return nil
	}
	out := &Bands{Device: peak.device, Events: len(events)}
	var chosen least
	s.lives(peak.device, func(b Band) {
		out.Count++
		switch {
		case b.Size <= 0:
		case len(chosen) < most:
			heap.Push(&chosen, b)
		case b.weight() > chosen[0].weight():
			chosen[0] = b
			heap.Fix(&chosen, 0)
		}
	})
	out.List = chosen
	slices.SortFunc(out.List, func(a, b Band) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Address, b.Address)) })
	timed := events[0].TimeUs > 0
	since := func(event int) int64 {
		if !timed || event < 0 || event >= len(events) {
			return -1
		}
		return max(events[event].TimeUs-events[0].TimeUs, 0)
	}
	for i := range out.List {
		b := &out.List[i]
		b.FromUs, b.ToUs = since(b.From), since(b.To)
	}
	s.at(out, peak.event, points)
	if timed {
		for _, event := range out.At {
			out.Times = append(out.Times, since(event))
		}
	}
	s.sums(out)
	return out
}

// at chooses the events at which sums are known. Of each of the equal stretches of the history it takes that with the least and
// that with the most: a step of a training that is shorter than a stretch stays as high as it was.
func (s *Snapshot) at(b *Bands, peak, points int) {
	events := s.history(b.Device)
	stretches := max(min(points/2, len(events)), 1)
	b.At = append(b.At, 0, max(peak, 0), len(events)-1)
	r := newReplay(s, b.Device)
	stretch, least, most := -1, 0, 0
	var low, high int64
	for i, e := range events {
		r.apply(e)
		if now := i * stretches / len(events); now != stretch {
			b.At = append(b.At, least, most)
			stretch, least, most, low, high = now, i, i, r.total, r.total
			continue
		}
		if r.total < low {
			least, low = i, r.total
		}
		if r.total > high {
			most, high = i, r.total
		}
	}
	b.At = append(b.At, least, most)
	slices.Sort(b.At)
	b.At = slices.Compact(b.At)
	b.Peak, _ = slices.BinarySearch(b.At, max(peak, 0))
}

// sums replays the history once more, and takes away what has a band.
func (s *Snapshot) sums(b *Bands) {
	r := newReplay(s, b.Device)
	rest := make([][]int64, len(b.At))
	ends := slices.Clone(b.List)
	slices.SortFunc(ends, func(x, y Band) int { return cmp.Compare(x.To, y.To) })
	var own [numCategories]int64
	began, over, k := 0, 0, 0
	for i, e := range s.history(b.Device) {
		for ; began < len(b.List) && b.List[began].From <= i; began++ {
			own[b.List[began].Category] += b.List[began].Size
		}
		for ; over < len(ends) && ends[over].To <= i; over++ {
			own[ends[over].Category] -= ends[over].Size
		}
		r.apply(e)
		if k < len(b.At) && b.At[k] == i {
			b.Total, b.Reserved = append(b.Total, r.total), append(b.Reserved, r.reserved)
			for category := range numCategories {
				rest[k] = append(rest[k], r.byKind[category]-own[category])
			}
			k++
		}
	}
	b.Rest = rest
}

// Categories are the names of Bands.Rest's columns.
func Categories() []string { return categoryNames[:] }

const (
	// mostBands is how many allocations are told apart, bandPoints at how many moments sums are known.
	mostBands  = 2000
	bandPoints = 800
)

// LargestBands are those of the device that had most; nil where no history was recorded.
func (s *Snapshot) LargestBands() *Bands {
	var highest *moment
	for _, peak := range s.peaks() {
		if len(s.history(peak.device)) > 0 && (highest == nil || peak.total > highest.total) {
			highest = &peak
		}
	}
	if highest == nil {
		return nil
	}
	return s.bandsOf(*highest, mostBands, bandPoints)
}

// FramesOf are the frames of a stack that say something, as text, innermost first.
func (s *Snapshot) FramesOf(id StackID) (list []string) {
	if int(id) >= len(s.Stacks) {
		return nil
	}
	for _, f := range s.Stacks[id] {
		if f.isPython() || f.isInformative() {
			list = append(list, f.String())
		}
	}
	return list
}
