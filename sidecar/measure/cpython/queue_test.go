package cpython

import (
	"encoding/binary"
	"strings"
	"testing"
)

// FuzzQueue reads attributes, semaphores and deques from memory of any contents: it ends, and what it found is where it was read.
func FuzzQueue(f *testing.F) {
	word := func(offset uint64) string {
		return string(binary.LittleEndian.AppendUint64(nil, fuzzedAt+offset))
	}
	zero := strings.Repeat("\x00", WordSize)
	object := func(name string) string { // 32 bytes before it, the object, its type, and the type's name
		return word(200) + word(200) + zero + zero + "\x01" + zero[1:] + word(80) + word(200) + zero + "\x00\x00\x00\x00\xff\xff\xff\x7f" + zero +
			zero + zero + zero + word(80+4*WordSize) + name + "\x00" + strings.Repeat(zero, 20)
	}
	for minor := range uint8(5) {
		for _, name := range []string{"_multiprocessing.SemLock", "collections.deque", "int", "str", "Queue"} {
			f.Add(minor, []byte(object(name)))
		}
	}
	f.Fuzz(func(t *testing.T, minor uint8, data []byte) {
		l := &Layout{Version: Version{Major: 3, Minor: 11 + int(minor%5)}, TypeName: 24, CachedKeys: 40, BytesData: 32, TupleItems: 24}
		l.Str.Length, l.Str.State, l.Str.ASCII, l.Str.Compact = 16, 32, 40, 56
		o := NewObjects(fuzzed(data), l)
		within := func(what string, addr uint64) {
			if addr < fuzzedAt || addr > fuzzedAt+uint64(len(data)) {
				t.Errorf("%s at %#x", what, addr)
			}
		}
		for at := uint64(0); at < 256; at += WordSize {
			for _, value := range []uint64{fuzzedAt + at, Word(data, at)} {
				if addr, _, ok := o.Semaphore(value); ok && !mayBeObject(addr) {
					t.Errorf("a semaphore at %#x", addr)
				}
				if addr, ok := o.Deque(value); ok && addr != value+varSize {
					t.Errorf("a deque's length at %#x of %#x", addr, value)
				}
				if digits, ok := o.Digits(value); ok {
					within("digits", digits.Addr)
				}
				places, held, err := o.Places(value, "_num_yielded", "_data_queue")
				if err != nil {
					continue
				}
				for _, p := range places {
					within("an attribute", p.Addr)
				}
				for _, h := range held {
					within("a word", h.Addr)
				}
			}
		}
	})
}
