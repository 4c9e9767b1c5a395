package pystack

import (
	"errors"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

const (
	maxCorrections = 8 // further reads because the addresses have changed
	maxTries       = 4 // reads of one sample: the first and three more
	// slowCopy is longer than any read takes while it runs: the copies of one that
	// was interrupted are too far apart for their agreement to mean anything.
	slowCopy   = 100 * time.Microsecond
	maxLearn   = 32 // frames looked up one by one to find where a chain goes
	cframeSize = 24
)

// frame is one frame of a decoded stack.
type frame struct {
	addr, code, instr uint64
	object            *codeObject
	index             int32 // instruction in the code object; -1 before the first
	node              timeline.NodeID
	lasted            uint8 // samples in a row it has been there, up to lastingSamples
}

// verdict says what came of reading a thread's stack.
type verdict uint8

const (
	stackWhole verdict = iota
	stackCut           // frames nearer the leaf were torn and are left out
	stackLost          // nothing could be read that is sure
	threadGone         // the thread state is no longer this thread's
	planWrong          // of one attempt: the addresses have changed and are known now
)

// reader reads stacks. One goroutine at a time.
type reader struct {
	copies
	mem         Memory
	l           *layout
	codes       *codeCache
	chain       []rawFrame // of the walk in progress, leaf first
	found       []frame    // of the attempt in progress, root first
	heads       []Range    // of code objects to be compared
	readsBefore uint64     // codes.reads when the attempt began
	headBuf     []byte
	calls       int64         // reads made
	stamp       time.Time     // when the last one ended, or the tick began
	took        time.Duration // from the stamp before the last one to its end
	leaf        uint64        // of the last attempt
}

func newReader(m Memory, l *layout) *reader {
	return &reader{mem: m, l: l, codes: newCodeCache(m, l)}
}

// copy reads the plan of t into r.copies, with the GIL first where gil is set.
func (r *reader) copy(t *thread, gil, gilLen uint64) error {
	for range maxLearn {
		r.layOut(r.l, &t.plan, t.addr, gil, gilLen)
		r.calls++
		n, err := r.mem.Read(r.buf, r.ranges)
		now := time.Now()
		r.took, r.stamp = now.Sub(r.stamp), now
		if err != nil {
			return err
		}
		if n == len(r.buf) {
			return nil
		}
		if !r.dropUnmapped(t, n) {
			return errUnmapped
		}
	}
	return errUnmapped
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

// sample reads t's stack into t.stack. With isRead the first copy has been made
// by the caller.
func (r *reader) sample(t *thread, isRead bool) (verdict, error) {
	t.plan.sample++
	if !isRead {
		r.stamp = time.Now()
	}
	best, have := stackLost, false
	t.next = t.next[:0]
	for try, corrections := 0, 0; try < maxTries; try++ {
		if try+corrections > 0 || !isRead {
			if err := r.copy(t, 0, 0); errors.Is(err, errUnmapped) {
				return threadGone, nil
			} else if err != nil {
				return stackLost, err
			}
		}
		if r.took > slowCopy && try < maxTries-1 {
			continue // the sampler was off its CPU in the middle of it
		}
		v := r.attempt(t)
		if v == threadGone {
			return v, nil
		}
		if v == planWrong {
			if corrections < maxCorrections {
				corrections++
				try--
			}
			continue
		}
		if v == stackLost {
			continue
		}
		// A later try counts only if it tells more of the same stack: taking just
		// any whole stack instead would favour functions that stay long.
		if !have || len(r.found) > len(t.next) && extends(r.found, t.next) {
			t.next = append(t.next[:0], r.found...)
			best, have = v, true
		}
		if fast := best != stackWhole || try > 0; fast != t.plan.fast {
			t.plan.fast = fast
			t.plan.change++
		}
		if best == stackWhole {
			break
		}
	}
	if !have && r.salvage(t) {
		best = stackCut
	}
	if best != stackLost {
		if len(t.plan.heap) > 0 {
			t.age()
		}
		t.stack, t.next = t.next, t.stack
	}
	if t.plan.sample%keepUnseen == 0 {
		r.mark(t)
		t.plan.forget()
	}
	return best, nil
}

// extends tells whether longer begins with the frames of prefix.
func extends(longer, prefix []frame) bool {
	for i := range prefix {
		if longer[i].addr != prefix[i].addr || longer[i].code != prefix[i].code {
			return false
		}
	}
	return true
}

// attempt decodes the copies into r.found, and corrects the plan where it was
// wrong.
func (r *reader) attempt(t *thread) verdict {
	l := r.l
	state := r.buf[r.thread : r.thread+l.thread.size]
	if word(state, l.thread.interp) != t.interp || int(word(state, l.thread.nativeID)) != t.nativeID {
		return threadGone
	}
	top := word(state, l.thread.top)
	if !r.chunksRight(t, word(state, l.thread.chunk), top) {
		return planWrong
	}
	leaf := word(state, l.thread.frame)
	if l.viaCFrame {
		at := leaf
		s, offset := r.find(at, l.cframeFrame+wordSize)
		if s == nil {
			t.plan.addStack(at, cframeSize)
			return planWrong
		}
		leaf = r.word(s.at[0] + offset + l.cframeFrame)
	}
	r.leaf = leaf
	t.seen.frame, t.seen.top, t.seen.leaf = word(state, l.thread.frame), top, leaf
	t.seen.code, t.seen.instr = 0, 0
	if s, offset := r.find(leaf, l.frame.size); leaf != 0 && s != nil {
		at := s.use(false) + offset
		t.seen.code, t.seen.instr = r.word(at+l.frame.code), r.word(at+l.frame.instr)
	}
	r.found = r.found[:0]
	if leaf == 0 {
		return stackWhole // runs no Python code
	}
	rootChunk := uint64(0)
	if n := len(t.plan.chunks); n > 0 {
		rootChunk = t.plan.chunks[n-1].addr
	}
	end, unknown := r.walk(leaf, top, rootChunk, false)
	if end != walkRoot {
		var alsoUnknown uint64
		if end2, u := r.walk(leaf, top, rootChunk, true); end2 == walkRoot {
			end = walkRoot
		} else if end != walkUnknown && end2 == walkUnknown {
			end, alsoUnknown = walkUnknown, u
		}
		if unknown == 0 {
			unknown = alsoUnknown
		}
	}
	switch end {
	case walkUnknown:
		if r.learn(t, unknown) {
			return planWrong
		}
		return stackLost
	case walkTorn:
		return stackLost
	}
	return r.decode(t)
}

// decode turns the chain into r.found, root first, up to the first frame that
// is not sure.
func (r *reader) decode(t *thread) verdict {
	sure := r.surePart(t)
	r.readsBefore = r.codes.reads
	depth := 0
	for i := range sure {
		raw := &r.chain[len(r.chain)-1-i]
		if depth < len(t.stack) && t.stack[depth].addr == raw.addr && t.stack[depth].code == raw.code {
			known := t.stack[depth]
			if r.codes.doubtful(known.object) {
				if now := r.codes.byAddr[raw.code]; now != nil && now != known.object {
					known.object, known.instr, known.node = now, 0, 0
				}
			}
			if known.instr != raw.instr {
				index, ok := known.object.instruction(r.l, raw.code, raw.instr)
				if !ok {
					return stackCut
				}
				known.instr, known.index, known.node = raw.instr, index, 0
			}
			if !raw.heap && known.index < known.object.firstTraceable {
				continue
			}
			r.found = append(r.found, known)
		} else {
			object, err := r.codes.get(raw.code, true)
			if err != nil {
				return stackCut
			}
			index, ok := object.instruction(r.l, raw.code, raw.instr)
			if !ok {
				return stackCut
			}
			if !raw.heap && index < object.firstTraceable {
				continue
			}
			r.found = append(r.found, frame{addr: raw.addr, code: raw.code, instr: raw.instr, object: object, index: index})
		}
		depth++
		if raw.heap {
			see(t.plan.heap, raw.addr, t.plan.sample)
		}
	}

	if !r.confirm() {
		return planWrong
	}
	if sure < len(r.chain) {
		return stackCut
	}
	return stackWhole
}

// confirm compares the code objects of r.found that may have been freed and
// replaced, all in one read. Only what was known before the copies were made and
// is still the same after them is sure; if some are not, it takes in what is
// there now and the sample must be tried again.
func (r *reader) confirm() bool {
	size := int(r.l.code.instructions)
	each := size + 2*textLen
	r.heads = r.heads[:0]
	for i := range r.found {
		if f := &r.found[i]; r.codes.doubtful(f.object) {
			key := &f.object.key
			r.heads = append(r.heads, Range{f.code, size}, Range{key.filename + varSize, textLen}, Range{key.name + varSize, textLen})
		}
	}
	if len(r.heads) == 0 {
		return true
	}
	n := len(r.heads) / 3 * each
	if cap(r.headBuf) < n {
		r.headBuf = make([]byte, 2*n)
	}
	r.calls++
	n, _ = r.mem.Read(r.headBuf[:n], r.heads)
	rest, same := r.headBuf[:n], r.codes.reads == r.readsBefore
	for i := range r.found {
		f := &r.found[i]
		if !r.codes.doubtful(f.object) {
			continue
		}
		if len(rest) >= each {
			key, err := r.codes.parseKey(rest[:size])
			if err == nil && key == f.object.key && checksum(rest[size:each]) == f.object.text {
				f.object.epoch, f.object.generation = r.codes.epoch, r.codes.generation
				rest = rest[each:]
				continue
			}
			rest = rest[each:]
		}
		same = false
		_, _ = r.codes.get(f.code, true)
	}
	return same
}

// surePart is the number of frames from the root that are sure: those that
// stand, up to one that has run in between. A generator's address is used again
// as soon as it ends, so where one of a row of generators that call each other
// has moved, the others of that row are not sure either, but for those that have
// been there for some samples.
func (r *reader) surePart(t *thread) int {
	n := len(r.chain)
	sure := 0
	for sure < n {
		f := &r.chain[n-1-sure]
		last := sure == n-1
		if f.stands && (f.still || last) {
			sure++
			continue
		}
		if f.stands && !f.heap {
			return sure + 1 // itself, but not what it called
		}
		if !f.heap {
			return sure
		}
		for sure > 0 && r.chain[n-sure].heap && !r.lasting(t, sure-1, &r.chain[n-sure]) {
			sure--
		}
		return sure
	}
	return sure
}

// lastingSamples is for how many samples in a row a generator must have been at
// its place to be trusted while its neighbours move.
const lastingSamples = 8

func (r *reader) lasting(t *thread, depth int, f *rawFrame) bool {
	return depth < len(t.stack) && t.stack[depth].addr == f.addr && t.stack[depth].code == f.code &&
		t.stack[depth].lasted >= lastingSamples
}

// age counts for how many samples the frames of t.next have been there. Samples
// between which the thread did not run say nothing.
func (t *thread) age() {
	old, now := t.stack, t.next
	if len(old) == len(now) && len(now) > 0 && old[len(old)-1].instr == now[len(now)-1].instr {
		for i := range now {
			now[i].lasted = old[i].lasted
		}
		return
	}
	for i := range min(len(old), len(now)) {
		if old[i].addr != now[i].addr || old[i].code != now[i].code {
			break
		}
		now[i].lasted = min(old[i].lasted+1, lastingSamples)
	}
}

// salvage keeps of the last stack what both copies still hold, when no chain
// could be followed: the frames up to the first that changed.
func (r *reader) salvage(t *thread) bool {
	l := r.l
	t.next = t.next[:0]
	for _, f := range t.stack {
		s, offset := r.find(f.addr, l.frame.size)
		if s == nil || s.where != placeTopChunk && s.where != placeChunk {
			break
		}
		now, _ := r.compare(s, offset, false)
		index, ok := f.object.instruction(l, f.code, now.instr)
		if !now.stands || now.code != f.code || !ok || r.codes.doubtful(f.object) {
			break
		}
		if now.instr != f.instr {
			f.instr, f.index, f.node = now.instr, index, 0
		}
		t.next = append(t.next, f)
		if !now.still {
			break
		}
	}
	return len(t.next) > 0
}

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
