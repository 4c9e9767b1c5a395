package proctree

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ends waits for processes to end: an epoll of their pidfds. It waits as Go's network
// does: a thread that sleeps in the system call itself keeps the scheduler's watchdog
// awake, which takes 1 % of a core. nil: there is none.
type ends struct{ file *os.File }

func newEnds() *ends {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	if err := unix.SetNonblock(fd, true); err != nil { // os.NewFile waits for no other
		unix.Close(fd)
		return nil
	}
	return &ends{os.NewFile(uintptr(fd), "pidfds")}
}

func (e *ends) close() {
	if e != nil {
		e.file.Close()
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
	if e == nil || e.file.SetReadDeadline(due) != nil {
		return nil, false
	}
	c, err := e.file.SyscallConn()
	if err != nil {
		return nil, false
	}
	var events [64]unix.EpollEvent
	var n int
	var failed error
	err = c.Read(func(fd uintptr) bool {
		n, failed = unix.EpollWait(int(fd), events[:], 0)
		return n > 0 || failed != nil && failed != unix.EINTR
	})
	for _, event := range events[:max(n, 0)] {
		pids = append(pids, int(event.Fd))
	}
	return pids, failed == nil && (err == nil || os.IsTimeout(err))
}
