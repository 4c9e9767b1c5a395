package pystack

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	// growthEvery is the least time between two readings of the resident memory. They are made in
	// the tick that reads the stacks, since a sampler of its own misplaces half as much again.
	growthEvery = int64(900 * time.Microsecond)
	// growthTicks is how many ticks of a descendant have one reading.
	growthTicks = 4
	// leastGrowth is carried on to the next reading: pages come one by one in any program.
	leastGrowth = 16 * 4096
	// sudden is the share of a growth from which on it is all of the time since the last reading.
	sudden = 0.9
	// Threads whose faults are read at one tick, of those that did not fault lately: each costs
	// 3 to 4 µs.
	growthTurn = 12
	// lastRisers are the threads that faulted last, which are read first.
	lastRisers = 4
	// found is the share of the process's faults from which on no more threads are read.
	found = 0.9
	// evidence is the growth beyond a lone thread's faults that shows it to get huge pages.
	evidence = 256 * 4096
)

// faultSize is what one fault brings, those of huge pages and of files apart.
var faultSize = int64(os.Getpagesize())

// growth charges what the resident memory of a process grows by to the stacks of the threads
// that touched it: each page fault is on one thread.
type growth struct {
	off      bool  // this /proc has no such figures
	resident int64 // bytes, at the reading that was charged last; -1: there was none
	at       int64 // CLOCK_MONOTONIC of the last reading …
	previous int64 // … of the one before …
	from     int64 // … and of the one since which it has grown
	ticks    int   // since the last reading
	serial   int64 // of readings
	known    timeline.GrowthReading
	span     int64 // nanoseconds between the first reading and the last

	faults faultCount // of the whole process
	risers []*thread
	turn   []*thread // who is to be read next
}

// threadGrowth is what is kept of a thread.
type threadGrowth struct {
	serial int64           // of the reading before which its stack first changed …
	before timeline.NodeID // … and which it had at the one before that
	faults faultCount
	huge   bool // it was seen to get huge pages
}

// faultCount is how many page faults there were, at two readings of the memory.
type faultCount struct {
	all       int64 // at the last one; -1: not known
	rose      int64 // since the one before
	since, at int64 // CLOCK_MONOTONIC of both
}

// count takes in how many there are.
func (f *faultCount) count(all, at int64) {
	f.rose, f.since = 0, f.at
	if f.all >= 0 && all >= 0 {
		f.rose = all - f.all
	}
	f.all, f.at = all, at
}

// moved keeps the stack that a thread had at the last reading of the memory.
func (g *growth) moved(t *thread, before timeline.NodeID) {
	if t.session.growth.serial != g.serial {
		t.session.growth.serial, t.session.growth.before = g.serial, before
	}
}

// before is the stack that a thread had at the last reading of the memory.
func (g *growth) before(t *thread) timeline.NodeID {
	if t.session.growth.serial == g.serial {
		return t.session.growth.before
	}
	return t.session.node
}

// grow reads the resident memory where that is due, and charges what it has grown by.
func (s *session) grow() {
	g := &s.growth
	g.ticks++
	if g.off || s.at-g.at < growthEvery || s.descendant && g.ticks < growthTicks {
		return
	}
	resident, ok := s.p.kernel.resident()
	if !ok {
		g.off = g.known.Reads == 0
		return
	}
	if g.known.Reads > 0 {
		g.span += s.at - g.at
	}
	last := g.known.Last
	g.previous, g.at, g.ticks = g.at, s.at, 0
	if g.known.Reads++; g.known.Reads == 1 {
		g.resident, g.from, g.known.First = resident, s.at, resident
		s.startFaults()
		g.serial++
		return
	}
	g.known.Last, g.known.Largest = resident, max(g.known.Largest, resident)
	if grown := resident - g.resident; grown >= leastGrowth || grown <= -leastGrowth {
		if float64(resident-last)/float64(grown) > sudden { // what was carried on to here is nothing to speak of
			g.from = g.previous
		}
		s.charge(grown)
		g.resident = resident
		g.from = s.at
	} else if grown == 0 {
		g.from = s.at
	}
	g.serial++
}

