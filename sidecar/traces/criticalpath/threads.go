package criticalpath

import (
	"cmp"
	"slices"
)

// cut divides a thread at a time: something waits for what it did until then (a mark), or it waited itself.
type cut struct {
	from, at int64 // it waited from then on; of a mark they are one
	mark     int32 // -1: it waited
	work     int32 // for this
	other    int32 // or for this mark of another thread
}

// pending is a wait whose other end is not made yet.
type pending struct {
	activity, work, mark int32
	edge                 edge
}

// cuts lists where each thread is divided, and for each work the mark at its launch, -1 where that is not known.
func (b *builder) cuts() (byThread [][]cut, launches []int32) {
	e := b.e
	byThread = make([][]cut, e.Threads)
	launches = make([]int32, len(e.Work))
	marks := int32(0)
	mark := func(thread int32, at int64) int32 {
		list := byThread[thread]
		if n := len(list); n > 0 && list[n-1].mark >= 0 && list[n-1].at == at {
			return list[n-1].mark
		}
		byThread[thread] = append(list, cut{at, at, marks, -1, -1})
		marks++
		return marks - 1
	}
	own := make([]int32, len(e.Calls)) // by call: the copy that it launched; -1: none
	for i := range own {
		own[i] = -1
	}
	for i := range e.Work {
		w := &e.Work[i]
		launches[i] = -1
		if w.Call < 0 || w.Earlier {
			continue
		}
		c := &e.Calls[w.Call]
		if w.Start < c.Start-skew {
			continue
		}
		launches[i] = mark(c.Thread, b.submitted(i))
		if w.Copy {
			own[w.Call] = int32(i)
		}
	}
	b.synchronisations(byThread, own)
	for _, thread := range e.Autograd {
		for _, h := range e.handovers(e.Main, thread) {
			to := mark(h.from, h.ended)
			byThread[h.to] = append(byThread[h.to], cut{h.silent, h.resumed, -1, -1, to})
		}
	}
	b.marks = make([]int32, marks)
	for _, list := range byThread {
		slices.SortStableFunc(list, func(x, y cut) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.from, y.from)) })
	}
	return byThread, launches
}

// synchronisations cuts threads where calls waited for work: for the last of what was launched before and ended meanwhile.
func (b *builder) synchronisations(byThread [][]cut, own []int32) {
	e := b.e
	for i := range e.Calls {
		c := &e.Calls[i]
		waited := int32(-1)
		if c.Waits {
			waited = b.waitedFor(c, int32(i))
		} else if o := own[i]; o >= 0 && e.Work[o].End > c.Start && e.Work[o].End <= c.End {
			waited = o // a copy from or to memory that is not pinned
		}
		if waited < 0 {
			continue
		}
		w := &e.Work[waited]
		from := c.Start
		if w.Call == int32(i) {
			from = b.submitted(int(waited))
		}
		byThread[c.Thread] = append(byThread[c.Thread], cut{from, min(w.End, c.End), -1, waited, -1})
	}
}

// submitted is when the call that launched a work had done so at the latest: where the work began during the call, at its begin,
// unless it began when the work before it on its stream had ended; then the call had launched it and waited.
func (b *builder) submitted(work int) int64 {
	w := &b.e.Work[work]
	c := &b.e.Calls[w.Call]
	if prev := b.before[work]; prev >= 0 && w.Start < c.End && b.e.Work[prev].End > c.Start {
		return c.Start
	}
	return min(max(w.Start, c.Start), c.End)
}

// waitedFor is the work that a synchronising call waited for: the last that had been launched and ended during it; -1 if none did.
func (b *builder) waitedFor(c *Call, call int32) int32 {
	const farthest = 256
	const rounding = 2_000 // ns: of times in whole microseconds
	e := b.e
	after := e.endedBy(b.byEnd, c.End+rounding)
	for k := after - 1; k >= max(0, after-farthest) && e.Work[b.byEnd[k]].End > c.Start; k-- {
		if w := &e.Work[b.byEnd[k]]; w.Call == call || e.launchedBefore(w, c.Start) {
			return b.byEnd[k]
		}
	}
	return -1
}

// handover is that a thread went on because another one had ended what it did.
type handover struct {
	from, to        int32
	ended           int64 // the other's last work
	silent, resumed int64 // between these the thread did nothing recorded
}

// handovers are those between two threads of which one works while the other waits. A thread went on because of the other if
// that ended something while it was silent, and was silent itself when it went on.
func (e *Events) handovers(x, y int32) (list []handover) {
	busy := [2][]Busy{e.Busy[x], e.Busy[y]}
	threads := [2]int32{x, y}
	next := [2]int{}
	last := [2]int64{e.Start, e.Start} // when each ended its last
	for next[0] < len(busy[0]) || next[1] < len(busy[1]) {
		side := 0
		if next[0] == len(busy[0]) || next[1] < len(busy[1]) && busy[1][next[1]].Start < busy[0][next[0]].Start {
			side = 1
		}
		b, other := busy[side][next[side]], 1-side
		if last[other] > last[side] && last[other] <= b.Start {
			list = append(list, handover{threads[other], threads[side], last[other], last[side], b.Start})
		}
		last[side] = max(last[side], b.End)
		next[side]++
	}
	return list
}

// threads makes the activities of the host.
func (b *builder) threads(cuts [][]cut) (waits []pending) {
	e := b.e
	for thread, list := range cuts {
		if len(list) == 0 && int32(thread) != e.Main {
			continue
		}
		at, last := e.Start, int32(begin)
		until := func(end int64) {
			if end > at || last == begin {
				end = max(end, at)
				next := b.add(Activity{Start: at, End: end, Work: -1, Thread: int32(thread)})
				b.link(next, last, inThread)
				at, last = end, next
			}
		}
		for _, c := range list {
			to := min(max(c.at, e.Start), e.End)
			if c.mark >= 0 {
				until(to)
				b.marks[c.mark] = last
				continue
			}
			if to <= at {
				continue
			}
			until(max(min(c.from, to), e.Start))
			resumed := b.add(Activity{Start: to, End: to, Work: -1, Thread: int32(thread)})
			b.link(resumed, last, inThread)
			if c.work >= 0 {
				waits = append(waits, pending{resumed, c.work, -1, synchronises})
			} else {
				waits = append(waits, pending{resumed, -1, c.other, handsOver})
			}
			at, last = to, resumed
		}
		if int32(thread) == e.Main {
			until(e.End)
		}
	}
	return waits
}
