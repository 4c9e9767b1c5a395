package torchtrace

import (
	"cmp"
	"math"
	"slices"
)

// opTree nests operators and annotations by time on each thread.
type opTree struct {
	rows   []uint32 // of Trace.Ops, by thread, start, longest first
	parent []int32  // index into rows, -1 at the top
	self   []int64  // ns of host time less the children's
}

// nest builds the tree of the rows that keep selects.
func nest(t *Trace, keep func(row int) bool) *opTree {
	o := &t.Ops
	tree := &opTree{rows: make([]uint32, 0, o.Len())}
	for row := range o.Start {
		if o.Class[row] <= OpAnnotation && keep(row) {
			tree.rows = append(tree.rows, uint32(row))
		}
	}
	slices.SortStableFunc(tree.rows, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(o.Thread[a], o.Thread[b]), cmp.Compare(o.Start[a], o.Start[b]), cmp.Compare(o.Dur[b], o.Dur[a]))
	})
	tree.parent = make([]int32, len(tree.rows))
	tree.self = make([]int64, len(tree.rows))
	var open []int32
	for i, row := range tree.rows {
		start, end := o.Start[row], o.Start[row]+max(0, o.Dur[row])
		for len(open) > 0 {
			top := tree.rows[open[len(open)-1]]
			if o.Thread[top] == o.Thread[row] && start < o.Start[top]+o.Dur[top] {
				break
			}
			open = open[:len(open)-1]
		}
		tree.parent[i] = -1
		tree.self[i] = end - start
		if len(open) > 0 {
			up := open[len(open)-1]
			tree.parent[i] = up
			topEnd := o.Start[tree.rows[up]] + o.Dur[tree.rows[up]]
			tree.self[up] -= max(0, min(end, topEnd)-start)
		}
		open = append(open, int32(i))
	}
	return tree
}

// innermost returns the index of the operator that runs on a thread at a time,
// -1 if none does.
func (tree *opTree) innermost(t *Trace, thread uint32, at int64) int32 {
	o := &t.Ops
	i, _ := slices.BinarySearchFunc(tree.rows, at, func(row uint32, at int64) int {
		return cmp.Or(cmp.Compare(o.Thread[row], thread), b2i(o.Start[row] > at)*2-1)
	})
	for n := int32(i) - 1; n >= 0; n = tree.parent[n] {
		row := tree.rows[n]
		if o.Thread[row] != thread {
			return -1
		}
		if at < o.Start[row]+max(1, o.Dur[row]) {
			return n
		}
	}
	return -1
}

// opCosts are what each operator of a tree caused itself.
type opCosts struct {
	device                 []int64 // ns of device time of its kernels
	hostBytes, deviceBytes []int64 // allocated less freed
}

// costs charges kernels and allocations to the innermost operator: kernels by
// External id, else by the operator around their runtime call.
func (tree *opTree) costs(v *view) opCosts {
	t := v.t
	n := len(tree.rows)
	c := opCosts{make([]int64, n), make([]int64, n), make([]int64, n)}
	byExternal := make(map[int64]int32, n)
	for i, row := range tree.rows {
		if id := t.Ops.External[row]; id != None && id != 0 {
			byExternal[id] = int32(i) // the innermost of equal ids comes last
		}
	}
	callOf := map[int64]int32{}
	for i := range v.calls {
		callOf[v.calls[i].correlation] = v.calls[i].row
	}
	for i := range v.spans {
		s := &v.spans[i]
		if s.row < 0 {
			continue
		}
		op, known := byExternal[t.Device.External[s.row]]
		if !known {
			row, launched := callOf[s.correlation]
			if !launched || row < 0 || s.correlation == None {
				continue
			}
			if op = tree.innermost(t, t.Calls.Thread[row], t.Calls.Start[row]); op < 0 {
				continue
			}
		}
		c.device[op] += s.dur
	}
	m := &t.Memory
	for i, at := range m.Time {
		op := tree.innermost(t, m.Thread[i], at)
		switch {
		case op < 0:
		case m.DeviceType[i] == 0:
			c.hostBytes[op] += m.Bytes[i]
		default:
			c.deviceBytes[op] += m.Bytes[i]
		}
	}
	return c
}

