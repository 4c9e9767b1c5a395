package kineto

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
)

// source is an opened trace file: plain bytes out, whatever its compression.
type source struct {
	file  *os.File
	size  int64        // bytes as stored
	taken atomic.Int64 // bytes taken from the file so far
	*bufio.Reader
	stop chan struct{} // ends the decompressor; nil for plain files
}

// errTrailing: gzip members ended and other bytes follow.
var errTrailing = errors.New("bytes that are no gzip follow the compressed data")

// openSource recognises gzip by its magic number: names lie. Decompression runs in
// a goroutine of its own, so that it overlaps parsing.
func openSource(path string) (*source, error) {
	f, err := targetfs.OpenRegular(path) // what lies in a folder may be a FIFO
	if err != nil {
		return nil, fmt.Errorf("opening a trace: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("opening a trace: %w", err)
	}
	s := &source{file: f, size: info.Size()}
	in := bufio.NewReaderSize(counted{s}, 128<<10)
	s.Reader = in
	if magic, _ := in.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		s.stop = make(chan struct{})
		s.Reader = bufio.NewReaderSize(decompress(in, s.stop), 128<<10)
	}
	return s, nil
}

func (s *source) Close() error {
	if s.stop != nil {
		close(s.stop)
	}
	return s.file.Close()
}

// fraction of the file taken so far, in (0, 1].
func (s *source) fraction() float64 {
	if s.size == 0 {
		return 1
	}
	return min(1, max(1e-6, float64(s.taken.Load())/float64(s.size)))
}

// counted reads the stored bytes and counts them.
type counted struct{ *source }

func (c counted) Read(p []byte) (int, error) {
	n, err := c.file.Read(p)
	c.taken.Add(int64(n))
	return n, err
}

// block is a piece of decompressed text, or the error that ended it.
type block struct {
	data []byte
	err  error
}

// blocks hands decompressed blocks to a Reader.
type blocks struct {
	full chan block
	free chan []byte
	cur  []byte // unread part of the block in hand
	hand []byte // that block, to give back
	err  error
}

const (
	blockSize   = 128 << 10
	blocksAhead = 4
)

// decompress gunzips in in a goroutine that ends with the data or with stop.
func decompress(in *bufio.Reader, stop <-chan struct{}) io.Reader {
	b := &blocks{full: make(chan block, blocksAhead), free: make(chan []byte, blocksAhead)}
	for range blocksAhead {
		b.free <- make([]byte, blockSize)
	}
	go func() {
		defer close(b.full)
		send := func(x block) bool {
			select {
			case b.full <- x:
				return true
			case <-stop:
				return false
			}
		}
		z, err := gzip.NewReader(in)
		if err != nil {
			send(block{err: err})
			return
		}
		z.Multistream(false) // so that bytes behind a member can be told from a broken one
		for {
			var buf []byte
			select {
			case buf = <-b.free:
			case <-stop:
				return
			}
			n, err := fill(z, buf)
			if n > 0 && !send(block{data: buf[:n]}) {
				return
			}
			if n == 0 {
				b.free <- buf
			}
			if err == io.EOF {
				err = nextMember(z, in)
			}
			if err != nil {
				send(block{err: err})
				return
			}
		}
	}()
	return b
}

// fill reads until buf is full and keeps the reader's own error, which distinguishes
// a member's end from truncated data (io.ReadFull does not).
func fill(z io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = z.Read(buf[n:])
		n += m
	}
	return n, err
}

// nextMember moves on to the next gzip member: io.EOF if there is none.
func nextMember(z *gzip.Reader, in *bufio.Reader) error {
	magic, err := in.Peek(2)
	switch {
	case len(magic) == 0 && errors.Is(err, io.EOF):
		return io.EOF
	case len(magic) < 2 || magic[0] != 0x1f || magic[1] != 0x8b:
		return errTrailing
	}
	if err := z.Reset(in); err != nil {
		return err
	}
	z.Multistream(false)
	return nil
}

func (b *blocks) Read(p []byte) (int, error) {
	for len(b.cur) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		if b.hand != nil {
			b.free <- b.hand
			b.hand = nil
		}
		next, ok := <-b.full
		switch {
		case !ok:
			b.err = io.ErrUnexpectedEOF
		case next.err != nil:
			b.err = next.err
		default:
			b.cur, b.hand = next.data, next.data[:cap(next.data)]
		}
	}
	n := copy(p, b.cur)
	b.cur = b.cur[n:]
	return n, nil
}
