package pystack

const maxDepth = 1 << 16 // frames of one stack; a longer chain is taken for a cycle

// rawFrame is a frame of the chain, leaf first, as both copies have it.
type rawFrame struct {
	addr, code, instr uint64
	heap              bool // of a generator or coroutine
	stands            bool // the copies agree
	still             bool // and it has not run in between, so what it called is sure too
	direct            bool // called without C code in between
	runs              bool // at the moment of the copy followed, so it has called nothing
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
	viaC := false
	for step := 0; addr != 0; step++ {
		if step > maxDepth {
			return walkTorn, 0
		}
		s, offset := r.find(addr, l.frame.size)
		if s == nil {
			return walkUnknown, addr
		}
		if at := s.use(useFirst) + offset; r.buf[at+l.frame.owner] >= ownerShim {
			addr, viaC = r.word(at+l.frame.previous), true
			continue
		}
		f, caller := r.compare(s, offset, useFirst)
		if s.where == placeTopChunk && addr+l.frame.size > top {
			f.stands = false // popped
		}
		if len(r.chain) > 0 && viaC {
			r.chain[len(r.chain)-1].direct = false
		}
		viaC = false
		r.chain = append(r.chain, f)
		last, lastPlace = addr, s.where
		addr = caller
	}
	// A chain that ends above the thread's first frame is torn: a generator that
	// yielded has no previous frame any more.
	if len(r.chain) > 0 && rootChunk != 0 && last != rootChunk+rootFrame && (lastPlace != placeHeap || top != rootChunk+rootFrame) {
		return walkTorn, 0
	}
	return walkRoot, 0
}

// compare makes one frame of its copies and returns the caller's address.
func (r *reader) compare(s *segment, offset uint64, useFirst bool) (rawFrame, uint64) {
	l := r.l
	at := s.use(useFirst) + offset
	tag := r.word(at + l.frame.code)
	instr, previous := r.word(at+l.frame.instr), r.word(at+l.frame.previous)
	f := rawFrame{addr: s.addr + offset, code: tag &^ l.codeTag, instr: instr, heap: s.where == placeHeap}
	owner := byte(ownerThread)
	if f.heap {
		owner = ownerGen
	}
	stands, still := r.buf[at+l.frame.owner] == owner, true
	for _, other := range s.at[:s.n] {
		b := other + offset
		if b == at {
			continue
		}
		if r.buf[b+l.frame.owner] != owner || (r.word(b+l.frame.code)^tag)&^l.codeTag != 0 {
			stands = false
		}
		if r.word(b+l.frame.instr) != instr {
			still = false
		}
		if p := r.word(b + l.frame.previous); p != previous {
			// A generator has no previous frame when it has yielded, before or after
			// the moment that counts.
			if !f.heap || p != 0 && previous != 0 {
				stands = false
			}
			if f.heap {
				previous = max(previous, p)
			}
		}
	}
	f.stands, f.still, f.runs = stands, still, r.runs(at)
	f.direct = l.frame.isEntry == 0 || r.buf[at+l.frame.isEntry] == 0
	return f, previous
}