// opSums are the figures of one row of the operator table.
type opSums struct {
	name, shapes                           Sym
	calls                                  int64
	selfHost, totalHost, selfDev, totalDev int64
	hostBytes, totalHostBytes              int64
	deviceBytes, totalDeviceBytes          int64
	flops                                  float64
}

// operators is torch's key_averages: one row per operator name, or per name
// and input shapes.
func operators(v *view, byShape bool) *Table {
	t := newTable(TableOperators, "Operators",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "name", Kind: Text},
		&Column{Name: "input_shapes", Kind: Text},
		&Column{Name: "calls", Kind: Int},
		&Column{Name: "self_cpu_us", Kind: Micros},
		&Column{Name: "total_cpu_us", Kind: Micros},
		&Column{Name: "self_device_us", Kind: Micros},
		&Column{Name: "total_device_us", Kind: Micros},
		&Column{Name: "self_cpu_bytes", Kind: Bytes},
		&Column{Name: "total_cpu_bytes", Kind: Bytes},
		&Column{Name: "self_device_bytes", Kind: Bytes},
		&Column{Name: "total_device_bytes", Kind: Bytes},
		&Column{Name: "flops", Kind: Float}) // as recorded; empty where not
	if byShape && v.t.Ops.Shapes == nil && v.t.Ops.Len() > 0 {
		t.Note = "input shapes were not kept when the trace was read"
		byShape = false
	}
	for _, s := range sumOperators(v, byShape) {
		flops := s.flops
		if flops == 0 {
			flops = math.NaN()
		}
		t.add(v.t.Rank, v.t.Text(s.name), v.t.Text(s.shapes), s.calls, micros(s.selfHost), micros(s.totalHost),
			micros(s.selfDev), micros(s.totalDev), s.hostBytes, s.totalHostBytes, s.deviceBytes, s.totalDeviceBytes, flops)
	}
	return t
}

// sumOperators groups the operators, most device time first, then host time.
func sumOperators(v *view, byShape bool) []*opSums {
	o := &v.t.Ops
	tree := nest(v.t, func(row int) bool { return v.keeps(o.Start[row]) })
	own := tree.costs(v)
	totalDev, totalHost, totalDevice := slices.Clone(own.device), slices.Clone(own.hostBytes), slices.Clone(own.deviceBytes)
	for i := len(tree.rows) - 1; i >= 0; i-- { // children come after their parents
		if up := tree.parent[i]; up >= 0 {
			totalDev[up] += totalDev[i]
			totalHost[up] += totalHost[i]
			totalDevice[up] += totalDevice[i]
		}
	}
	sums := map[[2]Sym]*opSums{}
	var list []*opSums
	for i, row := range tree.rows {
		key := [2]Sym{o.Name[row], 0}
		if byShape {
			key[1] = o.Shapes[row]
		}
		s := sums[key]
		if s == nil {
			s = &opSums{name: key[0], shapes: key[1]}
			sums[key] = s
			list = append(list, s)
		}
		s.calls++
		s.selfHost += tree.self[i]
		s.totalHost += max(0, o.Dur[row])
		s.selfDev += own.device[i]
		s.totalDev += totalDev[i]
		s.hostBytes += own.hostBytes[i]
		s.totalHostBytes += totalHost[i]
		s.deviceBytes += own.deviceBytes[i]
		s.totalDeviceBytes += totalDevice[i]
		s.flops += o.flops[row]
	}
	slices.SortStableFunc(list, func(a, b *opSums) int {
		return cmp.Or(cmp.Compare(b.selfDev, a.selfDev), cmp.Compare(b.selfHost, a.selfHost))
	})
	return list
}
