package cpython

import "sort"

// LineTable maps instructions to lines: entry i covers the instructions from
// the end of entry i-1 up to its own end. A line of 0 means the code object
// has none there (None in co_positions()).
type LineTable []lineEntry

type lineEntry struct {
	end  int32 // in instructions, caches counted; exclusive
	line int32
}

// Codes of a location entry; Objects/locations.md of CPython describes them.
const (
	locOneLine0 = 10 // 10, 11, 12: line advances by code-10
	locNoColumn = 13
	locLong     = 14
	locNone     = 15
)

// DecodeLineTable decodes co_linetable. What is malformed ends the table there:
// instructions behind it have no line.
func DecodeLineTable(b []byte, firstLine int32) LineTable {
	var t LineTable
	line, end := int64(firstLine), int32(0)
	for len(b) > 0 && end < maxInstructions {
		head := b[0]
		if head&0x80 == 0 {
			return t // a continuation byte where an entry must begin
		}
		b = b[1:]
		length := int32(head&7) + 1
		has := true
		switch code := head >> 3 & 15; {
		case code < locOneLine0:
			b = skip(b, 1)
		case code < locNoColumn:
			line += int64(code - locOneLine0)
			b = skip(b, 2)
		case code == locNone:
			has = false
		default:
			var delta int64
			delta, b = signedVarint(b)
			line += delta
			if code == locLong {
				for range 3 { // end line, column, end column
					_, b = varint(b)
				}
			}
		}
		end += length
		shown := int32(0)
		if has && line > 0 && line < 1<<31 {
			shown = int32(line)
		}
		if n := len(t); n > 0 && t[n-1].line == shown {
			t[n-1].end = end
			continue
		}
		t = append(t, lineEntry{end, shown})
	}
	return t
}

// Line returns the line of an instruction, start ≤ instruction < end.
func (t LineTable) Line(instruction int32) int32 {
	i := sort.Search(len(t), func(i int) bool { return instruction < t[i].end })
	if i == len(t) || instruction < 0 {
		return 0
	}
	return t[i].line
}

// dropSetup takes the line from what %%timeit runs once before its loop. The set-up, on the magic's own line,
// and the loop's body both count lines from 1; IPython's template has its clock's call, in line 3, between
// them (IPython/core/magics/execution.py, ExecutionMagics.timeit).
func (t LineTable) dropSetup() {
	for i := range t {
		if t[i].line > 1 {
			return
		}
		t[i].line = 0
	}
}

// skip drops n bytes, or all there are.
func skip(b []byte, n int) []byte { return b[min(n, len(b)):] }

// varint reads six bits a byte, least significant first; 0x40 says more follow.
func varint(b []byte) (uint64, []byte) {
	var v uint64
	for shift := 0; len(b) > 0; shift += 6 {
		c := b[0]
		b = b[1:]
		if shift < 60 {
			v |= uint64(c&0x3f) << shift
		}
		if c&0x40 == 0 {
			break
		}
	}
	return v, b
}

// signedVarint reads a varint whose lowest bit is the sign.
func signedVarint(b []byte) (int64, []byte) {
	v, b := varint(b)
	if v&1 != 0 {
		return -int64(v >> 1), b
	}
	return int64(v >> 1), b
}
