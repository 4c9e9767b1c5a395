package jsonstream

import "bytes"

// The methods in this file take values of any length in the memory of one window. Their ok
// is false where the text ends before the value does; Err has the reason.

// Skip takes the value at the current position, at which there is a byte.
func (w *Window) Skip() (ok bool) {
	switch w.Buf[w.Pos] {
	case '"':
		_, _, ok = w.String(nil, 0)
	case '{', '[':
		ok = w.skipNested()
	default:
		ok = w.skipScalar()
	}
	return ok
}

// String takes the string at the current position, a quote, and appends it with its
// quotes to dst. Of one of more than most bytes it appends only some: whole is false.
func (w *Window) String(dst []byte, most int) (out []byte, whole, ok bool) {
	taken, i := 0, 1
	escaped := false // the byte at the start of the window follows a backslash that escapes it
	for {
		b := w.Buf[w.Pos:]
		n, escapes, done := stringEnd(b, i, escaped)
		dst = append(dst, b[:min(n, max(0, most-taken))]...)
		w.Pos += n
		taken += n
		if done || !w.More() {
			return dst, taken <= most, done
		}
		i, escaped = 0, escapes
	}
}

// stringEnd finds the end of the string in whose text b[i] is, behind its quote. Without
// a quote it returns len(b), and whether the byte after that is escaped.
func stringEnd(b []byte, i int, escaped bool) (n int, escapes, done bool) {
	for {
		quote := bytes.IndexByte(b[i:], '"')
		end := i + quote
		if quote < 0 {
			end = len(b)
		}
		slashes := end
		for slashes > i && b[slashes-1] == '\\' {
			slashes--
		}
		odd := (end-slashes)%2 == 1
		if slashes == i && escaped {
			odd = !odd
		}
		switch {
		case quote < 0:
			return end, odd, false
		case !odd:
			return end + 1, false, true
		}
		i, escaped = end+1, false
	}
}

// Scalar takes the number or word at the current position and appends it to dst. It stops
// within one of more than most bytes: whole is false.
func (w *Window) Scalar(dst []byte, most int) (out []byte, whole, ok bool) {
	before := len(dst)
	for {
		b := w.Buf[w.Pos:]
		n := 0
		for n < len(b) && kinds[b[n]] == other {
			n++
		}
		w.Pos += n
		if n > most-(len(dst)-before) {
			return dst, false, true
		}
		dst = append(dst, b[:n]...)
		if n < len(b) {
			return dst, true, true
		}
		if !w.More() {
			return dst, true, false
		}
	}
}

// kind is what a byte outside strings is.
type kind uint8

const (
	other  kind = iota // part of a number or a word
	blank              // white space and control characters
	mark               // a comma or a colon
	quote              // the begin of a string
	opens              // a bracket that opens a list or an object
	closes             // one that closes it
)

var kinds = func() (kinds [256]kind) {
	for c := range byte(' ' + 1) {
		kinds[c] = blank
	}
	kinds[','], kinds[':'], kinds['"'] = mark, mark, quote
	kinds['['], kinds['{'], kinds[']'], kinds['}'] = opens, opens, closes, closes
	return kinds
}()

func (w *Window) skipScalar() bool {
	for {
		for i, c := range w.Buf[w.Pos:] {
			if kinds[c] != other {
				w.Pos += i
				return true
			}
		}
		if w.Pos = len(w.Buf); !w.More() {
			return false
		}
	}
}

// skipNested takes the object or list at the current position.
func (w *Window) skipNested() bool {
	depth := 0
	for {
		b := w.Buf
		i := w.Pos
	window:
		for ; i < len(b); i++ {
			switch kinds[b[i]] {
			case quote:
				break window
			case opens:
				depth++
			case closes:
				if depth--; depth == 0 {
					w.Pos = i + 1
					return true
				}
			}
		}
		if w.Pos = i; i < len(b) {
			if _, _, ok := w.String(nil, 0); !ok {
				return false
			}
		} else if !w.More() {
			return false
		}
	}
}

// Numbers takes the list of numbers and words at the current position, a bracket, and
// appends it to dst with few of its blanks. It stops behind more than most elements: count
// is then larger. A list of anything else, or with an element of more than longest
// bytes, is not ok.
func (w *Window) Numbers(dst []byte, most, longest int) (out []byte, count int, ok bool) {
	dst = append(dst, '[')
	w.Pos++
	tail := 0 // bytes since the last comma
	for {
		b := w.Buf[w.Pos:]
		n := 0
		for n < len(b) && (kinds[b[n]] == other || b[n] == ',') {
			if tail++; b[n] == ',' {
				count++
				tail = 0
			}
			n++
		}
		dst = append(dst, b[:n]...)
		w.Pos += n
		switch {
		case tail > longest || count >= most:
			return dst, count + 1, count >= most
		case n == len(b):
			if !w.More() {
				return dst, count, false
			}
		case b[n] == ']':
			w.Pos++
			if tail > 0 {
				count++
			}
			return append(dst, ']'), count, true
		case kinds[b[n]] == blank:
			if _, ok := w.Space(); !ok {
				return dst, count, false
			}
			if tail > 0 { // "1 2" is no 12
				dst = append(dst, ' ')
			}
		default:
			return dst, count, false
		}
	}
}
