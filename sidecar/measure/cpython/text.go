package cpython

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxNameChars bounds a name that is read: the timeline keeps 512 bytes of it.
const maxNameChars = 1024

// Bits of PyASCIIObject.state (cpython/unicodeobject.h), from the lowest: interned 2,
// kind 3, compact 1, ascii 1.
const (
	strKindShift  = 2
	strKindMask   = 7
	strCompactBit = 1 << 5
	strASCIIBit   = 1 << 6
)

// str is the head of a str object.
type str struct {
	chars uint64
	kind  uint32 // bytes of a character: 1, 2 or 4
	text  uint64 // where it begins, from the object's start
}

func (o *Objects) str(addr uint64) (s str, err error) {
	l := o.layout
	var head [maxStringHead]byte
	h := head[:l.Str.ASCII]
	if err := ReadAt(o.mem, addr, h); err != nil {
		return s, err
	}
	state := Half(h, l.Str.State)
	s = str{chars: Word(h, l.Str.Length), kind: state >> strKindShift & strKindMask, text: l.Str.Compact}
	if state&strASCIIBit != 0 {
		s.text = l.Str.ASCII
	}
	if state&strCompactBit == 0 || s.kind != 1 && s.kind != 2 && s.kind != 4 || s.chars > 1<<40 {
		return s, fmt.Errorf("no string at %#x (state %#x)", addr, state)
	}
	return s, nil
}

// Text returns a str object's text as valid UTF-8, cut to 1,024 characters.
func (o *Objects) Text(addr uint64) (string, error) { return o.TextUpTo(addr, maxNameChars) }

// TextUpTo returns a str object's text as valid UTF-8, cut to a number of characters.
func (o *Objects) TextUpTo(addr uint64, limit uint64) (string, error) {
	s, err := o.str(addr)
	if err != nil {
		return "", err
	}
	raw := make([]byte, min(s.chars, limit)*uint64(s.kind))
	if err := ReadAt(o.mem, addr+s.text, raw); err != nil {
		return "", err
	}
	text := decodeChars(raw, s.kind)
	if s.chars > limit {
		text += "…"
	}
	return text, nil
}

// decodeChars turns 1, 2 or 4 byte characters into UTF-8; what is no character
// (a lone surrogate, as os.fsdecode makes them) becomes U+FFFD.
func decodeChars(raw []byte, kind uint32) string {
	var b strings.Builder
	b.Grow(len(raw))
	for len(raw) > 0 {
		var r rune
		switch kind {
		case 1:
			r = rune(raw[0])
		case 2:
			r = rune(raw[0]) | rune(raw[1])<<8
		default:
			r = rune(Half(raw, 0))
		}
		raw = raw[kind:]
		if !utf8.ValidRune(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}
