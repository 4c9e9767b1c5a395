package pystack

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/cpython"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// What is shown as the native leaf of a thread that runs no Python code; other
// ones name a system call.
const (
	leafRunning = "in C, on the CPU"
	leafGIL     = "waiting for the GIL"
	leafLock    = "waiting for a lock"
	leafFault   = "in a page fault"
)

// call says how a thread blocked in a system call is shown.
type call struct {
	state timeline.State
	leaf  string
}

func waits(name string) call  { return call{timeline.StateWaiting, "in " + name} }
func doesIO(name string) call { return call{timeline.StateIO, "in " + name} }

// calls holds the system calls Python programs block in; archCalls those that
// only some architectures have.
var calls = map[int]call{
	unix.SYS_PPOLL: waits("poll"), unix.SYS_PSELECT6: waits("select"),
	unix.SYS_EPOLL_PWAIT: waits("epoll_wait"), unix.SYS_EPOLL_PWAIT2: waits("epoll_wait"),
	unix.SYS_NANOSLEEP: waits("sleep"), unix.SYS_CLOCK_NANOSLEEP: waits("sleep"),
	unix.SYS_WAIT4: waits("wait"), unix.SYS_WAITID: waits("wait"),
	unix.SYS_RT_SIGTIMEDWAIT: waits("sigwait"), unix.SYS_RT_SIGSUSPEND: waits("sigsuspend"),
	unix.SYS_ACCEPT: waits("accept"), unix.SYS_ACCEPT4: waits("accept"), unix.SYS_FLOCK: waits("flock"),
	unix.SYS_SEMTIMEDOP: waits("semop"), unix.SYS_SEMOP: waits("semop"), unix.SYS_SCHED_YIELD: waits("sched_yield"),
	unix.SYS_IOCTL: waits("ioctl"), unix.SYS_FCNTL: waits("fcntl"),

	unix.SYS_READ: doesIO("read"), unix.SYS_PREAD64: doesIO("read"), unix.SYS_READV: doesIO("read"), unix.SYS_PREADV: doesIO("read"),
	unix.SYS_WRITE: doesIO("write"), unix.SYS_PWRITE64: doesIO("write"), unix.SYS_WRITEV: doesIO("write"), unix.SYS_PWRITEV: doesIO("write"),
	unix.SYS_RECVFROM: doesIO("recv"), unix.SYS_RECVMSG: doesIO("recv"), unix.SYS_RECVMMSG: doesIO("recv"),
	unix.SYS_SENDTO: doesIO("send"), unix.SYS_SENDMSG: doesIO("send"), unix.SYS_SENDMMSG: doesIO("send"),
	unix.SYS_SENDFILE: doesIO("sendfile"), unix.SYS_SPLICE: doesIO("splice"), unix.SYS_COPY_FILE_RANGE: doesIO("copy_file_range"),
	unix.SYS_CONNECT: doesIO("connect"), unix.SYS_OPENAT: doesIO("open"), unix.SYS_CLOSE: doesIO("close"),
	unix.SYS_FSYNC: doesIO("fsync"), unix.SYS_FDATASYNC: doesIO("fdatasync"), unix.SYS_MSYNC: doesIO("msync"),
	unix.SYS_GETDENTS64: doesIO("readdir"), unix.SYS_UNLINKAT: doesIO("unlink"), unix.SYS_IO_GETEVENTS: doesIO("io_getevents"),
	unix.SYS_IO_URING_ENTER: doesIO("io_uring_enter"),
}

// describeActivity translates what the kernel says of a thread that does not
// run Python code. gil is the address of the GIL, whose futexes tell a thread
// that waits for it.
func describeActivity(a activity, gil uint64) call {
	switch {
	case !a.known:
		return call{timeline.StateUnknown, ""}
	case a.running:
		return call{timeline.StateNative, leafRunning}
	case a.letter == 'D':
		return doesIO("the kernel, uninterruptible")
	case a.letter == 'T', a.letter == 't':
		return call{timeline.StateUnknown, ""}
	case a.letter != 0:
		return call{timeline.StateWaiting, ""}
	case a.syscall < 0:
		return call{timeline.StateIO, leafFault}
	case a.syscall == unix.SYS_FUTEX:
		if a.arg >= gil+cpython.GILCond && a.arg < gil+cpython.GILSize {
			return call{timeline.StateGIL, leafGIL}
		}
		return call{timeline.StateWaiting, leafLock}
	}
	if c, ok := calls[a.syscall]; ok {
		return c
	}
	if c, ok := archCalls[a.syscall]; ok {
		return c
	}
	return waits("system call " + strconv.Itoa(a.syscall))
}
