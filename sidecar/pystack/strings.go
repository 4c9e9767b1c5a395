package pystack

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxNameChars bounds a name that is read: the timeline keeps 512 bytes of it.
const maxNameChars = 1024

// String states of PyASCIIObject: bit fields from the lowest bit, interned 2,
// kind 3, compact 1, ascii 1.
const (
	strKindShift  = 2
	strKindMask   = 7
	strCompactBit = 1 << 5
	strASCIIBit   = 1 << 6
)

// readString returns a str object's text as valid UTF-8, cut to maxNameChars.
func readString(m Memory, l *layout, addr uint64) (string, error) {
	var head [maxStringHead]byte
	h := head[:l.str.ascii]
	if err := readAt(m, addr, h); err != nil {
		return "", err
	}
	state := half(h, l.str.state)
	chars := word(h, l.str.length)
	kind := state >> strKindShift & strKindMask
	if state&strCompactBit == 0 || kind != 1 && kind != 2 && kind != 4 || chars > 1<<40 {
		return "", fmt.Errorf("no string at %#x (state %#x)", addr, state)
	}
	data := addr + l.str.compact
	if state&strASCIIBit != 0 {
		data = addr + l.str.ascii
	}
	cut := chars > maxNameChars
	chars = min(chars, maxNameChars)
	raw := make([]byte, chars*uint64(kind))
	if err := readAt(m, data, raw); err != nil {
		return "", err
	}
	text := decodeChars(raw, kind)
	if cut {
		text += "…"
	}
	return text, nil
}

// stringSize is the length of a str object in bytes, its head included.
func stringSize(m Memory, l *layout, addr uint64) (uint64, error) {
	var head [maxStringHead]byte
	h := head[:l.str.ascii]
	if err := readAt(m, addr, h); err != nil {
		return 0, err
	}
	state, start := half(h, l.str.state), l.str.compact
	if state&strASCIIBit != 0 {
		start = l.str.ascii
	}
	return start + min(word(h, l.str.length), maxProofName)*uint64(state>>strKindShift&strKindMask), nil
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
			r = rune(half(raw, 0))
		}
		raw = raw[kind:]
		if !utf8.ValidRune(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}
