package alarm

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Leader is whom all alarms follow, from Lead to End.
//
// It sleeps in Go's network poller, by a timer of the kernel, and uses raw system calls: of a timer of Go's, and of a system call that
// the scheduler knows of, the scheduler's watchdog takes note, which is one more thread that wakes up, for each of
// them once or more. Of a thread that sleeps while it keeps its processor (P) it asks that back a hundred times a second.
type Leader struct {
	file *os.File
	conn syscall.RawConn
}

// longest is how long a leader sleeps at a time: an alarm is late by no more.
const longest = 50 * time.Millisecond

// Lead begins to gather alarms.
func Lead() (*Leader, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("no timer: %w", err)
	}
	l := &Leader{file: os.NewFile(uintptr(fd), "timer")}
	if l.conn, err = l.file.SyscallConn(); err != nil {
		l.file.Close()
		return nil, fmt.Errorf("no timer: %w", err)
	}
	all.lead(+1)
	return l, nil
}

// End lets alarms go off on their own, unless somebody else leads.
func (l *Leader) End() {
	all.lead(-1)
	l.file.Close()
}

// Sleep wakes up after d, and of a longer sleep in between for alarms that have become due; false when ctx ends before.
func (l *Leader) Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		runtime.Gosched()
	}
	for end := time.Now().Add(d); ctx.Err() == nil; {
		now := time.Now()
		all.ring(now)
		left := end.Sub(now)
		if left <= 0 {
			return true
		}
		l.park(min(left, longest))
	}
	return false
}

// park waits for d, and lets all others go on meanwhile.
func (l *Leader) park(d time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(d), 1))}
	var errno syscall.Errno
	err := l.conn.Control(func(fd uintptr) {
		_, _, errno = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	})
	if err != nil || errno != 0 || l.conn.Read(expired) != nil {
		time.Sleep(d)
	}
}

// expired takes note of a timer that has gone off; false where it has not.
func expired(fd uintptr) bool {
	var times [8]byte
	_, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&times)), uintptr(len(times)))
	return errno != unix.EAGAIN
}
