package cpython

import "strings"

// Objects reads CPython's objects from a process's memory, one by one. One goroutine
// at a time.
type Objects struct {
	mem      *ahead
	layout   *Layout
	codeType uint64            // address of PyCode_Type, learnt from the first code object
	types    map[uint64]string // tp_name by address
	names    map[named]nameAt  // where names were found in tables of keys
	// greenletFrame is where a greenlet's state has its innermost frame, once that is known; 0: it is not.
	greenletFrame uint64
	head          [maxHead]byte
}

// NewObjects reads objects of an interpreter.
func NewObjects(m Memory, l *Layout) *Objects { return &Objects{mem: &ahead{Memory: m}, layout: l} }

const (
	maxTypes    = 4096
	maxTypeName = 64
)

// mayBeObject leaves out addresses that no object has: the first page is never mapped, and objects are aligned.
func mayBeObject(addr uint64) bool { return addr >= 4096 && addr%WordSize == 0 }

// TypeName returns tp_name of an object's type; empty if it cannot be read.
func (o *Objects) TypeName(object uint64) string {
	typ, err := ReadWord(o.mem, object+objectType)
	if err != nil {
		return ""
	}
	return o.nameOf(typ)
}

func (o *Objects) nameOf(typ uint64) string {
	if name, ok := o.types[typ]; ok {
		return name
	}
	at, err := ReadWord(o.mem, typ+o.layout.TypeName)
	if err != nil {
		return ""
	}
	var text [maxTypeName]byte
	n, err := o.mem.Read(text[:], []Range{{at, len(text)}})
	if n == 0 && err == nil { // it lies at the end of what is mapped
		n, err = o.mem.Read(text[:], []Range{{at, WordSize}})
	}
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(string(text[:n]), "\x00")
	if o.types == nil || len(o.types) >= maxTypes {
		o.types = make(map[uint64]string)
	}
	o.types[typ] = name
	return name
}

// bytes returns the contents of a bytes object, cut to limit.
func (o *Objects) bytes(addr uint64, limit uint64) ([]byte, error) {
	size, err := ReadWord(o.mem, addr+varSize)
	if err != nil {
		return nil, err
	}
	// In steps, so that a size gone wild costs no more than what is mapped.
	const step = 64 << 10
	var out []byte
	for size = min(size, limit); uint64(len(out)) < size; {
		part := make([]byte, min(size-uint64(len(out)), step))
		if err := ReadAt(o.mem, addr+o.layout.BytesData+uint64(len(out)), part); err != nil {
			return nil, err
		}
		out = append(out, part...)
	}
	return out, nil
}
