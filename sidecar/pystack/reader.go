package pystack

import (
	"errors"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

const (
	maxCorrections = 16 // further reads because the addresses have changed
	maxTries       = 4  // reads of one sample: the first and three more
	// slowCopy is longer than any read takes while it runs: the copies of one that
	// was interrupted are too far apart for their agreement to mean anything. It
	// grows by a nanosecond a byte.
	slowCopy   = 100 * time.Microsecond
	cframeSize = 24
)

// frame is one frame of a decoded stack.
type frame struct {
	addr, code, instr uint64
	object            *codeObject
	index             int32 // instruction in the code object; -1 before the first
	node              timeline.NodeID
	lasted            uint8  // samples in a row it has been there, up to lastingSamples
	isNew             bool   // was not there at the last sample
	replaced          bool   // its code object is another by now
	proven            uint32 // reader.attempts when its code object was compared with the copies
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
	moved       bool       // in the attempt, the stack changed under the read
	generators  bool       // there were some in it
	torn        bool       // and one of them was another in a copy
	before      bool       // the chain is of the copy before the thread state, not of that after it
	seen        seenCalls
	watching    []watched // code objects that are compared with the copies
	trusting    bool      // none is: they were a moment ago
	attempts    uint32    // copies made
	unproven    []int     // of r.found, whose code takes a read of its own, and what it reads
	proofs      []Range
	proofBuf    []byte
	readsBefore uint64            // codes.reads when the attempt began
	types       map[uint64]string // names of types, by address
	fault       error             // of reading what the attempt needed besides the copies: there is no target any more
	calls       int64             // reads made
	stamp       time.Time         // when the last one ended, or the tick began
	took        time.Duration     // from the stamp before the last one to its end
	leaf        uint64            // of the last attempt
}

func newReader(m Memory, l *layout) *reader {
	return &reader{mem: m, l: l, codes: newCodeCache(m, l)}
}

// copy reads the plan of t into r.copies, with the GIL first where gil is set.
func (r *reader) copy(t *thread, gil, gilLen uint64) error {
	for range maxLearn {
		r.layOut(r.l, &t.plan, t.addr, gil, gilLen)
		planned := len(r.buf)
		r.watch(t)
		r.calls++
		r.attempts++
		n, err := r.mem.Read(r.buf, r.ranges)
		now := time.Now()
		r.took, r.stamp = now.Sub(r.stamp), now
		if err != nil {
			return err
		}
		if n >= planned { // what is not mapped of the code objects is none of them any more
			r.buf = r.buf[:n]
			return nil
		}
		if !r.dropUnmapped(t, n) {
			return errUnmapped
		}
	}
	return errUnmapped
}

// sample reads t's stack into t.stack. With isRead the first copy has been made
// by the caller.
func (r *reader) sample(t *thread, isRead bool) (verdict, error) {
	t.plan.sample++
	r.fault = nil
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
		if r.took > slowCopy+time.Duration(len(r.buf)) && try < maxTries-1 {
			continue // the sampler was off its CPU in the middle of it
		}
		v := r.attempt(t)
		if r.fault != nil {
			return stackLost, r.fault
		}
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
		if try == 0 {
			t.plan.note(r)
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
	r.compareWatched(t)
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
	r.moved, r.generators, r.torn = false, false, false
	rootChunk := uint64(0)
	if n := len(t.plan.chunks); n > 0 {
		rootChunk = t.plan.chunks[n-1].addr
	}
	idle := rootChunk == 0 || top == rootChunk+rootFrame
	if leaf == 0 && idle {
		return stackWhole // runs no Python code
	}
	end, unknown := r.walk(leaf, top, rootChunk, false)
	r.before = false
	if end != walkRoot {
		var alsoUnknown uint64
		if end2, u := r.walk(leaf, top, rootChunk, true); end2 == walkRoot {
			end, r.before = walkRoot, true
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
	if len(r.chain) == 0 && !idle {
		return stackLost // between two stacks, with nothing of either
	}
	return r.decode(t)
}
