package pystack

import "sync/atomic"

// maxOpenForked bounds the files kept open of the threads of a process that was forked:
// there may be many such processes.
const maxOpenForked = 8

// fork attaches to a process that was forked from p and runs on in the same program:
// its interpreter lies at the same place, and so do the code objects that p had by
// then. What the library knows of these is not read again.
func (p *Process) fork(pid int, known library) (*Process, error) {
	m := &liveMemory{pid: pid}
	k := newProcKernel(pid)
	k.mayOpen = maxOpenForked
	c := &Process{pid: pid, l: p.l, place: p.place, mem: m, kernel: k, reader: newReader(m, p.l), threads: make(map[uint64]*thread)}
	c.reader.codes.library, c.program = known, p.program
	if err := c.findThreads(); err != nil {
		return nil, explain(pid, err)
	}
	return c, nil
}

// lending hands what is known of a process's code objects to another goroutine than
// the one that samples it.
type lending struct {
	asked atomic.Bool
	lent  atomic.Pointer[library]
}

// lendLibrary does what another goroutine has asked for.
func (p *Process) lendLibrary() {
	if p.lending.asked.Load() && p.lending.asked.CompareAndSwap(true, false) {
		l := make(library, len(p.reader.codes.byAddr))
		for _, code := range p.reader.codes.byAddr {
			l.add(code)
		}
		p.lending.lent.Store(&l)
	}
}

// library is what was read of code objects, by address, of processes that were forked
// from one another. One goroutine.
type library map[uint64]*codeObject

func (l library) add(code *codeObject) {
	if l == nil {
		return
	}
	if len(l) >= maxCodes {
		clear(l)
	}
	one := *code
	one.operations, one.locals = nil, nil // of the instructions as they are in its process
	l[code.Addr] = &one
}

// adopt takes over what was read of the code object at addr in another process of the
// same program, if it is the same here; nil: there is none.
func (c *codeCache) adopt(addr uint64) *codeObject {
	known := c.library[addr]
	if known == nil {
		return nil
	}
	if !c.objects.Holds(&known.Identity) {
		return nil
	}
	code := *known
	code.read, code.born, code.epoch, code.generation = c.reads, c.epoch, c.epoch, c.generation
	c.keep(&code)
	return &code
}
