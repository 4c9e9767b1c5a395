package interpret

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Account is what the members of a pool did during some time, in the threads that do their work (AtWork).
type Account struct {
	Alive     timeline.Nanos // that these threads lived, and were read, all together; the following four add up to it
	Starting  timeline.Nanos // not yet in the pool's loop, or importing what a task needs to be unpickled
	Starved   timeline.Nanos // in the loop, without work: waiting for a task
	InLibrary timeline.Nanos // handing tasks and results over, or waiting in the library's own code
	Working   timeline.Nanos // in what they were started for
	Waiting   timeline.Nanos // of Working, neither on a CPU nor wanting one
	Reloading timeline.Nanos // of Starting, in the user's own lines: the main module that is imported again

	Members []Share // by member that lived meanwhile, as in timeline.Pool.Members: how long it worked
	Lines   []Line  // where they worked, the longest first
}

// Share is one member's part.
type Share struct {
	Process        int
	Alive, Working timeline.Nanos
	Number         int // of workers that were started anew: those of one number are the same one; else -1
}

// Line is a line of the user's own code, or of the library they called where none of
// theirs is on the stack.
type Line struct {
	Function, File string
	Line           int
	Own            bool
	Time           timeline.Nanos
	Waiting        timeline.Nanos // of that, neither on a CPU nor wanting one
}

// maxLines bounds Account.Lines.
const maxLines = 20

// During is what a pool did in some intervals, in order and without overlap.
func During(rec *timeline.Recording, p timeline.Pool, where []timeline.Interval) Account {
	l := newLedger(rec)
	var a Account
	for _, i := range p.Members {
		before := a
		l.add(&a, i, p.Role, where)
		if a.Alive > before.Alive {
			number := -1
			if n := rec.Processes[i].Number; n != nil && p.AtOnce > 0 {
				number = *n
			}
			a.Members = append(a.Members, Share{Process: i, Number: number, Alive: a.Alive - before.Alive, Working: a.Working - before.Working})
		}
	}
	a.Lines = l.ranked()
	return a
}

// Accounts returns what each process did in all of the recording, without members and lines.
func Accounts(rec *timeline.Recording) []Account {
	l := newLedger(rec)
	out := make([]Account, len(rec.Processes))
	for i, p := range rec.Processes {
		l.add(&out[i], i, p.Role, []timeline.Interval{timeline.Between(0, rec.Duration)})
	}
	return out
}

// ledger sums up what processes did.
type ledger struct {
	*reader
	atWork []bool
	lines  map[Line]*Line
}

func newLedger(rec *timeline.Recording) *ledger {
	r := newReader(rec)
	return &ledger{r, r.atWork(), make(map[Line]*Line)}
}

// add adds to an account what a process did in some intervals.
func (l *ledger) add(a *Account, process int, role timeline.Role, where []timeline.Interval) {
	for i, t := range l.rec.Threads {
		if t.Process != process || !l.atWork[i] && !t.Main {
			continue
		}
		for _, s := range t.Spans {
			length := timeline.Nanos(0)
			timeline.Overlap(where, s.Start, s.End, func(_ int, part timeline.Nanos) { length += part })
			if length == 0 || s.Node == timeline.RootNode {
				continue
			}
			stack := l.stack(s.Node)
			if !l.atWork[i] && !l.isStart(t, stack) { // a main thread whose part is over when others have begun theirs
				continue
			}
			a.Alive += length
			switch l.doing(t, s.State, stack, role) {
			case starting:
				a.Starting += length
				if stack.line.Own {
					a.Reloading += length
				}
			case starved:
				a.Starved += length
			case inLibrary:
				a.InLibrary += length
			case working:
				a.Working += length
				if !busy(s.State) {
					a.Waiting += length
				}
				l.work(stack.line, length, s.State)
			}
		}
	}
}

// work adds to the time of a line.
func (l *ledger) work(at Line, length timeline.Nanos, state timeline.State) {
	one := l.lines[at]
	if one == nil {
		line := at
		one = &line
		l.lines[at] = one
	}
	one.Time += length
	if !busy(state) {
		one.Waiting += length
	}
}

// ranked are the lines, the longest first.
func (l *ledger) ranked() []Line {
	var out []Line
	for _, one := range l.lines {
		out = append(out, *one)
	}
	slices.SortFunc(out, func(x, y Line) int {
		return cmp.Or(cmp.Compare(y.Time, x.Time), cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line))
	})
	return out[:min(len(out), maxLines)]
}

// doing is what a worker does at a time.
type doing uint8

const (
	working doing = iota
	starting
	starved
	inLibrary
)

// doing returns what a thread that works does on a stack.
func (r *reader) doing(t timeline.Thread, state timeline.State, s stack, role timeline.Role) doing {
	hasLoop := t.Main && (role == timeline.RolePoolWorker || role == timeline.RoleLoaderWorker)
	switch {
	case s.loop < 0 && hasLoop, s.importing, r.isStart(t, s):
		return starting
	case s.starved && !busy(state):
		return starved
	case s.onlyLibrary, s.loop < 0 && !s.line.Own && !busy(state):
		return inLibrary
	}
	return working
}

