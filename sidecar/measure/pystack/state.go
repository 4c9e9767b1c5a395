package pystack

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
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
	wait  timeline.Wait
	leaf  string
	on    timeline.ObjectID
}

func waits(wait timeline.Wait, name string) call {
	return call{state: timeline.StateWaiting, wait: wait, leaf: "in " + name}
}

func doesIO(wait timeline.Wait, name string) call {
	return call{state: timeline.StateIO, wait: wait, leaf: "in " + name}
}

// calls holds the system calls Python programs block in; archCalls those that
// only some architectures have.
var calls = map[int]call{
	unix.SYS_PPOLL: waits(timeline.WaitPoll, "poll"), unix.SYS_PSELECT6: waits(timeline.WaitPoll, "select"),
	unix.SYS_EPOLL_PWAIT: waits(timeline.WaitPoll, "epoll_wait"), unix.SYS_EPOLL_PWAIT2: waits(timeline.WaitPoll, "epoll_wait"),
	unix.SYS_NANOSLEEP: waits(timeline.WaitSleep, "sleep"), unix.SYS_CLOCK_NANOSLEEP: waits(timeline.WaitSleep, "sleep"),
	unix.SYS_WAIT4: waits(timeline.WaitChild, "wait"), unix.SYS_WAITID: waits(timeline.WaitChild, "wait"),
	unix.SYS_RT_SIGTIMEDWAIT: waits(timeline.WaitOther, "sigwait"), unix.SYS_RT_SIGSUSPEND: waits(timeline.WaitOther, "sigsuspend"),
	unix.SYS_ACCEPT: waits(timeline.WaitSocket, "accept"), unix.SYS_ACCEPT4: waits(timeline.WaitSocket, "accept"), unix.SYS_FLOCK: waits(timeline.WaitOther, "flock"),
	unix.SYS_SEMTIMEDOP: waits(timeline.WaitOther, "semop"), unix.SYS_SEMOP: waits(timeline.WaitOther, "semop"), unix.SYS_SCHED_YIELD: waits(timeline.WaitOther, "sched_yield"),
	unix.SYS_IOCTL: waits(timeline.WaitOther, "ioctl"), unix.SYS_FCNTL: waits(timeline.WaitOther, "fcntl"),

	unix.SYS_READ: doesIO(timeline.WaitFile, "read"), unix.SYS_PREAD64: doesIO(timeline.WaitFile, "read"), unix.SYS_READV: doesIO(timeline.WaitFile, "read"), unix.SYS_PREADV: doesIO(timeline.WaitFile, "read"),
	unix.SYS_WRITE: doesIO(timeline.WaitFile, "write"), unix.SYS_PWRITE64: doesIO(timeline.WaitFile, "write"), unix.SYS_WRITEV: doesIO(timeline.WaitFile, "write"), unix.SYS_PWRITEV: doesIO(timeline.WaitFile, "write"),
	unix.SYS_RECVFROM: doesIO(timeline.WaitSocket, "recv"), unix.SYS_RECVMSG: doesIO(timeline.WaitSocket, "recv"), unix.SYS_RECVMMSG: doesIO(timeline.WaitSocket, "recv"),
	unix.SYS_SENDTO: doesIO(timeline.WaitSocket, "send"), unix.SYS_SENDMSG: doesIO(timeline.WaitSocket, "send"), unix.SYS_SENDMMSG: doesIO(timeline.WaitSocket, "send"),
	unix.SYS_SENDFILE: doesIO(timeline.WaitFile, "sendfile"), unix.SYS_SPLICE: doesIO(timeline.WaitFile, "splice"), unix.SYS_COPY_FILE_RANGE: doesIO(timeline.WaitFile, "copy_file_range"),
	unix.SYS_CONNECT: doesIO(timeline.WaitSocket, "connect"), unix.SYS_OPENAT: doesIO(timeline.WaitFile, "open"), unix.SYS_CLOSE: doesIO(timeline.WaitFile, "close"),
	unix.SYS_FSYNC: doesIO(timeline.WaitFile, "fsync"), unix.SYS_FDATASYNC: doesIO(timeline.WaitFile, "fdatasync"), unix.SYS_MSYNC: doesIO(timeline.WaitFile, "msync"),
	unix.SYS_GETDENTS64: doesIO(timeline.WaitFile, "readdir"), unix.SYS_UNLINKAT: doesIO(timeline.WaitFile, "unlink"), unix.SYS_IO_GETEVENTS: doesIO(timeline.WaitFile, "io_getevents"),
	unix.SYS_IO_URING_ENTER: doesIO(timeline.WaitFile, "io_uring_enter"),
}

// describeActivity translates what the kernel says of a thread that does not
// run Python code. gil is the address of the GIL, whose futexes show a thread
// that waits for it.
func describeActivity(a activity, gil uint64) call {
	switch {
	case !a.known:
		return call{state: timeline.StateUnknown, wait: 0, leaf: ""}
	case a.running:
		return call{state: timeline.StateNative, wait: 0, leaf: leafRunning}
	case a.letter == 'D':
		return doesIO(timeline.WaitFile, "the kernel, uninterruptible")
	case a.letter == 'T', a.letter == 't':
		return call{state: timeline.StateUnknown, wait: 0, leaf: ""}
	case a.letter != 0:
		return call{state: timeline.StateWaiting, wait: 0, leaf: ""}
	case a.syscall < 0:
		return call{state: timeline.StateIO, wait: timeline.WaitOther, leaf: leafFault}
	case a.syscall == unix.SYS_FUTEX:
		if futex := a.args[0]; futex >= gil+cpython.GILCond && futex < gil+cpython.GILSize {
			return call{state: timeline.StateGIL, wait: timeline.WaitLock, leaf: leafGIL}
		}
		return call{state: timeline.StateWaiting, wait: timeline.WaitLock, leaf: leafLock}
	}
	if c, ok := calls[a.syscall]; ok {
		return c
	}
	if c, ok := archCalls[a.syscall]; ok {
		return c
	}
	return waits(timeline.WaitOther, "system call "+strconv.Itoa(a.syscall))
}
