package activity

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// active is the time for which a thread was doing something, be it waiting for
// what is outside of the program, and the part of it that it computed.
func (t bystander) active(where []timeline.Interval) (sum, computing timeline.Nanos) {
	t.history.During(where, func(st Activity, part timeline.Nanos) {
		if isActive(st.Cause) {
			sum += part
		}
		if st.Cause.Computes() {
			computing += part
		}
	})
	return sum, computing
}

// isExecutors reports whether a thread is of concurrent.futures, as asyncio.to_thread and
// run_in_executor use them.
func (c *Bystanders) isExecutors(t bystander) bool {
	asked := make(map[timeline.NodeID]bool)
	for _, span := range t.Spans {
		if asked[span.Node] {
			continue
		}
		asked[span.Node] = true
		for _, id := range c.s.Stack(span.Node) {
			if c.s.facts[id].means&origin.RunsForOthers != 0 {
				return true
			}
		}
	}
	return false
}

func isActive(c Cause) bool {
	return c != Lock && c != Waiting && c != EventLoop && c != Thread && c != pool && c != Unknown
}

// During visits what a thread did in some intervals.
func (h *History) During(where []timeline.Interval, visit func(Activity, timeline.Nanos)) {
	for _, s := range h.Stretches {
		timeline.Overlap(where, s.Start, s.End, func(_ int, part timeline.Nanos) { visit(h.States[s.State], part) })
	}
}

// IntervalsOf are the stretches of the states that fit, neighbours joined.
func (h *History) IntervalsOf(fits func(state int) bool) []timeline.Interval {
	var list []timeline.Interval
	for _, s := range h.Stretches {
		if !fits(s.State) {
			continue
		}
		if n := len(list); n > 0 && list[n-1].End == s.Start {
			list[n-1].End = s.End
			continue
		}
		list = append(list, timeline.Between(s.Start, s.End))
	}
	return list
}

// minActive is the share of a wait for which another thread, or those that did the same together, must have been active
// to be named.
const minActive = 0.05

// ThreadsDuring is what the other threads did in some intervals, in which the thread waited, those that did
// the same at the same place together, the busiest first; of those that used hardly any CPU time, the one that was active longest.
func (c *Bystanders) ThreadsDuring(where []timeline.Interval) []Actor {
	type part struct {
		bystander
		cpu, long timeline.Nanos
	}
	least := timeline.Nanos(minActive * float64(timeline.Total(where)))
	groups, longest := make(map[Activity][]part), make(map[Activity]timeline.Nanos)
	for _, t := range c.mayWake(where) {
		if did, cpu, long := t.mostly(where); long > 0 {
			groups[did] = append(groups[did], part{t, cpu, long})
			longest[did] = max(longest[did], long)
		}
	}
	var list []Actor
	for did, parts := range groups {
		a := Actor{Cause: did.Cause, Place: did.Place}
		var threads []bystander
		var names []string
		for _, t := range parts {
			if t.long < min(least, longest[did]/2) { // one of many short threads has as little as each of them
				continue
			}
			threads, names = append(threads, t.bystander), append(names, t.Name)
			a.CPU, a.Active = a.CPU+t.cpu, a.Active+t.long
			start, end := t.Spans[0].Start, t.Spans[len(t.Spans)-1].End
			if len(threads) == 1 || start < a.Start {
				a.Start = start
			}
			a.End = max(a.End, end)
		}
		if a.Active < least {
			continue
		}
		a.Count, a.Name = atOnce(threads), commonName(names)
		a.Queued, a.QueuedAt = c.queued(threads, where)
		list = append(list, a)
	}
	worth := func(cpu timeline.Nanos) timeline.Nanos { // what sleepers use around their sleeps is no order
		if cpu < least {
			return 0
		}
		return cpu
	}
	slices.SortFunc(list, func(a, b Actor) int {
		return cmp.Or(cmp.Compare(worth(b.CPU), worth(a.CPU)), cmp.Compare(b.Active, a.Active), byWork(a, b))
	})
	return list
}

// queued is the share of their time in some intervals for which threads waited for locks that others had, and the line of the
// user's own with most of it.
func (c *Bystanders) queued(threads []bystander, where []timeline.Interval) (share float64, at Place) {
	lived := timeline.Nanos(0)
	places := make(map[Place]timeline.Nanos)
	for _, t := range threads {
		for _, s := range t.Spans {
			timeline.Overlap(where, s.Start, s.End, func(_ int, part timeline.Nanos) {
				lived += part
				if c.wantsLock(s) {
					places[c.s.Charged(c.s.Stack(s.Node))] += part
				}
			})
		}
	}
	waited := timeline.Nanos(0)
	for _, time := range places {
		waited += time
	}
	if at = Most(places, Place.Compare); !c.s.Own(at.File) || float64(places[at]) < MostShare*float64(waited) {
		at = Place{}
	}
	return float64(waited) / float64(max(lived, 1)), at
}

// takesLock is a line that takes a lock: what is acquired so, or entered by with.
var takesLock = regexp.MustCompile(`\.acquire\(|^with\b`)

// wantsLock reports whether a thread waits for a lock in a span: one that a thread is known to have, or that a line of the
// user's own takes, who has it being unknown, as of a threading.Lock.
func (c *Bystanders) wantsLock(s timeline.Span) bool {
	if s.On > 0 && int(s.On) < len(c.s.Rec.Objects) {
		return c.s.Rec.Objects[s.On].Kind == timeline.ObjectLock
	}
	if s.State != timeline.StateWaiting || s.Wait != timeline.WaitLock {
		return false
	}
	stack := c.s.Stack(s.Node)
	if len(stack) == 0 || !c.s.facts[stack[0]].own {
		return false
	}
	f := c.s.Rec.Frames[stack[0]]
	return c.s.Says(Place{f.File, f.Line}, takesLock)
}

