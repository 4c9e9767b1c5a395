package diagnose

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// hostRule measures the main thread's time with some causes, for programs that GPUs
// do not tell of; tell adds what is special about them.
func hostRule(tell func(*evidence, account, *measured), causes ...Cause) func(*evidence) measured {
	return func(e *evidence) measured {
		a := e.accountOf(only(causes...))
		if e.toldByGPUs() || a.total == 0 {
			return nothing
		}
		m := e.of(a.finding())
		if tell != nil {
			tell(e, a, &m)
		}
		switch m.Place, m.PlaceTime = e.ownPlace(a); {
		case m.Place != (Place{}) && e.stacks.files.Own(a.nextAt.File) == e.stacks.files.Own(a.at.File) && a.halves():
			m.Next, m.NextTime = a.nextAt, a.next
			if comparePlaces(m.Next, m.Place) < 0 { // in the order of the program, whichever has a sample more
				m.Place, m.PlaceTime, m.Next, m.NextTime = m.Next, m.NextTime, m.Place, m.PlaceTime
			}
		case float64(a.there) < mostShare*float64(a.total):
			m.Place, m.PlaceTime = Place{}, 0 // no line has most of it
		}
		m.AfterEnd = len(a.where) > 0 && a.where[0].Start >= e.ended
		return m
	}
}

// mostShare is the share of a time from which on a line has most of it.
const mostShare = 0.5

// The share of the computing time from which on its top line is worth naming, and
// the number of standard errors by which it must lead.
const (
	leadingShare  = 0.25
	leadingErrors = 3
)

// computing is the time on the CPU: one line stands out, or leads a little, or
// none does.
func computing(e *evidence) measured {
	fits := only(Python, Native)
	a := e.accountOf(fits)
	if e.toldByGPUs() || a.total == 0 {
		return nothing
	}
	m := e.of(a.finding())
	switch {
	case e.share(a.there) >= 0.5 && !e.onlyLine(a.at):
		m.ID, m.Time = OneLine, a.there
		m.Value = e.share(a.there)
		m.Cost = a.there
	case e.onlyLine(a.at):
		m.ID, m.Place, m.PlaceTime = Computing, Place{}, 0
	case e.leads(a):
		m.ID, m.Cost = Computing, a.there
	default:
		m.ID, m.Cost, m.Place, m.PlaceTime = NoLineStandsOut, 0, Place{}, 0
		if name, at, there := e.ownFunction(fits); float64(there) >= mostShare*float64(a.total) {
			m.Name, m.Place, m.PlaceTime = name, at, there
		}
		return m
	}
	m.Cores, m.CoreLimit = e.bystanders.cores(e.main.intervalsOf(func(state int) bool { return e.main.states[state].at == a.at }))
	var own float64
	m.Call, own = e.called(a.at, fits)
	m.Cause = e.main.causeAt(a.at, fits)
	if m.CutTime = e.cutAt(a.at); float64(m.CutTime) < mostShare*float64(a.there) {
		m.Advice = adviceForLine(e, m, own, max(a.visits, e.calls(a.at))) // else what took the time is not known
	}
	return m
}

// cutAt is how long the main thread computed at a place with a stack that could not be
// read to its end: in something the place called, as far as that is known.
func (e *evidence) cutAt(at Place) (sum timeline.Nanos) {
	here := make(map[timeline.NodeID]bool)
	for _, s := range e.thread.Spans {
		if !s.Truncated || !onCPU.has(s.State) {
			continue
		}
		in, known := here[s.Node]
		if !known {
			in = e.stacks.charged(e.stacks.stack(s.Node)) == at
			here[s.Node] = in
		}
		if in {
			sum += s.End - s.Start
		}
	}
	return sum
}

// leads tells whether the top line of an account is ahead of the others by more
// than chance, and large enough to be worth a look.
func (e *evidence) leads(a account) bool {
	samples := float64(e.rec.Duration) / float64(max(e.rec.Resolution, 1))
	first, second := e.share(a.there), e.share(a.next)
	return float64(a.there) >= leadingShare*float64(a.total) && first-second >= leadingErrors*math.Sqrt((first+second)/samples)
}

// ownFunction is the function of the user's own in whose lines the main thread spent most
// of its time in states that fit, where it is defined, and the time. A module is none.
func (e *evidence) ownFunction(fits func(Cause) bool) (name string, at Place, there timeline.Nanos) {
	type function struct {
		name string
		at   Place
	}
	sums := make(map[function]timeline.Nanos)
	for length, f := range askedOfStacks(e, func(stack []timeline.FrameID, cause Cause, _ Place) (f function) {
		if i := e.stacks.ownest(stack); i >= 0 && fits(cause) {
			frame := e.rec.Frames[stack[i]]
			f = function{frame.Function, Place{frame.File, frame.FirstLine}}
		}
		return f
	}) {
		if f.name != "" && f.name != "<module>" {
			sums[f] += length
		}
	}
	top := most(sums, func(a, b function) int { return cmp.Or(comparePlaces(a.at, b.at), strings.Compare(a.name, b.name)) })
	return top.name, top.at, sums[top]
}

