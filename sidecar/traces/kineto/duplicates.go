package kineto

import "slices"

// dropDuplicates removes what a file records twice (some tools write the event
// list twice, or join overlapping parts): every launch would count double. Only
// a runtime call is proof, since its correlation is unique; two graph kernels
// may well share name, correlation and whole-microsecond start. It returns the
// number of records dropped.
func dropDuplicates(t *Trace) (dropped int) {
	twice, calls := dropDuplicateCalls(t)
	if calls == 0 {
		return 0
	}
	return calls + dropDuplicateWork(t, twice)
}

// dropDuplicateCalls removes runtime calls that were recorded twice, and returns their correlations.
func dropDuplicateCalls(t *Trace) (twice map[int64]bool, dropped int) {
	c := &t.Calls
	seen := newRowSet(len(c.Start))
	twice = map[int64]bool{}
	keep := make([]bool, len(c.Start))
	for row, id := range c.Correlation {
		keep[row] = true
		if id == None || id == 0 {
			continue
		}
		same := func(other int) bool {
			return c.Start[other] == c.Start[row] && c.Dur[other] == c.Dur[row] &&
				c.Name[other] == c.Name[row] && c.Correlation[other] == id && c.Thread[other] == c.Thread[row]
		}
		if !seen.add(uint64(c.Start[row])^uint64(id)<<20, row, same) {
			keep[row] = false
			twice[id] = true
			dropped++
		}
	}
	if dropped == 0 {
		return nil, 0
	}
	compact(keep, &c.Start, &c.Dur, &c.Correlation, &c.External)
	compact(keep, &c.Name)
	compact(keep, &c.Thread)
	t.Frame.compact(FrameCall, keep)
	return twice, dropped
}

// dropDuplicateWork removes what devices did for calls that were recorded twice, where it is recorded twice itself.
func dropDuplicateWork(t *Trace, twice map[int64]bool) (dropped int) {
	d := &t.Device
	seen := newRowSet(len(d.Start))
	keep := make([]bool, len(d.Start))
	for row, id := range d.Correlation {
		same := func(other int) bool {
			return d.Start[other] == d.Start[row] && d.Dur[other] == d.Dur[row] && d.Name[other] == d.Name[row] &&
				d.Correlation[other] == id && d.Stream[other] == d.Stream[row] && d.Device[other] == d.Device[row]
		}
		keep[row] = !twice[id] || seen.add(uint64(d.Start[row])^uint64(id)<<20, row, same)
		if !keep[row] {
			dropped++
		}
	}
	compact(keep, &d.Start, &d.Dur, &d.Stream, &d.Correlation, &d.External, &d.Bytes)
	compact(keep, &d.Name)
	compact(keep, &d.Class)
	compact(keep, &d.GBps)
	compact(keep, &d.Device)
	compact(keep, &d.Thread, &d.Collective)
	t.Frame.compact(FrameDevice, keep)
	return dropped
}

// compact keeps the rows that keep marks.
func compact[T any](keep []bool, columns ...*[]T) {
	for _, column := range columns {
		n := 0
		for row, value := range *column {
			if keep[row] {
				(*column)[n] = value
				n++
			}
		}
		*column = slices.Clip((*column)[:n])
	}
}

// rowSet is a set of rows by a caller's hash and equality.
type rowSet struct {
	slots []uint32 // row + 1; 0: free
	shift uint
}

func newRowSet(rows int) *rowSet {
	bits := uint(4)
	for 1<<bits < 2*rows {
		bits++
	}
	return &rowSet{make([]uint32, 1<<bits), 64 - bits}
}

// add reports whether no equal row was there.
func (s *rowSet) add(hash uint64, row int, same func(other int) bool) bool {
	mask := len(s.slots) - 1
	for i := int(hash * 0x9E3779B97F4A7C15 >> s.shift); ; i = (i + 1) & mask {
		if s.slots[i] == 0 {
			s.slots[i] = uint32(row + 1)
			return true
		}
		if same(int(s.slots[i] - 1)) {
			return false
		}
	}
}
