package pystack

import (
	"errors"
	"fmt"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// gilBytes is how much of a GIL is read: the code objects' generation follows
// it where a version has one (3.14+).
func (p *Process) gilBytes(g *gilGroup) uint64 {
	if at := p.l.interp.codeGeneration; at != 0 {
		for _, interp := range g.interpreters {
			if end := interp + at + wordSize; end > g.addr && end-g.addr <= gilAndMore {
				return end - g.addr
			}
		}
	}
	return gilSwitches + wordSize
}

// tickGroup samples the threads of one GIL. Its counter tells who can have
// changed: without a switch only the last holder has run Python code, with one
// switch the last two, and with more any thread.
func (s *session) tickGroup(g *gilGroup) error {
	p, r := s.p, s.p.reader
	expected := g.holder
	size := p.gilBytes(g)
	gil := s.gilBuf[:]
	if expected != nil {
		err := r.copy(expected, g.addr, size)
		if errors.Is(err, errUnmapped) {
			expected = nil
		} else if err != nil {
			return err
		} else {
			copy(gil, r.buf)
			s.generation(r.buf[:size], size)
		}
	}
	if expected == nil {
		if err := readAt(p.mem, g.addr, gil); errors.Is(err, errUnmapped) {
			return fmt.Errorf("%w, or runs another program now", ErrGone)
		} else if err != nil {
			return err
		}
	}
	holder, switches := word(gil, gilHolder), word(gil, gilSwitches)
	moved := switches - g.switches
	g.switches, g.locked = switches, half(gil, gilLocked) == 1
	if expected != nil {
		if err := s.read(expected, true); err != nil {
			return err
		}
	}
	if expected == nil || holder != expected.addr || moved > 0 {
		s.listDue = true
		if holder != 0 && p.threads[holder] == nil {
			if s.listed = 0; s.list() != nil {
				return nil // the next tick tells
			}
			if g = p.groupAt(g.addr); g == nil {
				return nil
			}
		}
		g.holder = p.threads[holder]
		if g.holder != nil && g.holder != expected {
			if err := s.read(g.holder, false); err != nil {
				return err
			}
		}
		if moved > 1 || s.first {
			if err := s.readOthers(g, expected); err != nil {
				return err
			}
		}
	}
	if !s.first && !left(expected) && !left(g.holder) {
		s.gil.switches += int64(moved)
	}
	s.states(g, expected)
	return nil
}

// generation tells the code cache when code objects have been freed.
func (s *session) generation(gil []byte, size uint64) {
	if size > gilSwitches+wordSize {
		s.p.reader.codes.generation, s.p.reader.codes.counts = word(gil, size-wordSize), true
	}
}

// left tells a thread that is left out of the recording: what it does to the GIL is,
// too.
func left(t *thread) bool { return t != nil && t.session.left }

func (p *Process) groupAt(addr uint64) *gilGroup {
	for _, g := range p.gils {
		if g.addr == addr {
			return g
		}
	}
	return nil
}

// read samples one thread.
func (s *session) read(t *thread, isRead bool) error {
	v, err := s.p.reader.sample(t, isRead)
	if err != nil {
		return err
	}
	s.took(t, v)
	return nil
}

// recently is for how long a thread whose stack has changed is watched closely.
const recently = int64(time.Second)

// readOthers samples those of the threads that may have run besides the holder
// and the one that was expected to be it. One read of all their states tells
// which: a thread is taken to be unchanged if its frame pointer and the top of
// its data stack are, and the leaf's instruction where it has changed lately.
// What this misses (a thread long idle that has moved on to another line of the
// same function) is found when its turn comes to be read in any case.
func (s *session) readOthers(g *gilGroup, expected *thread) error {
	r, l := s.p.reader, s.p.l
	s.others, s.bulk = s.others[:0], s.bulk[:0]
	size := 0
	for _, t := range g.threads {
		if t == g.holder || t == expected {
			continue
		}
		s.others = append(s.others, t)
		s.bulk = append(s.bulk, Range{t.addr, int(l.thread.size)})
		size += int(l.thread.size)
		if s.closely(t) {
			s.bulk = append(s.bulk, Range{t.seen.leaf, int(l.frame.size)})
			size += int(l.frame.size)
		}
	}
	if len(s.others) == 0 {
		return nil
	}
	if cap(s.bulkBuf) < size {
		s.bulkBuf = make([]byte, 2*size)
	}
	buf := s.bulkBuf[:size]
	r.calls++
	n, err := s.p.mem.Read(buf, s.bulk)
	if err != nil {
		return err
	}
	s.turn++
	for i, t := range s.others {
		closely := s.closely(t)
		same := false
		if n >= int(l.thread.size) {
			state := buf[:l.thread.size]
			same = word(state, l.thread.interp) == t.interp && int(word(state, l.thread.nativeID)) == t.nativeID &&
				word(state, l.thread.frame) == t.seen.frame && word(state, l.thread.top) == t.seen.top
		}
		skip := min(int(l.thread.size), n)
		buf, n = buf[skip:], n-skip
		if closely {
			same = same && n >= int(l.frame.size) && word(buf, l.frame.code) == t.seen.code && word(buf, l.frame.instr) == t.seen.instr
			skip = min(int(l.frame.size), n)
			buf, n = buf[skip:], n-skip
		}
		if same && !t.session.idle && i != s.turn%len(s.others) && (t.session.known || t.session.left) {
			continue
		}
		before := t.session.node
		if err := s.read(t, false); err != nil {
			return err
		}
		if !same || t.session.node != before {
			t.session.probeAt = 0
		}
		s.probe(t, g)
		s.tell(t)
	}
	return nil
}

// closely tells a thread whose leaf frame is compared too.
func (s *session) closely(t *thread) bool {
	return t.seen.leaf != 0 && s.at-t.session.changedAt < recently
}

// states decides what each thread of the group is doing, and tells the sink.
func (s *session) states(g *gilGroup, expected *thread) {
	if h := g.holder; h != nil {
		if g.locked {
			s.setState(h, call{timeline.StatePython, 0, h.session.leaf})
			h.session.probeAt, h.session.probeEvery = 0, 0
		} else {
			s.probe(h, g)
		}
		s.tell(h)
	}
	if expected != nil && expected != g.holder {
		expected.session.probeAt = 0
		s.probe(expected, g)
		s.tell(expected)
	}
	if s.first {
		for i, t := range g.threads {
			if t != g.holder && t != expected {
				s.probe(t, g)
				s.tell(t)
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

// probeSome asks the kernel about threads whose turn it is.
func (s *session) probeSome(g *gilGroup, limit int) {
	for range min(probeRounds*limit, len(g.threads)) {
		g.turn++
		t := g.threads[g.turn%len(g.threads)]
		if t == g.holder || !t.session.known || t.session.probeAt > s.at {
			continue
		}
		s.probe(t, g)
		s.tell(t)
		if limit--; limit == 0 {
			return
		}
	}
}

// probe asks the kernel what a thread outside the GIL does. While the answer
// stays the same it asks less and less often.
func (s *session) probe(t *thread, g *gilGroup) {
	ts := &t.session
	if !ts.known || ts.probeAt > s.at {
		return
	}
	a, gone := s.p.kernel.activity(t.tid)
	if gone {
		s.listDue = true
	}
	c := describeActivity(a, g.addr)
	if c.state == ts.state && c.leaf == ts.leaf {
		most := probeMost
		if a.running {
			most = probeRunning
		}
		ts.probeEvery = min(max(2*ts.probeEvery, probeLeast), most)
	} else {
		ts.probeEvery = probeLeast
	}
	ts.probeAt = s.at + ts.probeEvery
	ts.ran = ts.ran || a.running
	s.setState(t, c)
}

func (s *session) setState(t *thread, c call) {
	ts := &t.session
	if ts.state == timeline.StateGIL {
		s.gil.waiting--
	}
	if c.state == timeline.StateGIL {
		s.gil.waiting++
	}
	ts.state, ts.wait, ts.leaf = c.state, c.wait, c.leaf
}

// gilTracks counts what becomes the GIL's tracks.
type gilTracks struct {
	switches int64 // hand-overs since the last point
	waited   int64 // sum over ticks of threads waiting
	ticks    int64
	waiting  int // threads waiting now
	at       int64
	rate     *timeline.TrackWriter
	wait     *timeline.TrackWriter
}

// add writes one point of each track. They begin with the first hand-over: a
// program of one thread has none.
func (c *gilTracks) add(s *session, at int64) {
	elapsed := time.Duration(at - c.at)
	if elapsed <= 0 || c.ticks == 0 || s.descendant {
		return
	}
	if c.rate == nil && (c.switches > 0 || c.waited > 0) {
		c.rate = s.sink.Track(timeline.TrackSpec{ID: "gil.switches", Kind: timeline.KindRate, Unit: "1/s",
			Source: "the GIL's switch counter", Resolution: time.Duration(upkeepEvery), PID: s.p.pid, Device: -1})
		c.wait = s.sink.Track(timeline.TrackSpec{ID: "gil.wait", Kind: timeline.KindRate, Unit: "threads",
			Source: "futexes of waiting threads", Resolution: time.Duration(upkeepEvery), PID: s.p.pid, Device: -1})
	}
	if c.rate != nil {
		from, to := s.sink.Since(c.at), s.sink.Since(at)
		c.rate.AddWindow(from, to, float64(c.switches)/elapsed.Seconds())
		c.wait.AddWindow(from, to, float64(c.waited)/float64(c.ticks))
	}
	c.switches, c.waited, c.ticks, c.at = 0, 0, 0, at
}
