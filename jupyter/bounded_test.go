package jupyter

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// fed is a connection whose peer has sent these bytes and closed it.
type fed struct {
	net.Conn
	io.Reader
}

func (f fed) Read(p []byte) (int, error) { return f.Reader.Read(p) }

func frame(flags byte, body []byte) []byte {
	if len(body) < 256 {
		return append([]byte{flags, byte(len(body))}, body...)
	}
	head := binary.BigEndian.AppendUint64([]byte{flags | flagLong}, uint64(len(body)))
	return append(head, body...)
}

type readFrame struct {
	flags byte
	body  []byte
}

// parseFrames reads a stream behind its greeting; rest is what is left of a frame
// that is not whole.
func parseFrames(stream []byte) (frames []readFrame, rest []byte) {
	for len(stream) >= 2 {
		flags, size, head := stream[0], uint64(stream[1]), 2
		if flags&flagLong != 0 {
			if len(stream) < 9 {
				break
			}
			size, head = binary.BigEndian.Uint64(stream[1:]), 9
		}
		if uint64(len(stream)-head) < size {
			break
		}
		frames = append(frames, readFrame{flags &^ flagLong, stream[head : head+int(size)]})
		stream = stream[head+int(size):]
	}
	return frames, stream
}

func through(t testing.TB, sent []byte) ([]byte, error) {
	t.Helper()
	return io.ReadAll(newBounded(fed{Reader: bytes.NewReader(sent)}))
}

func TestSmallFramesPassUnchanged(t *testing.T) {
	sent := bytes.Repeat([]byte{7}, greetingSize)
	sent = append(sent, frame(flagCommand, []byte("\x05READYxyz"))...)
	for _, size := range []int{0, 1, 255, 256, 70_000, maxFrame} {
		sent = append(sent, frame(0, bytes.Repeat([]byte{'x'}, size))...)
	}
	for i := range maxFrames {
		sent = append(sent, frame(flagMore*byte(min(1, maxFrames-1-i)), []byte{byte(i)})...)
	}
	if got, err := through(t, sent); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes became %d, %v", len(sent), len(got), err)
	}
}

func TestLargeFramesBecomeMarks(t *testing.T) {
	big, half := make([]byte, maxFrame+1), make([]byte, maxFrame)
	sent := make([]byte, greetingSize)
	for _, f := range []struct {
		flags byte
		body  []byte
	}{{flagMore, []byte("a")}, {flagMore, big}, {0, []byte("b")}, {flagMore, half}, {flagMore, half}, {0, half[:100]}, {0, half}} {
		sent = append(sent, frame(f.flags, f.body)...)
	}
	got, err := through(t, sent)
	if err != nil {
		t.Fatal(err)
	}
	frames, rest := parseFrames(got[greetingSize:])
	var sizes []string
	for _, f := range frames {
		if n, dropped := droppedSize(f.body); dropped {
			sizes = append(sizes, fmt.Sprintf("%d dropped", n))
		} else {
			sizes = append(sizes, fmt.Sprint(len(f.body)))
		}
	}
	want := fmt.Sprintf("1, %d dropped, 1, %d, %d, 100 dropped, %d", maxFrame+1, maxFrame, maxFrame, maxFrame)
	if got := strings.Join(sizes, ", "); got != want || len(rest) > 0 {
		t.Errorf("got %s and %d more bytes, want %s", got, len(rest), want)
	}
}

func TestAMessageOfEndlessFramesIsCut(t *testing.T) {
	sent := make([]byte, greetingSize)
	for range 100 * maxFrames {
		sent = append(sent, frame(flagMore, []byte("x"))...)
	}
	sent = append(sent, frame(0, []byte("x"))...)
	sent = append(sent, frame(0, []byte("next"))...)
	got, err := through(t, sent)
	frames, _ := parseFrames(got[greetingSize:])
	if err != nil || len(frames) != maxFrames+2 || string(frames[maxFrames+1].body) != "next" {
		t.Errorf("%d frames, %v; want %d of the long message and the next", len(frames), err, maxFrames+1)
	}
	if _, dropped := droppedSize(frames[maxFrames].body); !dropped {
		t.Error("the message does not say that it is cut")
	}
}

