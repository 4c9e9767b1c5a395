package pystack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Range is a stretch of the target's memory.
type Range struct {
	Addr uint64
	Len  int
}

// Memory is the target's memory, of a live process or a recorded Image.
type Memory interface {
	// Read fills buf with the contents of the ranges, one behind the other, in
	// one go and in order. It returns the number of bytes read: fewer than asked
	// with a nil error where a range is not mapped, which ends the read there.
	Read(buf []byte, ranges []Range) (int, error)
}

// maxRanges is the kernel's limit of ranges in one call (UIO_MAXIOV).
const maxRanges = 1024

// liveMemory reads a process by process_vm_readv. One goroutine at a time.
type liveMemory struct {
	pid    int
	remote [maxRanges]unix.RemoteIovec
}

func (m *liveMemory) Read(buf []byte, ranges []Range) (int, error) {
	total := 0
	for len(ranges) > 0 {
		part := ranges[:min(len(ranges), maxRanges)]
		n, want, err := m.read(buf[total:], part)
		total += n
		if err != nil || n < want {
			return total, err
		}
		ranges = ranges[len(part):]
	}
	return total, nil
}

// read makes one call. It is a raw one: the call is short and must not let the
// scheduler take the processor away (see the package comment on the clock).
func (m *liveMemory) read(buf []byte, ranges []Range) (n, want int, err error) {
	for i, r := range ranges {
		m.remote[i] = unix.RemoteIovec{Base: uintptr(r.Addr), Len: r.Len}
		want += r.Len
	}
	if want == 0 {
		return 0, 0, nil
	}
	local := unix.Iovec{Base: &buf[0]}
	local.SetLen(len(buf[:want]))
	r, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(m.pid),
		uintptr(unsafe.Pointer(&local)), 1,
		uintptr(unsafe.Pointer(&m.remote[0])), uintptr(len(ranges)), 0)
	switch errno {
	case 0:
		return int(r), want, nil
	case unix.EFAULT, unix.EIO:
		return 0, want, nil
	case unix.ESRCH:
		return 0, want, ErrGone
	case unix.EPERM, unix.EACCES:
		return 0, want, ErrPermission
	}
	return 0, want, fmt.Errorf("process_vm_readv: %w", errno)
}

// errUnmapped tells that an address is none of the target's.
var errUnmapped = errors.New("address is not mapped")

// readAt fills buf from addr.
func readAt(m Memory, addr uint64, buf []byte) error {
	n, err := m.Read(buf, []Range{{addr, len(buf)}})
	if err != nil {
		return err
	}
	if n < len(buf) {
		return fmt.Errorf("%w: %#x", errUnmapped, addr)
	}
	return nil
}

// readWord reads a pointer or 64-bit integer.
func readWord(m Memory, addr uint64) (uint64, error) {
	var b [8]byte
	if err := readAt(m, addr, b[:]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// word reads a 64-bit field of a copied structure; 0 beyond its end.
func word(b []byte, offset uint64) uint64 {
	if offset+8 > uint64(len(b)) || offset > uint64(len(b)) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[offset:])
}

// half reads a 32-bit field of a copied structure; 0 beyond its end.
func half(b []byte, offset uint64) uint32 {
	if offset+4 > uint64(len(b)) || offset > uint64(len(b)) {
		return 0
	}
	return binary.LittleEndian.Uint32(b[offset:])
}
