package pystack

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// The frames of generators and coroutines lie in their objects, anywhere in memory: each
// that is on a stack has to be known before it can be copied. Where the copies show one
// that is not, the target's memory is looked at, from one frame to its caller.
//
// Of a chain with very many of them the innermost and the outermost are copied, as of a deep
// recursion on the data stack. That those at its two ends belong together needs no proof by
// those between: a generator has a caller only while it runs, and all that run in a thread
// are on its one stack.

const (
	// keptGenerators of either end of a chain are read, more than are shown (keptEnd): so few
	// calls and returns change which ones these are. A tick with all of them takes about
	// as long as one of as many calls on the data stack.
	keptGenerators = 256
	countEvery     = 16   // samples between two counts of those in the middle
	keptUnused     = 8    // samples for which a place that is not in use stays in the plan of a long chain
	pageSize       = 4096 // what is mapped is so in whole pages
)

// passed are the generators in the middle of a chain, which are not read.
type passed struct {
	below   uint64 // frame of the innermost one below them; 0 if there are none
	frames  int    // about how many
	of      int    // all of the stack's, when last counted
	counted uint64 // sample at which that was
}

// survey is what learn finds on a stack. It is used again.
type survey struct {
	frames int      // looked at in this sample
	count  int      // of generators
	inner  []uint64 // their frames, those next to the leaf …
	outer  []uint64 // … and those next to the root, in a ring

	page   [pageSize]byte // of the target, at pageAt
	pageAt uint64
}

// learn takes the frames outside the plan into it: it follows the chain from addr
// through the copies, and where these lack one through the target's memory. It returns
// whether the plan is another now.
func (r *reader) learn(t *thread, addr uint64) bool {
	v, p := &r.survey, &t.plan
	v.begin()
	before := p.passed
	if before.below != 0 && !r.reachesRoot(p, before.below) {
		p.passed = passed{}
	}
	shims, atRoot := r.surveyFrom(t, addr)
	if !atRoot {
		return p.keep(r.l.Frame.Size, v.inner)+shims > 0
	}
	p.passed = passed{}
	if v.count > 2*keptGenerators {
		p.passed = passed{below: v.outer[v.count%keptGenerators], of: v.count, counted: p.sample}
	}
	v.inner = append(v.inner, v.outer...)
	added := p.keep(r.l.Frame.Size, v.inner)
	return shims+added > 0 || p.passed.below != before.below
}

// surveyFrom follows the chain from addr to the root, or where its outermost generators are
// known no further than to the innermost. It returns how many shims it has added to the plan,
// and whether it has come to the root: a chain that ends with a generator is torn, which
// has yielded.
func (r *reader) surveyFrom(t *thread, addr uint64) (shims int, atRoot bool) {
	v, p, l := &r.survey, &t.plan, r.l
	jumped, enough, last := false, maxDepth, heapFrames
	if p.passed.below != 0 && p.sample < p.passed.counted+countEvery {
		enough = keptGenerators
	}
	for ; addr != 0; v.frames++ {
		if v.frames > maxDepth || v.count >= enough {
			return shims, false
		}
		if s, offset := r.find(addr, l.Frame.Size); s != nil {
			if last = s.kind; last == heapFrames {
				v.add(addr)
			}
			addr = r.word(s.use(false) + offset + l.Frame.Previous)
			continue
		}
		if !jumped && p.isElided(addr) {
			jumped, addr = true, p.bottom+cpython.ChunkData
			continue
		}
		head := v.read(r.mem, addr, l.Frame.Size)
		if head == nil {
			return shims, false
		}
		switch owner := head[l.Frame.Owner]; {
		case owner == cpython.OwnerGen:
			last = heapFrames
			v.add(addr)
		case owner >= cpython.OwnerShim && owner < 16 && l.HasShims:
			last = cStack
			p.addStack(addr, l.Frame.Size)
			shims++
		default:
			return shims, false
		}
		addr = cpython.Word(head, l.Frame.Previous)
	}
	return shims, last != heapFrames
}

// reachesRoot reports whether the chain from the generator at addr is one of a stack, as far
// as the copies show: then it runs.
func (r *reader) reachesRoot(p *plan, addr uint64) bool {
	last, jumped := heapFrames, false
	for step := 0; addr != 0; step++ {
		s, offset := r.find(addr, r.l.Frame.Size)
		switch {
		case step > maxDepth:
			return false
		case s != nil:
			last, addr = s.kind, r.word(s.use(false)+offset+r.l.Frame.Previous)
		case jumped || !p.isElided(addr):
			return false
		default:
			jumped, addr = true, p.bottom+cpython.ChunkData
		}
	}
	return last != heapFrames
}

// keep takes frames of the stack's generators into the plan, and returns how many were not in
// it. Places used before stay in it for a while: they are likely used again.
func (p *plan) keep(size uint64, frames []uint64) (added int) {
	for _, addr := range frames {
		see(p.heap, addr, p.sample)
	}
	missing := p.missing[:0]
	for _, addr := range frames {
		if _, found := position(p.heap, addr); !found {
			missing = append(missing, addr)
		}
	}
	p.missing = missing
	if len(missing) == 0 {
		return 0
	}
	p.change++
	if len(frames) < maxHeapFrames {
		for _, addr := range missing {
			p.heap = add(p.heap, addr, size, p.sample, maxHeapFrames)
		}
		return len(missing)
	}
	p.dropUnseen(keptUnused)
	if len(p.heap)+len(missing) > 3*keptGenerators {
		p.dropUnseen(0)
	}
	for _, addr := range missing {
		p.heap = append(p.heap, placed{addr, size, p.sample})
	}
	slices.SortFunc(p.heap, func(a, b placed) int { return cmp.Compare(a.addr, b.addr) })
	p.heap = slices.CompactFunc(p.heap, func(a, b placed) bool { return a.addr == b.addr })
	return len(missing)
}

// dropUnseen drops the generators' frames that were in use for the last time before the last
// samples.
func (p *plan) dropUnseen(samples uint64) {
	p.heap = slices.DeleteFunc(p.heap, func(q placed) bool { return q.seen+samples < p.sample })
}

func (v *survey) begin() {
	v.count, v.pageAt = 0, 0
	v.inner, v.outer = v.inner[:0], v.outer[:0]
}

// add takes a generator's frame, the next one towards the root.
func (v *survey) add(addr uint64) {
	switch {
	case v.count < keptGenerators:
		v.inner = append(v.inner, addr)
	case v.count < 2*keptGenerators:
		v.outer = append(v.outer, addr)
	default:
		v.outer[v.count%keptGenerators] = addr
	}
	v.count++
}

// read returns a frame of the target; nil if it cannot be read. A page is read at once:
// what was made one after the other often lies there.
func (v *survey) read(m Memory, addr, size uint64) []byte {
	if addr%cpython.WordSize != 0 {
		return nil
	}
	at := addr % pageSize
	if page := addr - at; at+size <= pageSize {
		if v.pageAt == page && page != 0 {
			return v.page[at : at+size]
		}
		if v.pageAt = 0; cpython.ReadAt(m, page, v.page[:]) == nil {
			v.pageAt = page
			return v.page[at : at+size]
		}
	}
	head := v.page[:size] // over the end of a page
	if v.pageAt = 0; cpython.ReadAt(m, addr, head) != nil {
		return nil
	}
	return head
}
