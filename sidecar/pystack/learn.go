package pystack

const maxLearn = 32 // frames looked up one by one to find where a chain goes

// chunksRight tells whether the copies hold the thread's data stack, and
// corrects the plan if not.
func (r *reader) chunksRight(t *thread, chunk, top uint64) bool {
	p := &t.plan
	if chunk == 0 {
		if len(p.chunks) > 0 {
			p.chunks = p.chunks[:0]
			p.change++
		}
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
	if r.word(r.segments[r.top].use(false)+chunkPrev) != below {
		r.learnChunks(p, chunk, top)
		return false
	}
	used := top - chunk
	if used > p.chunks[0].size {
		return false
	}
	if used > p.chunks[0].used {
		p.chunks[0].used = roundUsed(used, p.chunks[0].size)
		p.change++
		return false
	}
	if used+4096 < p.chunks[0].used {
		p.chunks[0].used = roundUsed(used, p.chunks[0].size)
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

// learnChunks reads the chain of chunks from the top one down.
func (r *reader) learnChunks(p *plan, chunk, top uint64) {
	p.chunks = p.chunks[:0]
	p.change++
	var head [chunkData]byte
	total := uint64(0)
	for chunk != 0 && len(p.chunks) < maxChunks {
		if readAt(r.mem, chunk, head[:]) != nil {
			p.chunks = p.chunks[:0]
			return
		}
		size := word(head[:], chunkSize)
		if size < chunkData || size > maxChunkRead {
			p.chunks = p.chunks[:0]
			return
		}
		used := min(word(head[:], 16), size/wordSize)*wordSize + chunkData
		if len(p.chunks) == 0 {
			used = roundUsed(top-chunk, size)
		}
		used = min(used, size)
		if total += used; total > maxStackRead {
			p.chunks = p.chunks[:0]
			return
		}
		p.chunks = append(p.chunks, chunkRange{addr: chunk, size: size, used: used})
		chunk = word(head[:], chunkPrev)
	}
	r.calls += int64(len(p.chunks))
}

// mark notes which places on the C stack are in use, for plan.forget.
func (r *reader) mark(t *thread) {
	if r.l.viaCFrame {
		see(t.plan.stack, word(r.buf[r.thread:], r.l.thread.frame), t.plan.sample)
	}
	addr := r.leaf
	for step := 0; addr != 0 && step < maxDepth; step++ {
		s, offset := r.find(addr, r.l.frame.size)
		if s == nil {
			return
		}
		if s.where == placeStack {
			see(t.plan.stack, addr, t.plan.sample)
		}
		addr = r.word(s.use(false) + offset + r.l.frame.previous)
	}
}

// learn takes the frames outside the plan into it: it follows the chain from
// addr through the copies, reading what they lack one by one. It tells whether
// the plan has grown.
func (r *reader) learn(t *thread, addr uint64) bool {
	l := r.l
	var buf [128]byte
	learnt := 0
	for step := 0; addr != 0 && learnt < maxLearn && step < maxDepth; step++ {
		if s, offset := r.find(addr, l.frame.size); s != nil {
			addr = r.word(s.use(false) + offset + l.frame.previous)
			continue
		}
		head := buf[:l.frame.size]
		r.calls++
		if addr%wordSize != 0 || readAt(r.mem, addr, head) != nil {
			break
		}
		switch owner := head[l.frame.owner]; {
		case owner == ownerGen:
			t.plan.addHeap(addr, l.frame.size)
		case owner >= ownerShim && owner < 16 && l.hasShims:
			t.plan.addStack(addr, l.frame.size)
		default:
			return learnt > 0
		}
		learnt++
		addr = word(head, l.frame.previous)
	}
	return learnt > 0
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
		for i, ch := range p.chunks {
			if within(ch.addr) {
				p.chunks = p.chunks[:i]
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
