package cpython

import "sort"

// Handlers are the exception handlers of a code object, in the order of the instructions that they guard.
type Handlers []handler

// handler guards the instructions from start up to end. When one of them raises, so many values stay on
// the frame's stack: they were there before the try or with statement's body began, and are there while it runs.
type handler struct {
	start, end int32
	kept       int32
}

const (
	maxExceptionTable = 256 << 10 // bytes; of a longer one nothing is used
	maxKept           = 256       // values
)

// DecodeHandlers decodes co_exceptiontable (InternalDocs/exception_handling.md of CPython). What is malformed, or out
// of order, ends the table there: instructions behind it have no handler.
func DecodeHandlers(b []byte) Handlers {
	var out Handlers
	last := int32(0)
	for len(b) > 0 {
		if b[0]&0x80 == 0 {
			return out // no begin of an entry
		}
		var entry [4]int32 // start, length, target, values kept and whether the instruction is
		for i := range entry {
			var ok bool
			if entry[i], b, ok = bigVarint(b, i == 0); !ok {
				return out
			}
		}
		h := handler{start: entry[0], end: entry[0] + entry[1], kept: entry[3] >> 1}
		if h.start < last || h.end <= h.start || h.end > maxInstructions || h.kept > maxKept {
			return out
		}
		last = h.end
		if h.kept > 0 {
			out = append(out, h)
		}
	}
	return out
}

// bigVarint reads six bits a byte, most significant first; 0x40 says that more follow, 0x80 that an entry begins.
func bigVarint(b []byte, first bool) (v int32, rest []byte, ok bool) {
	for i, c := range b {
		if (c&0x80 != 0) != (first && i == 0) || v > maxInstructions {
			return 0, nil, false
		}
		v = v<<6 | int32(c&0x3f)
		if c&0x40 == 0 {
			return v, b[i+1:], true
		}
	}
	return 0, nil, false
}

// Kept is how many values are on a frame's stack, at least, while it is at an instruction.
func (h Handlers) Kept(instruction int32) int {
	i := sort.Search(len(h), func(i int) bool { return instruction < h[i].end })
	if i == len(h) || instruction < h[i].start {
		return 0
	}
	return int(h[i].kept)
}

// Handlers reads the exception handlers of a code object.
func (o *Objects) Handlers(c *Code) (Handlers, error) {
	table, err := ReadWord(o.mem, c.Addr+o.layout.Code.ExceptionTable)
	if err != nil {
		return nil, err
	}
	b, err := o.bytes(table, maxExceptionTable+1)
	if err != nil || len(b) > maxExceptionTable {
		return nil, err
	}
	return DecodeHandlers(b), nil
}
