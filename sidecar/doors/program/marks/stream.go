package marks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// What a sender has not sent yet when it is killed lies in memory that it shares with the run. runmarks.py writes it, as
//
//	uint64  how many bytes the socket took before
//	uint64  how many bytes follow
//	        these
//
// in the machine's order.
const (
	sharedHead = 16
	maxShared  = 1 << 16
)

// stream is all that one sender has sent, and behind it what it could not send any more.
type stream struct {
	c      *net.UnixConn
	shared *os.File // the sender's memory; nil: it has shared none
	taken  uint64   // bytes, from the socket
	rest   io.Reader
}

func (s *stream) Read(p []byte) (n int, err error) {
	if s.rest != nil {
		return s.rest.Read(p)
	}
	control := make([]byte, unix.CmsgSpace(4))
	n, with, _, _, err := s.c.ReadMsgUnix(p, control)
	s.keep(control[:max(with, 0)])
	if n > 0 {
		s.taken += uint64(n)
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // what lies in the socket comes before that
		if n = s.lies(p); n > 0 {
			s.taken += uint64(n)
			return n, nil
		}
	}
	// It has ended, or the recording has.
	s.rest = bytes.NewReader(s.unsent())
	return s.rest.Read(p)
}

// lies reads what lies in the socket, without waiting; 0: nothing.
func (s *stream) lies(p []byte) (n int) {
	raw, err := s.c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _, err = unix.Recvfrom(int(fd), p, unix.MSG_DONTWAIT) })
	return max(n, 0)
}

// keep keeps the first file that comes with a message, and closes all others.
func (s *stream) keep(control []byte) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return
	}
	for i := range messages {
		descriptors, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range descriptors {
			var stat unix.Stat_t
			if s.shared != nil || unix.Fstat(fd, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG { // another kind may block
				unix.Close(fd)
				continue
			}
			s.shared = os.NewFile(uintptr(fd), "marks")
		}
	}
}

// unsent reads what the sender has not sent.
func (s *stream) unsent() []byte {
	if s.shared == nil {
		return nil
	}
	memory := make([]byte, maxShared)
	n, _ := s.shared.ReadAt(memory, 0)
	return behind(memory[:n], s.taken)
}

// behind is what a sender's memory has behind so many bytes of the stream. A sender that was ended between its message and the
// note of it has some in both.
func behind(memory []byte, taken uint64) []byte {
	if len(memory) < sharedHead {
		return nil
	}
	before, length := binary.NativeEndian.Uint64(memory), binary.NativeEndian.Uint64(memory[8:])
	pending := memory[sharedHead:]
	if length > uint64(len(pending)) || taken < before || taken-before > length {
		return nil
	}
	return pending[taken-before : length]
}

func (s *stream) close() {
	if s.shared != nil {
		s.shared.Close()
	}
}
