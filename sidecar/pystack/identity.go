package pystack

import (
	"bytes"
	"errors"
	"hash/maphash"
	"time"
)

// Code objects come and go: IPython compiles each statement of a cell into one of
// its own and frees it, imports and exec do likewise, and the next one takes the
// address, often with the same file, name, first line and length, and even its
// frame takes the place of the last one's. An address identifies nothing, so a
// code object is compared with what is known of it before its lines are believed:
// which ones and when is told at codeCache.doubtful.

// identity tells a code object from another one that has taken its address.
//
// From 3.12 on it is co_version, a number that no other code object of the
// interpreter gets, until 2³² have been made (0 from then on). Before, and then, it
// is the code object's fields with the contents of its file name, its qualified
// name and its line table: what is equal in all of these has the same names and the
// same lines, whatever object it is.
type identity struct {
	proof [4]Range // what is to be read to compare
	n     int      // of them
	size  int      // their bytes together
	sum   uint64   // of what they held
}

const (
	maxProofName  = 512     // bytes of a name's object that are compared
	maxProofTable = 2 << 10 // bytes of a line table; its length and address are compared, too
	headKept      = 48      // the fields of a code object up to here …
	headAgain     = 64      // … and from here on never change; co_flags and 3.11's counters lie between
)

var proofSeed = maphash.MakeSeed()

// identify says how the code object at addr, whose head was read, is told from
// others. What is read of it after this is its own if its identity then still holds.
func (c *codeCache) identify(addr uint64, head []byte) (identity, error) {
	l := c.l
	if at := l.code.version; at != 0 && half(head, at) != 0 {
		return identity{proof: [4]Range{{addr + at, 4}}, n: 1, size: 4, sum: uint64(half(head, at))}, nil
	}
	file, name, table := word(head, l.code.filename), word(head, l.code.qualname), word(head, l.code.lineTable)
	fileSize, err1 := stringSize(c.mem, l, file)
	nameSize, err2 := stringSize(c.mem, l, name)
	tableSize, err3 := readWord(c.mem, table+varSize)
	if err1 != nil || err2 != nil || err3 != nil {
		return identity{}, errUnmapped
	}
	id := identity{n: 4, proof: [4]Range{
		{addr + varSize, int(l.code.lineTable + wordSize - varSize)},
		{file + varSize, int(min(fileSize, maxProofName) - varSize)},
		{name + varSize, int(min(nameSize, maxProofName) - varSize)},
		{table + varSize, int(l.bytesData - varSize + min(tableSize, maxProofTable))},
	}}
	for _, r := range id.proof {
		id.size += r.Len
	}
	b := make([]byte, id.size)
	if n, err := c.mem.Read(b, id.proof[:]); err != nil {
		return id, err
	} else if n < id.size {
		return id, errUnmapped
	}
	if !bytes.Equal(b[:headKept-varSize], head[varSize:headKept]) || !bytes.Equal(b[headAgain-varSize:id.proof[0].Len], head[headAgain:varSize+id.proof[0].Len]) {
		return id, errReplaced
	}
	id.sum = id.summarize(l, b)
	return id, nil
}

// errReplaced tells that a code object was freed and replaced while it was read.
var errReplaced = errors.New("the code object was replaced while it was read")

// summarize reduces what was read of the proof to a number. What may change in an
// object that stays is left out: hashes, which are computed when they are first
// asked for, and whether a string is interned.
func (id *identity) summarize(l *layout, b []byte) uint64 {
	if id.n == 1 {
		return uint64(half(b, 0))
	}
	var h maphash.Hash
	h.SetSeed(proofSeed)
	for i, r := range id.proof {
		part := b[:r.Len]
		b = b[r.Len:]
		switch i {
		case 0:
			h.Write(part[:headKept-varSize])
			h.Write(part[headAgain-varSize:])
		case 3:
			h.Write(part[:wordSize])
			h.Write(part[l.bytesData-varSize:])
		default:
			text := l.str.compact
			if half(part, l.str.state-varSize)&strASCIIBit != 0 {
				text = l.str.ascii
			}
			h.Write(part[:wordSize])
			h.Write(part[min(int(text-varSize), len(part)):])
		}
	}
	return h.Sum64()
}

// holds tells whether what was read of the proof is what it was.
func (id *identity) holds(l *layout, b []byte) bool {
	return len(b) >= id.size && id.summarize(l, b[:id.size]) == id.sum
}

// settledEpochs is for how long a code object must have been there to be taken for
// one that stays.
const settledEpochs = 2

// doubtful tells a code object that must be compared at each sample that shows it.
//
// From 3.14 on the interpreter counts the code objects it has freed: while it frees
// none, all are what they were. Before that, those are doubtful that were first seen
// a moment ago, and for ever the code of modules and of cells' statements with the
// nameless functions in it, all of which is freed when it has run. Of the others on
// a stack one is compared at each sample, in turn, and each where its frame is a
// new one, once an epoch.
func (c *codeCache) doubtful(code *codeObject) bool {
	if c.counts {
		return code.generation != c.generation
	}
	return code.nameless || c.epoch-code.born < settledEpochs
}

