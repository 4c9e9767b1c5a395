// Package jsonstream reads JSON from a stream through a window of bounded size.
//
// In flow bytes; a caller scans what it wants inside the window and skips the rest,
// which costs no memory whatever its length. The package checks the structure of what
// it passes over (strings, brackets), not its grammar: that is for who decodes what is
// kept. It knows nothing of what the text means.
package jsonstream

import (
	"errors"
	"io"
)

// Short is what a scan returns where the window ends before the value does. Other
// negative results are the scan's own.
const Short = -1

// Window is a sliding view of a text. Buf[Pos:] is unread.
type Window struct {
	Buf  []byte
	Pos  int
	Base int64 // offset in the text of Buf[0]
	Err  error // why the text ended; io.EOF for a regular end
	src  io.Reader
	most int
}

// NewWindow makes a window of size bytes, which grows to most, a multiple of size by a
// power of two, for a scan that needs it.
func NewWindow(src io.Reader, size, most int) *Window {
	return &Window{src: src, Buf: make([]byte, 0, size), most: most}
}

// Offset is the place in the text of the next unread byte.
func (w *Window) Offset() int64 { return w.Base + int64(w.Pos) }

// More reads on, keeping what is unread. It reports false when the text is at its end
// or the unread part fills the largest window.
func (w *Window) More() bool {
	if w.Err != nil {
		return false
	}
	if w.Pos > 0 {
		n := copy(w.Buf, w.Buf[w.Pos:])
		w.Buf = w.Buf[:n]
		w.Base += int64(w.Pos)
		w.Pos = 0
	}
	if len(w.Buf) == cap(w.Buf) {
		if cap(w.Buf) >= w.most {
			return false
		}
		w.Buf = append(make([]byte, 0, 2*cap(w.Buf)), w.Buf...)
	}
	before := len(w.Buf)
	for idle := 0; len(w.Buf) < cap(w.Buf); {
		n, err := w.src.Read(w.Buf[len(w.Buf):cap(w.Buf)])
		w.Buf = w.Buf[:len(w.Buf)+n]
		if err != nil {
			w.Err = err
			break
		}
		if n > 0 {
			idle = 0
		} else if idle++; idle == 100 {
			w.Err = io.ErrNoProgress
			break
		}
	}
	return len(w.Buf) > before
}

// Space skips white space and control characters and returns the next byte without
// taking it; ok is false at the end of the text.
func (w *Window) Space() (c byte, ok bool) {
	for {
		for i, c := range w.Buf[w.Pos:] {
			if c > ' ' {
				w.Pos += i
				return c, true
			}
		}
		w.Pos = len(w.Buf)
		if !w.More() {
			return 0, false
		}
	}
}

// Try runs a scan from the current position, reading on as long as it is Short. A scan
// returns the position behind a value. Try returns the value's bytes, valid until the
// window moves, and moves behind them; a negative next is the scan's, with the position
// unchanged.
func (w *Window) Try(scan func(b []byte, i int) int) (value []byte, next int) {
	for {
		next = scan(w.Buf, w.Pos)
		if next == Short && w.More() {
			continue
		}
		if next < 0 {
			return nil, next
		}
		value = w.Buf[w.Pos:next]
		w.Pos = next
		return value, next
	}
}

// Full reports whether a value was Short because it is larger than the largest window,
// not because the text ended.
func (w *Window) Full() bool { return w.Err == nil && len(w.Buf)-w.Pos >= w.most }

// Truncated reports whether the text ended otherwise than by its own end.
func (w *Window) Truncated() bool { return w.Err != nil && !errors.Is(w.Err, io.EOF) }
