package synth

// allocator is a caching allocator without fragmentation: it reserves in
// pieces of 20 MiB and gives nothing back.
type allocator struct {
	live                []block
	allocated, reserved int64
	next                int64 // address of the next block
}

type block struct{ address, size int64 }

const (
	segment     = 20 << 20
	heapAddress = int64(0x7f20_0000_0000)
)

func (m *allocator) alloc(r *rank, size int64) {
	if !r.cfg.Memory {
		return
	}
	if m.next == 0 {
		m.next = heapAddress
	}
	m.live = append(m.live, block{m.next, size})
	m.next += size
	m.allocated += size
	for m.reserved < m.allocated {
		m.reserved += segment
	}
	r.totals.PeakAllocated = max(r.totals.PeakAllocated, m.allocated)
	r.totals.PeakReserved = max(r.totals.PeakReserved, m.reserved)
	r.out.memory(r.thread, r.host, m.live[len(m.live)-1].address, size, m.allocated, m.reserved)
	r.host += 300
}

// free releases the youngest block: activations go in the order of the
// backward pass.
func (m *allocator) free(r *rank) {
	if len(m.live) == 0 {
		return
	}
	b := m.live[len(m.live)-1]
	m.live = m.live[:len(m.live)-1]
	m.next = b.address
	m.allocated -= b.size
	r.out.memory(r.thread, r.host, b.address, -b.size, m.allocated, m.reserved)
	r.host += 200
}

func (m *allocator) freeAll(r *rank) {
	for len(m.live) > 0 {
		m.free(r)
	}
}

// pythonStack writes python_function records for the main thread.
type pythonStack struct {
	r    *rank
	open []pythonFrame
	id   int64
}

type pythonFrame struct {
	name       string
	id, parent int64
	start      int64
}

func (p *pythonStack) init(r *rank) {
	p.r = r
	p.push("train.py(60): <module>")
}

func (p *pythonStack) push(name string) {
	if !p.r.cfg.Stacks {
		return
	}
	p.id++
	f := pythonFrame{name: name, id: p.id, start: p.r.host}
	if n := len(p.open); n > 0 {
		f.parent = p.open[n-1].id
	}
	p.open = append(p.open, f)
}

func (p *pythonStack) pop() {
	if len(p.open) == 0 {
		return
	}
	f := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	p.r.out.python(f, p.r.out.pid, p.r.host)
}

func (p *pythonStack) close() {
	for len(p.open) > 0 {
		p.pop()
	}
}
