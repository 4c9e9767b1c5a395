package pystack

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/procfs"
)

// activity is what a thread does, as the kernel has it.
type activity struct {
	known   bool
	running bool   // on a CPU, or waiting for one
	syscall int    // system call it is blocked in; -1 none, as in a page fault
	arg     uint64 // the call's first argument
	letter  byte   // of the state in /proc/PID/stat where the system call is not told; 0 otherwise
}

// kernel tells what the operating system knows of the target's threads. One
// goroutine at a time.
type kernel interface {
	// tid is our id of the thread that has the given one in the target's own pid
	// namespace; 0 if there is none.
	tid(native int) int
	// activity tells what a thread does; gone if there is none of that id.
	activity(tid int) (a activity, gone bool)
	// cpuTime is the CPU time a thread has used, in nanoseconds; -1 unknown.
	cpuTime(tid int) int64
	// state is the letter of the process's state in /proc/PID/stat; 0 unknown.
	state() byte
	// comm is the kernel's name of a thread; empty unknown.
	comm(tid int) string
	// forget gives back what is held open of a thread.
	forget(tid int)
}

// maxOpenTasks bounds the files kept open; beyond they are opened each time.
const maxOpenTasks = 256

// procKernel reads /proc.
type procKernel struct {
	pid     int
	mayOpen int
	open    map[int]int // file descriptor of a thread's "syscall", or "stat" where that is refused
	stat    bool        // "syscall" is refused: use "stat"
	buf     [512]byte

	nested *bool       // the target is in a pid namespace of its own; nil not yet known
	outer  map[int]int // if so, our ids of its threads by theirs
}

func newProcKernel(pid int) *procKernel {
	return &procKernel{pid: pid, mayOpen: maxOpenTasks, open: make(map[int]int)}
}

func (k *procKernel) path(tid int, name string) string {
	return fmt.Sprintf("/proc/%d/task/%d/%s", k.pid, tid, name)
}

func (k *procKernel) tid(native int) int {
	if k.nested == nil {
		nested := k.innerID(k.pid) != k.pid
		k.nested = &nested
	}
	if !*k.nested {
		return native
	}
	if tid := k.outer[native]; tid != 0 && k.innerID(tid) == native {
		return tid
	}
	k.outer = make(map[int]int)
	for _, tid := range k.tasks() {
		k.outer[k.innerID(tid)] = tid
	}
	return k.outer[native]
}

// tasks lists the ids of the process's threads, as they are here.
func (k *procKernel) tasks() []int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", k.pid))
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, tid)
		}
	}
	return out
}

// innerID is the thread's id in its own, innermost pid namespace: the last
// figure of NSpid; tid itself if that is not told.
func (k *procKernel) innerID(tid int) int {
	status, err := os.ReadFile(k.path(tid, "status"))
	if err != nil {
		return tid
	}
	if ids := procfs.NamespaceIDs(status); len(ids) > 0 {
		return ids[len(ids)-1]
	}
	return tid
}

func (k *procKernel) activity(tid int) (activity, bool) {
	fd, ok := k.open[tid]
	if !ok {
		name := "syscall"
		if k.stat {
			name = "stat"
		}
		var err error
		fd, err = unix.Open(k.path(tid, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return activity{}, err == unix.ENOENT || err == unix.ESRCH
		}
		if len(k.open) >= k.mayOpen {
			defer unix.Close(fd)
		} else {
			k.open[tid] = fd
		}
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&k.buf[0])), uintptr(len(k.buf)), 0, 0, 0)
	switch {
	case errno == unix.ESRCH || errno == 0 && n == 0:
		k.forget(tid)
		return activity{}, true
	case errno != 0:
		k.forget(tid)
		if !k.stat {
			k.close()
			k.stat = true // not permitted, or a kernel without it
		}
		return activity{}, false
	case k.stat:
		return parseStat(k.buf[:n]), false
	}
	return parseSyscall(k.buf[:n]), false
}

func (k *procKernel) forget(tid int) {
	if fd, ok := k.open[tid]; ok {
		unix.Close(fd)
		delete(k.open, tid)
	}
}

func (k *procKernel) close() {
	for tid := range k.open {
		k.forget(tid)
	}
}

// parseSyscall reads /proc/PID/syscall: "running", "-1 0xSP 0xPC", or
// "202 0xARG …".
func parseSyscall(b []byte) activity {
	b = bytes.TrimSpace(b)
	if bytes.Equal(b, []byte("running")) {
		return activity{known: true, running: true}
	}
	number, rest, _ := bytes.Cut(b, []byte{' '})
	nr, err := strconv.Atoi(string(number))
	if err != nil {
		return activity{}
	}
	a := activity{known: true, syscall: nr}
	if nr >= 0 {
		first, _, _ := bytes.Cut(rest, []byte{' '})
		a.arg, _ = strconv.ParseUint(strings.TrimPrefix(string(first), "0x"), 16, 64)
	}
	return a
}

// parseStat reads the state letter of /proc/PID/stat, which stands behind the
// name in brackets (the name may hold anything).
func parseStat(b []byte) activity {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 || i+2 >= len(b) {
		return activity{}
	}
	return activity{known: true, running: b[i+2] == 'R', syscall: -1, letter: b[i+2]}
}

func (k *procKernel) cpuTime(tid int) int64 {
	fd, err := unix.Open(k.path(tid, "schedstat"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	n, err := unix.Read(fd, k.buf[:])
	unix.Close(fd)
	if err != nil {
		return -1
	}
	first, _, _ := bytes.Cut(k.buf[:n], []byte{' '})
	t, err := strconv.ParseInt(string(first), 10, 64)
	if err != nil {
		return -1
	}
	return t
}

func (k *procKernel) state() byte {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/stat", k.pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	n, err := unix.Read(fd, k.buf[:])
	unix.Close(fd)
	if err != nil {
		return 0
	}
	return parseStat(k.buf[:n]).letter
}

func (k *procKernel) comm(tid int) string {
	b, err := os.ReadFile(k.path(tid, "comm"))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSuffix(string(b), "\n"), "\uFFFD")
}
