package pystack

import (
	"errors"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// gilBytes is how much of a GIL is read: the code objects' generation follows
// it where a version has one (3.14+).
func (p *Process) gilBytes(g *gilGroup) uint64 {
	if at := p.l.Interp.CodeGeneration; at != 0 {
		for _, interp := range g.interpreters {
			if end := interp + at + cpython.WordSize; end > g.addr && end-g.addr <= cpython.GILAndMore {
				return end - g.addr
			}
		}
	}
	return cpython.GILSwitches + cpython.WordSize
}

// tickGroup samples the threads of one GIL. Its counter shows who can have
// changed: without a switch only the last holder has run Python code, with one
// switch the last two, and with more any thread.
func (s *session) tickGroup(g *gilGroup) error {
	expected, err := s.readGIL(g)
	if errors.Is(err, cpython.ErrUnmapped) {
		return s.lostGIL(g)
	} else if err != nil {
		return err
	}
	moved := s.handedOver(g)
	s.sinceWhen(g, expected)
	if expected != nil {
		if err := s.read(expected, g, true); err != nil {
			return err
		}
	}
	if g, err = s.readChanged(g, expected, moved); g == nil || err != nil {
		return err
	}
	if err := errors.Join(s.readStates(g.holder, g), s.readStates(expected, g)); err != nil {
		return err
	}
	if expected != nil && expected != g.holder && expected.session.again {
		g.owed = len(g.threads)
	}
	if err := s.readInTurn(g); err != nil {
		return err
	}
	if !s.first && !excluded(expected) && !excluded(g.holder) {
		s.gil.switches += int64(moved)
	}
	s.states(g, expected)
	return nil
}

// readChanged samples those that can have changed besides the thread that was expected to have the GIL, which was handed
// over so often. The group may be another one afterwards, nil if there is none any more.
func (s *session) readChanged(g *gilGroup, expected *thread, moved uint64) (*gilGroup, error) {
	holder := cpython.Word(s.gilBuf[:], cpython.GILHolder)
	if !s.first && expected != nil && holder == expected.addr && moved == 0 {
		return g, nil
	}
	g, err := s.readHolder(g, expected, holder)
	if g == nil || err != nil || moved <= 1 && !s.first {
		return g, err
	}
	return g, s.readOthers(g, expected)
}

// readGIL reads a GIL into gilBuf, in one call with the stack of the thread that is expected to
// hold it, and returns that one; nil: none is, or it is gone.
func (s *session) readGIL(g *gilGroup) (expected *thread, err error) {
	p, r := s.p, s.p.reader
	if expected = g.holder; expected != nil {
		size := p.gilBytes(g)
		err := r.copy(expected, g.addr, size)
		if err == nil {
			copy(s.gilBuf[:], r.buf)
			s.generation(r.buf[:size], size)
			return expected, nil
		}
		if !errors.Is(err, cpython.ErrUnmapped) {
			return nil, err
		}
	}
	return nil, cpython.ReadAt(p.mem, g.addr, s.gilBuf[:])
}

// handedOver takes what was read of a GIL, and returns how often it was handed over since the last time.
func (s *session) handedOver(g *gilGroup) (moved uint64) {
	gil := s.gilBuf[:]
	switches := cpython.Word(gil, cpython.GILSwitches)
	moved = switches - g.switches
	s.stirred = s.stirred || moved > 0
	g.switches, g.locked, g.held = switches, cpython.Half(gil, cpython.GILLocked) == 1, 0
	if g.locked {
		g.held = cpython.Word(gil, cpython.GILHolder)
	}
	return moved
}

// readHolder samples who has the GIL now, unless it was expected to. The group that it returns may be another one,
// nil if there is none any more: threads are listed anew where the holder is not known.
func (s *session) readHolder(g *gilGroup, expected *thread, holder uint64) (*gilGroup, error) {
	p := s.p
	s.listDue = true
	if holder != 0 && p.threads[holder] == nil {
		s.listed = 0
		if err := s.list(); err != nil {
			return nil, err
		}
		if g = p.groupAt(g.addr); g == nil {
			return nil, nil
		}
	}
	g.holder = p.threads[holder]
	if g.holder == nil || g.holder == expected {
		return g, nil
	}
	return g, s.read(g.holder, g, false)
}

// lostGIL decides what it means that a GIL is not there any more: an interpreter has ended,
// or, if it was the main one's, the program has.
func (s *session) lostGIL(g *gilGroup) error {
	if slices.Contains(g.interpreters, s.p.mainInterp) {
		return ErrReplaced
	}
	s.listed = 0
	return s.list()
}

// generation notifies the code cache when code objects have been freed.
func (s *session) generation(gil []byte, size uint64) {
	if size > cpython.GILSwitches+cpython.WordSize {
		s.p.reader.codes.generation, s.p.reader.codes.counts = cpython.Word(gil, size-cpython.WordSize), true
	}
}

// excluded reports whether a thread is left out of the recording: what it does to the GIL is,
// too.
func excluded(t *thread) bool { return t != nil && t.session.excluded }

func (p *Process) groupAt(addr uint64) *gilGroup {
	for _, g := range p.gils {
		if g.addr == addr {
			return g
		}
	}
	return nil
}

// read samples one thread.
func (s *session) read(t *thread, g *gilGroup, isRead bool) error {
	before := t.seen
	v, err := s.p.reader.sample(t, isRead)
	if err != nil {
		return err
	}
	if t.seen != before {
		t.session.movedAt, s.stirred = s.at, true
	}
	s.took(t, v, g)
	return nil
}

// recently is for how long a thread whose stack has changed is watched closely.
const recently = int64(time.Second)

// readOthers samples those of the threads that may have run besides the holder
// and the one that was expected to be it. One read of all their states shows
// which: a thread is taken to be unchanged if its frame pointer and the top of
// its data stack are, and the leaf's instruction where it has changed lately.
// What this misses is a thread that is where it was before, called from
// elsewhere, or, after long, at another line of the same function. The thread
// whose lines are asked for is read in any case, the others in turn.
func (s *session) readOthers(g *gilGroup, expected *thread) error {
	size := s.planOthers(g, expected)
	g.owed = len(g.threads)
	if len(s.others) == 0 {
		return nil
	}
	if cap(s.bulkBuf) < size {
		s.bulkBuf = make([]byte, 2*size)
	}
	buf := s.bulkBuf[:size]
	n, err := s.p.mem.Read(buf, s.bulk)
	if err != nil {
		return err
	}
	for _, t := range s.others {
		same, behind := s.unmoved(t, buf, n)
		buf, n = buf[behind:], n-behind
		if same && !t.session.idle && !t.session.leads && (t.session.known || t.session.excluded) {
			continue
		}
		if err := s.look(t, g, same); err != nil {
			return err
		}
	}
	return nil
}

// planOthers lists the threads of a GIL besides its holder and the expected one in others, and in bulk what is to be
// read of them: size bytes.
func (s *session) planOthers(g *gilGroup, expected *thread) (size int) {
	l := s.p.l
	s.others, s.bulk = s.others[:0], s.bulk[:0]
	for _, t := range g.threads {
		if t == g.holder || t == expected {
			continue
		}
		s.others = append(s.others, t)
		s.bulk = append(s.bulk, Range{Addr: t.addr, Len: int(l.Thread.Size)})
		size += int(l.Thread.Size)
		if s.closely(t) {
			s.bulk = append(s.bulk, Range{Addr: t.seen.leaf, Len: int(l.Frame.Size)})
			size += int(l.Frame.Size)
		}
	}
	return size
}

// unmoved reports whether a thread seems to be where it was, by what planOthers had read of it: n bytes at the
// beginning of buf, of which it takes so many that the next thread's are behind.
func (s *session) unmoved(t *thread, buf []byte, n int) (same bool, behind int) {
	l := s.p.l
	if n >= int(l.Thread.Size) {
		state := buf[:l.Thread.Size]
		same = cpython.Word(state, l.Thread.Interp) == t.interp && int(cpython.Word(state, l.Thread.NativeID)) == t.nativeID &&
			cpython.Word(state, l.Thread.Frame) == t.seen.frame && cpython.Word(state, l.Thread.Top) == t.seen.top
	}
	behind = min(int(l.Thread.Size), n)
	if s.closely(t) {
		leaf, left := buf[behind:], n-behind
		same = same && left >= int(l.Frame.Size) && cpython.Word(leaf, l.Frame.Code) == t.seen.code && cpython.Word(leaf, l.Frame.Instr) == t.seen.instr
		behind += min(int(l.Frame.Size), left)
	}
	return same, behind
}

// look reads a thread that does not have the GIL, and returns what it does; same says that
// it seems to be where it was.
func (s *session) look(t *thread, g *gilGroup, same bool) error {
	before := t.session.node
	if err := s.read(t, g, false); err != nil {
		return err
	}
	if t.session.again {
		g.owed = len(g.threads)
	}
	if !same || t.session.node != before {
		t.session.probeAt = 0
	}
	s.probe(t, g)
	s.report(t)
	return nil
}

// readInTurn reads one of the threads that are owed it: after hand-overs of which it is not
// known who took part in them, or after a read that another may show more than, since nothing
// else would have one read again that waits by now.
func (s *session) readInTurn(g *gilGroup) error {
	for g.owed > 0 && len(g.threads) > 0 {
		t := g.threads[(g.reading+1)%len(g.threads)]
		isRead := t.session.readAt == s.at
		if isRead && t.session.again {
			return nil // at the next tick
		}
		g.owed--
		g.reading++
		if !isRead {
			return s.look(t, g, true)
		}
	}
	return nil
}

// closely recognises a thread whose leaf frame is compared too.
func (s *session) closely(t *thread) bool {
	return t.seen.leaf != 0 && s.at-t.session.changedAt < recently
}