// onlyLine tells whether a place is the one line of a cell of one line: it cannot
// stand out.
func (e *evidence) onlyLine(at Place) bool {
	cell := e.rec.Target.Cell
	if cell == nil || at.File != cell.File {
		return false
	}
	count := 0
	for line := range strings.Lines(cell.Text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "%%") {
			count++
		}
	}
	return count <= 1
}

// minVisits is how often a thread comes back to a line in a loop, at least.
const minVisits = 8

// rowFunctions are pandas' functions that call Python code for each row.
var rowFunctions = []string{".apply", ".iterrows", ".itertuples", ".map", ".applymap", ".transform", ".agg"}

// cellFunctions are those of df.loc and its like, which reach for single cells when
// they are called again and again.
var cellFunctions = []string{"__getitem__", "__setitem__"}

// adviceForLine is what to do about a line that takes much, if that can be told:
// own is the share of its time in which it called nothing. What native code does
// is vectorised already.
func adviceForLine(e *evidence, m measured, own float64, visits int) Advice {
	if m.Call.Package == "pandas" {
		ends := func(f string) bool { return strings.HasSuffix(m.Call.Function, f) }
		if slices.ContainsFunc(rowFunctions, ends) || visits >= minVisits && slices.Contains(cellFunctions, m.Call.Function) {
			return WholeColumns
		}
	}
	switch {
	case e.entries(m.Place, origin.Queries) >= minVisits:
		return FewerQueries
	case m.Cause != Python || own < 0.8 || visits < minVisits:
		return NoAdvice
	case e.stacks.says(m.Place, queryCall):
		return FewerQueries
	case e.stacks.says(m.Place, slicing), e.stacks.says(m.Place, noNumbers), !e.stacks.says(m.Place, arithmetic):
		return NoAdvice
	}
	return Vectorise
}

// arithmetic is a line that computes with numbers, one after the other: more than a counter.
var arithmetic = regexp.MustCompile(`[\w)\]]\s*([*/%&|^@]|<<|>>)|[\w)\]]\s*[-+]=?\s*[A-Za-z_(]`)

// noNumbers is a line about texts, collections or errors, or about numbers that arrays do
// not have.
var noNumbers = regexp.MustCompile("[\"'{]|\\.(append|add|extend|insert|update|setdefault|get|join|split|strip|lower|match|search)\\(" +
	`|\b(except|raise|try|yield|await|Decimal|Fraction|str|int|dict|set|map)\b`)

// slicing is a line that computes with parts of arrays: vectorised, if of small ones.
var slicing = regexp.MustCompile(`\[[^\[\]]*:[^\[\]]*\]`)

// queryCall is a line that asks a database.
var queryCall = regexp.MustCompile(`\.execute\(`)

func withCall(e *evidence, a account, m *measured) {
	m.Call, _ = e.called(a.at, only(a.cause))
}

func compiling(e *evidence, a account, m *measured) {
	m.Advice = CompileOnce
	if call, _ := e.called(a.at, only(Compile)); origin.KnownModule(call.Package).Means(call.Function)&origin.CompilesByType != 0 {
		m.Advice = CompileTypes
	}
}

func loading(e *evidence, a account, m *measured) {
	switch m.Advice = idleAdvice[a.cause]; {
	case m.Advice != UseWorkers && m.Advice != SpeedUpWorkers:
	case e.bystanders.allBusy(a.where):
		m.Advice = MoreCPUs
	case m.Advice == UseWorkers:
		m.Advice = WorkersOnCPU
	default:
		m.Advice = FasterOnCPU
	}
	if a.cause == LoadWorker {
		m.Actors = e.bystanders.processesDuring(a.where)
	}
}

// manyVisits are so many that doing several at once would help.
const manyVisits = 4

func requests(e *evidence, a account, m *measured) {
	withCall(e, a, m)
	if max(a.visits, e.entries(a.at, origin.Requests)) >= manyVisits {
		m.Advice = ManyRequests
	}
}

func queries(e *evidence, a account, m *measured) {
	withCall(e, a, m)
	if max(a.visits, e.entries(a.at, origin.Queries)) >= minVisits {
		m.Advice = FewerQueries
	}
}

func reading(e *evidence, a account, m *measured) {
	withCall(e, a, m)
	if a.visits >= minVisits {
		m.Advice = ReadAhead
	}
}

func imports(e *evidence, _ account, m *measured) { m.Modules = modules(e.importTree()) }