// charge divides what the memory has grown by, or grew by while it shrank, among the threads.
func (s *session) charge(grown int64) {
	touched := s.touched(grown)
	if grown < 0 {
		for _, part := range touched {
			grown -= part
		}
		s.grew(timeline.RootNode, timeline.RootNode, grown)
	}
	for t, part := range touched {
		if t == nil || !t.session.known {
			s.grew(timeline.RootNode, timeline.RootNode, part)
		} else {
			s.grew(s.growth.before(t), t.session.node, part)
		}
	}
}

// touched is what each thread has touched since the last reading. The key nil is of threads that run no Python.
func (s *session) touched(grown int64) map[*thread]int64 {
	only, several := s.onlyThread()
	if !several {
		s.growth.faults.count(s.p.kernel.faults(0), s.at)
		if grown < 0 {
			grown = s.growth.anew(&s.growth.faults)
		}
		return map[*thread]int64{only: grown}
	}
	risers, native := s.readFaults()
	if grown > 0 {
		return divide(grown, risers, native)
	}
	out := make(map[*thread]int64, len(risers))
	for _, t := range risers {
		out[t] = s.growth.anew(&t.session.growth.faults)
	}
	return out
}

// anew is what was touched while the memory shrank, by its faults: of what is given back and taken anew between two readings resident
// memory shows the difference only. Where these were not counted at the reading before nobody knows when they were, and of what is
// written after a fork, or read before it is written, there are some without growth: that seldom falls into a reading that shrank.
func (g *growth) anew(faults *faultCount) int64 {
	if bytes := faults.rose * faultSize; faults.since == g.previous && bytes >= leastGrowth {
		return bytes
	}
	return 0
}

func (s *session) grew(before, after timeline.NodeID, grown int64) {
	s.sink.AddGrowth(timeline.Growth{
		Process: s.place, Start: s.sink.Since(s.growth.from), End: s.sink.Since(s.at), Before: before, After: after, Bytes: grown,
	})
}

// onlyThread is the thread that runs Python, where there are not several: threads that a library
// has made work for it.
func (s *session) onlyThread() (only *thread, several bool) {
	for _, t := range s.p.threads {
		if t.isElsewhere() || excluded(t) {
			continue
		}
		if only != nil {
			return nil, true
		}
		only = t
	}
	return only, false
}

// startFaults reads the faults of all threads, which later ones are counted from.
func (s *session) startFaults() {
	s.growth.faults = faultCount{all: s.p.kernel.faults(0), at: s.at}
	for _, t := range s.p.threads {
		t.session.growth.faults = faultCount{all: -1}
		if len(s.p.threads) <= maxOpenFiles && t.tid != 0 {
			t.session.growth.faults = faultCount{all: s.p.kernel.faults(t.tid), at: s.at}
		}
	}
}

// readFaults finds the threads that have faulted since the last time: those that did so lately
// first, then the others in turn, until most of the process's faults are found. native are the
// pages of threads that run no Python.
func (s *session) readFaults() (risers []*thread, native int64) {
	g := &s.growth
	g.faults.count(s.p.kernel.faults(0), s.at)
	total, sum, asked := g.faults.rose, int64(0), 0
	read := func(t *thread) {
		faults := &t.session.growth.faults
		if faults.count(s.p.kernel.faults(t.tid), s.at); faults.rose > 0 {
			risers, sum = append(risers, t), sum+faults.rose
		}
	}
	enough := func() bool { return float64(sum) >= found*float64(total) }
	for _, t := range g.risers {
		if s.p.threads[t.addr] == t {
			read(t)
		}
	}
	for i := len(g.turn); asked < growthTurn && !enough(); asked++ {
		if i == 0 {
			if asked > 0 && len(g.turn) == 0 || !s.newTurn() {
				break
			}
			i = len(g.turn)
		}
		i--
		t := g.turn[i]
		g.turn = g.turn[:i]
		if s.p.threads[t.addr] == t && !slices.Contains(g.risers, t) {
			read(t)
		}
	}
	if !enough() {
		native = total - sum
	}
	g.remember(risers)
	return risers, native
}

