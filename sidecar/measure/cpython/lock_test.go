package cpython

import (
	"encoding/binary"
	"strings"
	"testing"
)

// fuzzedAt is where the memory of a fuzzed process begins; there is nothing else.
const fuzzedAt = 1 << 16

type fuzzed []byte

func (m fuzzed) Read(buf []byte, ranges []Range) (int, error) {
	n := 0
	for _, r := range ranges {
		at := int(r.Addr) - fuzzedAt
		if at < 0 || at+r.Len > len(m) {
			return n, nil
		}
		n += copy(buf[n:], m[at:at+r.Len])
	}
	return n, nil
}

// FuzzLock reads locks, and what with statements have entered, from memory of any contents: it ends, and a lock is one
// of the objects that it was asked for, or leads to.
func FuzzLock(f *testing.F) {
	word := func(offset uint64) string {
		return string(binary.LittleEndian.AppendUint64(nil, fuzzedAt+offset))
	}
	zero := strings.Repeat("\x00", WordSize)
	lock := func(name string) string {
		// An object, its type, and the type's name.
		return zero + word(64) + "\x03" + zero[1:] + word(0) + zero + zero + zero + zero + zero + zero + zero + word(64+4*WordSize) + name + "\x00" + strings.Repeat(zero, 20)
	}
	for _, minor := range []uint8{11, 12, 13, 14, 15} {
		for _, name := range []string{"_thread.lock", "_thread.RLock", "Condition", "method", "builtin_function_or_method", "method_descriptor", "function"} {
			f.Add(minor, []byte(lock(name)))
		}
	}
	f.Fuzz(func(t *testing.T, minor uint8, data []byte) {
		l := &Layout{Version: Version{Major: 3, Minor: 11 + int(minor%5)}, TypeName: 24, CachedKeys: 40, BytesData: 32, TupleItems: 24}
		l.Str.Length, l.Str.State, l.Str.ASCII, l.Str.Compact = 16, 32, 40, 56
		if l.Version.Minor >= 14 {
			l.Frame.CodeTag = 3
		}
		o := NewObjects(fuzzed(data), l)
		var stack []uint64
		for at := uint64(0); at < 256; at += WordSize {
			stack = append(stack, fuzzedAt+at, Word(data, at))
		}
		for _, value := range stack {
			if lock, ok := o.Lock(value); ok {
				if lock.Addr < fuzzedAt || lock.Addr >= fuzzedAt+uint64(len(data)) {
					t.Errorf("a lock at %#x", lock.Addr)
				}
				o.WaitedFor(lock, value)
			}
		}
		entered := 0
		o.Entered(stack, func(i int, _ Lock) {
			if entered++; i < 0 || i >= len(stack) {
				t.Errorf("value %d of %d", i, len(stack))
			}
		})
		if entered > len(stack) {
			t.Errorf("%d locks of %d values", entered, len(stack))
		}
	})
}
