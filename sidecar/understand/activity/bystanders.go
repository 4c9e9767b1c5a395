package activity

import (
	"cmp"
	"math"
	"regexp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Bystanders are what ran beside one thread: the other threads of its process, and
// the child processes of its process. It answers who was waited for.
type Bystanders struct {
	s        *Stacks
	self     *timeline.Thread // nil: none was seen
	process  int              // its, in Recording.Processes; 0: the target
	threads  []bystander
	children []child // that the process, or one of these, has started; without a command where it became a program that was not seen
}

// Actor is a thread or a process, or several that did the same.
type Actor struct {
	Process  bool
	Count    int
	AtLeast  bool           // processes so short that there were more than were seen
	Name     string         // of the thread or command; of several what their names have in common; may be empty
	Cause    Cause          // what they mostly did; Unknown for processes
	Place    Place          // where, for threads and workers
	Work     *PoolWork      // what worker processes did meanwhile; nil where nothing is known of that
	CPU      timeline.Nanos // what they used; -1 unknown
	Start    timeline.Nanos // of the first
	End      timeline.Nanos // of the last
	Exit     *int           // of one process that has ended, where known
	Active   timeline.Nanos // of threads: for how long they did something, not only waited for others; 0: not known
	Awaited  timeline.Nanos // that the thread waited for it, or for a lock that it had; 0: not known
	Queued   float64        // share of its time for which it waited for a lock that others had, of threads; 0: not known
	QueuedAt Place          // the line of the user's own with most of that; zero: none has
}

// bystander is one other thread.
type bystander struct {
	*timeline.Thread
	history *History
}

// child is a process with its index in Recording.Processes.
type child struct {
	timeline.Process
	index int
}

// NewBystanders collects what ran beside a thread; nil: beside the target.
func NewBystanders(s *Stacks, self *timeline.Thread) *Bystanders {
	c := &Bystanders{s: s, self: self}
	if self != nil && self.Process < len(s.Rec.Processes) {
		c.process = max(self.Process, 0)
	}
	for i, p := range s.Rec.Processes {
		if p.PID != s.Rec.Target.PID && (p.IsWorker() || p.Role == timeline.RoleChild) && c.descends(i) {
			c.children = append(c.children, child{p, i})
		}
	}
	if self == nil {
		return c
	}
	for i := range s.Rec.Threads {
		t := &s.Rec.Threads[i]
		if t != self && t.PID == self.PID && len(t.Spans) > 0 && !t.Internal {
			c.threads = append(c.threads, bystander{t, s.PlainHistory(t)})
		}
	}
	return c
}

// descends reports whether a process descends from the thread's own: everything does from
// the target, other ranks do not from a rank.
func (c *Bystanders) descends(process int) bool {
	if c.process == 0 {
		return true
	}
	for range 64 { // a damaged file may have a circle
		if process < 0 || process >= len(c.s.Rec.Processes) {
			return false
		}
		if process = c.s.Rec.Processes[process].ParentIndex; process == c.process {
			return true
		}
	}
	return false
}

const (
	// worthResolving is the share of the recording from which on a wait is looked
	// at more closely.
	worthResolving = 0.01
	// BusyCores is how many CPUs' worth of time others must have spent during a
	// wait for it to be a wait for them.
	BusyCores = 0.5
)

// resolve gives the waits of a thread whose stack does not show for whom they are
// a cause by what the others did meanwhile.
func (c *Bystanders) resolve(h *History) {
	times := h.Times()
	for i := range h.States {
		st := &h.States[i]
		if !NeedsResolving(st.Cause) {
			continue
		}
		if float64(times[i]) >= worthResolving*float64(c.s.Rec.Duration) {
			st.Cause = c.waitedFor(*st, h.IntervalsOf(func(s int) bool { return s == i }))
		}
		if st.Cause == pool {
			st.Cause = Waiting
		}
	}
}

// NeedsResolving reports whether resolve looks at the others.
func NeedsResolving(c Cause) bool {
	return slices.Contains([]Cause{pool, Waiting, Lock, InOut, Database, EventLoop}, c)
}

// pipeRead is a line that reads what another thread or process writes: files are opened
// as objects.
var pipeRead = regexp.MustCompile(`\bos\.read\(`)

// isLong reports whether waits last longer, on average, than a disk takes.
func isLong(where []timeline.Interval) bool {
	const disk = timeline.Nanos(20e6)
	return timeline.Total(where) >= disk*timeline.Nanos(len(where))
}

// nativeCores is how many CPUs the process used meanwhile beside its Python threads: a
// library's own threads, as a database within the process has them. CPU time is known by
// windows, of which the intervals may be a part: of each window the Python threads' time
// in all of it is taken off first.
func (c *Bystanders) nativeCores(where []timeline.Interval) float64 {
	used := c.s.Track("cpu")
	if used == nil || c.process != 0 { // it is the target's
		return 0
	}
	var windows []timeline.Interval
	var rest, share []float64
	for _, p := range used.Points {
		part := timeline.Nanos(0)
		timeline.Overlap(where, p.From, p.At, func(_ int, n timeline.Nanos) { part += n })
		if part == 0 || math.IsNaN(p.Value) {
			continue
		}
		length := float64(p.At - p.From)
		windows, share = append(windows, timeline.Between(p.From, p.At)), append(share, float64(part)/length)
		rest = append(rest, min(p.Value, cmp.Or(used.Limit, math.Inf(1)))*length)
	}
	if children := c.s.Track("cpu.children"); children != nil {
		for _, p := range children.Points {
			if !math.IsNaN(p.Value) {
				timeline.Overlap(windows, p.From, p.At, func(i int, part timeline.Nanos) { rest[i] -= p.Value * float64(part) })
			}
		}
	}
	for _, h := range c.histories() {
		for _, s := range h.Stretches {
			if h.States[s.State].Cause.Computes() {
				timeline.Overlap(windows, s.Start, s.End, func(i int, part timeline.Nanos) { rest[i] -= float64(part) })
			}
		}
	}
	sum := 0.0
	for i := range windows {
		sum += max(rest[i], 0) * share[i]
	}
	return sum / float64(timeline.Total(where))
}

// histories are those of the process's threads, with the one whose bystanders they are.
func (c *Bystanders) histories() []*History {
	var list []*History
	if c.self != nil {
		list = append(list, c.s.PlainHistory(c.self))
	}
	for _, t := range c.threads {
		list = append(list, t.history)
	}
	return list
}

// ChildCores is how many CPUs the child processes used meanwhile; 0 where that is
// not known, and where those that were seen did not live then.
func (c *Bystanders) ChildCores(where []timeline.Interval) float64 {
	if len(c.children) > 0 && !c.HasChildren(where) {
		return 0
	}
	if cores := meanDuring(c.s.Track("cpu.children"), where); !math.IsNaN(cores) && c.process == 0 { // it is the target's
		return cores
	}
	return 0
}

// Cores is how many CPUs the program and its children used meanwhile, NaN where
// not known, and how many there are for it.
func (c *Bystanders) Cores(where []timeline.Interval) (used, limit float64) {
	t := c.s.Track("cpu")
	if t == nil || c.process != 0 { // it is the target's
		return math.NaN(), 0
	}
	return meanDuring(t, where), t.Limit
}

// allCPUs is the share of a machine's CPUs from which on none is free.
const allCPUs = 0.9

// AllBusy reports whether no CPU of the machine was free, by and large.
func (c *Bystanders) AllBusy(where []timeline.Interval) bool {
	machine := c.s.Track("cpu.system")
	return machine != nil && meanDuring(machine, where) >= allCPUs*machine.Limit
}

// meanDuring is a rate's mean over the part of some intervals in which it is known, and no
// more than its limit: the kernel counts in ticks.
func meanDuring(t *timeline.Track, where []timeline.Interval) float64 {
	if t == nil {
		return math.NaN()
	}
	sum, length := 0.0, 0.0
	for _, p := range t.Points {
		if math.IsNaN(p.Value) {
			continue
		}
		timeline.Overlap(where, p.From, p.At, func(_ int, part timeline.Nanos) {
			sum += p.Value * float64(part)
			length += float64(part)
		})
	}
	mean := sum / length
	if t.Limit > 0 {
		mean = min(mean, t.Limit)
	}
	return mean
}
