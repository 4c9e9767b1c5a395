package criticalpath

import (
	"cmp"
	"slices"
)

// Graph is what waited for what. What an activity waits for comes before it.
type Graph struct {
	Activities []Activity
	Start      int64
	usual      [edges]int64 // delay
	waits      []wait       // those of an activity follow those of the one before it
}

// Activity is a stretch of a thread of the host, or work of a device.
type Activity struct {
	Start, End int64 // as recorded
	Work       int32 // index into Events.Work; -1: of the host
	Thread     int32 // of the host
	waits      uint32
}

// Length as recorded.
func (a *Activity) Length() int64 { return a.End - a.Start }

// begin is what activities wait for that nothing recorded came before.
const begin = -1

// wait is one thing that an activity waits for: it starts no sooner than delay after that has ended.
type wait struct {
	on    int32 // an activity before it, or begin
	delay int64 // negative where the two overlapped
	edge  edge
	kind  Delay // of the one that was waited for last, else NoDelay
}

// edge is why an activity waits.
type edge uint8

const (
	inThread  edge = iota
	fromBegin      // work whose launch is not recorded
	launch
	inStream
	acrossStreams
	synchronises
	handsOver
	edges
)

// Bounds within which recorded times may contradict an order that is known otherwise: clocks of host and device differ, times are
// rounded, and a kernel may start while the one before it ends (programmatic dependent launch).
const (
	skew    = 100_000 // ns, of host and device
	overlap = 5_000   // ns, of work on a stream; or a tenth of the former's length
)

// builder makes a graph. Activities are numbered in the order in which they are made; the graph orders them.
type builder struct {
	e      *Events
	acts   []Activity
	edges  [][maxWaits]link // by activity
	marks  []int32          // by mark: the activity that ends there
	work   []int32          // by Events.Work: its activity
	before []int32          // by Events.Work: the one before it on its stream; -1: none
	byEnd  []int32          // of Events.Work
}

const maxWaits = 3

type link struct {
	on    int32
	edge  edge
	valid bool
}

// Build makes the graph of some events. Its size is linear in theirs.
func Build(e *Events) *Graph {
	b := &builder{e: e, work: make([]int32, len(e.Work)), before: e.streamOrder(), byEnd: e.workByEnd()}
	cuts, launches := b.cuts()
	b.acts = make([]Activity, 0, 2*len(e.Work)+64)
	b.edges = make([][maxWaits]link, 0, cap(b.acts))
	pending := b.threads(cuts)
	for i := range e.Work {
		b.work[i] = b.device(i)
	}
	for _, p := range pending {
		on := int32(begin)
		if p.work >= 0 {
			on = b.work[p.work]
		} else {
			on = b.marks[p.mark]
		}
		b.link(p.activity, on, p.edge)
	}
	for i, mark := range launches {
		if mark >= 0 {
			b.link(b.work[i], b.marks[mark], launch)
		}
	}
	b.streams()
	return b.graph()
}

func (b *builder) add(a Activity) int32 {
	b.acts = append(b.acts, a)
	b.edges = append(b.edges, [maxWaits]link{})
	return int32(len(b.acts) - 1)
}

func (b *builder) link(from, on int32, why edge) {
	for i := range b.edges[from] {
		if l := &b.edges[from][i]; !l.valid {
			*l = link{on, why, true}
			return
		}
	}
}

// device makes the activity of a work.
func (b *builder) device(i int) int32 {
	w := &b.e.Work[i]
	start := max(w.Start, b.e.Start)
	return b.add(Activity{Start: start, End: max(w.End, start), Work: int32(i), Thread: -1})
}

