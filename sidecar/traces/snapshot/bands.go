package snapshot

import (
	"cmp"
	"container/heap"
	"maps"
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

// bandsOf finds the bands of a device: at most so many one by one, and sums at some points.
func (s *Snapshot) bandsOf(device, most, points int) *Bands {
	events := s.history(device)
	if len(events) == 0 || most <= 0 {
		return nil
	}
	out := &Bands{Device: device, Events: len(events)}
	var chosen least
	r := newReplay(s, device)
	r.ended = func(address int64, a *allocation) {
		b := Band{From: a.from, To: r.event, Size: a.size, Address: address, Stack: a.stack, Category: s.category(*a)}
		out.Count++
		switch {
		case b.Size <= 0:
		case len(chosen) < most:
			heap.Push(&chosen, b)
		case b.weight() > chosen[0].weight():
			chosen[0] = b
			heap.Fix(&chosen, 0)
		}
	}
	e := extremes{stretches: max(min(points/2, len(events)), 1), events: len(events)}
	for i := range events {
		r.apply(events[i])
		e.see(i, r.total)
	}
	r.event++ // what is left is held beyond the last one
	for _, address := range slices.Sorted(maps.Keys(r.live)) {
		a := r.live[address]
		r.end(address, &a)
	}
	out.List, out.At = chosen, e.moments()
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
	if timed {
		for _, event := range out.At {
			out.Times = append(out.Times, since(event))
		}
	}
	s.sums(out)
	return out
}

// extremes finds the events after which sums are kept. Of each of the equal stretches of a history it takes that with the
// least and that with the most: a step of a training that is shorter than a stretch stays as high as it was.
type extremes struct {
	stretches, events int
	at                []int
	stretch           int // that least and most are of
	least, most       int
	low, high         int64
}

// see takes what there is after an event; the first one is 0.
func (e *extremes) see(event int, total int64) {
	switch stretch := event * e.stretches / e.events; {
	case event == 0 || stretch != e.stretch:
		e.at = append(e.at, e.least, e.most)
		e.stretch, e.least, e.most, e.low, e.high = stretch, event, event, total, total
	case total < e.low:
		e.least, e.low = event, total
	case total > e.high:
		e.most, e.high = event, total
	}
}

// moments are those events, with the first and the last.
func (e *extremes) moments() []int {
	at := append(e.at, 0, e.least, e.most, e.events-1)
	slices.Sort(at)
	return slices.Compact(at)
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
	return s.bandsOf(highest.device, mostBands, bandPoints)
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
