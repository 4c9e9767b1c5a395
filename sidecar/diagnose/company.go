package diagnose

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// company is what ran beside one thread: the other threads of its process, and
// the child processes of its process. It answers who was waited for.
type company struct {
	s        *stacks
	process  int // the thread's, in Recording.Processes; 0: the target
	threads  []companion
	children []timeline.Process // that the process, or one of these, has started
}

// companion is one other thread.
type companion struct {
	*timeline.Thread
	host *host
}

func newCompany(s *stacks, self *timeline.Thread) *company {
	c := &company{s: s}
	if self != nil && self.Process < len(s.rec.Processes) {
		c.process = max(self.Process, 0)
	}
	for i, p := range s.rec.Processes {
		if p.PID != s.rec.Target.PID && (p.IsWorker() || p.Role == timeline.RoleChild) && c.descends(i) {
			c.children = append(c.children, p)
		}
	}
	if self == nil {
		return c
	}
	for i := range s.rec.Threads {
		t := &s.rec.Threads[i]
		if t != self && t.PID == self.PID && len(t.Spans) > 0 && !t.Internal {
			c.threads = append(c.threads, companion{t, s.plainHost(t)})
		}
	}
	return c
}

// descends tells whether a process descends from the thread's own: everything does from
// the target, other ranks do not from a rank.
func (c *company) descends(process int) bool {
	if c.process == 0 {
		return true
	}
	for range 64 { // a damaged file may have a circle
		if process < 0 || process >= len(c.s.rec.Processes) {
			return false
		}
		if process = c.s.rec.Processes[process].ParentIndex; process == c.process {
			return true
		}
	}
	return false
}

// plainHost is newHost for a thread of whose life nothing more is known.
func (s *stacks) plainHost(t *timeline.Thread) *host {
	h, known := s.hosts[t]
	if !known {
		h = newHost(s, t, lifetime{})
		s.hosts[t] = h
	}
	return h
}

const (
	// worthResolving is the share of the recording from which on a wait is looked
	// at more closely.
	worthResolving = 0.01
	// busyCores is how many CPUs' worth of time others must have spent during a
	// wait for it to be a wait for them.
	busyCores = 0.5
)

// resolve gives the waits of a thread whose stack does not tell for whom they are
// a cause by what the others did meanwhile.
func (c *company) resolve(h *host) {
	times := h.times()
	for i := range h.states {
		st := &h.states[i]
		if !isResolved(st.cause) {
			continue
		}
		if float64(times[i]) >= worthResolving*float64(c.s.rec.Duration) {
			st.cause = c.waitedFor(st.cause, h.intervalsOf(func(s int) bool { return s == i }))
		}
		if st.cause == pool {
			st.cause = Waiting
		}
	}
}

// isResolved tells causes for which resolve looks at the others.
func isResolved(c Cause) bool {
	return slices.Contains([]Cause{pool, Waiting, Lock, InOut, Database}, c)
}

// waitedFor tells for whom a wait was.
func (c *company) waitedFor(cause Cause, where []Interval) Cause {
	length := float64(total(where))
	threads, computing := 0.0, 0.0
	for _, t := range c.threads {
		active, onCPU := t.active(where)
		threads += float64(active)
		computing += float64(onCPU)
	}
	processes := max(c.childCores(where), c.workersAtWork(where))
	switch {
	case cause == pool && c.hasChildren(where) && processes*length >= threads/2:
		return Child
	case cause == InOut && processes >= busyCores && c.hasChildren(where):
		return Child
	case cause == InOut:
		return InOut
	case c.nativeCores(where, computing/length) >= busyCores:
		return Native
	case cause == Database:
		return Database
	case threads >= busyCores*length && threads >= processes*length, cause == pool && threads > 0:
		return Thread
	case processes >= busyCores:
		return Child
	}
	return cause
}

// nativeCores is how many CPUs the process used meanwhile beside its Python threads:
// a library's own threads, as a database within the process has them.
func (c *company) nativeCores(where []Interval, python float64) float64 {
	used, _ := c.cores(where)
	if math.IsNaN(used) {
		return 0
	}
	return used - c.childCores(where) - python
}

// active is the time for which a thread was doing something, be it waiting for
// what is outside of the program, and the part of it that it computed.
func (t companion) active(where []Interval) (sum, computing timeline.Nanos) {
	t.host.during(where, func(st hostState, part timeline.Nanos) {
		if isActive(st.cause) {
			sum += part
		}
		if st.cause.computes() {
			computing += part
		}
	})
	return sum, computing
}

func isActive(c Cause) bool {
	return c != Lock && c != Waiting && c != EventLoop && c != Thread && c != pool && c != Unknown
}

// during visits what a thread did in some intervals.
func (h *host) during(where []Interval, visit func(hostState, timeline.Nanos)) {
	for _, s := range h.stretches {
		overlap(where, s.start, s.end, func(_ int, part timeline.Nanos) { visit(h.states[s.state], part) })
	}
}

