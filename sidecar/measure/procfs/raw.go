package procfs

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Raw system calls are for what the kernel has at hand. Go's scheduler takes note of all others, for which its watchdog
// wakes up: on the other CPU, each time.

// ReadShort is Read for a file of at most 4 KiB that the kernel writes without waiting for anybody: stat, loadavg, not smaps.
func (f *FS) ReadShort(path string) ([]byte, error) {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	here := unix.AT_FDCWD
	fd, err := retried(func() (int, error) {
		return result(unix.RawSyscall6(unix.SYS_OPENAT, uintptr(here), uintptr(unsafe.Pointer(name)), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0))
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	if len(f.buf) == 0 {
		f.buf = make([]byte, 4096)
	}
	n, err := retried(func() (int, error) {
		return result(unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&f.buf[0])), uintptr(len(f.buf))))
	})
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return f.buf[:n], nil
}

// Readlink is that of unix, for a link in /proc/PID/fd.
func Readlink(path string, into []byte) (int, error) {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return 0, err
	}
	here := unix.AT_FDCWD
	return result(unix.RawSyscall6(unix.SYS_READLINKAT, uintptr(here), uintptr(unsafe.Pointer(name)),
		uintptr(unsafe.Pointer(unsafe.SliceData(into))), uintptr(len(into)), 0, 0))
}

// result is that of a raw system call, as that of any other.
func result(n, _ uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
