package pystack

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	quietLeast = int64(5 * time.Millisecond)   // without a sign of life, before the kernel is asked
	askLeast   = int64(20 * time.Millisecond)  // between two questions whether the process is stopped
	askMost    = int64(100 * time.Millisecond) // likewise, of one that has been quiet for long
)

// standstill watches for a process that was stopped, by SIGSTOP or a debugger. What
// its threads seem to do then is what they did before.
type standstill struct {
	asked   int64 // CLOCK_MONOTONIC of the last question
	stopped bool
}

// standsStill reports whether the process is stopped now; there is nothing to be
// sampled then.
func (s *session) standsStill() bool {
	// Where it is sampled rarely, it must have been quiet for more than one tick.
	if quiet := max(quietLeast, 2*int64(s.clock.interval)); !s.halt.stopped && s.at-s.lastMove() < quiet {
		return false
	}
	every := min(max((s.at-s.lastMove())/8, askLeast), askMost)
	if s.halt.stopped {
		every = askLeast
	}
	if s.at-s.halt.asked < every {
		return s.halt.stopped
	}
	// Whatever it does since it was last seen not to be stopped, or to move, is unknown.
	since := max(s.halt.asked, s.lastMove())
	if since == 0 {
		since = s.good
	}
	s.halt.asked = s.at
	switch letter := s.p.kernel.state(); letter {
	case 'T', 't':
		if !s.halt.stopped {
			s.halt.stopped = true
			s.stop(since, letter)
		}
	default:
		if s.halt.stopped {
			s.halt.stopped = false
			s.goOn()
		}
	}
	return s.halt.stopped
}

// maybeStopped recognises a thread that is neither on a CPU nor in a system call: in a page
// fault, or in a process that was stopped, which is asked at once then.
func (s *session) maybeStopped(a activity) bool {
	if !a.known || a.running || a.syscall >= 0 {
		return false
	}
	if letter := s.p.kernel.state(); letter != 'T' && letter != 't' {
		return false
	}
	s.halt.asked = min(s.halt.asked, s.at-askMost)
	return true
}

// lastMove is when a thread was last seen to get on.
func (s *session) lastMove() int64 {
	last := int64(0)
	for _, g := range s.p.gils {
		if h := g.holder; h != nil {
			last = max(last, h.session.movedAt)
		}
	}
	return last
}

// stop takes all threads for unknown from a time on.
func (s *session) stop(since int64, letter byte) {
	reason := timeline.GapStopped
	if letter == 't' {
		reason = timeline.GapTraced
	}
	s.sink.BeginGap(s.p.pid, s.sink.Since(since), reason)
	s.unknownSince(since, func(*thread) bool { return true })
}

// goOn takes up the threads again, as at the recording's first tick.
func (s *session) goOn() {
	s.sink.EndGap(s.p.pid, s.sink.Since(s.at))
	s.changed = s.at
	for _, g := range s.p.gils {
		for _, t := range g.threads {
			t.session.probeAt, t.session.movedAt = 0, s.at
			s.probe(t, g)
			s.report(t)
		}
	}
}
