package signals

// #include "inherited.h"
import "C"

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Witness is a process of our own process group that does nothing but tell which
// signals it gets. One that it gets, too, was sent to the group, by a terminal or by
// a program, and reached the other members by itself. No other means tells that: a
// signal's sender is known to its receiver, but not whom else it was sent to.
type Witness struct {
	process *os.Process
	until   *os.File // closed when the witness is to end
	told    *os.File // a byte for each signal it got

	mu   sync.Mutex
	seen map[syscall.Signal][]time.Time
	news chan struct{} // replaced and closed when seen grows
}

// witnessed is how long signals are remembered: the witness may run before us.
const witnessed = time.Second

// NewWitness starts one for these signals. Where that is refused, the error says why.
func NewWitness(signals ...syscall.Signal) (*Witness, error) {
	untilRead, until, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer untilRead.Close()
	told, tells, err := os.Pipe()
	if err != nil {
		until.Close()
		return nil, err
	}
	defer tells.Close()
	var watched uint64
	for _, s := range signals {
		watched |= bit(s)
	}
	pid, err := C.omni_perf_witness(C.int(untilRead.Fd()), C.int(tells.Fd()), C.ulonglong(watched))
	if pid < 0 {
		until.Close()
		told.Close()
		return nil, err
	}
	w := &Witness{until: until, told: told, seen: make(map[syscall.Signal][]time.Time), news: make(chan struct{})}
	if w.process, err = os.FindProcess(int(pid)); err == nil {
		_, err = told.Read(make([]byte, 1)) // it is ready
	}
	if err != nil {
		told.Close()
		w.Close()
		return nil, errors.Join(errors.New("the process that watches signals does not start"), err)
	}
	go w.listen()
	return w, nil
}

func (w *Witness) listen() {
	defer w.told.Close()
	conn, err := w.told.SyscallConn()
	for open := err == nil; open; {
		err = conn.Read(func(fd uintptr) (done bool) {
			done, open = w.hear(int(fd))
			return done
		})
		open = open && err == nil
	}
}

// hear takes in what the witness has told; done is false where that is nothing yet. What
// is read is known at once to who holds the lock: see idle.
func (w *Witness) hear(fd int) (done, open bool) {
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
		w.seen[syscall.Signal(b)] = append(w.seen[syscall.Signal(b)], time.Now())
	}
	close(w.news)
	w.news = make(chan struct{})
	return true, true
}

// Saw tells whether the witness gets a signal that we have just got. It may get it
// later than us, by within if both run at once, and on a busy machine whenever it is
// its turn: a witness that has yet to run is waited for. Each signal that it got is
// told once.
func (w *Witness) Saw(s syscall.Signal, within time.Duration) bool {
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
			late, timeout = true, time.After(10*time.Millisecond)
		}
	}
}

// idle tells that the witness sleeps, for which it must have told each signal it
// got, and that we have read what it told. The lock is held.
func (w *Witness) idle() bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(w.process.Pid) + "/stat")
	_, after, _ := bytes.Cut(status, []byte(") ")) // proc(5): the state follows the name
	if err != nil || !bytes.HasPrefix(after, []byte("S")) {
		return err != nil
	}
	unread := 0
	if conn, err := w.told.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { unread, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return unread == 0
}

func (w *Witness) take(s syscall.Signal) bool {
	for len(w.seen[s]) > 0 {
		at := w.seen[s][0]
		w.seen[s] = w.seen[s][1:]
		if time.Since(at) < witnessed {
			return true
		}
	}
	return false
}

// Close ends the witness.
func (w *Witness) Close() {
	if w == nil {
		return
	}
	w.until.Close()
	if w.process != nil {
		_ = w.process.Signal(unix.SIGKILL)
		_, _ = w.process.Wait()
	}
}
