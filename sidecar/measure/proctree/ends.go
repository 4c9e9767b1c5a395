package proctree

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/alarm"
)

// ends waits for processes to end: an epoll of their pidfds. It waits as Go's network
// does: a thread that sleeps in the system call itself keeps the scheduler's watchdog
// awake, which takes 1 % of a core. nil: there is none.
type ends struct {
	file  *os.File
	alarm *alarm.Alarm // ends a wait
	over  chan struct{}
}

func newEnds() *ends {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	if err := unix.SetNonblock(fd, true); err != nil { // os.NewFile waits for no other
		unix.Close(fd)
		return nil
	}
	e := &ends{os.NewFile(uintptr(fd), "pidfds"), alarm.New(time.Hour), make(chan struct{})}
	go e.wake()
	return e
}

func (e *ends) close() {
	if e != nil {
		close(e.over)
		e.alarm.Stop()
		e.file.Close()
	}
}

// wake ends each wait that is due, until close.
func (e *ends) wake() {
	for {
		select {
		case <-e.alarm.C:
			_ = e.file.SetReadDeadline(time.Unix(0, 0))
		case <-e.over:
			return
		}
	}
}

// add asks for a word when the process of a pidfd ends; false where that cannot be.
func (e *ends) add(handle, pid int) (ok bool) {
	c, err := e.file.SyscallConn()
	if err != nil {
		return false
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(pid)}
	err = c.Control(func(fd uintptr) { ok = unix.EpollCtl(int(fd), unix.EPOLL_CTL_ADD, handle, &event) == nil })
	return ok && err == nil
}

// wait returns who has ended, at the latest when it is due; not ok where it cannot wait.
func (e *ends) wait(due time.Time) (pids []int, ok bool) {
	if e == nil || e.file.SetReadDeadline(time.Time{}) != nil {
		return nil, false
	}
	e.alarm.Reset(time.Until(due))
	c, err := e.file.SyscallConn()
	if err != nil {
		return nil, false
	}
	var events [64]unix.EpollEvent
	var n uintptr
	var failed syscall.Errno
	err = c.Read(func(fd uintptr) bool { // raw, as it never waits: of any other Go's scheduler takes note, and wakes up its watchdog
		n, _, failed = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&events)), uintptr(len(events)), 0, 0, 0)
		return failed == 0 && n > 0 || failed != 0 && failed != unix.EINTR
	})
	if failed != 0 {
		n = 0
	}
	for _, event := range events[:n] {
		pids = append(pids, int(event.Fd))
	}
	return pids, (failed == 0 || failed == unix.EINTR) && (err == nil || os.IsTimeout(err))
}
