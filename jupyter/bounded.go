package jupyter

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/transport"
)

// Limits of what is taken from a peer. zmq4 makes a buffer of whatever size a frame
// says it has, and holds some ten messages: a cell that prints 300 MB at once would
// cost as much here. What is larger is counted and not kept.
const (
	maxFrame   = 512 << 10
	maxMessage = 1 << 20 // of all frames that are kept of a message
	maxFrames  = 256     // of a message
	maxCommand = 64 << 10
)

// The parts of the ZeroMQ Message Transport Protocol 3 that matter here,
// https://rfc.zeromq.org/spec/23/: a greeting, then frames of a flag octet, a size of
// one octet or eight, and a body.
const (
	greetingSize = 64
	flagMore     = 1
	flagLong     = 2
	flagCommand  = 4
)

// bounded is a connection to a ZMTP peer that hands on what the peer sends with a
// short mark in the place of each body that is too large.
type bounded struct {
	net.Conn
	ready []byte // to be handed on before anything else
	pass  uint64 // octets of the peer to be handed on
	skip  uint64 // then, octets to be dropped

	frames, kept int // of the message in progress
}

func newBounded(c net.Conn) *bounded { return &bounded{Conn: c, pass: greetingSize} }

var errCommand = errors.New("the peer sends a command that is larger than any")

func (b *bounded) Read(p []byte) (int, error) {
	for len(p) > 0 {
		switch {
		case len(b.ready) > 0:
			n := copy(p, b.ready)
			b.ready = b.ready[n:]
			return n, nil
		case b.pass > 0:
			n, err := b.Conn.Read(p[:min(uint64(len(p)), b.pass)])
			b.pass -= uint64(n)
			return n, err
		case b.skip > 0:
			n, err := io.CopyN(io.Discard, b.Conn, int64(min(b.skip, 1<<30)))
			b.skip -= uint64(n)
			if err != nil {
				return 0, err
			}
		default:
			if err := b.header(); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

// header reads the head of the next frame and decides what becomes of it.
func (b *bounded) header() error {
	var head [9]byte
	n := 2
	if _, err := io.ReadFull(b.Conn, head[:2]); err != nil {
		return err
	}
	size := uint64(head[1])
	if head[0]&flagLong != 0 {
		n = len(head)
		if _, err := io.ReadFull(b.Conn, head[2:]); err != nil {
			return err
		}
		size = binary.BigEndian.Uint64(head[1:])
	}
	flags := head[0]
	if flags&flagCommand != 0 {
		if size > maxCommand {
			return errCommand
		}
		b.ready, b.pass = append(b.ready, head[:n]...), size
		return nil
	}
	fits := size <= maxFrame && b.kept+int(size) <= maxMessage
	b.frames++
	switch {
	case b.frames > maxFrames && flags&flagMore != 0:
		b.skip = size // not even a mark: the message is cut already
	case fits && b.frames <= maxFrames:
		b.kept += int(size)
		b.ready, b.pass = append(b.ready, head[:n]...), size
	default:
		mark := markOf(size)
		b.ready = append(b.ready, flags&flagMore, byte(len(mark)))
		b.ready, b.skip = append(b.ready, mark...), size
	}
	if flags&flagMore == 0 {
		b.frames, b.kept = 0, 0
	}
	return nil
}

// A mark replaces a body that was dropped, and contains its size. No part of a
// message begins like it: they are JSON, names and signatures.
var markPrefix = []byte("\x00dropped:")

func markOf(size uint64) []byte { return strconv.AppendUint(bytes.Clone(markPrefix), size, 10) }

// droppedSize returns the size of the body that a mark replaces.
func droppedSize(frame []byte) (size int64, dropped bool) {
	digits, ok := bytes.CutPrefix(frame, markPrefix)
	if !ok {
		return 0, false
	}
	size, err := strconv.ParseInt(string(digits), 10, 64)
	return size, err == nil && size >= 0
}

// dial makes an error of a panic: zmq4 has some for what a peer may say of itself.
func dial(to func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("not a Jupyter kernel: %v", p)
		}
	}()
	return to()
}

// boundedTransport dials peers whose frames are bounded.
type boundedTransport struct{ transport.Transport }

func (t boundedTransport) Dial(ctx context.Context, dialer transport.Dialer, addr string) (net.Conn, error) {
	c, err := t.Transport.Dial(ctx, dialer, addr)
	if err != nil {
		return nil, err
	}
	return newBounded(c), nil
}

// Names of the bounded transports in endpoints: "bounded-tcp://127.0.0.1:5555".
const boundedPrefix = "bounded-"

// register makes them known to zmq4, which keeps transports for the whole process.
var register = sync.OnceValue(func() error {
	for name, network := range map[string]string{"tcp": "tcp", "ipc": "unix"} {
		if err := zmq4.RegisterTransport(boundedPrefix+name, boundedTransport{transport.New(network)}); err != nil {
			return fmt.Errorf("prepare the connection to the kernel: %w", err)
		}
	}
	return nil
})