// intervalsOf are the stretches of the states that fit, neighbours joined.
func (h *host) intervalsOf(fits func(state int) bool) []Interval {
	var list []Interval
	for _, s := range h.stretches {
		if !fits(s.state) {
			continue
		}
		if n := len(list); n > 0 && list[n-1].End == s.start {
			list[n-1].End = s.end
			continue
		}
		list = append(list, Interval{s.start, s.end})
	}
	return list
}

func total(where []Interval) timeline.Nanos {
	sum := timeline.Nanos(0)
	for _, i := range where {
		sum += i.Nanos()
	}
	return sum
}

// childCores is how many CPUs the child processes used meanwhile; 0 where that is
// not known.
func (c *company) childCores(where []Interval) float64 {
	if cores := meanDuring(c.s.track("cpu.children"), where); !math.IsNaN(cores) && c.process == 0 { // it is the target's
		return cores
	}
	return 0
}

// cores is how many CPUs the program and its children used meanwhile, NaN where
// not known, and how many there are for it.
func (c *company) cores(where []Interval) (used, limit float64) {
	t := c.s.track("cpu")
	if t == nil || c.process != 0 { // it is the target's
		return math.NaN(), 0
	}
	return meanDuring(t, where), t.Limit
}

// meanDuring is a rate's mean over the part of some intervals in which it is known.
func meanDuring(t *timeline.Track, where []Interval) float64 {
	if t == nil {
		return math.NaN()
	}
	sum, length := 0.0, 0.0
	for _, p := range t.Points {
		if math.IsNaN(p.Value) {
			continue
		}
		overlap(where, p.From, p.At, func(_ int, part timeline.Nanos) {
			sum += p.Value * float64(part)
			length += float64(part)
		})
	}
	return sum / length
}

// hasChildren tells whether child processes lived in a good part of the intervals.
func (c *company) hasChildren(where []Interval) bool {
	return slices.ContainsFunc(c.children, func(p timeline.Process) bool { return c.lived(p, where) > 0 })
}

func (c *company) lived(p timeline.Process, where []Interval) timeline.Nanos {
	end, sum := p.End, timeline.Nanos(0)
	if end == 0 {
		end = c.s.rec.Duration
	}
	overlap(where, p.Start, end, func(_ int, part timeline.Nanos) { sum += part })
	return sum
}

// minActive is the share of a wait that another thread must have been active for
// to be told of.
const minActive = 0.05

// threadsDuring tells what the other threads did in some intervals, those that did
// the same at the same place together, the busiest first.
func (c *company) threadsDuring(where []Interval) []Actor {
	length := total(where)
	groups := make(map[hostState][]companion)
	used := make(map[hostState]timeline.Nanos)
	for _, t := range c.threads {
		did, cpu, long := t.mostly(where)
		if float64(long) < minActive*float64(length) {
			continue
		}
		groups[did] = append(groups[did], t)
		used[did] += cpu
	}
	var list []Actor
	for did, threads := range groups {
		a := Actor{Count: len(threads), Cause: did.cause, Place: did.at, CPU: used[did]}
		var names []string
		for i, t := range threads {
			names = append(names, t.Name)
			start, end := t.Spans[0].Start, t.Spans[len(t.Spans)-1].End
			if i == 0 || start < a.Start {
				a.Start = start
			}
			a.End = max(a.End, end)
		}
		a.Name = commonName(names)
		list = append(list, a)
	}
	slices.SortFunc(list, byWork)
	return list
}

// byWork orders actors by what they used, then so that the order is always the same.
func byWork(a, b Actor) int {
	return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Count, a.Count), strings.Compare(string(a.Cause), string(b.Cause)),
		strings.Compare(a.Name, b.Name), comparePlaces(a.Place, b.Place))
}

// mostly is what a thread was active with at the place where it was active most,
// the CPU time it used by and large, and for how long it was active at all.
func (t companion) mostly(where []Interval) (did hostState, cpu, long timeline.Nanos) {
	places := make(map[Place]timeline.Nanos)
	states := make(map[hostState]timeline.Nanos)
	t.host.during(where, func(st hostState, part timeline.Nanos) {
		if !isActive(st.cause) {
			return
		}
		long += part
		places[st.at] += part
		if st.cause.computes() {
			cpu += part
		}
		if st.cause.Kind() != Contention { // else the work it was held up in
			states[st] += part
		}
	})
	did.at = most(places, comparePlaces)
	best := timeline.Nanos(0)
	for st, n := range states {
		if st.at == did.at && (n > best || n == best && st.cause < did.cause) {
			did.cause, best = st.cause, n
		}
	}
	if best == 0 {
		did.cause = GIL
	}
	return did, cpu, long
}

// most is the key with the largest sum, the first by order of several.
func most[K comparable](sums map[K]timeline.Nanos, order func(a, b K) int) (top K) {
	best := timeline.Nanos(-1)
	for k, n := range sums {
		if n > best || n == best && order(k, top) < 0 {
			top, best = k, n
		}
	}
	return top
}

