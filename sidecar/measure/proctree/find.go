package proctree

import (
	"runtime"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	walkInterval = int64(time.Second)            // between walks of the tree, where loadavg shows that there are new ones
	blindWalk    = int64(40 * time.Millisecond)  // where it does not
	maxShare     = 0.01                          // of a core, that walks may take
	maxRange     = 512                           // ids in between; beyond, the tree is walked
	patience     = 16                            // looks for which an id that was given away may not be there yet: on a busy machine a fork takes long
	trustAge     = int64(100 * time.Millisecond) // a process as old as this should have been found without a walk
)

// finder finds processes that are new.
type finder struct {
	begun   bool        // the root was looked at
	since   int64       // CLOCK_MONOTONIC of when that was
	news    int64       // and of when a process was last found, or had ended
	looked  int64       // CLOCK_MONOTONIC of the last look
	pause   int64       // the longest between two looks, ns
	last    int         // process id given away last; 0: not known
	missing map[int]int // ids that were not there yet, and for how many looks
	blind   bool        // loadavg does not show new processes
	scan    bool        // the kernel has no children files
	walked  int64       // CLOCK_MONOTONIC of the last walk
	cost    int64       // ns of CPU time that it took
}

// Look finds out what has changed since the last look and reports it to the sink. deep walks
// the tree in any case. The error is of the root, which can no longer be read.
func (t *Tree) Look(deep bool) error {
	_, err := t.look(deep, nil)
	if err == nil {
		t.poll(nil)
	}
	t.publish()
	return err
}

// look finds processes that are new.
func (t *Tree) look(deep bool, l Listener) (found []*member, err error) {
	f := &t.find
	now := t.opts.Clock()
	if !f.begun {
		st, err := t.fs.Stat(t.root)
		if err != nil {
			return nil, err
		}
		f.begun, f.since, f.missing, deep = true, now, make(map[int]int), true
		if root := t.admit(t.root, st, nil); root != nil {
			t.identify(root, st)
			found = append(found, root)
			t.news(l, root)
		}
	}
	defer t.noteSearched()
	if t.opts.Alone {
		return found, nil
	}
	last, moved := t.lastID()
	every := walkInterval
	if f.blind {
		every = blindWalk
	}
	every = max(every, int64(float64(f.cost)/maxShare))
	candidates := f.again()
	if !f.blind && moved {
		first := f.last + 1
		if f.last == 0 || last < f.last || last-f.last > maxRange {
			// The last ones are looked at besides: what is still being made is in no list of children.
			deep, first = true, max(last-maxRange, 1)
		}
		if f.last != 0 {
			for id := first; id <= last; id++ {
				candidates = append(candidates, id)
			}
		}
		f.last = last
	}
	slices.Sort(candidates)
	for _, id := range candidates {
		found = append(found, t.consider(id, l)...)
	}
	if deep || now-f.walked >= every {
		before := len(found)
		f.walked = now
		f.cost = cpuOf(func() { found = append(found, t.walk(l)...) })
		t.judge(found[before:], deep)
	}
	if len(found) > 0 {
		f.news = now
	}
	if f.looked != 0 {
		f.pause = max(f.pause, now-f.looked)
	}
	f.looked = now
	t.noteLeft()
	return found, nil
}

func (t *Tree) noteSearched() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.searched = true
}

// lastID is the process id given away last; moved reports whether there are new ones.
func (t *Tree) lastID() (last int, moved bool) {
	text, err := t.fs.ReadShort(t.fs.Root + "/loadavg")
	if err == nil {
		var ok bool
		if last, ok = parseLast(string(text)); ok {
			return last, last != t.find.last
		}
	}
	t.find.blind = true
	return 0, false
}

// again returns the ids that were not there yet and are due: less and less often.
func (f *finder) again() (due []int) {
	for id, looks := range f.missing {
		looks++
		f.missing[id] = looks
		switch {
		case looks > patience:
			delete(f.missing, id)
		case looks&(looks-1) == 0:
			due = append(due, id)
		}
	}
	return due
}

// cpuOf is the CPU time that something takes, in nanoseconds. The time that passes says
// nothing on a busy machine.
func cpuOf(what func()) int64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := timeline.ThreadCPU()
	what()
	return int64(timeline.ThreadCPU() - before)
}