// sleeping tells who worked while the main thread slept: a loop that asks again
// and again whether they are done.
func sleeping(e *evidence, a account, m *measured) {
	m.Cores, m.CoreLimit = e.bystanders.cores(a.where)
	if e.bystanders.childCores(a.where) >= busyCores {
		m.Actors = e.bystanders.processesDuring(a.where)
		return
	}
	if list := e.bystanders.processesDuring(a.where); e.bystanders.covered(a.where) >= nearlyAlways && e.bystanders.haveEnded(e.ended) {
		m.Actors, m.Cores = list, math.NaN() // it slept until they were done, or they ran beside it: only that is known
		return
	}
	for _, actor := range e.bystanders.threadsDuring(a.where) {
		if actor.Cause.computes() && float64(actor.CPU) >= busyCores*float64(a.total) {
			m.Actors = append(m.Actors, actor)
		}
	}
}

// nearlyAlways is the share of a sleep for which children lived that may be what it was for.
const nearlyAlways = 0.8

func waitingForChildren(e *evidence, a account, m *measured) {
	m.Actors = e.bystanders.processesDuring(a.where)
	m.Cores, m.CoreLimit = e.bystanders.childCores(a.where), 0
	if _, limit := e.bystanders.cores(a.where); limit > 0 {
		m.CoreLimit = limit
	}
}

// waitingForThreads tells what the other threads did. Where they are a library's own,
// which run none of the user's lines, it tells what was called instead.
func waitingForThreads(e *evidence, a account, m *measured) {
	m.Actors = e.bystanders.threadsDuring(a.where)
	m.Cores, m.CoreLimit = e.bystanders.cores(a.where)
	for i := range m.Actors {
		if at := &m.Actors[i].Place; !e.stacks.files.Own(at.File) {
			*at = Place{}
		}
	}
	if len(m.Actors) > 0 && m.Actors[0].Place == (Place{}) {
		m.Call, _ = e.called(a.at, func(c Cause) bool { return c == Thread || needsResolving(c) })
	}
}

func awaiting(_ *evidence, a account, m *measured) {
	if a.visits >= manyVisits {
		m.Advice = AwaitTogether
	}
}

func noFreeCPU(e *evidence, a account, m *measured) {
	m.Cores, m.CoreLimit = e.bystanders.cores([]timeline.Interval{timeline.Between(0, e.rec.Duration)})
	const mostly = 0.8
	if m.CoreLimit > 1 && m.Cores >= mostly*m.CoreLimit {
		m.Advice = FewerThreads
	}
}

// noFreeCPUShare is the share of the recording from which on a thread that was seen
// to want a CPU is told of.
const noFreeCPUShare = 0.15

// worthNative is the share of the recording from which on native code may have used several
// CPUs for a good part of it.
const worthNative = 0.2

// allCPUs is the share of a machine's CPUs from which on none is free.
const allCPUs = 0.9

// busyMachine is the time for which the main thread looked as if it computed, and
// was given no CPU by what the scheduler counts. Where the stacks lay meanwhile is
// true all the same; how long it took is not the program's doing.
func busyMachine(e *evidence) measured {
	if e.thread == nil || e.thread.OnCPU < 0 || e.toldByGPUs() || tooFew(e.rec) != nil ||
		e.share(e.accountOf(only(NoCPU)).total) >= noFreeCPUShare {
		return nothing
	}
	if !e.bystanders.allBusy([]timeline.Interval{timeline.Between(0, e.rec.Duration)}) {
		return nothing
	}
	computing, native := timeline.Nanos(0), timeline.Nanos(0)
	for _, s := range e.thread.Spans {
		if s.State.Computes() {
			computing += s.End - s.Start
		}
		if s.State == timeline.StateNative {
			native += s.End - s.Start
		}
	}
	f := Finding{Time: max(computing-e.thread.OnCPU, 0), Cause: NoCPU, Cores: math.NaN()}
	// It may be a library's own threads or the program's processes that had the CPUs.
	if whole := []timeline.Interval{timeline.Between(0, e.rec.Duration)}; e.share(native) >= worthNative || e.bystanders.hasChildren(whole) {
		f.Cores, f.CoreLimit = e.bystanders.cores(whole)
	}
	return e.of(f)
}

// stacksUnknown is the time in which nothing is known of the program, and the reason
// of most of it. At its start and end that is told by the interpreter's own findings,
// unless a launcher takes its time.
func stacksUnknown(e *evidence) measured {
	var times [timeline.NumGapReasons]timeline.Nanos
	f := Finding{}
	if e.rec.OnlyStarts() {
		return nothing
	}
	for _, g := range e.rec.Gaps {
		if g.PID != e.rec.Target.PID || g.Reason == timeline.GapExit {
			continue
		}
		f.Time += g.End - g.Start
		f.Evidence = append(f.Evidence, timeline.Between(g.Start, g.End))
		if times[g.Reason] += g.End - g.Start; times[g.Reason] > times[f.Gap] {
			f.Gap = g.Reason
		}
	}
	if f.Time == 0 {
		return nothing
	}
	f.Value = float64(f.Time) / float64(e.rec.Duration) // of the target, whoever explains it
	return measured{Finding: f, low: f.Value, lost: f.Value}
}

