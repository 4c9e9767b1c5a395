package pystack

import "slices"

const (
	maxChunks     = 256      // chunks of one thread's data stack that are read: 4 MB
	maxChunkRead  = 16 << 20 // bytes of one chunk
	chunkSlack    = 512      // read beyond the top, so that a few more calls need no second try
	maxHeapFrames = 64       // generator frames of one thread kept in mind
	maxHeapFrame  = 512      // bytes of one that are read
	maxShims      = 1024     // interpreter entries of one thread kept in mind
	keepUnseen    = 64       // samples after which a frame no longer seen is dropped
	maxCopies     = 5        // of one structure
	mergeGap      = 2048     // neighbours up to this far apart are read as one range
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

// segment is a range of the target's memory and its one or two copies.
type segment struct {
	addr, size uint64
	view
}

// view is one structure in all its copies, by the time they were made.
type view struct {
	copies [maxCopies][]byte
	n      int
}

func (v *view) add(b []byte) {
	v.copies[v.n] = b
	v.n++
}

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
	chunks []chunkRange // top first
	cframe uint64       // 3.11, 3.12
	heap   []placed     // by address
	stack  []placed     // by address
	sample uint64       // counts samples, for placed.seen
	fast   bool         // the last sample changed under the read: make more copies
}

// add keeps a frame's place in mind.
func add(list []placed, addr, size, sample uint64, limit int) []placed {
	i, found := slices.BinarySearchFunc(list, addr, func(p placed, addr uint64) int {
		switch {
		case p.addr < addr:
			return -1
		case p.addr > addr:
			return 1
		}
		return 0
	})
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

// see marks a place as part of the stack of this sample.
func see(list []placed, addr, sample uint64) {
	for i := range list {
		if list[i].addr <= addr && addr < list[i].addr+list[i].size {
			list[i].seen = sample
			return
		}
	}
}

// forget drops what has not been part of the stack for long.
func forget(list []placed, sample uint64) []placed {
	return slices.DeleteFunc(list, func(p placed) bool { return p.seen+keepUnseen < sample })
}

// copies holds what one call read. It is used again for every sample.
type copies struct {
	ranges   []Range
	buf      []byte
	segments []segment
	thread   []byte
	gil      []byte
	heap     int // segments[:heap] are generators
	chunks   int // segments[heap:chunks] are chunks, the rest is the C stack
}

// layOut writes the plan as ranges and cuts the buffer into their copies.
// gil, if not 0, is read first.
func (c *copies) layOut(l *layout, p *plan, thread, gil, gilLen uint64) {
	c.segments = c.segments[:0]
	total := uint64(0)
	total += c.merge(p.heap)
	c.heap = len(c.segments)
	for _, ch := range p.chunks {
		c.segments = append(c.segments, segment{addr: ch.addr, size: ch.used})
		total += ch.used
	}
	c.chunks = len(c.segments)
	once := c.merge(p.stack)
	total = 2*total + once + l.thread.size + gilLen
	if len(p.chunks) > 0 {
		total += 3 * p.chunks[0].used
	}
	if uint64(cap(c.buf)) < total {
		c.buf = make([]byte, total+total/2)
	}
	c.buf = c.buf[:total]

	c.ranges = c.ranges[:0]
	pos := uint64(0)
	read := func(addr, size uint64) []byte {
		c.ranges = append(c.ranges, Range{addr, int(size)})
		b := c.buf[pos : pos+size : pos+size]
		pos += size
		return b
	}
	c.gil = nil
	if gil != 0 {
		c.gil = read(gil, gilLen)
	}
	heap, chunks, stack := c.segments[:c.heap], c.segments[c.heap:c.chunks], c.segments[c.chunks:]
	readAll := func(segments []segment) {
		for i := range segments {
			segments[i].add(read(segments[i].addr, segments[i].size))
		}
	}
	topChunk := chunks[:min(1, len(chunks))]
	if p.fast {
		readAll(topChunk)
	}
	readAll(chunks)
	readAll(heap)
	c.thread = read(thread, l.thread.size)
	readAll(stack)
	readAll(chunks)
	readAll(heap)
	readAll(topChunk)
	if p.fast {
		readAll(topChunk)
	}
	c.buf = c.buf[:pos]
}

// merge appends the places as segments, neighbours as one, and returns their
// bytes.
func (c *copies) merge(list []placed) uint64 {
	total := uint64(0)
	for i, p := range list {
		if i > 0 {
			last := &c.segments[len(c.segments)-1]
			if end := last.addr + last.size; p.addr <= end+mergeGap {
				if p.addr+p.size > end {
					total += p.addr + p.size - end
					last.size = p.addr + p.size - last.addr
				}
				continue
			}
		}
		c.segments = append(c.segments, segment{addr: p.addr, size: p.size})
		total += p.size
	}
	return total
}

// place says what kind of memory an address lies in.
type place uint8

const (
	placeUnknown place = iota
	placeHeap
	placeChunk
	placeStack
)

// find returns the copies of size bytes at addr.
func (c *copies) find(addr, size uint64) (v view, where place) {
	for i := range c.segments {
		s := &c.segments[i]
		at := addr - s.addr
		if at >= s.size || s.size-at < size {
			continue
		}
		switch {
		case i < c.heap:
			where = placeHeap
		case i < c.chunks:
			where = placeChunk
		default:
			where = placeStack
		}
		for j := range s.n {
			v.copies[j] = s.copies[j][at : at+size]
		}
		v.n = s.n
		return v, where
	}
	return view{}, placeUnknown
}
