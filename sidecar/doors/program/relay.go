package program

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/doors/signals"
)

// relayed are the signals that would concern the script if it ran without us. Those
// that stop and continue a terminal's job are left alone: each process of the job
// gets them.
var relayed = []syscall.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
	unix.SIGALRM, unix.SIGVTALRM, unix.SIGPWR, unix.SIGIO,
}

// relay gives the script the signals that were meant for it: those sent to us alone.
// What a terminal or a program sends to our process group the script gets itself,
// and is not to get twice.
type relay struct {
	received chan os.Signal
	witness  *signals.Witness // nil where there can be none
	ended    chan struct{}
}

// witnessWait is how much later than us the witness may get a signal of our group.
const witnessWait = 100 * time.Millisecond

func newRelay() *relay {
	r := &relay{received: make(chan os.Signal, 64), ended: make(chan struct{})}
	signals.KeepIgnored() // the script inherits it
	signals.Notify(r.received, relayed...)
	r.witness, _ = signals.NewWitness(relayed...) // without one: see pass
	return r
}

// pass gives the script a signal that we got.
func (r *relay) pass(got os.Signal, script *os.Process) {
	s, ok := got.(syscall.Signal)
	if !ok || r.witness == nil && (s == unix.SIGINT || s == unix.SIGQUIT) {
		return // most likely of a terminal
	}
	go func() {
		if !r.witness.Saw(s, witnessWait) {
			_ = script.Signal(s)
		}
	}()
}

// end says that the script has ended. One more signal is taken: the one that has
// ended the script may have been sent to us, too, a moment later. From then on
// signals have their usual effect.
func (r *relay) end() {
	go func() {
		select {
		case <-r.received:
			signal.Stop(r.received)
		case <-r.ended:
		}
	}()
}

func (r *relay) stop() {
	close(r.ended)
	signal.Stop(r.received)
	r.witness.Close()
}
