package program

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/doors/signals"
)

// Relayed are the signals that would concern the script if it ran without us. Those
// that stop and continue a terminal's job are left alone: each process of the job
// gets them.
var Relayed = []syscall.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
	unix.SIGALRM, unix.SIGVTALRM, unix.SIGPWR, unix.SIGIO,
}

// Waiter is the process that waits for us, and for the script where we do not live to
// do so: package waiter.
type Waiter interface {
	Starting()                       // the script is about to be started
	Started(pid int)                 // the script is this process
	Ended(status syscall.WaitStatus) // and has ended with this status
	Saw(s syscall.Signal) bool       // whether it got a signal, too, that we have just got
	Alone() <-chan syscall.Signal    // what it got and we did not
}

// relay gives the script the signals that were meant for it: those sent to us alone, or
// to the process that waits for us. What a terminal or a program sends to our process
// group the script gets itself, and is not to get twice.
type relay struct {
	received chan os.Signal
	waiter   Waiter // nil where nobody waits for us
	got      chan relayedSignal
	ended    chan struct{}
}

type relayedSignal struct {
	syscall.Signal
	pass bool // the script does not get it by itself
}

func newRelay(waiter Waiter) *relay {
	r := &relay{received: make(chan os.Signal, 64), waiter: waiter, got: make(chan relayedSignal, 64), ended: make(chan struct{})}
	signals.KeepIgnored() // the script inherits it
	signals.Notify(r.received, Relayed...)
	go r.listen()
	return r
}

// listen matches what we get with what the waiting process gets, at once: later it
// cannot be known.
func (r *relay) listen() {
	var alone <-chan syscall.Signal
	if r.waiter != nil {
		alone = r.waiter.Alone()
	}
	deliver := func(s relayedSignal) {
		select {
		case r.got <- s:
		case <-r.ended:
		}
	}
	for {
		select {
		case got := <-r.received:
			if s, ok := got.(syscall.Signal); ok {
				go func() { deliver(relayedSignal{s, !r.ofGroup(s)}) }()
			}
		case s := <-alone:
			deliver(relayedSignal{s, true})
		case <-r.ended:
			return
		}
	}
}

func (r *relay) ofGroup(s syscall.Signal) bool {
	if r.waiter == nil {
		return s == unix.SIGINT || s == unix.SIGQUIT // most likely of a terminal
	}
	return r.waiter.Saw(s)
}

// end says that the script has ended. One more signal is taken: the one that has
// ended the script may have been sent to us, too, a moment later. From then on
// signals have their usual effect.
func (r *relay) end() {
	go func() {
		select {
		case <-r.got:
			signal.Stop(r.received)
		case <-r.ended:
			return
		}
		select {
		case s := <-r.got:
			signals.DieBy(s.Signal)
		case <-r.ended:
		}
	}()
}

func (r *relay) stop() {
	close(r.ended)
	signal.Stop(r.received)
}
