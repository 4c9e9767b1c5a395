package cpython

import (
	"bytes"
	"errors"
	"hash/maphash"
)

// Identity distinguishes a code object from another one that has taken its address: IPython
// compiles each statement of a cell into a code object of its own and frees it, imports
// and exec do likewise, and the next one takes the address, often with the same file,
// name, first line and length.
//
// From 3.12 on it is co_version, a number that no other code object of the interpreter
// gets, until 2³² have been made (0 from then on). Before, and then, it is the code
// object's fields with the contents of its file name, its qualified name and its line
// table: what is equal in all of these has the same names and the same lines, whatever
// object it is.
type Identity struct {
	proof [4]Range
	n     int
	// Size is the number of bytes that Proof reads.
	Size int
	sum  uint64 // of what was read
}

const (
	maxProofName  = 512     // bytes of a name's object that are compared
	maxProofTable = 2 << 10 // bytes of a line table; its length and address are compared, too

	// The fields of a code object from ob_size up to co_flags, and from
	// co_kwonlyargcount (3.11) or co_stacksize on, never change; co_flags, 3.11's counters
	// and counts of arguments lie between.
	headKept  = 48
	headAgain = 64
)

// Proof is what is to be read to compare. It must not be changed.
func (id *Identity) Proof() []Range { return id.proof[:id.n] }

var (
	proofSeed = maphash.MakeSeed()
	// errReplaced: a code object was freed and replaced while it was read.
	errReplaced = errors.New("the code object was replaced while it was read")
)

// identify says how the code object at addr, whose head was read, is distinguished from others.
func (o *Objects) identify(addr uint64, head []byte) (Identity, error) {
	l := o.layout
	if at := l.Code.Version; at != 0 && Half(head, at) != 0 {
		return Identity{proof: [4]Range{{addr + at, 4}}, n: 1, Size: 4, sum: uint64(Half(head, at))}, nil
	}
	id := Identity{n: 4, proof: [4]Range{{Addr: addr + varSize, Len: int(l.Code.LineTable + WordSize - varSize)}}}
	for i, at := range []uint64{Word(head, l.Code.Filename), Word(head, l.Code.Qualname)} {
		s, err := o.str(at)
		if err != nil {
			return id, err
		}
		id.proof[1+i] = Range{at + varSize, int(s.text + min(s.chars*uint64(s.kind), maxProofName) - varSize)}
	}
	table := Word(head, l.Code.LineTable)
	size, err := ReadWord(o.mem, table+varSize)
	if err != nil {
		return id, err
	}
	id.proof[3] = Range{table + varSize, int(l.BytesData - varSize + min(size, maxProofTable))}
	for _, r := range id.proof {
		id.Size += r.Len
	}
	b := make([]byte, id.Size)
	if n, err := o.mem.Read(b, id.proof[:]); err != nil {
		return id, err
	} else if n < id.Size {
		return id, ErrUnmapped
	}
	now := b[:id.proof[0].Len]
	if !bytes.Equal(now[:headKept-varSize], head[varSize:headKept]) || !bytes.Equal(now[headAgain-varSize:], head[headAgain:varSize+len(now)]) {
		return id, errReplaced
	}
	id.sum = id.summarize(l, b)
	return id, nil
}

// Holds reports whether what was read of the proof, in its first Size bytes, is what it
// was. Fewer bytes are those of something else.
func (id *Identity) Holds(l *Layout, b []byte) bool {
	return len(b) >= id.Size && id.summarize(l, b[:id.Size]) == id.sum
}

// Holds reports, by a read, whether the code object that an identity is of is there.
func (o *Objects) Holds(id *Identity) bool {
	b := make([]byte, id.Size)
	n, err := o.mem.Read(b, id.Proof())
	return err == nil && id.Holds(o.layout, b[:n])
}

// summarize reduces what was read of the proof to a number. What may change in an
// object that stays is left out: hashes, which are computed when they are first
// asked for, and whether a string is interned.
func (id *Identity) summarize(l *Layout, b []byte) uint64 {
	if id.n == 1 {
		return uint64(Half(b, 0))
	}
	var h maphash.Hash
	h.SetSeed(proofSeed)
	for i, r := range id.proof {
		part := b[:r.Len]
		b = b[r.Len:]
		if i == 0 {
			h.Write(part[:headKept-varSize])
			h.Write(part[headAgain-varSize:])
			continue
		}
		from := l.BytesData // of the line table
		if i < 3 {
			from = l.Str.Compact
			if Half(part, l.Str.State-varSize)&strASCIIBit != 0 {
				from = l.Str.ASCII
			}
		}
		h.Write(part[:WordSize]) // the length
		h.Write(part[min(int(from-varSize), len(part)):])
	}
	return h.Sum64()
}
