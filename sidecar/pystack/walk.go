package pystack

const maxDepth = 1 << 16 // frames of one stack; a longer chain is taken for a cycle

// rawFrame is a frame of the chain, leaf first, as both copies have it.
type rawFrame struct {
	addr, code, instr uint64
	heap              bool // of a generator or coroutine
	stands            bool // the copies agree
	still             bool // and it has not run in between, so what it called is sure too
}

// walkEnd says how following the chain of frames ended.
type walkEnd uint8

const (
	walkRoot    walkEnd = iota // at the thread's first frame
	walkUnknown                // at an address that was not copied
	walkTorn                   // at something no stack can have
)

// walk follows the chain of frames from leaf to root through the copies. Where
// they disagree it follows the second one, or the first if useFirst is set.
// top is the thread's datastack_top and rootChunk its oldest chunk.
func (r *reader) walk(leaf, top, rootChunk uint64, useFirst bool) (end walkEnd, unknown uint64) {
	l := r.l
	r.chain = r.chain[:0]
	addr, last := leaf, uint64(0)
	var lastPlace place
	for step := 0; addr != 0; step++ {
		if step > maxDepth {
			return walkTorn, 0
		}
		v, where := r.find(addr, l.frame.size)
		if where == placeUnknown {
			return walkUnknown, addr
		}
		if use := v.use(useFirst); use[l.frame.owner] >= ownerShim {
			addr = word(use, l.frame.previous)
			continue
		}
		var f rawFrame
		f, addr = r.compare(addr, v, where, useFirst)
		if where == placeChunk && addr != 0 && f.addr+l.frame.size > top && r.inTopChunk(f.addr) {
			f.stands = false // popped
		}
		r.chain = append(r.chain, f)
		last, lastPlace = f.addr, where
	}
	// A chain that ends above the thread's first frame is torn: a generator that
	// yielded has no previous frame any more.
	if len(r.chain) > 0 && rootChunk != 0 && last != rootChunk+rootFrame && (lastPlace != placeHeap || top != rootChunk+rootFrame) {
		return walkTorn, 0
	}
	return walkRoot, 0
}

// compare makes one frame of its copies and returns the caller's address.
func (r *reader) compare(addr uint64, v view, where place, useFirst bool) (rawFrame, uint64) {
	l := r.l
	use := v.use(useFirst)
	f := rawFrame{addr: addr, code: word(use, l.frame.code) &^ l.codeTag, instr: word(use, l.frame.instr),
		heap: where == placeHeap, stands: true, still: true}
	previous, owner := word(use, l.frame.previous), byte(ownerThread)
	if f.heap {
		owner = ownerGen
	}
	for _, b := range v.copies[:v.n] {
		if b[l.frame.owner] != owner || word(b, l.frame.code)&^l.codeTag != f.code {
			f.stands = false
		}
		if word(b, l.frame.instr) != f.instr {
			f.still = false
		}
		if p := word(b, l.frame.previous); p != previous {
			// A generator has no previous frame when it has yielded, before or after
			// the moment that counts.
			if !f.heap || p != 0 && previous != 0 {
				f.stands = false
			}
			previous = max(previous, p)
		}
	}
	return f, previous
}

// use is the copy to follow: the first after the thread state was read, or the
// last before.
func (v *view) use(before bool) []byte {
	i := v.n / 2
	if before && i > 0 {
		i--
	}
	return v.copies[i]
}

func (r *reader) inTopChunk(addr uint64) bool {
	for i := r.heap; i < r.chunks; i++ {
		s := &r.segments[i]
		if addr-s.addr < s.size {
			return i == r.heap
		}
	}
	return false
}
