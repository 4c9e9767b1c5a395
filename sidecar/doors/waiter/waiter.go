package waiter

// #include "waiter.h"
import "C"

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Waiter is the process that waits for us. It belongs to our process group: a signal that
// both of us get was sent to the group, by a terminal or by a program, and reached the
// other members by itself; one that only one of us gets was meant for the command alone. This
// is known by no other means: a signal's sender is known to its receiver, but not whom else it
// was sent to. A nil Waiter is that of a process that nobody waits for.
type Waiter struct {
	signals *os.File // a byte for each signal it got
	alone   chan syscall.Signal

	mu   sync.Mutex
	seen map[syscall.Signal][]time.Time
	news chan struct{} // replaced and closed when seen grows
}

// Signals are those that would concern the program if it ran without us. Those that stop
// and continue a terminal's job are left alone: each process of the job gets them.
func Signals() (list []syscall.Signal) {
	for s, mask := syscall.Signal(1), uint64(C.omni_perf_relayed()); s <= 64; s++ {
		if mask&(1<<(uint(s)-1)) != 0 {
			list = append(list, s)
		}
	}
	return list
}

// Of is the process that waits for us; nil if there is none. It is called once.
func Of() *Waiter {
	if C.omni_perf_waiter() == 0 {
		return nil
	}
	w := &Waiter{
		signals: os.NewFile(uintptr(C.omni_perf_signals()), "signals"), alone: make(chan syscall.Signal, 64),
		seen: make(map[syscall.Signal][]time.Time), news: make(chan struct{}),
	}
	go w.listen()
	return w
}

// Concluded says that this process's exit status, whatever it is, is the command's.
func Concluded() { C.omni_perf_concluded() }

// Starting says that the program is about to be started.
func (w *Waiter) Starting() { C.omni_perf_starting() }

// Started says which process the program is.
func (w *Waiter) Started(pid int) { C.omni_perf_started(C.int(pid)) }

// Ended says how the program has ended.
func (w *Waiter) Ended(status syscall.WaitStatus) { C.omni_perf_ended(C.int(status)) }

// Alone receives the signals that the waiting process got and we did not.
func (w *Waiter) Alone() <-chan syscall.Signal {
	if w == nil {
		return nil
	}
	return w.alone
}

const (
	within    = 100 * time.Millisecond // how much later than one of us the other may get a signal, if both run at once
	settling  = 10 * time.Millisecond  // for what was delivered to arrive where it is waited for
	witnessed = time.Second            // for how long signals are remembered
)

func (w *Waiter) listen() {
	defer w.signals.Close()
	conn, err := w.signals.SyscallConn()
	for open := err == nil; open; {
		err = conn.Read(func(fd uintptr) (done bool) {
			done, open = w.hear(int(fd))
			return done
		})
		open = open && err == nil
	}
}

// hear reads which signals came; done is false where none has yet. What is read is
// known at once to who holds the lock: see idle.
func (w *Waiter) hear(fd int) (done, open bool) {
	var buf [64]byte
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := unix.Read(fd, buf[:])
	switch {
	case err == unix.EAGAIN:
		return false, true
	case err == unix.EINTR:
		return true, true
	case err != nil || n <= 0:
		return true, false
	}
	for _, b := range buf[:n] {
		s, at := syscall.Signal(b), time.Now()
		w.seen[s] = append(w.seen[s], at)
		go w.await(s, at)
	}
	close(w.news)
	w.news = make(chan struct{})
	return true, true
}

// await hands on a signal that the waiting process got at a time, unless we get it, too.
// On a busy machine that may be late: one that is still to be delivered is waited for.
func (w *Waiter) await(s syscall.Signal, at time.Time) {
	time.Sleep(within)
	for pending(s) {
		time.Sleep(settling)
	}
	time.Sleep(settling)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, t := range w.seen[s] {
		if t.Equal(at) {
			w.seen[s] = append(w.seen[s][:i:i], w.seen[s][i+1:]...)
			w.alone <- s
			return
		}
	}
}

// pending reports whether a signal of this process waits for one of its threads.
func pending(s syscall.Signal) bool {
	status, err := os.ReadFile("/proc/self/status")
	_, rest, ok := bytes.Cut(status, []byte("\nShdPnd:\t"))
	if err != nil || !ok {
		return false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	mask, _ := strconv.ParseUint(string(line), 16, 64)
	return mask&(1<<(uint(s)-1)) != 0
}

// Saw reports whether the waiting process gets a signal that we have just got, too. It may
// get it later than us, and on a busy machine whenever it is its turn: if it has yet to run
// it is waited for. Each signal that it got is reported once.
func (w *Waiter) Saw(s syscall.Signal) bool {
	if w == nil {
		return false
	}
	timeout, end := time.After(within), time.Now().Add(within+witnessed)
	late := false // it had time
	for {
		w.mu.Lock()
		took, news := w.take(s), w.news
		never := !took && late && (w.idle() || time.Now().After(end))
		w.mu.Unlock()
		if took || never {
			return took
		}
		select {
		case <-news:
		case <-timeout:
			late, timeout = true, time.After(settling)
		}
	}
}

// idle reports that the waiting process sleeps, so it has written each signal it
// got, and that we have read all that it wrote. The lock is held.
func (w *Waiter) idle() bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/stat")
	_, after, _ := bytes.Cut(status, []byte(") ")) // proc(5): the state follows the name
	if err != nil || !bytes.HasPrefix(after, []byte("S")) {
		return err != nil
	}
	unread := 0
	if conn, err := w.signals.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { unread, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return unread == 0
}

func (w *Waiter) take(s syscall.Signal) bool {
	for len(w.seen[s]) > 0 {
		at := w.seen[s][0]
		w.seen[s] = w.seen[s][1:]
		if time.Since(at) < witnessed {
			return true
		}
	}
	return false
}