// newTurn has all threads read in turn again; false if there are none.
func (s *session) newTurn() bool {
	for _, t := range s.p.threads {
		if !t.isElsewhere() && t.tid != 0 {
			s.growth.turn = append(s.growth.turn, t)
		}
	}
	return len(s.growth.turn) > 0
}

// remember keeps who has faulted last.
func (g *growth) remember(risers []*thread) {
	slices.SortFunc(risers, func(a, b *thread) int { return int(b.session.growth.faults.rose - a.session.growth.faults.rose) })
	for _, t := range g.risers {
		if len(risers) < lastRisers && !slices.Contains(risers, t) {
			risers = append(risers, t)
		}
	}
	g.risers = append(g.risers[:0], risers[:min(len(risers), lastRisers)]...)
}

// worksWith is the part of a growth, one in so many, from which on that one thread is taken to have caused all of it.
const worksWith = 10

// divide gives each thread the pages that it has faulted, and what is over to one that is shown
// to get huge pages, of which one fault brings 512; where there is none, to the one with the
// fewest faults. The key nil is of threads that run no Python. The share of the faults would be
// far off: of two threads the one with huge pages has hardly any.
func divide(grown int64, risers []*thread, native int64) map[*thread]int64 {
	out := make(map[*thread]int64, len(risers)+1)
	rest := grown
	give := func(t *thread, pages int64) {
		part := min(pages*faultSize, rest)
		if part > 0 {
			out[t] += part
			rest -= part
		}
	}
	risers = slices.DeleteFunc(slices.Clone(risers), func(t *thread) bool { return t.session.growth.faults.rose <= 0 })
	if len(risers) == 1 {
		switch t, g := risers[0], &risers[0].session.growth; {
		case native == 0:
			g.huge = g.huge || grown-g.faults.rose*faultSize > evidence
			return map[*thread]int64{t: grown}
		case g.faults.rose*faultSize*worksWith >= grown: // with a library's threads, which it shares a computation with
			return map[*thread]int64{t: grown}
		}
	}
	for _, t := range risers {
		give(t, t.session.growth.faults.rose)
	}
	give(nil, native)
	if rest == 0 {
		return out
	}
	var most *thread
	for _, t := range risers {
		if t.session.growth.huge {
			most = t
			break
		}
	}
	if most == nil && len(risers) > 0 {
		most = slices.MinFunc(risers, func(a, b *thread) int { return int(a.session.growth.faults.rose - b.session.growth.faults.rose) })
	}
	out[most] += rest
	return out
}

// finishGrowth reports how the memory was read.
func (s *session) finishGrowth() {
	known, place := s.growth.known, s.place
	if known.Reads < 2 {
		return
	}
	known.Interval = timeline.Nanos(s.growth.span / (known.Reads - 1))
	known.Largest = max(known.Largest, known.First)
	s.sink.Describe(func(r *timeline.Recording) {
		if place >= len(r.Processes) {
			return
		}
		m := &r.Processes[place].Memory.Growth
		if m.Reads > 0 { // of the program that it was before
			known.Interval = timeline.Nanos((int64(known.Interval)*known.Reads + int64(m.Interval)*m.Reads) / (known.Reads + m.Reads))
			known.Reads, known.First, known.Largest = known.Reads+m.Reads, m.First, max(known.Largest, m.Largest)
		}
		*m = known
	})
}

// resident is the memory that is resident in the process: /proc/PID/statm, which is exact where
// stat is not, and costs 1 µs.
func (k *procKernel) resident() (int64, bool) {
	b, err := k.read(procFile{0, fileStatm})
	if err != nil {
		return 0, false
	}
	return procfs.ParseStatm(b)
}

// faults are the minor page faults of a thread, or with tid 0 of the process; -1 unknown.
func (k *procKernel) faults(tid int) int64 {
	b, err := k.read(procFile{tid, fileStat})
	if err != nil {
		return -1
	}
	return parseFaults(b)
}

// parseFaults reads min_flt, the tenth field of /proc/PID/stat.
func parseFaults(b []byte) int64 {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return -1
	}
	fields := bytes.Fields(b[i+1:])
	const minFlt = 10 - 3 // fields[0] is the third
	if len(fields) <= minFlt {
		return -1
	}
	n, err := strconv.ParseInt(string(fields[minFlt]), 10, 62)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
