package pystack

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// chunksRight reports whether the copies hold the thread's data stack, and
// corrects the plan if not.
func (r *reader) chunksRight(t *thread, chunk, top uint64) bool {
	p := &t.plan
	if chunk == 0 {
		p.setChunks(p.chunks[:0])
		return true
	}
	if len(p.chunks) == 0 || p.chunks[0].addr != chunk {
		r.learnChunks(p, chunk, top)
		return false
	}
	below := uint64(0)
	if len(p.chunks) > 1 {
		below = p.chunks[1].addr
	}
	if r.word(r.segments[r.top].use(false)+cpython.ChunkPrevious) != below {
		p.setChunks(p.chunks[:0])
		r.learnChunks(p, chunk, top)
		return false
	}
	used := top - chunk
	if used > p.chunks[0].size {
		return false
	}
	if used > p.chunks[0].used {
		p.chunks[0].used = roundUsed(used+growthSlack, p.chunks[0].size)
		p.change++
		return false
	}
	if used+4*growthSlack < p.chunks[0].used {
		p.chunks[0].used = roundUsed(used+growthSlack, p.chunks[0].size)
		p.change++
	}
	return true
}

func roundUsed(used, size uint64) uint64 {
	if used >= size {
		return size
	}
	return min((used+chunkSlack+255)&^255, size)
}

// learnChunks reads the chain of chunks from the top one down, as far as it is not
// known: a recursion goes from one to the next all the time.
func (r *reader) learnChunks(p *plan, chunk, top uint64) {
	var above []chunkRange
	var head [cpython.ChunkData]byte
	for known := -1; chunk != 0; {
		if cpython.ReadAt(r.mem, chunk, head[:]) != nil || len(above) == maxChunks {
			p.setChunks(p.chunks[:0])
			return
		}
		size := cpython.Word(head[:], cpython.ChunkSize)
		if size < cpython.ChunkData || size > maxChunkSize {
			p.setChunks(p.chunks[:0])
			return
		}
		used := size // a chunk that another lies on is full, but for less than a frame
		if len(above) == 0 {
			used = roundUsed(top-chunk, size)
		} else if size > usualChunk {
			used = min(cpython.Word(head[:], cpython.ChunkTop), size/cpython.WordSize)*cpython.WordSize + cpython.ChunkData
		}
		above = append(above, chunkRange{addr: chunk, size: size, used: min(used, size)})
		chunk = cpython.Word(head[:], cpython.ChunkPrevious)
		if known = slices.IndexFunc(p.chunks, func(c chunkRange) bool { return c.addr == chunk }); known >= 0 {
			below := slices.Clone(p.chunks[known:])
			below[0].used = below[0].size
			above = append(above, below...)
			break
		}
	}
	p.setChunks(above)
}

// setChunks says which chunks the thread's data stack has, the top one first.
func (p *plan) setChunks(chunks []chunkRange) {
	if len(chunks) == 0 && len(p.chunks) == 0 {
		return
	}
	p.chunks, p.read = chunks, append(p.read[:0], chunks...)
	p.change++
	total := uint64(0)
	for _, c := range chunks {
		total += c.used
	}
	if total <= maxStackRead {
		return
	}
	// The top and the bottom of a deep recursion, with nothing of the middle.
	high, low := 0, len(chunks)
	for sum := uint64(0); high < len(chunks) && sum < topRead; high++ {
		sum += chunks[high].used
	}
	for sum := uint64(0); low > high && sum < bottomRead; low-- {
		sum += chunks[low-1].used
	}
	p.read = append(append(p.read[:0], chunks[:high]...), chunks[low:]...)
	p.bottom = chunks[min(low, len(chunks)-1)].addr
}

// isElided recognises an address in the middle of a deep recursion, which is not read.
func (p *plan) isElided(addr uint64) bool {
	if len(p.read) == len(p.chunks) {
		return false
	}
	return slices.ContainsFunc(p.chunks, func(c chunkRange) bool { return addr-c.addr < c.size })
}

// elided is how many bytes of frames are not read.
func (p *plan) elided() uint64 {
	sum := uint64(0)
	for _, c := range p.chunks {
		sum += c.used
	}
	for _, c := range p.read {
		sum -= c.used
	}
	return sum
}

// mark notes which places on the C stack are in use, for plan.forget.
func (r *reader) mark(t *thread) {
	if r.l.CFrame.Is {
		see(t.plan.stack, cpython.Word(r.buf[r.thread:], r.l.Thread.Frame), t.plan.sample)
	}
	addr := r.last.leaf
	for step := 0; addr != 0 && step < maxDepth; step++ {
		s, offset := r.find(addr, r.l.Frame.Size)
		if s == nil {
			return
		}
		if s.kind == cStack {
			see(t.plan.stack, addr, t.plan.sample)
		}
		addr = r.word(s.use(false) + offset + r.l.Frame.Previous)
	}
}

// dropUnmapped takes the range at which a read ended out of the plan; false if
// it is none that can be left out.
func (r *reader) dropUnmapped(t *thread, n int) bool {
	for _, rng := range r.ranges {
		if n -= rng.Len; n >= 0 {
			continue
		}
		p := &t.plan
		within := func(addr uint64) bool { return addr-rng.Addr < uint64(rng.Len) }
		before := len(p.heap) + len(p.stack) + len(p.chunks)
		p.change++
		p.heap = deletePlaced(p.heap, within)
		p.stack = deletePlaced(p.stack, within)
		for _, ch := range p.read {
			if within(ch.addr) {
				p.setChunks(p.chunks[:0])
				break
			}
		}
		return len(p.heap)+len(p.stack)+len(p.chunks) < before
	}
	return false
}

func deletePlaced(list []placed, drop func(uint64) bool) []placed {
	out := list[:0]
	for _, p := range list {
		if !drop(p.addr) {
			out = append(out, p)
		}
	}
	return out
}