// streams links work to what ran before it on its stream, and to what the host made its stream wait for.
func (b *builder) streams() {
	e, ordered := b.e, b.orders()
	for i := range e.Work {
		latest := b.latestOf(b.work[i])
		if prev := b.before[i]; prev >= 0 {
			b.link(b.work[i], b.work[prev], inStream)
			latest = max(latest, e.Work[prev].End)
		}
		if ordered[i] != never {
			if other := e.otherStream(&e.Work[i], b.byEnd, latest, ordered[i]); other >= 0 {
				b.link(b.work[i], b.work[other], acrossStreams)
			}
		}
		if b.edges[b.work[i]] == ([maxWaits]link{}) {
			b.link(b.work[i], begin, fromBegin)
		}
	}
}

// streamOrder is for each work the one before it on its stream, -1 for none.
func (e *Events) streamOrder() []int32 {
	before := make([]int32, len(e.Work))
	byStream := map[int32][]int32{}
	for i := range e.Work {
		w := &e.Work[i]
		list := byStream[w.Stream]
		before[i] = e.lastBefore(w, list)
		byStream[w.Stream] = append(list, int32(i))
	}
	return before
}

func (e *Events) workByEnd() []int32 {
	order := make([]int32, len(e.Work))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int { return cmp.Or(cmp.Compare(e.Work[x].End, e.Work[y].End), cmp.Compare(x, y)) })
	return order
}

// endedBy is how many of the work, by end, had ended at a time.
func (e *Events) endedBy(byEnd []int32, at int64) int {
	n, _ := slices.BinarySearchFunc(byEnd, at, func(i int32, at int64) int {
		if e.Work[i].End > at {
			return 1
		}
		return -1
	})
	return n
}

// launchedBefore reports whether a work was launched before a time. One whose call is not recorded was before all that are.
func (e *Events) launchedBefore(w *Work, at int64) bool {
	return w.Call < 0 || e.Calls[w.Call].Start < at
}

// latestOf is when the last of what an activity waits for so far ended.
func (b *builder) latestOf(activity int32) int64 {
	latest := b.e.Start
	for _, l := range b.edges[activity] {
		if l.valid && l.on >= 0 {
			latest = max(latest, b.acts[l.on].End)
		}
	}
	return latest
}

// lastBefore is the last work of a stream that ended before another one of it began; -1 if there is none.
func (e *Events) lastBefore(w *Work, before []int32) int32 {
	const farthest = 16
	for k := len(before) - 1; k >= max(0, len(before)-farthest); k-- {
		p := &e.Work[before[k]]
		if over := p.End - w.Start; over <= max(overlap, (p.End-p.Start)/10) && p.Start <= w.Start {
			return before[k]
		}
	}
	return -1
}

// otherStream is the work of another stream that ended last before w began, of that launched before the host ordered the streams;
// -1 if what w waits for anyway ended later.
func (e *Events) otherStream(w *Work, byEnd []int32, latest, ordered int64) int32 {
	const farthest = 256
	from := e.endedBy(byEnd, w.Start)
	for k := from - 1; k >= max(0, from-farthest) && e.Work[byEnd[k]].End > latest; k-- {
		o := &e.Work[byEnd[k]]
		if o.Stream != w.Stream && e.launchedBefore(o, ordered) {
			return byEnd[k]
		}
	}
	return -1
}

// never is a time at which nothing happened.
const never = -1 << 63

