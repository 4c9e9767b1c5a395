package activity

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// wait is what is known of the times that a thread waited at one place, of which its stack does
// not say for whom.
type wait struct {
	cause     Cause          // by the stack
	threads   float64        // other threads of the process that were active meanwhile, on average
	processes float64        // child processes that worked meanwhile, on average, or the CPUs that they used
	children  bool           // child processes lived meanwhile
	covered   func() float64 // share of the time for which they did
	native    func() float64 // CPUs that the process used beside its Python threads
	pipe      func() bool    // the line reads what another thread or process writes, and for longer than a disk takes
	anyPipe   func() bool    // it reads a pipe for longer than that, whatever the line says
}

// waitCase is a case in which something is known of a wait.
type waitCase struct {
	name string
	of   []Cause // for which it holds; nil: all that are asked about
	when func(*wait) bool
	is   Cause // what was waited for; empty: what the stack says
}

// byStack is the case of a wait for which nobody else can be named.
var byStack = waitCase{name: "nobody was busy"}

// waitCases in order of precedence: the first that holds wins.
var waitCases = []waitCase{
	{"executors work for the tasks", []Cause{EventLoop}, func(w *wait) bool { return w.threads >= BusyCores && w.threads >= w.processes }, Thread},
	{"processes work for the tasks", []Cause{EventLoop}, func(w *wait) bool { return w.processes >= BusyCores }, Child},
	{"every task waits", []Cause{EventLoop}, always, EventLoop}, // CPUs are not asked: between its waits the loop's own thread computes
	{"the pool has processes", []Cause{pool}, func(w *wait) bool { return w.children && w.processes >= w.threads/2 }, Child},
	{"processes work while it reads", []Cause{InOut}, func(w *wait) bool { return w.children && w.processes >= BusyCores }, Child},
	{"a thread writes the pipe", []Cause{InOut}, func(w *wait) bool { return w.threads >= BusyCores && w.pipe() }, Thread},
	{"a process writes the pipe", []Cause{InOut}, func(w *wait) bool { return w.covered() >= BusyCores && (w.pipe() || w.anyPipe()) }, Child},
	{"files, pipes or sockets", []Cause{InOut}, always, InOut},
	{"the pool's threads are busy", []Cause{pool}, func(w *wait) bool { return w.threads >= BusyCores }, Thread}, // a library's may compute for them
	{"a library's own threads compute", nil, func(w *wait) bool { return w.native() >= BusyCores }, Native},
	{"a database", []Cause{Database}, always, Database},
	{"threads are busy", nil, func(w *wait) bool { return w.threads >= BusyCores && w.threads >= w.processes }, Thread},
	{"the pool has threads", []Cause{pool}, func(w *wait) bool { return w.threads > 0 }, Thread},
	{"processes are busy", nil, func(w *wait) bool { return w.processes >= BusyCores }, Child},
}

func always(*wait) bool { return true }

// decide returns the first case that holds.
func (w *wait) decide() waitCase {
	for _, c := range waitCases {
		if (c.of == nil || slices.Contains(c.of, w.cause)) && c.when(w) {
			return c
		}
	}
	return byStack
}

// waitedFor reports for whom a wait was.
func (c *Bystanders) waitedFor(st Activity, where []timeline.Interval) Cause {
	threads, length := 0.0, max(float64(timeline.Total(where)), 1)
	candidates := c.threads
	if st.Cause != EventLoop { // a loop wakes up by itself, too
		candidates = c.mayWake(where)
	}
	for _, t := range candidates {
		active, onCPU := t.active(where)
		if st.Cause == EventLoop && !c.isExecutors(t) { // nothing shows that a task awaits it
			active = onCPU
		}
		threads += float64(active)
	}
	w := wait{
		cause: st.Cause, threads: threads / length, processes: max(c.ChildCores(where), c.workersAtWork(where)), children: c.HasChildren(where),
		covered: func() float64 { return c.Covered(where) },
		native:  func() float64 { return c.nativeCores(where) },
		pipe:    func() bool { return c.s.Says(st.Place, pipeRead) && isLong(where) },
		anyPipe: func() bool { return c.readsPipe(where) && isLong(where) },
	}
	if is := w.decide().is; is != "" {
		return is
	}
	return st.Cause
}

// readsPipe reports whether the thread was blocked on a pipe for nearly all of some intervals, other than that of the program's own input.
func (c *Bystanders) readsPipe(where []timeline.Interval) bool {
	if c.self == nil {
		return false
	}
	read := timeline.Nanos(0)
	for _, s := range c.self.Spans {
		if s.On == 0 || int(s.On) >= len(c.s.Rec.Objects) {
			continue
		}
		if on := &c.s.Rec.Objects[s.On]; on.Kind == timeline.ObjectPipe && on.Name != timeline.StandardInput {
			timeline.Overlap(where, s.Start, s.End, func(_ int, part timeline.Nanos) { read += part })
		}
	}
	return float64(read) >= nearlyAll*float64(timeline.Total(where))
}