// minActor is the share of the CPU time of the busiest from which on others are named
// beside it: what ranks start at their beginning is nothing that anybody waits for.
const minActor = 0.02

// processesDuring tells which child processes lived in some intervals, those that
// ran the same command together, the busiest first.
func (c *company) processesDuring(where []Interval) []Actor {
	type group struct {
		command string
		role    timeline.Role // of workers
	}
	groups := make(map[group]*Actor)
	lived := make(map[group]timeline.Nanos)
	for _, p := range c.children {
		if c.lived(p, where) == 0 || c.onlyStarts(p) {
			continue
		}
		kind := group{command: p.Command}
		if p.IsWorker() {
			kind = group{role: p.Role}
		}
		a := groups[kind]
		if a == nil {
			a = &Actor{Process: true, Name: kind.command, Cause: Unknown, Start: p.Start, Exit: p.Exit}
			groups[kind] = a
		}
		a.Count++
		lived[kind] += c.lived(p, where)
		a.Start = min(a.Start, p.Start)
		a.End = max(a.End, p.End)
		a.CPU += max(p.CPU, 0)
	}
	var list []Actor
	for kind, a := range groups {
		if float64(lived[kind]) < minActive*float64(total(where)) {
			continue // it did the others a small service
		}
		if kind.role != "" {
			a.Work, a.Place = c.workOf(kind.role, where)
		}
		list = append(list, *a)
	}
	slices.SortFunc(list, byWork)
	list = slices.DeleteFunc(list, func(a Actor) bool { return float64(a.CPU) < minActor*float64(list[0].CPU) })
	if c.covered(where) < 0.5 {
		return nil // most of them were too short to be seen: nobody knows how many there were
	}
	return list
}

// covered is the share of some intervals in which a child process was seen.
func (c *company) covered(where []Interval) float64 {
	var lives []Interval
	for _, p := range c.children {
		if end := cmp.Or(p.End, c.s.rec.Duration); end > p.Start && !c.onlyStarts(p) {
			lives = append(lives, Interval{p.Start, end})
		}
	}
	sum := timeline.Nanos(0)
	for _, life := range merged(lives) {
		overlap(where, life.Start, life.End, func(_ int, part timeline.Nanos) { sum += part })
	}
	return float64(sum) / math.Max(float64(total(where)), 1)
}

// onlyStarts tells processes that nobody waits for: shells whose work others do, and
// multiprocessing's helper, which only cleans up.
func (c *company) onlyStarts(p timeline.Process) bool {
	if p.Command == "resource_tracker" {
		return true
	}
	return isShell(p) && slices.ContainsFunc(c.children, func(other timeline.Process) bool { return !isShell(other) })
}

func isShell(p timeline.Process) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh"}, p.Command)
}

// holdersDuring tells which threads ran Python code in some intervals, and so held
// the GIL, those that did most of it at the same place together.
func (c *company) holdersDuring(where []Interval) []Actor {
	groups := make(map[Place]*Actor)
	names := make(map[Place][]string)
	for _, t := range c.threads {
		places, sum := make(map[Place]timeline.Nanos), timeline.Nanos(0)
		known := make(map[timeline.NodeID]Place)
		for _, span := range t.Spans {
			if span.State != timeline.StatePython {
				continue
			}
			at, ok := known[span.Node]
			if !ok {
				at = c.s.charged(c.s.stack(span.Node))
				known[span.Node] = at
			}
			overlap(where, span.Start, span.End, func(_ int, part timeline.Nanos) {
				places[at] += part
				sum += part
			})
		}
		if float64(sum) < minActive*float64(total(where)) {
			continue
		}
		at := most(places, comparePlaces)
		if groups[at] == nil {
			groups[at] = &Actor{Cause: Python, Place: at}
		}
		groups[at].Count++
		groups[at].CPU += sum
		names[at] = append(names[at], t.Name)
	}
	var list []Actor
	for at, a := range groups {
		a.Name = commonName(names[at])
		list = append(list, *a)
	}
	slices.SortFunc(list, byWork)
	return list
}

// commonName is what the names of several threads have in common: the function of
// "Thread-1 (work)", the pool of "ThreadPoolExecutor-0_3"; empty when nothing.
func commonName(names []string) string {
	common := ""
	for i, name := range names {
		if _, target, ok := strings.Cut(name, " ("); ok && strings.HasPrefix(name, "Thread-") {
			name = strings.TrimSuffix(target, ")")
		} else if len(names) > 1 {
			name = strings.TrimRight(name, "0123456789")
			name = strings.TrimRight(name, "-_ #")
		}
		if i > 0 && name != common {
			return ""
		}
		common = name
	}
	if strings.HasPrefix(common, "Thread-") || common == "Thread" { // says nothing
		return ""
	}
	return common
}
