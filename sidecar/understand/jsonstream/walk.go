package jsonstream

// The methods in this file walk through objects and lists. Their ok is false where the text ends, or is no JSON, before
// the value does.

// Value takes the value at the current position. Of one that is larger than the largest window nothing is kept: whole is
// false. The value is valid until the window moves.
func (w *Window) Value() (value []byte, whole, ok bool) {
	if w.Pos == len(w.Buf) && !w.More() {
		return nil, false, false
	}
	value, next := w.Try(valueEnd)
	switch {
	case next >= 0:
		return value, true, true
	case w.Full():
		return nil, false, w.Skip()
	case next == Short: // the text ends in it
		w.Pos = len(w.Buf)
	}
	return nil, false, false
}

// valueEnd is a scan to the end of a value.
func valueEnd(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch kinds[b[i]] {
		case quote:
			n, _, done := stringEnd(b, i+1, false)
			if !done {
				return Short
			}
			if i = n; depth == 0 {
				return i
			}
		case opens:
			depth++
			i++
		case closes:
			depth--
			i++
			if depth == 0 {
				return i
			}
			if depth < 0 { // no value begins here
				return -2
			}
		case other:
			for i < len(b) && kinds[b[i]] == other {
				i++
			}
			if depth == 0 && i < len(b) {
				return i
			}
		default:
			if depth == 0 {
				return -2
			}
			i++
		}
	}
	return Short
}

// Members visits the members of the object at the current position, each at its value, which visit may take; what it
// leaves is skipped. Where the value is no object it is skipped. Visit ends the walk by returning false: then ok is false.
func (w *Window) Members(visit func(key string) bool) (ok bool) {
	return w.walk('{', func() bool {
		raw, whole, ok := w.String(nil, longestKey)
		if !ok {
			return false
		}
		if c, ok := w.Space(); !ok || c != ':' {
			return false
		}
		w.Pos++
		if _, ok := w.Space(); !ok {
			return false
		}
		key := ""
		if whole {
			key = string(raw[1 : len(raw)-1])
		}
		return w.visited(func() bool { return visit(key) })
	})
}

// longestKey is how long a key may be that is told apart; no longer one is known to anybody.
const longestKey = 256

// Elements visits the elements of the list at the current position as Members does.
func (w *Window) Elements(visit func() bool) (ok bool) {
	return w.walk('[', func() bool { return w.visited(visit) })
}

// visited skips the value at the current position if visit did not take it.
func (w *Window) visited(visit func() bool) bool {
	before := w.Offset()
	return visit() && (w.Offset() != before || w.Skip())
}

// walk goes through an object or a list.
func (w *Window) walk(open byte, part func() bool) (ok bool) {
	c, ok := w.Space()
	if !ok {
		return false
	}
	if c != open {
		return kinds[c] != closes && kinds[c] != mark && w.Skip()
	}
	w.Pos++
	for {
		c, ok := w.Space()
		switch {
		case !ok:
			return false
		case c == ',':
			w.Pos++
		case kinds[c] == closes:
			w.Pos++
			return true
		case kinds[c] == mark || open == '{' && c != '"':
			return false
		case !part():
			return false
		}
	}
}