func TestALargeCommandBreaksTheConnection(t *testing.T) {
	sent := append(make([]byte, greetingSize), flagCommand|flagLong, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	if _, err := through(t, sent); !errors.Is(err, errCommand) {
		t.Errorf("error %v", err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(frame(flagMore, []byte("topic")))
	f.Add(frame(0, make([]byte, 300)))
	f.Add([]byte{flagLong, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3})
	f.Add([]byte{flagLong | flagMore, 0, 0, 0, 0, 0, 0x10, 0, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, stream []byte) {
		got, _ := through(t, append(make([]byte, greetingSize), stream...))
		if len(got) < greetingSize {
			t.Fatal("the greeting is gone")
		}
		sent, _ := parseFrames(stream)
		frames, rest := parseFrames(got[greetingSize:])
		count, kept := 0, 0
		for _, f := range frames {
			if f.flags&flagCommand != 0 {
				continue
			}
			count, kept = count+1, kept+len(f.body)
			if kept > maxMessage+maxFrames*32 || count > maxFrames+1 {
				t.Fatalf("a message of %d frames, %d bytes", count, kept)
			}
			if f.flags&flagMore == 0 {
				count, kept = 0, 0
			}
		}
		if len(sent) < maxFrames && len(frames) < len(sent) && len(rest) == 0 {
			for _, f := range sent {
				if f.flags&flagCommand != 0 && len(f.body) > maxCommand {
					return
				}
			}
			t.Fatalf("%d frames became %d", len(sent), len(frames))
		}
	})
}

// A peer that announces a frame of 8 EB, or sends 2 GB, costs what a small one does.
func TestALargeFrameCostsNoMemory(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	sign := testSigner(t, "")
	large, err := sign.encode(Message{Header: Header{MsgType: "stream"}, Parent: Header{MsgID: "cell"}})
	if err != nil {
		t.Fatal(err)
	}
	started, err := sign.encode(Message{Header: Header{MsgType: "execute_input"}, Parent: Header{MsgID: "cell"}, Content: []byte(`{"code": "print", "execution_count": 3}`)})
	if err != nil {
		t.Fatal(err)
	}
	const size = 2 << 30
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				greeting := make([]byte, greetingSize)
				greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, 3
				copy(greeting[12:], "NULL")
				c.Write(greeting)
				c.Write(frame(flagCommand, []byte("\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB")))
				send := func(parts [][]byte, last bool) {
					for i, p := range parts {
						more := byte(flagMore)
						if last && i == len(parts)-1 {
							more = 0
						}
						c.Write(frame(more, p))
					}
				}
				send(started, true)
				send(large[:len(large)-1], false)
				c.Write(binary.BigEndian.AppendUint64([]byte{flagLong}, size))
				chunk := make([]byte, 1<<20)
				for range size / len(chunk) {
					if _, err := c.Write(chunk); err != nil {
						return
					}
				}
				c.Write(frame(flagMore, []byte("half a message")))
				c.Write([]byte{flagLong, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
				io.Copy(io.Discard, c)
			}()
		}
	}()
	runtime.GC()
	debug.FreeOSMemory()
	before := peakResident(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	var number int
	fmt.Sscan(port, &number)
	o, err := Observe(ctx, Connection{Transport: "tcp", IP: "127.0.0.1", IOPubPort: number, ControlPort: number, SignatureScheme: "hmac-sha256"})
	if err != nil {
		t.Fatal(err)
	}
	next(t, o, CellStarted, "cell")
	var out Output
	for end := time.Now().Add(patience); out.Bytes == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		out, _ = o.Output("cell")
	}
	if out.Messages != 1 || out.Bytes != size || out.AtLeast {
		t.Errorf("output %+v, want one message of %d bytes, exactly", out, size)
	}
	if grown := peakResident(t) - before; grown > 32<<20 {
		t.Errorf("it took %d MB", grown>>20)
	}
}

// peakResident is the most memory that this process had so far, in bytes.
func peakResident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc/self/status"))
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		var kB int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kB); n == 1 {
			return kB << 10
		}
	}
	t.Skip("no VmHWM here")
	return 0
}

// quietConn has a peer that has sent these bytes and takes what is sent to it.
type quietConn struct{ fed }

func (quietConn) Write(p []byte) (int, error) { return len(p), nil }
func (quietConn) Close() error                { return nil }

// What a peer says when it is dialled is read by zmq4, in our process.
func FuzzPeer(f *testing.F) {
	greeting := make([]byte, greetingSize)
	greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, 3
	copy(greeting[12:], "NULL")
	f.Add(append(bytes.Clone(greeting), frame(flagCommand, []byte("\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"))...), []byte("\x00\x01x"))
	f.Add(greeting, frame(flagCommand, []byte("\x05READY\x0bSocket-Type\xff\xff\xff\xff")))
	f.Add(greeting, frame(flagCommand, []byte("\x05ERROR\x03no!")))
	f.Add(greeting, frame(flagCommand, nil))
	f.Add(greeting, frame(flagCommand, []byte("\x05READY\x0bSocket-Type\x00\x00\x00\x03PUx"))) // on which zmq4 panics
	f.Fuzz(func(t *testing.T, start, more []byte) {
		peer := newBounded(quietConn{fed{Reader: bytes.NewReader(append(start, more...))}})
		var c *zmq4.Conn
		err := dial(func() (err error) {
			c, err = zmq4.Open(peer, null.Security(), zmq4.Sub, nil, false, nil)
			return err
		})
		for err == nil {
			_, err = c.RecvMsg()
		}
	})
}
