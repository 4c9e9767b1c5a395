package sqlite

import (
	"encoding/binary"
	"math"
)

// Value is what a row has in a column; the zero value is null.
type Value struct {
	kind  kind
	bits  uint64 // of an integer or a float
	bytes []byte // of a text or a blob
}

type kind uint8

const (
	null kind = iota
	integer
	float
	text
	blob
)

// Int is the value as an integer; ok is false where it is none.
func (v Value) Int() (n int64, ok bool) {
	if v.kind == float {
		f := math.Float64frombits(v.bits)
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
	}
	return int64(v.bits), v.kind == integer
}

// Text is the value as a text, "" where it is none.
func (v Value) Text() string {
	if v.kind == text {
		return string(v.bytes)
	}
	return ""
}

// IsText reports whether the value is a text.
func (v Value) IsText() bool { return v.kind == text }

// decode reads the wanted columns of a record (§2.1) into w.values. payload may have less than its size bytes. It
// reports false where the record's header is damaged.
func (w *walk) decode(payload []byte, size, id int64) bool {
	length, n := varint(payload)
	if n == 0 || length < int64(n) || length > int64(len(payload)) {
		return false
	}
	clear(w.values)
	header, at := payload[n:length], length
	for column := 0; len(header) > 0; column++ {
		serial, n := varint(header)
		if n == 0 || serial < 0 {
			return false
		}
		header = header[n:]
		long := serialSize(serial)
		if long > size-at {
			return false
		}
		if at+long <= int64(len(payload)) {
			w.give(column, serial, payload[at:at+long], id)
		}
		at += long
	}
	return true
}

// give stores a value for those who want its column. A column that is the row's id is stored as null (§2.3).
func (w *walk) give(column int, serial int64, bytes []byte, id int64) {
	for i, wanted := range w.wanted {
		if wanted != column {
			continue
		}
		if w.values[i] = valueOf(serial, bytes); w.values[i].kind == null && w.columns[column].isID {
			w.values[i] = Value{kind: integer, bits: uint64(id)}
		}
	}
}

// serialSize is how many bytes a value of a serial type takes.
func serialSize(serial int64) int64 {
	switch {
	case serial >= 12:
		return (serial - 12) / 2
	case serial <= 4:
		return serial
	case serial == 5:
		return 6
	case serial == 6, serial == 7:
		return 8
	}
	return 0
}

func valueOf(serial int64, b []byte) Value {
	switch {
	case serial >= 12 && serial%2 == 1:
		return Value{kind: text, bytes: b}
	case serial >= 12:
		return Value{kind: blob, bytes: b}
	case serial == 7:
		return Value{kind: float, bits: binary.BigEndian.Uint64(b)}
	case serial == 8, serial == 9:
		return Value{kind: integer, bits: uint64(serial - 8)}
	case 1 <= serial && serial <= 6:
		n := int64(int8(b[0])) // two's complement, most significant byte first
		for _, c := range b[1:] {
			n = n<<8 | int64(c)
		}
		return Value{kind: integer, bits: uint64(n)}
	}
	return Value{}
}