// Imbalance is how much longer the member that worked most worked than they did on
// average, as a share of its time: what an even split could save at most. 0 where that
// cannot be said. Workers that were started anew are compared by their numbers. Those that lived for less than half of its time, as those of a pass that was interrupted, had no chance to.
func (a *Account) Imbalance() (share float64, most Share) {
	members := a.byNumber()
	for _, m := range members {
		if m.Working > most.Working {
			most = m
		}
	}
	sum, beside := timeline.Nanos(0), 0
	for _, m := range members {
		if 2*m.Alive >= most.Alive {
			sum, beside = sum+m.Working, beside+1
		}
	}
	if beside < 2 || most.Working == 0 {
		return 0, most
	}
	return 1 - float64(sum)/float64(beside)/float64(most.Working), most
}

// byNumber are the members, those that have one number as one.
func (a *Account) byNumber() (list []Share) {
	at := make(map[int]int)
	for _, m := range a.Members {
		if i, known := at[m.Number]; known && m.Number >= 0 {
			list[i].Alive, list[i].Working = list[i].Alive+m.Alive, list[i].Working+m.Working
			continue
		}
		at[m.Number] = len(list)
		list = append(list, m)
	}
	return list
}

func busy(s timeline.State) bool {
	return s == timeline.StatePython || s == timeline.StateNative || s == timeline.StateGIL || s == timeline.StateOff
}

// reader reads stacks, each once.
type reader struct {
	rec   *timeline.Recording
	files *origin.Files
	means []origin.Meanings // by FrameID
	known map[timeline.NodeID]stack
	begun map[int]bool // by process; nil: not looked up yet
}

// stack is what one stack shows of a worker.
type stack struct {
	loop        int  // depth of the pool's loop, or of an executor's thread; -1: it is not on it
	starved     bool // it is where the loop waits for a task
	started     bool // it begins with the worker's first function
	boots       bool // it begins with the line on the command line of a process that multiprocessing spawns
	onlyLibrary bool // above the loop there is only the library that runs it
	// importing: above the loop modules are imported, by nothing of the user's own.
	importing bool
	line      Line
}

func newReader(rec *timeline.Recording) *reader {
	r := &reader{rec: rec, files: origin.New(rec), means: make([]origin.Meanings, len(rec.Frames)), known: make(map[timeline.NodeID]stack)}
	for i, f := range rec.Frames {
		r.means[i] = r.files.Means(f)
	}
	return r
}

func (r *reader) stack(node timeline.NodeID) stack {
	if known, ok := r.known[node]; ok {
		return known
	}
	path := r.path(node)
	s := stack{loop: -1}
	for i, f := range path {
		if _, ok := loopOf(r.means[f]); ok {
			s.loop = i
			break
		}
	}
	s.started = len(path) > 0 && r.startsProcess(path[len(path)-1])
	if s.loop < 0 && !s.started { // a thread
		s.loop = slices.IndexFunc(path, func(f timeline.FrameID) bool { return r.means[f]&origin.RunsForOthers != 0 })
	}
	above := path
	if s.loop >= 0 {
		above = path[:s.loop]
		s.onlyLibrary = !slices.ContainsFunc(above, func(f timeline.FrameID) bool { return r.means[f]&origin.Transports == 0 })
		s.starved = s.onlyLibrary && r.takesTask(above, path[s.loop])
	}
	s.line = r.line(above)
	s.boots = len(path) > 0 && !s.line.Own && r.files.Of(r.rec.Frames[path[len(path)-1]].File).Owner == origin.Generated
	s.importing = s.loop >= 0 && !s.line.Own && slices.ContainsFunc(above, func(f timeline.FrameID) bool { return r.means[f]&origin.Imports != 0 })
	r.known[node] = s
	return s
}

// path is the frames of a stack, the leaf first.
func (r *reader) path(node timeline.NodeID) (path []timeline.FrameID) {
	for n := node; n != timeline.RootNode && int(n) < len(r.rec.Nodes); n = r.rec.Nodes[n].Parent {
		if at := r.rec.Nodes[n].Frame; int(at) < len(r.rec.Frames) {
			path = append(path, at)
		}
		if r.rec.Nodes[n].Parent >= n { // a damaged file
			break
		}
	}
	return path
}

// takesTask reports whether a worker waits for its next task: in a function of the queue, or, as an executor's
// thread does, in its loop itself, whose queue is written in C.
func (r *reader) takesTask(above []timeline.FrameID, loop timeline.FrameID) bool {
	if len(above) == 0 {
		return r.means[loop]&origin.RunsForOthers != 0
	}
	return slices.ContainsFunc(above, func(f timeline.FrameID) bool { return r.means[f]&origin.TakesTask != 0 })
}

// line is the innermost of the user's own, else the outermost there is.
func (r *reader) line(path []timeline.FrameID) Line {
	for _, id := range path {
		if f := r.rec.Frames[id]; r.files.Own(f.File) {
			return Line{Function: f.Function, File: f.File, Line: f.Line, Own: true}
		}
	}
	for i := len(path) - 1; i >= 0; i-- {
		if f := r.rec.Frames[path[i]]; r.means[path[i]]&origin.Transports == 0 {
			return Line{Function: f.Function, File: f.File, Line: f.Line}
		}
	}
	return Line{}
}