// stale tells a code object that must be compared where its frame is a new one.
func (c *codeCache) stale(code *codeObject) bool {
	return c.doubtful(code) || !c.counts && code.epoch != c.epoch
}

// confirmed notes that a code object was found to be what it was.
func (c *codeCache) confirmed(code *codeObject) { code.epoch, code.generation = c.epoch, c.generation }

// maxWatched bounds the code objects that are compared by the call that copies the
// stack; further ones take a call of their own.
const maxWatched = 32

// compareEvery is for how long a code object of a stack is trusted after it was
// compared, however often the stack is read.
const compareEvery = 100 * time.Microsecond

// watched is a code object of the last sample's stack that is compared by the call
// that copies the stack, behind the copies.
type watched struct {
	depth int    // in thread.stack
	at    uint64 // position in the buffer
}

// watch adds to the ranges of a read what code objects of t's last stack are
// compared by.
func (r *reader) watch(t *thread) {
	r.watching = r.watching[:0]
	if r.trusting = !t.unsure && !r.codes.counts && r.stamp.Sub(t.compared) < compareEvery; r.trusting {
		return
	}
	turn := -1
	if n := uint64(len(t.stack)); n > 0 && !r.codes.counts {
		turn = int(t.plan.sample % n)
	}
	pos := len(r.buf)
	for depth := range t.stack {
		object := t.stack[depth].object
		if depth != turn && !t.unsure && !r.codes.doubtful(object) {
			continue
		}
		if len(r.watching) == maxWatched {
			break
		}
		id := &object.identity
		r.watching = append(r.watching, watched{depth, uint64(pos)})
		r.ranges = append(r.ranges, id.proof[:id.n]...)
		pos += id.size
	}
	r.resize(uint64(pos))
}

// compareWatched takes note of which code objects that were read with the copies
// are what they were. What it means is seen when the frame is known to be on the
// stack: freed memory keeps what it held for a while.
func (r *reader) compareWatched(t *thread) {
	for _, w := range r.watching {
		f := &t.stack[w.depth]
		if f.object.identity.holds(r.l, r.buf[min(w.at, uint64(len(r.buf))):]) {
			f.proven = r.attempts
		} else {
			f.replaced = true
		}
	}
	r.watching = r.watching[:0]
}

// confirm compares the code objects of r.found that may be others by now and were
// not read with the copies, all in one read. Only what was known before the copies
// were made and is still the same after them is sure; where some are not, what is
// there now is taken in, and the sample must be tried again. The first certain
// frames are sure to be on the stack, so that their code is no freed one.
func (r *reader) confirm(t *thread, certain int) bool {
	r.proofs, r.unproven = r.proofs[:0], r.unproven[:0]
	size := 0
	for i := range r.found {
		f := &r.found[i]
		if f.proven == r.attempts {
			if i < certain {
				r.codes.confirmed(f.object)
			}
			continue
		}
		if !t.unsure && !(f.isNew && r.codes.stale(f.object)) && (r.trusting || !r.codes.doubtful(f.object)) {
			continue
		}
		id := &f.object.identity
		r.proofs = append(r.proofs, id.proof[:id.n]...)
		r.unproven = append(r.unproven, i)
		size += id.size
	}
	same := r.codes.reads == r.readsBefore
	if len(r.unproven) > 0 {
		b := r.proofSpace(size)
		r.calls++
		n, err := r.mem.Read(b, r.proofs)
		if err != nil {
			r.fault = err
			return false
		}
		rest := b[:n]
		for _, i := range r.unproven {
			f := &r.found[i]
			if id := &f.object.identity; !id.holds(r.l, rest) {
				same = false
				r.replaced(t, f.object)
			} else if i < certain {
				r.codes.confirmed(f.object)
			}
			rest = rest[min(f.object.identity.size, len(rest)):]
		}
	}
	if same {
		t.unsure = false
		if !r.trusting {
			t.compared = r.stamp
		}
	}
	return same
}

// isAnother tells whether a code object was replaced, by a read of its own.
func (r *reader) isAnother(object *codeObject) bool {
	id := &object.identity
	b := r.proofSpace(id.size)
	r.calls++
	n, err := r.mem.Read(b, id.proof[:id.n])
	return err == nil && !id.holds(r.l, b[:n])
}

// proofSpace is a buffer for what code objects are compared by.
func (r *reader) proofSpace(size int) []byte {
	if cap(r.proofBuf) < size {
		r.proofBuf = make([]byte, 2*size)
	}
	return r.proofBuf[:size]
}

// replaced takes in what has taken a code object's address. Others may have been
// replaced, too.
func (r *reader) replaced(t *thread, old *codeObject) {
	t.unsure = true
	if r.codes.byAddr[old.addr] == old {
		delete(r.codes.byAddr, old.addr)
	}
	for i := range t.stack {
		if t.stack[i].object == old {
			t.stack[i].replaced = true
		}
	}
	_, _ = r.codes.get(old.addr)
}
