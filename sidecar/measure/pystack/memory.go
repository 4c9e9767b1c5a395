package pystack

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// Memory and Range are those of the target, a live process or a recorded Image.
type (
	Memory = cpython.Memory
	Range  = cpython.Range
)

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

// counted is a Memory that counts its reads.
type counted struct {
	Memory
	calls int64
}

func (m *counted) Read(buf []byte, ranges []Range) (int, error) {
	m.calls++
	return m.Memory.Read(buf, ranges)
}
