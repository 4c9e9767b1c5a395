package pystack

import (
	"errors"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	maxCorrections = 16 // further reads because the addresses have changed
	maxTries       = 4  // reads of one sample: the first and three more
	maxDropped     = 32 // ranges left out of one, because they are no longer mapped
	// slowCopy is longer than any read takes while it runs: the copies of one that
	// was interrupted are too far apart for their agreement to mean anything. It
	// grows by a nanosecond a byte.
	slowCopy = 100 * time.Microsecond
)

// frame is one frame of a decoded stack.
type frame struct {
	addr, code, instr uint64
	object            *codeObject
	index             int32 // instruction in the code object; -1 before the first
	node              timeline.NodeID
	verified          uint32 // reader.number when its code object was compared with the copies
	lasted            uint8  // samples in a row it has been there, up to lastingSamples
	isNew             bool   // was not there, at this instruction, at the last sample
	replaced          bool   // its code object is another by now
	elided            bool   // frames between it and the one before are left out
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
	copies // of the last read
	times  readTimes

	mem     *counted
	l       *cpython.Layout
	objects *cpython.Objects

	smallInts map[uint64]int64 // by address: ints that are never freed
	codes     *codeCache
	seen      seenCalls
	survey    survey
	checks    codeChecks
	last      attempt // its slices are used by the next one
	number    uint32  // of attempts, counted by their copies
	// replacedAt is the attempt in which a code object was last found to be another one.
	replacedAt uint32
}

// readTimes is how long a read took, from the end of what came before it, and may take.
type readTimes struct {
	end       time.Time
	took, may time.Duration
}

func newReader(m Memory, l *cpython.Layout) *reader {
	mem := &counted{Memory: m}
	objects := cpython.NewObjects(mem, l)
	return &reader{times: readTimes{may: slowCopy}, mem: mem, l: l, objects: objects, codes: newCodeCache(objects)}
}

// copy reads the plan of t into r.copies, with the GIL first where gil is set.
func (r *reader) copy(t *thread, gil, gilLen uint64) error {
	for range maxDropped {
		r.layOut(r.l, &t.plan, t.addr, gil, gilLen)
		planned := len(r.buf)
		r.watch(t)
		r.number++
		n, err := r.mem.Read(r.buf, r.ranges)
		now := time.Now()
		r.times.took, r.times.end = now.Sub(r.times.end), now
		if err != nil {
			return err
		}
		if n >= planned { // what is not mapped of the code objects is none of them any more
			r.buf = r.buf[:n]
			return nil
		}
		if !r.dropUnmapped(t, n) {
			return cpython.ErrUnmapped
		}
	}
	return cpython.ErrUnmapped
}

// tooSlow recognises a read in the midst of which the sampler was off its CPU.
func (r *reader) tooSlow() bool { return r.times.took > r.times.may+time.Duration(len(r.buf)) }

// allowance bounds the reads of one sample.
type allowance struct{ tries, corrections int }

// sample reads t's stack into t.stack. With isRead the first copy has been made
// by the caller.
func (r *reader) sample(t *thread, isRead bool) (verdict, error) {
	t.plan.sample++
	t.next, r.survey.frames = t.next[:0], 0
	if !isRead {
		r.times.end = time.Now()
	}
	best := stackLost
	for left := (allowance{maxTries, maxCorrections}); left.tries > 0 && best != stackWhole; {
		if !isRead {
			if err := r.copy(t, 0, 0); errors.Is(err, cpython.ErrUnmapped) {
				return threadGone, nil
			} else if err != nil {
				return stackLost, err
			}
		}
		isRead = false
		if r.tooSlow() && left.tries > 1 {
			left.tries--
			continue
		}
		a := r.attempt(t)
		if a.err != nil {
			return stackLost, a.err
		}
		if a.outcome == threadGone {
			return threadGone, nil
		}
		if a.outcome == planWrong && left.corrections > 0 {
			left.corrections--
			continue
		}
		first := left.tries == maxTries
		left.tries--
		if a.outcome != stackWhole && a.outcome != stackCut {
			continue
		}
		if first {
			t.plan.note(a)
		}
		// A later try counts only if it shows more of the same stack: taking just
		// any whole stack instead would favour functions that stay long.
		if best == stackLost || len(a.found) > len(t.next) && extends(a.found, t.next) {
			t.next = append(t.next[:0], a.found...)
			best = a.outcome
		}
	}
	if best == stackLost && r.salvage(t) {
		best = stackCut
	}
	r.keep(t, best)
	return best, nil
}

// keep makes the stack that was found t's, if one was, and forgets what the plan no longer needs.
func (r *reader) keep(t *thread, found verdict) {
	if found != stackLost {
		if len(t.plan.heap) > 0 {
			t.age()
		}
		t.stack, t.next = t.next, t.stack
	}
	if t.plan.sample%keepUnseen == 0 {
		r.mark(t)
		t.plan.forget()
	}
}

// extends reports whether longer begins with the frames of prefix.
func extends(longer, prefix []frame) bool {
	for i := range prefix {
		if longer[i].addr != prefix[i].addr || longer[i].code != prefix[i].code {
			return false
		}
	}
	return true
}
