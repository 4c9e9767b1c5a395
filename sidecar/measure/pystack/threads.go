package pystack

import (
	"errors"
	"fmt"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

const (
	maxInterpreters = 256
	maxThreads      = 8192
)

// gilGroup is a GIL and the threads that share it: those of one interpreter, or
// of several where subinterpreters have none of their own.
type gilGroup struct {
	addr         uint64
	interpreters []uint64
	threads      []*thread // in the interpreter's order

	switches uint64  // the GIL's counter at the last sample
	holder   *thread // last holder at the last sample; nil unknown
	locked   bool
	held     uint64 // address of the thread state that has it now; 0 = none
	turn     int    // of threads: whom the kernel was last asked about
	owed     int    // threads that are to be read in turn, one a tick: they may have gone on unseen
	reading  int    // of threads: whose turn it was last
}

// listTries is how often the list of threads is walked when it changes under the walk.
const listTries = 4

// errListTorn: the list of threads changed under the walk.
var errListTorn = errors.New("the list of threads changed while it was read")

// findThreads walks the interpreters and their threads, keeps what is known of
// threads that are still there, and drops the others.
func (p *Process) findThreads() (err error) {
	gils, threads := p.gils, p.threads
	sure := false
	for range listTries {
		p.gils, p.threads = gils, threads
		err = p.walkThreads()
		if err == nil && !sure && p.endsEarly(gils) {
			sure = true // if it does so again
			continue
		}
		// An interpreter that ends under the walk leaves memory that is not there.
		ended := errors.Is(err, cpython.ErrUnmapped) && len(gils) > 1
		if !ended && !errors.Is(err, errListTorn) && !errors.Is(err, ErrStarting) {
			return err
		}
	}
	if errors.Is(err, errListTorn) {
		p.keepKnown(gils, threads)
		return nil
	}
	return err
}

// endsEarly reports whether the list ends before a thread that it ended with before. The state of a thread that is being made, where that of one
// which has just ended was, has no next one yet.
func (p *Process) endsEarly(gils []*gilGroup) bool {
	return slices.ContainsFunc(gils, func(g *gilGroup) bool {
		if len(g.threads) == 0 {
			return false
		}
		oldest := g.threads[len(g.threads)-1]
		return p.threads[oldest.addr] != oldest
	})
}

// keepKnown adds to a torn list the threads that were known before: whether they are
// still there is seen when they are read. What has the id of one of them is one that is
// being made, or will be listed next time.
func (p *Process) keepKnown(gils []*gilGroup, threads map[uint64]*thread) {
	type identity struct {
		interp uint64
		native int
	}
	known := make(map[identity]*thread, len(threads))
	for _, t := range threads {
		known[identity{t.interp, t.nativeID}] = t
	}
	groups := make(map[uint64]*gilGroup, len(p.gils))
	for _, g := range p.gils {
		groups[g.addr] = g
		g.threads = slices.DeleteFunc(g.threads, func(t *thread) bool {
			before := known[identity{t.interp, t.nativeID}]
			other := before != nil && before != t
			if other {
				delete(p.threads, t.addr)
			}
			return other
		})
	}
	for _, before := range gils {
		g := groups[before.addr]
		if g == nil {
			p.gils = append(p.gils, before)
			g = before
		}
		for _, t := range before.threads {
			if p.threads[t.addr] != nil {
				continue
			}
			p.threads[t.addr] = t
			if g != before {
				g.threads = append(g.threads, t)
			}
		}
	}
	p.pair()
}

func (p *Process) walkThreads() error {
	interp, err := cpython.ReadWord(p.mem, p.place.addr+p.l.Runtime.InterpretersHead)
	if err != nil {
		return fmt.Errorf("reading the interpreters: %w", err)
	}
	if interp == 0 {
		return ErrStarting
	}
	old := p.gils
	p.gils = nil
	alive := make(map[uint64]*thread, len(p.threads))
	torn := false
	for range maxInterpreters {
		g, err := p.group(interp, old)
		if err != nil {
			return err
		}
		if err := p.listThreads(g, interp, alive); errors.Is(err, errListTorn) {
			torn = true
		} else if err != nil {
			return err
		}
		p.mainInterp = interp // new ones go to the front, so the last one is the first made
		if interp, err = cpython.ReadWord(p.mem, interp+p.l.Interp.Next); err != nil {
			return fmt.Errorf("reading the next interpreter: %w", err)
		}
		if interp == 0 {
			break
		}
	}
	if len(alive) == 0 {
		return ErrStarting
	}
	p.threads = alive
	p.pair()
	if torn {
		return errListTorn
	}
	return nil
}

// group returns the group of an interpreter's GIL.
func (p *Process) group(interp uint64, old []*gilGroup) (*gilGroup, error) {
	addr := p.place.addr + p.l.Runtime.GIL
	if p.l.Runtime.GIL == 0 {
		var err error
		if addr, err = cpython.ReadWord(p.mem, interp+p.l.Interp.GIL); err != nil {
			return nil, fmt.Errorf("reading the GIL's address: %w", err)
		}
	}
	for _, g := range p.gils {
		if g.addr == addr {
			g.interpreters = append(g.interpreters, interp)
			return g, nil
		}
	}
	g := &gilGroup{addr: addr}
	for _, o := range old {
		if o.addr == addr {
			g.switches, g.holder, g.locked, g.turn = o.switches, o.holder, o.locked, o.turn
			g.owed, g.reading = o.owed, o.reading
		}
	}
	g.interpreters = []uint64{interp}
	p.gils = append(p.gils, g)
	return g, nil
}

// listThreads appends the thread states of an interpreter to its group. The list may
// change under the read: what is no thread of this interpreter ends it as torn.
func (p *Process) listThreads(g *gilGroup, interp uint64, alive map[uint64]*thread) error {
	l := p.l
	addr, err := cpython.ReadWord(p.mem, interp+l.Interp.ThreadsHead)
	if err != nil {
		return fmt.Errorf("reading the threads: %w", err)
	}
	known := p.readKnown()
	var buf [cpython.MaxThreadSize]byte
	newer := make(map[int]*thread, len(p.threads))
	for n := 0; addr != 0 && n < maxThreads && len(alive) < maxThreads && alive[addr] == nil; n++ {
		state := known[addr]
		if state == nil {
			state = buf[:l.Thread.Size]
			if err := cpython.ReadAt(p.mem, addr, state); errors.Is(err, cpython.ErrUnmapped) {
				return errListTorn
			} else if err != nil {
				return err
			}
		}
		if cpython.Word(state, l.Thread.Interp) != interp {
			return errListTorn
		}
		native := int(cpython.Word(state, l.Thread.NativeID))
		t := p.threads[addr]
		if t == nil || t.nativeID != native || t.interp != interp {
			t = &thread{addr: addr, interp: interp, nativeID: native}
		}
		if native != 0 { // 0: made, but not yet running
			// Until it runs, that of 3.11 has its creator's id, which is further down.
			if unborn := newer[native]; unborn != nil {
				delete(alive, unborn.addr)
				g.threads = slices.DeleteFunc(g.threads, func(o *thread) bool { return o == unborn })
			}
			newer[native] = t
			alive[addr] = t
			g.threads = append(g.threads, t)
		}
		next := cpython.Word(state, l.Thread.Next)
		if next == addr {
			return errListTorn
		}
		addr = next
	}
	return nil
}

// readKnown reads the states of all known threads at once, so that walking the
// list costs one call and not one for each.
func (p *Process) readKnown() map[uint64][]byte {
	if len(p.threads) < 2 {
		return nil
	}
	size := p.l.Thread.Size
	ranges := make([]Range, 0, len(p.threads))
	for addr := range p.threads {
		ranges = append(ranges, Range{Addr: addr, Len: int(size)})
	}
	buf := make([]byte, uint64(len(ranges))*size)
	n, err := p.mem.Read(buf, ranges)
	if err != nil {
		return nil
	}
	out := make(map[uint64][]byte, len(ranges))
	for i, r := range ranges {
		if end := (uint64(i) + 1) * size; end <= uint64(n) {
			out[r.Addr] = buf[end-size : end : end]
		}
	}
	return out
}
