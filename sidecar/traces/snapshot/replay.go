package snapshot

// replay walks a device's history and keeps what is allocated at each moment.
// The allocator's history is a ring: what was allocated before its first event
// is known only by what is freed later, or still lives in a segment.
type replay struct {
	snapshot *Snapshot
	device   int
	live     map[int64]allocation
	byKind   [numCategories]int64
	places   []int8  // by StackID: index into byPlace, -1 for the rest; nil: not distinguished
	byPlace  []int64 // bytes of the places distinguished
	total    int64   // requested bytes in use, AwaitingFree included
	blocks   int64   // bytes of the blocks of what the program has not freed, at least: as torch.cuda.memory_allocated() counts
	reserved int64
	event    int                      // the last one that was applied; -1 before the first
	ended    func(int64, *allocation) // called with an address and what was allocated there, when that is over; may be nil
}

type allocation struct {
	size  int64
	stack StackID
	from  int   // the event
	early bool  // allocated before the history begins
	block int64 // bytes that the program holds; 0 when it has freed it
}

// blockOf is the least that the allocator gives for a size: it rounds up to 512 bytes, and leaves a rest that is not worth dividing.
func blockOf(size int64) int64 {
	const unit = 512
	if size <= 0 || size > 1<<62 {
		return max(size, 0)
	}
	return (size + unit - 1) / unit * unit
}

// newReplay starts with what was in use before the first event. The places are
// the stacks whose memory is to be distinguished.
func newReplay(s *Snapshot, device int, places ...StackID) *replay {
	r := &replay{snapshot: s, device: device, live: map[int64]allocation{}, event: -1}
	if len(places) > 0 {
		r.places, r.byPlace = make([]int8, len(s.Stacks)), make([]int64, len(places))
		for i := range r.places {
			r.places[i] = -1
		}
		for i, id := range places {
			r.places[id] = int8(i)
		}
	}
	events := s.history(device)
	seen := make(map[int64]bool) // addresses whose allocation is in the history
	reserved := int64(0)
	for _, e := range events {
		switch e.Action {
		case Alloc:
			seen[e.Address] = true
		case FreeCompleted:
			if !seen[e.Address] {
				r.add(e.Address, allocation{size: e.Size, early: true, block: r.blockOf(e.Size)})
				seen[e.Address] = true
			}
		case SegmentAlloc:
			reserved += e.Size
		case SegmentFree:
			reserved -= e.Size
		}
	}
	for _, segment := range s.Segments {
		if segment.Device != device {
			continue
		}
		r.reserved += segment.Total
		for _, b := range segment.Blocks {
			if b.State != Inactive && !seen[b.Address] {
				r.add(b.Address, allocation{size: b.Requested, stack: b.Stack, early: true, block: b.held()})
			}
		}
	}
	r.reserved = max(0, r.reserved-reserved)
	return r
}

func (s *Snapshot) history(device int) []Event {
	if device == HostMemory {
		return s.Host.Events
	}
	if device < len(s.Devices) {
		return s.Devices[device].Events
	}
	return nil
}

func (r *replay) add(address int64, a allocation) {
	if old, ok := r.live[address]; ok { // its free was lost
		r.count(old, -old.size)
		r.blocks -= old.block
		r.end(address, &old)
	}
	a.from = r.event
	r.live[address] = a
	r.count(a, a.size)
	r.blocks += a.block
}

// blockOf is the block of an allocation of a device; pinned host memory has none.
func (r *replay) blockOf(size int64) int64 {
	if r.device == HostMemory {
		return 0
	}
	return blockOf(size)
}

// held is what of a block the program has not freed.
func (b Block) held() int64 {
	if b.State == Active {
		return b.Size
	}
	return 0
}

// freed is that the program has freed what is at an address; it may be in use until streams are done with it.
func (r *replay) freed(address int64) {
	if a, ok := r.live[address]; ok && a.block > 0 {
		r.blocks -= a.block
		a.block = 0
		r.live[address] = a
	}
}

// end is that what was allocated at an address is there no more, or the history is over.
func (r *replay) end(address int64, a *allocation) {
	if r.ended != nil {
		r.ended(address, a)
	}
}

func (r *replay) count(a allocation, change int64) {
	r.total += change
	r.byKind[r.snapshot.category(a)] += change
	if r.places != nil && r.places[a.stack] >= 0 {
		r.byPlace[r.places[a.stack]] += change
	}
}

func (r *replay) apply(e Event) {
	r.event++
	switch e.Action {
	case Alloc:
		r.add(e.Address, allocation{size: e.Size, stack: e.Stack, block: r.blockOf(e.Size)})
	case FreeRequested:
		r.freed(e.Address)
	case FreeCompleted:
		r.freed(e.Address)
		if a, ok := r.live[e.Address]; ok {
			delete(r.live, e.Address)
			r.count(a, -a.size)
			r.end(e.Address, &a)
		}
	case SegmentAlloc:
		r.reserved += e.Size
	case SegmentFree:
		r.reserved -= e.Size
	}
}

// DeviceNumbers are the devices with segments or a history, ascending, pinned
// host memory last.
func (s *Snapshot) DeviceNumbers() []int {
	last := len(s.Devices) - 1
	used := map[int]bool{}
	for i, d := range s.Devices {
		used[i] = len(d.Events) > 0
	}
	host := len(s.Host.Events) > 0
	for _, segment := range s.Segments {
		host = host || segment.Device == HostMemory
		if segment.Device >= 0 && segment.Device < 1<<10 {
			used[segment.Device] = true
			last = max(last, segment.Device)
		}
	}
	var numbers []int
	for i := 0; i <= last; i++ {
		if used[i] {
			numbers = append(numbers, i)
		}
	}
	if host {
		numbers = append(numbers, HostMemory)
	}
	return numbers
}