// orders is for each work when the host last made its stream wait for another one, if that was after it had launched the work before
// on that stream; else never.
func (b *builder) orders() []int64 {
	e := b.e
	ordered := make([]int64, len(e.Work))
	launched := make([]int32, 0, len(e.Work))
	for i := range e.Work {
		ordered[i] = never
		if e.Work[i].Call >= 0 {
			launched = append(launched, int32(i))
		}
	}
	var calls []int32
	for i := range e.Calls {
		if e.Calls[i].Orders {
			calls = append(calls, int32(i))
		}
	}
	if len(calls) == 0 {
		return ordered
	}
	startOf := func(work int32) int64 { return e.Calls[e.Work[work].Call].Start }
	slices.SortFunc(launched, func(x, y int32) int { return cmp.Or(cmp.Compare(startOf(x), startOf(y)), cmp.Compare(x, y)) })
	slices.SortFunc(calls, func(x, y int32) int { return cmp.Compare(e.Calls[x].Start, e.Calls[y].Start) })
	lastOrder, lastLaunch := map[int32]int64{}, map[int32]int64{}
	next := 0
	for _, work := range launched {
		at := startOf(work)
		for ; next < len(calls) && e.Calls[calls[next]].Start <= at; next++ {
			c := &e.Calls[calls[next]]
			lastOrder[c.Thread] = c.Start
		}
		stream := e.Work[work].Stream
		order, is := lastOrder[e.Calls[e.Work[work].Call].Thread]
		if previous, launched := lastLaunch[stream]; is && (!launched || order > previous) {
			ordered[work] = order
		}
		lastLaunch[stream] = at
	}
	return ordered
}

// graph orders the activities by time and finds out which wait was the last one of each.
func (b *builder) graph() *Graph {
	order := make([]int32, len(b.acts))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int {
		p, q := &b.acts[x], &b.acts[y]
		return cmp.Or(cmp.Compare(p.Start, q.Start), cmp.Compare(p.End, q.End), cmp.Compare(x, y))
	})
	place := make([]int32, len(order))
	for to, from := range order {
		place[from] = int32(to)
	}
	g := &Graph{Start: b.e.Start, Activities: make([]Activity, len(order)), waits: make([]wait, 0, 2*len(order))}
	for to, from := range order {
		a := b.acts[from]
		a.waits = uint32(len(g.waits))
		for _, l := range b.edges[from] {
			switch {
			case !l.valid:
			case l.on < 0:
				g.waits = append(g.waits, wait{on: begin, delay: a.Start - g.Start, edge: l.edge})
			case place[l.on] < int32(to): // else both have no length and the same time
				g.waits = append(g.waits, wait{on: place[l.on], delay: a.Start - b.acts[l.on].End, edge: l.edge})
			}
		}
		if len(g.waits) == int(a.waits) {
			g.waits = append(g.waits, wait{on: begin, delay: a.Start - g.Start, edge: fromBegin})
		}
		g.Activities[to] = a
	}
	g.settle(b.e)
	return g
}

// of are what an activity waits for.
func (g *Graph) of(i int) []wait {
	to := len(g.waits)
	if i+1 < len(g.Activities) {
		to = int(g.Activities[i+1].waits)
	}
	return g.waits[g.Activities[i].waits:to]
}

// settle names the delay after the last thing that each activity waited for, and gives the others the delay that is usual after one of
// their kind: the recorded one says nothing about them.
func (g *Graph) settle(e *Events) {
	var seen [edges][]int64
	for i := range g.Activities {
		waits := g.of(i)
		last := &waits[0]
		for k := range waits {
			if waits[k].delay < last.delay {
				last = &waits[k]
			}
		}
		last.kind = delayOf(last, &g.Activities[i], e)
		if last.delay >= 0 && last.delay <= e.Short && last.edge >= launch {
			seen[last.edge] = append(seen[last.edge], last.delay)
		}
	}
	for k, delays := range seen {
		if n := len(delays); n > 0 {
			slices.Sort(delays)
			g.usual[k] = delays[n/2]
		}
	}
	for i := range g.waits {
		if w := &g.waits[i]; w.kind == NoDelay {
			w.delay = min(w.delay, g.usual[w.edge])
		}
	}
}

// delayOf is the kind of a delay, NoDelay only of an edge that has none.
func delayOf(w *wait, a *Activity, e *Events) Delay {
	switch {
	case w.edge == handsOver:
		return HandedOver
	case w.edge == fromBegin && a.Work >= 0 && e.Work[a.Work].Earlier:
		return Earlier
	case w.edge == fromBegin:
		return Unknown
	case w.delay > e.Short:
		return Waited
	case w.edge == launch:
		return Launching
	}
	return Queued
}
