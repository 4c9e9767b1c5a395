package pystack

import "github.com/omni-perf/omni-perf/sidecar/measure/cpython"

const maxDepth = 1 << 16 // frames of one stack; a longer chain is taken for a cycle

// rawFrame is a frame of the chain, leaf first, as both copies have it.
type rawFrame struct {
	addr, code, instr uint64
	heap              bool // of a generator or coroutine
	agrees            bool // the copies agree
	unmoved           bool // and it has not run in between, so what it called is sure too
	direct            bool // called without C code in between, or thrown into by it
	linked            bool // of a generator: it has the same caller in all copies, as only one that is on the stack has
	elided            bool // not called by the frame behind it in the chain: those between were not read
	executing         bool // at the moment of the copy followed, so it has called nothing
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
func (a *attempt) walk(end root, useFirst bool) (result walkEnd, unknown uint64) {
	r, l := a.r, a.r.l
	a.chain = a.chain[:0]
	addr, last := a.leaf, uint64(0)
	var lastKind segmentKind
	viaC, below := false, jumps{}
	for step := 0; addr != 0; step++ {
		if step > maxDepth {
			return walkTorn, 0
		}
		s, offset := r.find(addr, l.Frame.Size)
		if s == nil && len(a.chain) > 0 {
			if on := below.from(&a.t.plan, addr, len(a.chain)); on != 0 {
				a.chain[len(a.chain)-1].elided = true
				addr = on
				s, offset = r.find(addr, l.Frame.Size)
			}
		}
		if s == nil {
			return walkUnknown, addr
		}
		if at := s.use(useFirst) + offset; r.buf[at+l.Frame.Owner] >= cpython.OwnerShim {
			addr, viaC = r.word(at+l.Frame.Previous), true
			continue
		}
		f, caller := r.compare(s, offset, useFirst)
		if s.kind == topChunk && addr+l.Frame.Size > end.top {
			f.agrees = false // popped
		}
		if len(a.chain) > 0 && viaC {
			a.chain[len(a.chain)-1].direct = false
		}
		viaC = false
		a.chain = append(a.chain, f)
		last, lastKind = addr, s.kind
		addr = caller
	}
	// A chain that ends above the thread's first frame is torn: a generator that
	// yielded has no previous frame any more.
	if len(a.chain) > 0 && end.chunk != 0 && last != end.chunk+cpython.RootFrame && (lastKind != heapFrames || !end.idle) {
		if below.passed != 0 { // the generators below have gone
			return walkUnknown, below.passed
		}
		return walkTorn, 0
	}
	if below.passed == 0 {
		a.t.plan.passed = passed{}
		return walkRoot, 0
	}
	known := 0
	for i := range a.chain {
		if a.chain[i].heap {
			known++
		}
	}
	a.t.plan.passed.frames = max(a.t.plan.passed.of-known, 1)
	return walkRoot, 0
}

// jumps is where following a chain has left out what is not read of it: at most once in
// the data stack and once in a row of generators.
type jumps struct {
	stack  bool
	passed uint64 // the first of the generators
}

// from returns the frame to go on with instead of the one at addr, which is not read; 0 if
// it should be.
func (j *jumps) from(p *plan, addr uint64, depth int) uint64 {
	switch {
	case !j.stack && p.isElided(addr):
		// On with the frame that the next chunk begins with: what it was called by
		// lies below it.
		j.stack = true
		return p.bottom + cpython.ChunkData
	case j.passed == 0 && p.passed.below != 0 && depth >= keptEnd:
		j.passed = addr
		return p.passed.below
	}
	return 0
}

// compare makes one frame of its copies and returns the caller's address.
func (r *reader) compare(s *segment, offset uint64, useFirst bool) (rawFrame, uint64) {
	l := r.l
	at := s.use(useFirst) + offset
	tag := r.word(at + l.Frame.Code)
	instr, previous := r.word(at+l.Frame.Instr), r.word(at+l.Frame.Previous)
	f := rawFrame{addr: s.addr + offset, code: tag &^ l.Frame.CodeTag, instr: instr, heap: s.kind == heapFrames}
	owner := byte(cpython.OwnerThread)
	if f.heap {
		owner = cpython.OwnerGen
	}
	agrees, unmoved := r.buf[at+l.Frame.Owner] == owner, true
	linked := f.heap && previous != 0
	for _, other := range s.at[:s.n] {
		b := other + offset
		if b == at {
			continue
		}
		if r.buf[b+l.Frame.Owner] != owner || (r.word(b+l.Frame.Code)^tag)&^l.Frame.CodeTag != 0 {
			agrees = false
		}
		if r.word(b+l.Frame.Instr) != instr {
			unmoved = false
		}
		if p := r.word(b + l.Frame.Previous); p != previous {
			linked = false
			// A generator has no previous frame when it has yielded, before or after
			// the moment that counts.
			if !f.heap || p != 0 && previous != 0 {
				agrees = false
			}
			if f.heap {
				previous = max(previous, p)
			}
		}
	}
	f.agrees, f.unmoved, f.executing, f.linked = agrees, unmoved, r.runs(at), linked
	f.direct = l.Frame.IsEntry == 0 || r.buf[at+l.Frame.IsEntry] == 0
	return f, previous
}