// judge takes loadavg for made up where a walk has found what it should have shown by
// the last look.
func (t *Tree) judge(found []*member, expected bool) {
	if expected || t.find.blind {
		return
	}
	for _, m := range found {
		start := int64(m.Start)*int64(procfs.Tick) - t.zero
		if int64(t.sink.Since(t.find.looked))-start > trustAge && start > 0 {
			t.find.blind = true
		}
	}
}

// consider takes up the process of an id if it is one of ours. The id may be a
// thread's, or of a process that is still being made.
func (t *Tree) consider(id int, l Listener) []*member {
	st, err := t.fs.Stat(id)
	if err != nil {
		if _, known := t.find.missing[id]; !known {
			t.find.missing[id] = 0
		}
		return nil
	}
	delete(t.find.missing, id)
	t.mu.Lock()
	parent, known := t.byPID[st.Parent], t.byPID[id]
	t.mu.Unlock()
	if known != nil && known.Start == st.Start {
		return nil
	}
	if group, err := t.fs.Group(id); err != nil || group != id { // a thread
		return nil
	}
	if parent == nil && !t.adopted(id, st) {
		return nil
	}
	return t.take(id, st, parent, l)
}

// take makes a process a member, and reports it.
func (t *Tree) take(id int, st procfs.Stat, parent *member, l Listener) []*member {
	t.mu.Lock()
	before := t.byPID[id]
	t.mu.Unlock()
	if before != nil && before.Start != st.Start { // the pid was used again
		t.lose(before, l)
	}
	m := t.admit(id, st, parent)
	if m == nil {
		return nil
	}
	t.upToDate(parent, m, l)
	t.identify(m, st)
	if st.Zombie() {
		t.news(l, m)
		t.bury(m, st, l)
		return nil
	}
	t.news(l, m)
	return []*member{m}
}

// upToDate looks again at the parent of a new process that does not seem to be its fork:
// it may have executed another program since, as a shell that becomes the interpreter
// does, and nobody knows a fork by what its parent was before.
func (t *Tree) upToDate(parent, child *member, l Listener) {
	if parent == nil || parent.Image != (Image{}) && parent.Image == t.image(child.PID) {
		return
	}
	if st, err := t.fs.Stat(parent.PID); err == nil && st.Start == parent.Start && t.identify(parent, st) {
		t.news(l, parent)
	}
}

// walk looks at the children of all threads of all members.
func (t *Tree) walk(l Listener) (found []*member) {
	queue := t.Living()
	if t.find.scan {
		return t.scanAll(l)
	}
	for i := 0; i < len(queue); i++ {
		pid := queue[i].PID
		tids, err := t.fs.Tasks(pid)
		if err != nil {
			continue
		}
		t.mu.Lock()
		parent := t.byPID[pid]
		t.mu.Unlock()
		for _, tid := range tids {
			children, err := t.fs.Children(pid, tid)
			if err != nil && pid == t.root && tid == pid {
				t.find.scan = true // CONFIG_PROC_CHILDREN is off
				return append(found, t.scanAll(l)...)
			}
			for _, child := range children {
				t.mu.Lock()
				known := t.byPID[child]
				t.mu.Unlock()
				st, err := t.fs.Stat(child)
				if err != nil || known != nil && known.Start == st.Start {
					continue
				}
				for _, m := range t.take(child, st, parent, l) {
					found, queue = append(found, m), append(queue, m.Identity)
				}
			}
		}
	}
	return found
}

// scanAll asks all processes for their parent, where the kernel keeps no lists of
// children.
func (t *Tree) scanAll(l Listener) (found []*member) {
	all, err := t.fs.All()
	if err != nil {
		return nil
	}
	for again := true; again; {
		again = false
		for _, pid := range all {
			t.mu.Lock()
			known := t.byPID[pid]
			t.mu.Unlock()
			if known != nil {
				continue
			}
			st, err := t.fs.Stat(pid)
			if err != nil {
				continue
			}
			t.mu.Lock()
			parent := t.byPID[st.Parent]
			t.mu.Unlock()
			if parent == nil {
				continue
			}
			taken := t.take(pid, st, parent, l)
			found, again = append(found, taken...), again || len(taken) > 0
		}
	}
	return found
}
