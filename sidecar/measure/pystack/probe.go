package pystack

import "github.com/omni-perf/omni-perf/sidecar/measure/timeline"

// states decides what each thread of the group is doing, and reports it to the sink.
func (s *session) states(g *gilGroup, expected *thread) {
	h := g.runs()
	if h != nil {
		if g.locked {
			s.holds(h, g)
		} else {
			s.probe(h, g)
		}
		h.session.collecting = s.collects(h, g)
		s.report(h)
		if s.at-h.session.cpuAt >= holderEvery && h.session.ran {
			s.reportCPU(h)
		}
	}
	if expected != nil && expected != h {
		expected.session.probeAt, expected.session.collecting = 0, false
		s.probe(expected, g)
		s.report(expected)
	}
	if s.first {
		for i, t := range g.threads {
			if t != h && t != expected {
				s.probe(t, g)
				s.report(t)
				// Spread the next questions, and take these threads for idle ones.
				t.session.probeEvery = probeIdle
				t.session.probeAt = s.at + probeIdle*int64(i)/int64(len(g.threads))
			}
		}
		return
	}
	s.probeSome(g, s.maxProbes)
	s.gil.waited += int64(s.gil.waiting)
	s.gil.ticks++
}

// holds decides what the thread that has the GIL does. It computes while it gets on;
// if it does not for a moment, the kernel is asked, since an extension may sleep or
// read a file without giving the GIL away.
func (s *session) holds(h *thread, g *gilGroup) {
	ts := &h.session
	if !ts.known || h.isElsewhere() {
		return
	}
	if quiet := s.at - ts.movedAt; quiet < probeLeast {
		ts.probeAt, ts.probeEvery = 0, 0
		s.setState(h, call{state: timeline.StatePython, leaf: ts.leaf})
		return
	}
	if ts.probeAt > s.at {
		return
	}
	a, gone := s.p.kernel.activity(h.tid)
	if gone {
		s.listDue = true
	}
	if s.maybeStopped(a) {
		return
	}
	c := call{state: timeline.StatePython, leaf: ts.leaf}
	if a.known && !a.running {
		c = s.waitingFor(h, describeActivity(a, g.addr), a)
	}
	if c.state == timeline.StateGIL { // it had the GIL when that was read, and has handed it over since
		c = call{state: timeline.StatePython, leaf: ts.leaf}
	}
	if ts.probeEvery = min(max(2*ts.probeEvery, probeLeast), probeRunning); c.state != timeline.StatePython {
		ts.probeEvery = probeLeast
	}
	ts.probeAt = s.at + ts.probeEvery
	s.setState(h, c)
}

// probeSome asks the kernel about threads whose turn it is.
func (s *session) probeSome(g *gilGroup, limit int) {
	for range min(probeRounds*limit, len(g.threads)) {
		g.turn++
		t := g.threads[g.turn%len(g.threads)]
		if t == g.runs() || !t.session.known || t.session.probeAt > s.at {
			continue
		}
		s.probe(t, g)
		s.report(t)
		if limit--; limit == 0 {
			return
		}
	}
}

// probe asks the kernel what a thread outside the GIL does. While the answer
// stays the same it asks less and less often.
func (s *session) probe(t *thread, g *gilGroup) {
	ts := &t.session
	if !ts.known || ts.probeAt > s.at || t.isElsewhere() {
		return
	}
	a, gone := s.p.kernel.activity(t.tid)
	if gone {
		s.listDue = true
	}
	if s.maybeStopped(a) {
		return
	}
	c := s.awake(t, s.waitingFor(t, describeActivity(a, g.addr), a))
	if c.state == ts.state && c.leaf == ts.leaf && c.on == ts.on {
		most := probeMost
		if a.running {
			most = probeRunning
		}
		ts.probeEvery = min(max(2*ts.probeEvery, probeLeast), most)
	} else {
		ts.probeEvery = probeLeast
	}
	if c.state == timeline.StateOff {
		ts.probeEvery = 0 // it soon runs
	}
	switch { // it may wait for another at the same line by now
	case s.locks.named.has(c.on), ts.asks:
		ts.probeEvery = min(ts.probeEvery, probeWaiter)
	case s.blocked.links[c.on]:
		ts.probeEvery = min(ts.probeEvery, probeConnection*int64(len(g.threads)))
	}
	ts.probeAt = s.at + ts.probeEvery
	ts.ran = ts.ran || a.running
	s.setState(t, c)
	s.waitsSince(t)
}

// awake takes a thread that is runnable where it has waited before for one that waits for a
// CPU: it wakes up from a sleep, say. How much of such time it did compute is decided by the
// scheduler's count (timeline.Builder.Account), so that nothing is said without one.
func (s *session) awake(t *thread, c call) call {
	ts := &t.session
	switch c.state {
	case timeline.StateWaiting, timeline.StateIO:
		if len(s.waited) < maxNodeCache {
			s.waited[ts.node] = struct{}{}
		}
	case timeline.StateNative:
		if _, waited := s.waited[ts.node]; waited && ts.counted {
			c.state = timeline.StateOff
		}
	}
	return c
}

func (s *session) setState(t *thread, c call) {
	ts := &t.session
	if ts.state == timeline.StateGIL {
		s.gil.waiting--
	}
	if c.state == timeline.StateGIL {
		s.gil.waiting++
	}
	if ts.state.Runnable() {
		s.computing--
	}
	if c.state.Runnable() {
		s.computing++
	}
	ts.state, ts.wait, ts.on, ts.leaf, ts.waitsAt = c.state, c.wait, c.on, c.leaf, -1
}