// gilContention holds with and without GPU: the thread that feeds it waits too.
func gilContention(e *evidence) measured {
	a := e.accountOf(only(GIL))
	m := e.of(a.finding())
	m.Actors = e.bystanders.holdersDuring(a.where)
	m.Advice = AvoidGIL
	return m
}

// threadsTakeTurns looks at the threads that the main thread waits for: of the
// time they would have worked, how much they waited for the GIL.
func threadsTakeTurns(e *evidence) measured {
	a := e.accountOf(only(Thread))
	if e.toldByGPUs() || a.total == 0 {
		return nothing
	}
	active, held := timeline.Nanos(0), timeline.Nanos(0)
	count := int64(0)
	for _, t := range e.bystanders.threads {
		did, wait := timeline.Nanos(0), timeline.Nanos(0)
		t.host.during(a.where, func(st hostState, part timeline.Nanos) {
			switch {
			case st.cause == GIL:
				wait += part
			case st.cause.computes():
				did += part
			}
		})
		if float64(did+wait) >= minActive*float64(a.total) {
			active, held, count = active+did+wait, held+wait, count+1
		}
	}
	if count < 2 {
		return nothing
	}
	f := a.finding()
	f.Cost = held / timeline.Nanos(count)
	f.Count, f.Value = count, float64(held)/float64(active)
	f.Actors = e.bystanders.threadsDuring(a.where)
	f.Cores, f.CoreLimit = e.bystanders.cores(a.where)
	f.Advice = AvoidGIL
	return measured{Finding: f, low: f.Value, lost: e.share(a.total)}
}

// minMessages keeps a short burst of output from counting as printing a lot.
const minMessages = 300

func printing(e *evidence) measured {
	out := e.rec.Output
	if out == nil || out.Messages < minMessages {
		return nothing
	}
	f := Finding{Count: out.Messages, Bytes: out.Bytes, AtLeast: out.AtLeast, Advice: PrintLess, Cores: math.NaN()}
	f.Time, f.Place, f.PlaceTime, f.Evidence = e.stackTime(func(f timeline.Frame) bool { return e.stacks.files.Means(f)&origin.SendsOutput != 0 })
	f.Cost = f.Time
	f.Value = float64(out.Messages) / e.rec.Duration.Seconds()
	return measured{Finding: f, low: f.Value, lost: e.share(f.Time)}
}

// stackTime sums the main thread's time under frames that fit, with the place that
// has most of it.
func (e *evidence) stackTime(fits func(timeline.Frame) bool) (sum timeline.Nanos, top Place, there timeline.Nanos, where []timeline.Interval) {
	if e.thread == nil {
		return 0, Place{}, 0, nil
	}
	type found struct {
		in bool
		at Place
	}
	known := make(map[timeline.NodeID]found)
	places := make(map[Place]timeline.Nanos)
	for _, s := range e.thread.Spans {
		f, ok := known[s.Node]
		if !ok {
			stack := e.stacks.stack(s.Node)
			f.at = e.stacks.charged(stack)
			for _, id := range stack {
				f.in = f.in || fits(e.rec.Frames[id])
			}
			known[s.Node] = f
		}
		if !f.in {
			continue
		}
		sum += s.End - s.Start
		where = append(where, timeline.Between(s.Start, s.End))
		places[f.at] += s.End - s.Start
	}
	top = most(places, comparePlaces)
	return sum, top, places[top], where
}

func memoryPressure(e *evidence) measured {
	f := Finding{Value: math.NaN(), Advice: FreeMemory, Cores: math.NaN()}
	for _, memory := range []struct{ track, name string }{{"rss", "process"}, {"mem.system", "machine"}} {
		t := e.stacks.track(memory.track)
		if t == nil || t.Limit <= 0 || math.IsNaN(t.Peak) {
			continue
		}
		if s := t.Peak / t.Limit; math.IsNaN(f.Value) || s > f.Value {
			f.Value, f.Name = s, memory.name
		}
	}
	return measured{Finding: f, low: f.Value, lost: f.Value}
}

// swapping measures by how much swap grew: memory that lies there from before is
// nobody's problem now.
func swapping(e *evidence) measured {
	t := e.stacks.track("swap")
	if t == nil || len(t.Points) == 0 || math.IsNaN(t.Peak) {
		return nothing
	}
	grown := t.Peak - t.Points[0].Value
	return measured{Finding: Finding{Value: grown, Bytes: int64(grown), Advice: LessMemory, Cores: math.NaN()}, low: grown, lost: 1}
}
