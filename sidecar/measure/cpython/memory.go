package cpython

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Range is a stretch of a process's memory.
type Range struct {
	Addr uint64
	Len  int
}

// Memory is the memory of a process, live or recorded.
type Memory interface {
	// Read fills buf with the contents of the ranges, one behind the other, in
	// one go and in order. It returns the number of bytes read: fewer than asked
	// with a nil error where a range is not mapped, which ends the read there.
	Read(buf []byte, ranges []Range) (int, error)
}

// ErrUnmapped: an address is none of the process's.
var ErrUnmapped = errors.New("address is not mapped")

// ReadAt fills buf from addr.
func ReadAt(m Memory, addr uint64, buf []byte) error {
	n, err := m.Read(buf, []Range{{addr, len(buf)}})
	if err != nil {
		return err
	}
	if n < len(buf) {
		return fmt.Errorf("%w: %#x", ErrUnmapped, addr)
	}
	return nil
}

// ReadWord reads a pointer or 64-bit integer.
func ReadWord(m Memory, addr uint64) (uint64, error) {
	var b [WordSize]byte
	if err := ReadAt(m, addr, b[:]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// Word reads a 64-bit field of a copied structure; 0 beyond its end.
func Word(b []byte, offset uint64) uint64 {
	if offset+8 > uint64(len(b)) || offset > uint64(len(b)) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[offset:])
}

// Half reads a 32-bit field of a copied structure; 0 beyond its end.
func Half(b []byte, offset uint64) uint32 {
	if offset+4 > uint64(len(b)) || offset > uint64(len(b)) {
		return 0
	}
	return binary.LittleEndian.Uint32(b[offset:])
}
