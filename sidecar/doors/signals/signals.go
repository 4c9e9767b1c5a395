// Package signals lets a command treat signals as its user expects: what was ignored
// when it started (by nohup, by a shell's &) stays ignored, here and in programs it
// runs; the first signal asks to end, a second one ends.
package signals

// #include "inherited.h"
import "C"

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Ending are the signals that ask a command to end.
var Ending = []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP}

// ignored has bit n-1 set for each signal n that was ignored when this process began.
var ignored = uint64(C.omni_perf_ignored())

func bit(s syscall.Signal) uint64 { return 1 << (uint(s) - 1) }

// Ignored reports whether a signal was ignored when this process began.
func Ignored(s syscall.Signal) bool { return ignored&bit(s) != 0 }

// KeepIgnored ignores what was ignored when this process began: the Go runtime has
// replaced most of it. Programs that are started inherit it.
func KeepIgnored() {
	for s := syscall.Signal(1); s <= 64; s++ {
		if Ignored(s) {
			signal.Ignore(s)
		}
	}
}

// Notify passes those of the signals on to c that were not ignored when this process
// began.
func Notify(c chan<- os.Signal, signals ...syscall.Signal) {
	for _, s := range signals {
		if !Ignored(s) {
			signal.Notify(c, s)
		}
	}
}

// Context ends at the first of the Ending signals, or with stop. From then on they
// have their usual effect, so that a second one ends the process.
func Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	c := make(chan os.Signal, 1)
	KeepIgnored()
	Notify(c, Ending...)
	go func() {
		select {
		case <-c:
		case <-ctx.Done():
		}
		signal.Stop(c)
		cancel()
	}()
	return ctx, cancel
}

// DieBy ends this process by a signal, as a program did that it ran: a shell's loop
// goes on after an exit code, but not after Ctrl-C. It returns where the signal has
// no effect, as on process 1 of a container.
func DieBy(s syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // a core, if there is one, is the program's
	C.omni_perf_default(C.int(s))                        // Go's own handler would print a traceback for some
	_ = unix.Kill(os.Getpid(), s)
	time.Sleep(100 * time.Millisecond) // which of our threads it reaches is open
}
