package program

import (
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// levels are readings of a kernel's resident memory, of which those between two cells are wanted: what a cell has kept is the
// difference between one before and one behind it. They are made when a message arrives, by who receives it: the follower
// may have a cell to end, and the next one is executed 1 to 3 ms after the end of the one before. From any goroutine.
type levels struct {
	resident func() (int64, bool)
	mu       sync.Mutex
	all      []level     // in order of time
	due      []time.Time // when cells were announced that are about to be executed, likewise
}

// level is a reading, which was made between two times.
type level struct {
	from, to time.Time
	bytes    int64
}

// levelsKept bounds the readings: each cell has some four, and the follower may be some cells behind.
const levelsKept = 256

func levelsOf(pid int) *levels {
	return &levels{resident: func() (int64, bool) { return procfs.Resident(pid) }}
}

// read reads the memory now.
func (l *levels) read() {
	from := time.Now()
	bytes, ok := l.resident()
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, level{from, time.Now(), bytes})
	l.all = l.all[max(len(l.all)-levelsKept, 0):]
}

// announced reads the memory where a cell is about to be executed, by who has it executed.
func (l *levels) announced(at time.Time) {
	l.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = append(l.due, at)
	l.due = l.due[max(len(l.due)-levelsKept, 0):]
}

// dueBetween are the announcements between two times.
func (l *levels) dueBetween(from, to time.Time) (due []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.due {
		if at.After(from) && !at.After(to) {
			due = append(due, at)
		}
	}
	return due
}

// before is the last reading before a cell that began; until ran another one is known to have run. Where several were announced
// since then, one of them was not seen, and the reading has to be behind the last of these.
func (l *levels) before(ran, began time.Time) int64 {
	if due := l.dueBetween(ran, began); len(due) > 1 {
		ran = due[len(due)-1]
	}
	_, last := l.between(ran, began)
	return last
}

// after is the first reading behind a cell that has ended, before the next one began: zero, none is known to have. Where more
// were announced than began, the reading has to be before the first of these.
func (l *levels) after(ended, next time.Time) int64 {
	seen := 1
	if next.IsZero() {
		seen, next = 0, time.Now()
	}
	if due := l.dueBetween(ended, next); len(due) > seen {
		next = due[0]
	}
	first, _ := l.between(ended, next)
	return first
}

// between are the first and the last reading between two times, in bytes; 0: there is none.
func (l *levels) between(from, to time.Time) (first, last int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.all {
		if r.from.Before(from) || r.to.After(to) {
			continue
		}
		if first == 0 {
			first = r.bytes
		}
		last = r.bytes
	}
	return first, last
}

// heard passes on what a kernel says, and reads its memory each time.
func (l *levels) heard(said <-chan jupyter.Event) <-chan jupyter.Event {
	out := make(chan jupyter.Event, cap(said))
	go func() {
		defer close(out)
		for e := range said {
			l.read()
			out <- e
		}
	}()
	return out
}

// edges are when a cell began and ended by the kernel's times, and what is known of the kernel's memory then.
type edges struct {
	levels *levels // nil: nothing is known, and nothing more will be
	ended  time.Time
	before int64 // bytes resident when it began; 0: not known
	after  int64 // when it had ended, once that is settled; 0: not known, likewise
}

// edgesOf are those of a cell that has ended. Of one beside another nothing is known, nor of one that was met.
func (k *follower) edgesOf(w *watched) edges {
	ran := k.ran
	k.ran = time.Now()
	if w.ended.IsZero() || w.beside || len(k.running) > 0 {
		return edges{}
	}
	k.ran = w.ended
	if w.sent.IsZero() {
		return edges{}
	}
	return edges{levels: k.levels, ended: w.ended, before: k.levels.before(ran, w.sent)}
}

// settle finds what the kernel had resident when the cell had ended, and returns it; 0: not known. The next cell began at a
// time; zero: none has.
func (e *edges) settle(next time.Time) (after int64) {
	if e.levels == nil {
		return 0
	}
	e.after = e.levels.after(e.ended, next)
	e.levels = nil
	return e.after
}

// kept is what a cell has kept; nil: not known.
func (e *edges) kept() *int64 {
	if e.before == 0 || e.after == 0 {
		return nil
	}
	kept := e.after - e.before
	return &kept
}

// describe reports in the cell's recording what is known of its begin and its end.
func (e *edges) describe(rec *timeline.Recording) {
	if e.kept() != nil && len(rec.Processes) > 0 { // no process has been read where the recording began when the cell was over
		m := &rec.Processes[0].Memory
		m.AtBegin, m.AtEnd = e.before, e.after
	}
}

// settleNow does so at once, for who does not wait for the next cell: no other has begun if the stack shows none.
func (k *follower) settleNow(w *watched, rec *timeline.Recording) {
	now := time.Now()
	if at, ok := k.position(); ok && at.cell == "" && !at.own && now.Sub(w.edges.ended) < levelWait {
		w.edges.settle(now)
		w.edges.describe(rec)
	}
	w.edges.levels = nil
}

// levelWait is how long after a cell's end the stack shows whether another one has begun: later, a whole one may be over.
const levelWait = 100 * time.Millisecond