// atOnce is how many of some threads lived at a time, at most: the threads of pools that followed each other count once.
func atOnce(threads []bystander) (most int) {
	type change struct {
		at timeline.Nanos
		by int
	}
	var changes []change
	for _, t := range threads {
		changes = append(changes, change{t.Spans[0].Start, 1}, change{t.Spans[len(t.Spans)-1].End, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) }) // ends first
	alive := 0
	for _, c := range changes {
		alive += c.by
		most = max(most, alive)
	}
	return max(most, min(len(threads), 1))
}

// byWork orders actors by what they used, then so that the order is always the same.
func byWork(a, b Actor) int {
	return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Count, a.Count), strings.Compare(string(a.Cause), string(b.Cause)),
		strings.Compare(a.Name, b.Name), a.Place.Compare(b.Place))
}

// mostly is what a thread was active with at the place where it was active most,
// the CPU time it used by and large, and for how long it was active at all.
func (t bystander) mostly(where []timeline.Interval) (did Activity, cpu, long timeline.Nanos) {
	places := make(map[Place]timeline.Nanos)
	states := make(map[Activity]timeline.Nanos)
	held := make(map[Place]timeline.Nanos) // up by others: only what computes is
	t.history.During(where, func(st Activity, part timeline.Nanos) {
		if !isActive(st.Cause) {
			return
		}
		long += part
		places[st.Place] += part
		if st.Cause.Computes() {
			cpu += part
		}
		if st.Cause.Kind() == Contention {
			held[st.Place] += part
		} else {
			states[st] += part
		}
	})
	did.Place = Most(places, Place.Compare)
	best := timeline.Nanos(0)
	for st, n := range states {
		if st.Cause.Computes() {
			n += held[st.Place]
		}
		if st.Place == did.Place && (n > best || n == best && st.Cause < did.Cause) {
			did.Cause, best = st.Cause, n
		}
	}
	if best == 0 {
		did.Cause = GIL
	}
	return did, cpu, long
}

// Most is the key with the largest sum, the first by order of several.
func Most[K comparable](sums map[K]timeline.Nanos, order func(a, b K) int) (top K) {
	best := timeline.Nanos(-1)
	for k, n := range sums {
		if n > best || n == best && order(k, top) < 0 {
			top, best = k, n
		}
	}
	return top
}

// HoldersDuring are the threads that ran Python code in some intervals, and so held
// the GIL, those that did most of it at the same place together.
func (c *Bystanders) HoldersDuring(where []timeline.Interval) []Actor {
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
				at = c.s.Charged(c.s.Stack(span.Node))
				known[span.Node] = at
			}
			timeline.Overlap(where, span.Start, span.End, func(_ int, part timeline.Nanos) {
				places[at] += part
				sum += part
			})
		}
		if float64(sum) < minActive*float64(timeline.Total(where)) {
			continue
		}
		at := Most(places, Place.Compare)
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
// "Thread-1 (work)", the pool of "ThreadPoolExecutor-0_3", the kind of several pools; empty when nothing.
func commonName(names []string) string {
	for numbers := min(len(names)-1, 1); numbers <= 2; numbers++ {
		common := shortName(names[0], numbers)
		if slices.ContainsFunc(names, func(name string) bool { return shortName(name, numbers) != common }) {
			continue
		}
		if strings.HasPrefix(common, "Thread-") || common == "Thread" { // says nothing
			return ""
		}
		return common
	}
	return ""
}

// shortName is the function of "Thread-1 (work)", and else a name without so many numbers at its end: that of a thread, that
// of its pool.
func shortName(name string, numbers int) string {
	if _, target, ok := strings.Cut(name, " ("); ok && strings.HasPrefix(name, "Thread-") {
		return strings.TrimSuffix(target, ")")
	}
	for range numbers {
		name = withoutNumber(name)
	}
	return name
}

// withoutNumber is a name without the number at its end.
func withoutNumber(name string) string {
	return strings.TrimRight(strings.TrimRight(name, "0123456789"), "-_ #")
}

// Turns is what the threads that were active in some intervals worked then, and for how long
// they wanted the GIL meanwhile.
type Turns struct {
	Threads      int
	Active, Held timeline.Nanos      // Held is the part of Active in which they waited for the GIL
	When         []timeline.Interval // that one of them did
	Place        Place               // the line of the user's own with most of Active; zero where none has half of it
}

// TurnsDuring sums up who worked and who wanted the GIL in some intervals.
func (c *Bystanders) TurnsDuring(where []timeline.Interval) (sum Turns) {
	length := timeline.Total(where)
	places := make(map[Place]timeline.Nanos)
	for _, t := range c.threads {
		did, wait := timeline.Nanos(0), timeline.Nanos(0)
		worked := make(map[Place]timeline.Nanos)
		t.history.During(where, func(st Activity, part timeline.Nanos) {
			switch {
			case st.Cause == GIL:
				wait += part
			case st.Cause.Computes():
				did += part
			default:
				return
			}
			worked[st.Place] += part
		})
		if float64(did+wait) >= minActive*float64(length) {
			for at, time := range worked {
				places[at] += time
			}
			sum.Active, sum.Held, sum.Threads = sum.Active+did+wait, sum.Held+wait, sum.Threads+1
			sum.When = append(sum.When, t.history.IntervalsOf(func(state int) bool { return t.history.States[state].Cause == GIL })...)
		}
	}
	sum.When = timeline.Common(timeline.Joined(sum.When), timeline.Joined(where))
	if at := Most(places, Place.Compare); c.s.Own(at.File) && float64(places[at]) >= MostShare*float64(sum.Active) {
		sum.Place = at
	}
	return sum
}
