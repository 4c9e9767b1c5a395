package analyses

import (
	"cmp"
	"slices"
)

// nesting orders calls by thread and time and finds each one's caller: the
// innermost call of its thread that still runs when it begins. Operators and
// Python frames are such calls.
type nesting struct {
	rows   []uint32 // of the table they come from: by thread, then start, the longest first
	parent []int32  // index into rows; -1 at the top

	start, dur []int64
	thread     []uint32
}

// nest orders the rows that keep selects of a table with these columns.
func nest(start, dur []int64, thread []uint32, keep func(row int) bool) *nesting {
	n := &nesting{rows: make([]uint32, 0, len(start)), start: start, dur: dur, thread: thread}
	for row := range start {
		if keep(row) {
			n.rows = append(n.rows, uint32(row))
		}
	}
	slices.SortStableFunc(n.rows, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(thread[a], thread[b]), cmp.Compare(start[a], start[b]), cmp.Compare(dur[b], dur[a]))
	})
	n.parent = make([]int32, len(n.rows))
	var open []int32
	for i, row := range n.rows {
		for len(open) > 0 {
			top := n.rows[open[len(open)-1]]
			if thread[top] == thread[row] && start[row] < n.end(top) {
				break
			}
			open = open[:len(open)-1]
		}
		n.parent[i] = -1
		if len(open) > 0 {
			n.parent[i] = open[len(open)-1]
		}
		open = append(open, int32(i))
	}
	return n
}

// end of a row of the table.
func (n *nesting) end(row uint32) int64 { return n.start[row] + max(0, n.dur[row]) }

// self is each call's time less that of the calls in it, in ns.
func (n *nesting) self() []int64 {
	self := make([]int64, len(n.rows))
	for i, row := range n.rows {
		start, end := n.start[row], n.end(row)
		self[i] += end - start
		if up := n.parent[i]; up >= 0 {
			self[up] -= max(0, min(end, n.end(n.rows[up]))-start)
		}
	}
	return self
}

// innermost is the index of the call that runs on a thread at a time, -1 if none
// does.
func (n *nesting) innermost(thread uint32, at int64) int32 {
	i, _ := slices.BinarySearchFunc(n.rows, at, func(row uint32, at int64) int {
		if c := cmp.Compare(n.thread[row], thread); c != 0 {
			return c
		}
		return count(n.start[row] > at)*2 - 1
	})
	for up := int32(i) - 1; up >= 0; up = n.parent[up] {
		row := n.rows[up]
		if n.thread[row] != thread {
			return -1
		}
		if at < n.start[row]+max(1, n.dur[row]) {
			return up
		}
	}
	return -1
}

// leaf is a stretch of time during which one call of a thread was the
// innermost.
type leaf struct {
	start, end int64
	call       int32 // index into rows
}

// leavesOver are the leaves of each thread by time that touch one of some
// disjoint intervals in time order.
func (n *nesting) leavesOver(times []interval) map[uint32][]leaf {
	leaves := map[uint32][]leaf{}
	var open []int32
	var thread uint32
	var now int64 // up to here the thread's leaves are known
	next := 0     // the first interval that ends after now
	emit := func(call int32, until int64) {
		if until <= now {
			return
		}
		for next < len(times) && times[next].End <= now {
			next++
		}
		if next < len(times) && times[next].Start < until {
			leaves[thread] = append(leaves[thread], leaf{now, until, call})
		}
		now = until
	}
	closeUntil := func(at int64) {
		for len(open) > 0 && n.end(n.rows[open[len(open)-1]]) <= at {
			top := open[len(open)-1]
			emit(top, n.end(n.rows[top]))
			open = open[:len(open)-1]
		}
	}
	const never = 1<<63 - 1
	for i, row := range n.rows {
		if i == 0 || n.thread[n.rows[i-1]] != n.thread[row] {
			closeUntil(never)
			thread, now, next, open = n.thread[row], n.start[row], 0, open[:0]
			leaves[thread] = nil
		}
		closeUntil(n.start[row])
		if len(open) > 0 {
			emit(open[len(open)-1], n.start[row])
		}
		now = max(now, n.start[row])
		open = append(open, int32(i))
	}
	closeUntil(never)
	return leaves
}
