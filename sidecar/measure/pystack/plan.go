package pystack

import (
	"encoding/binary"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

const (
	maxChunks     = 1 << 17   // chunks of one thread's data stack: 2 GB, some 20 million frames
	maxChunkSize  = 2 << 20   // bytes of one; of more than 16 kB only for a single frame, here of 260,000 slots
	usualChunk    = 64 << 10  // up to here one that another lies on is read whole
	maxStackRead  = 256 << 10 // bytes of a data stack that are read whole: some 2,000 frames
	topRead       = 64 << 10  // else so much of its top …
	bottomRead    = 48 << 10  // … and of its bottom
	chunkSlack    = 512       // read beyond the top, so that a few more calls need no second try …
	growthSlack   = 2 << 10   // … and where the stack has been found to grow
	maxHeapFrames = 64        // generator frames of one thread kept in mind, where its stack has not as many
	maxShims      = 1024      // interpreter entries of one thread kept in mind
	keepUnseen    = 64        // samples between two looks for places no longer used
	maxCopies     = 5         // of one structure
	churnSamples  = 32        // that plan.generatorChurn is about
	maxChurn      = 0.5       // generatorChurn above which new generators cannot be distinguished from remnants of others
	mergeGap      = 2048      // neighbours up to this far apart are read as one range
	cframeSize    = 24        // of a _PyCFrame
)

// A sample copies the target's memory by one call:
//
//	chunks, heap frames, thread state, C stack, chunks, heap frames, top chunk
//
// so that each heap frame and chunk is read twice with the thread state and the
// frames on the C stack in between. What is the same in both copies was so at
// the moment the thread state was read, unless it changed there and back: the
// two rows are interleaved and not nested to keep each one's time short, and the
// third copy of the top chunk catches programs that go round in just the time
// between the other two; where the last sample changed under the read there are
// five. The addresses are those of the sample before; where
// they have changed, the sample is tried again with the new ones.

// segment is a range of the target's memory and where its copies lie in the
// buffer, in the order they were made.
type segment struct {
	addr, size uint64
	kind       segmentKind
	n          int
	at         [maxCopies]uint64
}

// segmentKind says what a segment holds.
type segmentKind uint8

const (
	heapFrames segmentKind = iota // of generators
	topChunk                      // of the data stack
	lowerChunk
	cStack // shims and _PyCFrames
)

// onDataStack recognises a segment in which frames lie one behind the other.
func (s *segment) onDataStack() bool { return s.kind == topChunk || s.kind == lowerChunk }

// chunkRange is a chunk of a thread's data stack and how much of it is read.
type chunkRange struct {
	addr, size uint64 // size as allocated
	used       uint64 // bytes to read
}

// placed is a frame outside the data stack: of a generator, or a shim or
// _PyCFrame on the C stack.
type placed struct {
	addr uint64
	size uint64
	seen uint64 // sample at which it was last part of the stack
}

// plan is where a thread's stack is expected to lie. It belongs to one thread.
type plan struct {
	chunks         []chunkRange // top first
	read           []chunkRange // of them: the middle of a deep recursion is left out
	bottom         uint64       // if so, the uppermost chunk below it
	heap           []placed     // by address
	passed         passed       // of a long chain of generators: what is not in heap
	missing        []uint64     // of generators, while they are added
	stack          []placed     // by address
	sample         uint64       // counts samples, for placed.seen
	change         uint64       // counts changes of the plan
	generatorChurn float64      // share of the last samples with generators of which one was torn
	fast           bool         // the last one has, and there are generators: make more copies
}

// position returns where the place at addr is in a list, or would be.
func position(list []placed, addr uint64) (at int, found bool) {
	low, high := 0, len(list)
	for low < high {
		if middle := (low + high) / 2; list[middle].addr < addr {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(list) && list[low].addr == addr
}

// add keeps a frame's place in mind.
func add(list []placed, addr, size, sample uint64, limit int) []placed {
	i, found := position(list, addr)
	if found {
		list[i].seen, list[i].size = sample, max(list[i].size, size)
		return list
	}
	if len(list) >= limit {
		oldest := 0
		for j := range list {
			if list[j].seen < list[oldest].seen {
				oldest = j
			}
		}
		list = slices.Delete(list, oldest, oldest+1)
		if oldest < i {
			i--
		}
	}
	return slices.Insert(list, i, placed{addr, size, sample})
}

func (p *plan) addStack(addr, size uint64) {
	p.stack = add(p.stack, addr, size, p.sample, maxShims)
	p.change++
}

// note takes in what the first try of a sample found to change under the read.
func (p *plan) note(a *attempt) {
	if a.generators {
		p.generatorChurn -= p.generatorChurn / churnSamples
	}
	if a.torn {
		p.generatorChurn += 1.0 / churnSamples
	}
	if fast := a.moved && len(p.heap) > 0; fast != p.fast {
		p.fast = fast
		p.change++
	}
}

// see marks a place as part of the stack of this sample.
func see(list []placed, addr, sample uint64) {
	i, found := position(list, addr)
	if !found {
		i-- // it may lie within the one before
	}
	if i >= 0 && addr-list[i].addr < list[i].size {
		list[i].seen = sample
	}
}

// forget drops what has not been part of the stack for long.
func (p *plan) forget() {
	before := len(p.heap) + len(p.stack)
	unseen := func(q placed) bool { return q.seen+2*keepUnseen <= p.sample }
	p.heap, p.stack = slices.DeleteFunc(p.heap, unseen), slices.DeleteFunc(p.stack, unseen)
	if len(p.heap)+len(p.stack) != before {
		p.change++
	}
}

// copies holds what one call read. It is used again for every sample.
type copies struct {
	ranges   []Range
	buf      []byte
	segments []segment
	thread   uint64 // position of the thread state in buf
	top      int    // segments[top] is the top chunk, if there is one; before it are heap frames, by address
	shims    int    // from here on they are of the C stack, by address
	planned  struct {
		ranges int    // those of the plan; others may follow
		size   uint64 // bytes of them
	}

	laidOut struct { // what the ranges are for
		plan   *plan
		change uint64
		gil    uint64
	}
}

// layOut writes the plan as ranges and gives their copies places in the buffer.
// gil, if not 0, is read first.
func (c *copies) layOut(l *cpython.Layout, p *plan, thread, gil, gilLen uint64) {
	if c.laidOut.plan == p && c.laidOut.change == p.change && c.laidOut.gil == gil {
		c.ranges = c.ranges[:c.planned.ranges]
		c.resize(c.planned.size)
		return
	}
	c.laidOut.plan, c.laidOut.change, c.laidOut.gil = p, p.change, gil
	c.segments = c.segments[:0]
	c.merge(p.heap, heapFrames)
	heap := len(c.segments)
	for i, ch := range p.read {
		if i == 0 {
			ch.used = p.chunks[0].used // it changes with each sample
		}
		kind := lowerChunk
		if i == 0 {
			kind = topChunk
		}
		c.segments = append(c.segments, segment{addr: ch.addr, size: ch.used, kind: kind})
	}
	chunks := len(c.segments)
	c.merge(p.stack, cStack)

	c.ranges = c.ranges[:0]
	pos := uint64(0)
	read := func(addr, size uint64) uint64 {
		c.ranges = append(c.ranges, Range{Addr: addr, Len: int(size)})
		pos += size
		return pos - size
	}
	readAll := func(from, to int) {
		for i := from; i < to; i++ {
			s := &c.segments[i]
			s.at[s.n] = read(s.addr, s.size)
			s.n++
		}
	}
	c.top, c.shims = heap, chunks
	afterTop := min(heap+1, chunks)
	if gil != 0 {
		read(gil, gilLen)
	}
	if p.fast {
		readAll(heap, afterTop)
	}
	readAll(heap, chunks)
	readAll(0, heap)
	c.thread = read(thread, l.Thread.Size)
	readAll(chunks, len(c.segments))
	readAll(heap, chunks)
	readAll(0, heap)
	readAll(heap, afterTop)
	if p.fast {
		readAll(0, heap)
		readAll(heap, afterTop)
	}
	c.planned.ranges, c.planned.size = len(c.ranges), pos
	c.resize(pos)
}

// resize makes the buffer as long as what is to be read.
func (c *copies) resize(size uint64) {
	if uint64(cap(c.buf)) < size {
		c.buf = make([]byte, size+size/2)
	}
	c.buf = c.buf[:size]
}

// merge appends the places as segments, neighbours as one.
func (c *copies) merge(list []placed, kind segmentKind) {
	for i, p := range list {
		if i > 0 {
			last := &c.segments[len(c.segments)-1]
			if end := last.addr + last.size; p.addr <= end+mergeGap {
				last.size = max(end, p.addr+p.size) - last.addr
				continue
			}
		}
		c.segments = append(c.segments, segment{addr: p.addr, size: p.size, kind: kind})
	}
}

// find returns the segment that holds size bytes at addr, and where in it; nil
// if none does.
func (c *copies) find(addr, size uint64) (s *segment, offset uint64) {
	for i := c.top; i < c.shims; i++ { // where most frames are
		s = &c.segments[i]
		if offset = addr - s.addr; offset < s.size && s.size-offset >= size {
			return s, offset
		}
	}
	if s, offset = within(c.segments[:c.top], addr, size); s != nil {
		return s, offset
	}
	return within(c.segments[c.shims:], addr, size)
}

// within is find in segments that are in the order of their addresses.
func within(segments []segment, addr, size uint64) (*segment, uint64) {
	low, high := 0, len(segments)
	for low < high {
		if middle := (low + high) / 2; segments[middle].addr <= addr {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 {
		return nil, 0
	}
	s := &segments[low-1]
	if offset := addr - s.addr; offset < s.size && s.size-offset >= size {
		return s, offset
	}
	return nil, 0
}

// word reads a word of the buffer.
func (c *copies) word(pos uint64) uint64 { return binary.LittleEndian.Uint64(c.buf[pos:]) }

// use is the copy to follow: the first after the thread state was read, or the
// last before.
func (s *segment) use(before bool) uint64 {
	i := s.n / 2
	if before && i > 0 {
		i--
	}
	return s.at[i]
}
