package kineto

import (
	"errors"
	"io"
)

const (
	windowSize = 512 << 10
	// maxRecord bounds the memory one record or metadata value may take.
	maxRecord = 32 << 20
)

// window is a sliding view of a file. buf[pos:] is unread; base is the file
// offset of buf[0].
type window struct {
	src  io.Reader
	buf  []byte
	pos  int
	base int64
	err  error // why the file ended; io.EOF for a regular end
}

func newWindow(src io.Reader) *window {
	return &window{src: src, buf: make([]byte, 0, windowSize)}
}

// offset in the file of the next unread byte.
func (w *window) offset() int64 { return w.base + int64(w.pos) }

// more reads on, keeping what is unread. It reports false when the file is at
// its end or the unread part has grown beyond maxRecord.
func (w *window) more() bool {
	if w.err != nil {
		return false
	}
	if w.pos > 0 {
		n := copy(w.buf, w.buf[w.pos:])
		w.buf = w.buf[:n]
		w.base += int64(w.pos)
		w.pos = 0
	}
	if len(w.buf) == cap(w.buf) {
		if cap(w.buf) >= maxRecord {
			return false
		}
		w.buf = append(make([]byte, 0, 2*cap(w.buf)), w.buf...)
	}
	before := len(w.buf)
	for idle := 0; len(w.buf) < cap(w.buf); {
		n, err := w.src.Read(w.buf[len(w.buf):cap(w.buf)])
		w.buf = w.buf[:len(w.buf)+n]
		if err != nil {
			w.err = err
			break
		}
		if n > 0 {
			idle = 0
		} else if idle++; idle == 100 {
			w.err = io.ErrNoProgress
			break
		}
	}
	return len(w.buf) > before
}

// space skips white space and returns the next byte without taking it; ok is
// false at the end of the file.
func (w *window) space() (c byte, ok bool) {
	for {
		if w.pos = skipSpace(w.buf, w.pos); w.pos < len(w.buf) {
			return w.buf[w.pos], true
		}
		if !w.more() {
			return 0, false
		}
	}
}

// try runs a scan from the current position, reading on as long as it is
// short. It returns the value's bytes and moves behind them; a negative next is
// the scan's verdict, with the position unchanged.
func (w *window) try(scan func(b []byte, i int) int) (value []byte, next int) {
	for {
		next = scan(w.buf, w.pos)
		if next == short && w.more() {
			continue
		}
		if next < 0 {
			return nil, next
		}
		value = w.buf[w.pos:next]
		w.pos = next
		return value, next
	}
}

// truncated reports whether the file ended otherwise than by its own end.
func (w *window) truncated() bool { return w.err != nil && !errors.Is(w.err, io.EOF) }
