package pystack

import "time"

const (
	// restShare is the part of the time for which nothing has run that is slept at once: the
	// end of a long wait is reported late by no more than that, and on average not at all.
	// longestRest bounds it: what runs for longer is always seen.
	restShare   = 256
	longestRest = 5 * time.Millisecond
	// The same of descendants, of which many may have nothing to do: what they take of the
	// budget is missing to those that work. No rest is longer than the slowest interval …
	descendantRestShare = 16
	// … but where so many are read that the pace is slow: there they rest earlier, for a few of
	// its intervals, or nobody would, and those that work were never read more often.
	slowPace          = 50 * time.Millisecond
	slowPaceRestShare = 4
	slowPaceLongest   = 4 // intervals
	// restGrid is the part of a rest to which its end is rounded down, so that those who rest
	// for as long wake the sampler together.
	restGrid = 4
	// From longTick on the time between two ticks of the target is as a rest, though nothing is left out: the middle of it would be too late for
	// the begin of what computes where no CPU is free, as the tick after that is late, and not the one before.
	longTick = int64(20 * time.Millisecond)
)

// rest is of a process in which nothing runs: a cell that sleeps, or waits for a child or
// the network; a worker without work. It is looked at less often the longer that lasts. If
// by the next look nobody has taken the GIL, gone on or used the CPU, the ticks left out
// would have shown the same, and count as samples. Else what ran is seen from then on at
// the usual rate; of what runs for a moment and waits again a part goes unseen, as between
// two ticks in general.
type rest struct {
	since int64 // CLOCK_MONOTONIC of the last tick at which something ran
	until int64 // not looked at before; 0: it does not rest
	cpu   turns // of the GILs' last holders, as it was when last asked …
	used  turns // … and during the rest that is over; -1: not known
	whole bool  // the tick in progress stands for all the time since the one before
}

// turns are a thread's time on a CPU, and runnable without one.
type turns struct{ ran, delayed int64 }

// wake ends a rest: it finds out whether anybody has used the CPU meanwhile.
func (s *session) wake() {
	r := &s.rest
	r.used = turns{}
	if r.until == 0 {
		return
	}
	before := r.cpu
	known := false
	if r.cpu, known = s.holdersCPU(); known {
		r.used = turns{r.cpu.ran - before.ran, max(r.cpu.delayed-before.delayed, 0)}
	} else {
		r.used.ran = -1
	}
}

// sinceWhen puts the end of a rest to when its CPU time says: who computes now has done so
// ever since, or waited for a CPU. Where they wait again it may have been at any time.
func (s *session) sinceWhen(g *gilGroup, expected *thread) {
	if used := s.rest.used; used.ran > 0 && len(s.p.gils) == 1 && expected != nil && g.held == expected.addr {
		s.changed = max(s.changed-(s.at-s.changed), s.at-used.ran-used.delayed)
	}
}

// settle decides until when to rest, and returns how many ticks the one in progress
// stands for; before is when the last one was.
func (s *session) settle(before int64) int64 {
	r := &s.rest
	resting := r.until > 0
	r.until, r.whole = 0, false
	ran := s.first || s.stirred || s.computing > 0
	s.busy.add(ran, s.at-before)
	if ran {
		r.since = s.at
		return 1
	}
	interval := int64(s.clock.interval)
	sleep := s.restAfter(s.at - r.since)
	distant := interval >= longTick && !s.descendant // a descendant's would end the longer rest that it has
	if !resting && sleep <= interval && !distant {
		return 1
	}
	if resting && r.used.ran != 0 {
		r.since = s.at
		s.askHolders()
		return 1
	}
	if !resting {
		known := false
		if r.cpu, known = s.holdersCPU(); !known {
			r.since = s.at
			return 1
		}
	}
	switch {
	case sleep > interval:
		r.until = s.at + sleep
		r.until -= r.until % (sleep / restGrid)
	case distant:
		r.until = s.at
	}
	if r.whole = resting; !resting {
		return 1
	}
	return max((s.at-before+interval/2)/interval, 1)
}

// restAfter is how long to rest after nothing has run for so long, in ns.
func (s *session) restAfter(waited int64) int64 {
	switch interval := s.clock.interval; {
	case !s.descendant:
		return min(waited/restShare, int64(longestRest))
	case interval >= slowPace:
		return min(waited/slowPaceRestShare, slowPaceLongest*int64(interval))
	}
	return min(waited/descendantRestShare, int64(slowest))
}

// holdersCPU is the CPU time of those who held the GILs last: who takes one again at once
// does not count as another.
func (s *session) holdersCPU() (sum turns, known bool) {
	for _, g := range s.p.gils {
		if g.holder == nil {
			continue
		}
		ran, delayed := s.p.kernel.scheduled(g.holder.tid)
		if ran < 0 {
			return turns{}, false
		}
		sum.ran += ran
		sum.delayed += max(delayed, 0)
	}
	return sum, true
}

// askHolders has the next tick ask the kernel what those do who held the GILs last: one of
// them has used the CPU, perhaps in C and without a GIL.
func (s *session) askHolders() {
	for _, g := range s.p.gils {
		if g.holder != nil {
			g.holder.session.probeAt = 0
		}
	}
}
