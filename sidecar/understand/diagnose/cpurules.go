package diagnose

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/batches"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// hostRule measures the main thread's time with some causes, for programs that GPUs
// do not explain; add adds what is special about them.
func hostRule(add func(*evidence, activity.Account, *measured), causes ...activity.Cause) func(*evidence) measured {
	return func(e *evidence) measured { return e.hostRule(e.main.AccountOf(activity.Only(causes...)), add) }
}

// hostRule makes a finding of an account of the main thread.
func (e *evidence) hostRule(a activity.Account, add func(*evidence, activity.Account, *measured)) measured {
	if e.explainedByGPUs() || a.Total == 0 {
		return nothing
	}
	m := e.of(findingOf(a))
	if add != nil {
		add(e, a, &m)
	}
	switch m.Place, m.PlaceTime = e.main.OwnPlace(a); {
	case m.Place != (activity.Place{}) && e.stacks.Own(a.NextPlace.File) == e.stacks.Own(a.Place.File) && a.Halves():
		m.Next, m.NextTime = a.NextPlace, a.Next
		if m.Next.Compare(m.Place) < 0 { // in the order of the program, whichever has a sample more
			m.Place, m.PlaceTime, m.Next, m.NextTime = m.Next, m.NextTime, m.Place, m.PlaceTime
		}
	case float64(a.There) < activity.MostShare*float64(a.Total):
		m.Place, m.PlaceTime = activity.Place{}, 0 // no line has most of it
	}
	m.PlaceTime = min(m.PlaceTime, m.Time) // add may have taken off some of both
	m.AfterEnd = len(a.Where) > 0 && a.Where[0].Start >= e.main.Ended
	return m
}

// The share of the computing time from which on its top line is worth naming, and
// the number of standard errors by which it must lead.
const (
	leadingShare  = 0.25
	leadingErrors = 3
	// leadsFunction is the share of a function's time from which on its line is named: two lines of a loop that take turns
	// have half each, but for chance.
	leadsFunction = 0.6
)

// computing is the time on the CPU: one line stands out, or leads a little, or
// none does.
func computing(e *evidence) measured {
	fits := activity.Only(activity.Python, activity.Native)
	a := e.main.AccountOf(fits)
	if e.explainedByGPUs() || a.Total == 0 {
		return nothing
	}
	// Where the time was spent is true whoever had the CPUs; BusyMachine adds for how long others had.
	had, spends := a, fits
	if e.stacks.OthersTakeCPUs {
		spends = activity.Only(activity.Python, activity.Native, activity.NoCPU)
		a = e.main.AccountOf(spends)
	}
	m := e.of(findingOf(a))
	switch {
	case !e.onlyLine(a.Place) && (e.share(a.There) >= 0.5 || e.heldUpMostly(a, had) && e.leads(a)):
		m.ID, m.Cost = OneLine, a.There
		m.Time = e.timeAt(a.Place)
		m.Value, m.PlaceTime = e.share(m.Time), m.Time
	case e.onlyLine(a.Place):
		m.ID, m.Time, m.Value = Computing, had.Total, e.share(had.Total)
		m.Cost, m.Place, m.PlaceTime = had.Total, activity.Place{}, 0
	case e.leads(a):
		m.ID, m.Time, m.Value = Computing, had.Total, e.share(had.Total)
		m.PlaceTime = e.main.History.TimeAt(a.Place, fits)
		m.Cost = m.PlaceTime
	default:
		m.ID, m.Time, m.Value = NoLineStandsOut, had.Total, e.share(had.Total)
		m.Cost, m.Place, m.PlaceTime = 0, activity.Place{}, 0
		m.lost = partly * m.Value // it names nothing to change: what does comes first
		switch list := e.main.OwnFunctions(spends); {
		case len(list) > 0 && float64(list[0].Nanos) >= activity.MostShare*float64(a.Total):
			m.Name, m.Place, m.PlaceTime = list[0].Name, list[0].Place, list[0].Nanos
			if float64(list[0].MostNanos) >= leadsFunction*float64(list[0].Nanos) {
				m.Next, m.NextTime = list[0].Most, list[0].MostNanos
			}
		default:
			if m.Functions = leading(list, a.Total, mostFunctions); m.Functions == nil {
				m.Lines = leading(e.main.OwnLines(spends), a.Total, mostLines)
			}
		}
		return m
	}
	if m.ID == Computing {
		m.lost = m.Value // as it says: the time without a CPU is not in it
	}
	m.Cores, m.CoreLimit = e.bystanders.Cores(e.main.History.IntervalsOf(func(state int) bool { return e.main.History.States[state].Place == a.Place }))
	var own float64
	m.Call, own = e.main.Called(a.Place, fits)
	m.Cause = e.main.History.CauseAt(a.Place, fits)
	m.CallShare = e.ofAllTheLine(m)
	if m.ID == Computing {
		m.Besides = e.besidesComputing()
	}
	if m.CutTime = e.main.CutAt(a.Place); float64(m.CutTime) < activity.MostShare*float64(a.There) {
		m.Advice = adviceForLine(e, m, own, max(a.Visits, e.main.Calls(a.Place))) // else what took the time is not known
	}
	return m
}

// collectsGarbage is the time in the interpreter's collector, in whatever lines it set in: each of them may have little of it.
func collectsGarbage(e *evidence) measured {
	if e.explainedByGPUs() {
		return nothing
	}
	f := Finding{Advice: CollectLess, Cores: math.NaN()}
	f.Time, f.Place, f.PlaceTime, f.Evidence = e.main.StackTime(func(f timeline.Frame) bool { return f.File == timeline.GarbageCollection.File })
	if !e.stacks.Own(f.Place.File) {
		f.Place, f.PlaceTime = activity.Place{}, 0
	}
	f.Cost = f.Time
	return e.of(f)
}

// ofAllTheLine is the share that what a line called has of all the time that the finding gives the line: what it called is
// sought in its computing, while it may have slept or waited as well. Without a call it is that of the line's cause.
func (e *evidence) ofAllTheLine(m measured) float64 {
	there := float64(max(m.PlaceTime, 1))
	if m.Call == (activity.Call{}) {
		return float64(e.main.History.TimeAt(m.Place, activity.Only(m.Cause))) / there
	}
	return min(float64(e.main.InCall(m.Place, m.Call))/there, 1)
}

const (
	// worthBesides is the share of the recording from which on it is said that computing is without something.
	worthBesides = 0.05
	mostBesides  = 2
)

// besidesComputing are causes that keep a CPU busy and are none of the computing: the share of the time that the title calls
// computing has them.
func (e *evidence) besidesComputing() (list []activity.Cause) {
	times := make(map[activity.Cause]timeline.Nanos)
	for _, c := range []activity.Cause{activity.Import, activity.Compile, activity.Draw, activity.LoadHere} {
		if times[c] = e.main.AccountOf(activity.Only(c)).Total; e.share(times[c]) >= worthBesides {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b activity.Cause) int { return cmp.Compare(times[b], times[a]) })
	return list[:min(len(list), mostBesides)]
}

// heldUpMostly reports whether the line of an account waited for a CPU for most of its time, which is enough to be
// named: how long it computed says nothing about where the time went.
func (e *evidence) heldUpMostly(all, had activity.Account) bool {
	return e.share(all.There) >= lineShare && float64(had.Total) < activity.MostShare*float64(all.Total)
}

// lineShare is the share of the recording from which on a line alone is worth naming.
const lineShare = 0.30

// timeAt is for how long the main thread was at a place, whatever it did there: what the table of lines has.
func (e *evidence) timeAt(at activity.Place) (sum timeline.Nanos) {
	for _, s := range e.main.History.Stretches {
		if e.main.History.States[s.State].Place == at {
			sum += s.End - s.Start
		}
	}
	return sum
}

// The functions or lines that are named where none has most of a time: so many, with such a share of it.
const (
	mostFunctions = 3
	mostLines     = 5
	worthAName    = 0.1
)

// leading are the first functions or lines of a list, those with a good part of a time; one alone has none to be compared with.
func leading(list []activity.FunctionTime, total timeline.Nanos, most int) []activity.FunctionTime {
	count := 0
	for count < min(len(list), most) && float64(list[count].Nanos) >= worthAName*float64(total) {
		count++
	}
	if count < 2 {
		return nil
	}
	return list[:count]
}

// leads reports whether the top line of an account is ahead of the others by more
// than chance, and large enough to be worth a look.
func (e *evidence) leads(a activity.Account) bool {
	samples := float64(e.rec.Duration) / float64(max(e.rec.Resolution, 1))
	first, second := e.share(a.There), e.share(a.Next)
	return float64(a.There) >= leadingShare*float64(a.Total) && first-second >= leadingErrors*math.Sqrt((first+second)/samples)
}

// onlyLine reports whether a place is the one line of a cell of one line: it cannot
// stand out.
func (e *evidence) onlyLine(at activity.Place) bool {
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

// adviceForLine is what to do about a line that takes much, if that is known:
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
	case e.main.Entries(m.Place, origin.Queries) >= minVisits:
		return FewerQueries
	case m.Cause != activity.Python || own < 0.8 || visits < minVisits:
		return NoAdvice
	case e.stacks.Says(m.Place, queryCall):
		return FewerQueries
	case e.stacks.Says(m.Place, slicing), e.stacks.Says(m.Place, noNumbers), !e.stacks.Says(m.Place, arithmetic):
		return NoAdvice
	case e.stacks.Says(m.Place, indexing), e.isOfLoop(m.Place):
		return Vectorise
	}
	return NoAdvice
}

// isOfLoop reports whether a line computes with what a loop over an array or a range yields, and
// decides nothing by it: what ends a loop early, or depends on the round before, is no operation
// on arrays.
func (e *evidence) isOfLoop(at activity.Place) bool {
	line := e.stacks.Line(at)
	if condition.MatchString(line) {
		return false
	}
	if loopOver.MatchString(line) { // a comprehension
		return true
	}
	return slices.ContainsFunc(e.stacks.Loops(at), func(loop string) bool {
		parts := loopOver.FindStringSubmatch(loop)
		return parts != nil && slices.ContainsFunc(word.FindAllString(parts[1], -1), func(target string) bool {
			return slices.Contains(word.FindAllString(line, -1), target)
		})
	})
}

// word is a name in Python's code.
var word = regexp.MustCompile(`[A-Za-z_]\w*`)

// loopOver is a loop over an array or a range, by name or side by side with others: not over what
// another call makes, as itertools' products and a file's lines.
var loopOver = regexp.MustCompile(`\bfor\s+([\w\s,()*]+?)\s+in\s+(?:(?:range|zip|enumerate|reversed|prange|trange|tqdm)\(|[\w.]+(?:\[[^\]]*\])?\s*(?:[:\])]|if\b|for\b|$))`)

// condition is a line that decides what comes next.
var condition = regexp.MustCompile(`^(if|elif|while|return|assert)\b`)

// indexing is a line that reaches for elements by their index.
var indexing = regexp.MustCompile(`[\w)\]]\[[^\[\]'":]+\]`)

// arithmetic is a line that computes with numbers, one after the other: more than a counter.
var arithmetic = regexp.MustCompile(`[\w)\]]\s*([*/%&|^@]|<<|>>)|[\w)\]]\s*[-+]=?\s*[A-Za-z_(]`)

// noNumbers is a line about texts, collections or errors, or about numbers that arrays do
// not have: those of any size, and sets of bits.
var noNumbers = regexp.MustCompile("[\"'{]|\\.(append|add|extend|insert|update|setdefault|get|join|split|strip|lower|match|search)\\(" +
	`|\b1\s*<<|\b(except|raise|try|yield|await|Decimal|Fraction|str|int|dict|set|map)\b`)

// slicing is a line that computes with parts of arrays, or asks an array for what is of all its elements: vectorised,
// if of small ones.
var slicing = regexp.MustCompile(`\[[^\[\]]*:[^\[\]]*\]|\.(min|max|sum|mean|std|var|prod|any|all|dot|argmin|argmax|cumsum)\(`)

// queryCall is a line that asks a database.
var queryCall = regexp.MustCompile(`\.execute\(`)

func withCall(e *evidence, a activity.Account, m *measured) {
	m.Call, _ = e.main.Called(a.Place, activity.Only(a.Cause))
}

func compiling(e *evidence, a activity.Account, m *measured) {
	m.Advice = e.adviceOnCompiling(a.Place)
}

// adviceOnCompiling is what helps against a compiler that was called at a place, by whomever.
func (e *evidence) adviceOnCompiling(at activity.Place) Advice {
	switch compiler := e.main.Meaning(at, origin.Compiles); {
	case origin.KnownModule(compiler).Means("")&origin.CompilesByType != 0:
		return CompileTypes
	case compiler == "torch":
		return CompileShapes
	}
	return CompileOnce
}

func loading(e *evidence, a activity.Account, m *measured) {
	switch m.Advice = AdviceForIdle(a.Cause); {
	case m.Advice != UseWorkers && m.Advice != SpeedUpWorkers:
	case m.Advice == SpeedUpWorkers && startedAnew(e.rec.Processes):
		m.Advice = KeepWorkers
	case m.Advice == UseWorkers && e.mostlyWaits(a.Where):
		m.Advice = WorkersThatWait
	case e.bystanders.AllBusy(a.Where) && !e.bystanders.LoadersWait(a.Where):
		m.Advice = MoreCPUs
	case m.Advice == UseWorkers:
		m.Advice = WorkersOnCPU
	default:
		m.Advice = FasterOnCPU
	}
	switch {
	case a.Cause == activity.LoadWorker:
		m.Actors = e.bystanders.ProcessesDuring(a.Where)
		if m.Advice != KeepWorkers && hadNoTask(m.Actors) {
			m.Advice = NoAdvice // they are not what is too slow
		}
		if m.Queue = e.queue(); m.Advice != KeepWorkers && m.Queue.LieReady() {
			m.Advice = NoAdvice // nor where there are batches
		}
	case m.Advice == WorkersOnCPU || m.Advice == WorkersThatWait:
		m.Against = e.covered(a)
	}
}

// queue is that of the workers of the loader that the process in question trains with; of several that which was read most.
func (e *evidence) queue() (most batches.Queue) {
	if e.main.Thread == nil {
		return most
	}
	for _, l := range e.diagnosis.Loaders {
		if l.Process == e.main.Thread.Process && l.Queue.Readings > most.Readings {
			most = l.Queue
		}
	}
	return most
}

// mostlyWaits reports whether the main thread waited for most of some intervals, for a disk or a network, say: in other
// processes that needs no CPU of its own.
func (e *evidence) mostlyWaits(where []timeline.Interval) bool {
	waiting := timeline.Nanos(0)
	for _, span := range e.main.Thread.Spans {
		if span.State == timeline.StateWaiting || span.State == timeline.StateIO {
			timeline.Overlap(where, span.Start, span.End, func(_ int, part timeline.Nanos) { waiting += part })
		}
	}
	return waiting > timeline.Total(where)/2
}

// noTask is the share of a wait for which workers had no task from which on it is not they who are too slow.
const noTask = 0.5

// hadNoTask reports whether the workers that were waited for had no task for most of the time.
func hadNoTask(actors []activity.Actor) bool {
	i := slices.IndexFunc(actors, func(a activity.Actor) bool { return a.Work != nil })
	return i >= 0 && actors[i].Work.Starved >= noTask
}

// Loader workers of which so many have ended, half of them after less than shortLife, are started again and again: by an
// iterator for each step, or for each of many short epochs. Starting them is what is waited for then.
const (
	manyStarts = 8
	shortLife  = timeline.Nanos(2 * time.Second)
)

func startedAnew(processes []timeline.Process) bool {
	ended, short := 0, 0
	for _, p := range processes {
		if p.Role == timeline.RoleLoaderWorker && p.End > 0 {
			if ended++; p.End-p.Start < shortLife {
				short++
			}
		}
	}
	return ended >= manyStarts && 2*short > ended
}

// manyVisits are so many that doing several at once would help.
const manyVisits = 4

func requests(e *evidence, a activity.Account, m *measured) {
	withCall(e, a, m)
	if max(a.Visits, e.main.Entries(a.Place, origin.Requests)) >= manyVisits {
		m.Advice = e.forRequests(a)
	}
}

// forRequests is what helps against many requests, without what the program does: tasks of an event loop can be several at
// once, which their own findings say, and a session uses its connection again.
func (e *evidence) forRequests(a activity.Account) Advice {
	kept := e.main.CallsOf(a.Place, origin.KeepsConnections)
	tasks := float64(timeline.Total(timeline.Common(e.main.LoopIdle(), a.Where))) >= activity.MostShare*float64(a.Total)
	switch {
	case kept && tasks:
		return NoAdvice
	case tasks:
		return KeepConnection
	case kept:
		return RequestsAtOnce
	}
	return ManyRequests
}

func queries(e *evidence, a activity.Account, m *measured) {
	withCall(e, a, m)
	if max(a.Visits, e.main.Entries(a.Place, origin.Queries)) >= minVisits {
		m.Advice = FewerQueries
	}
}

func reading(e *evidence, a activity.Account, m *measured) {
	withCall(e, a, m)
	if a.Visits >= minVisits {
		m.Advice = ReadAhead
	}
}

func imports(e *evidence, _ activity.Account, m *measured) { m.Modules = e.main.Modules() }

// sleeping names who worked while the main thread slept: a loop that asks again
// and again whether they are done.
func sleeping(e *evidence, a activity.Account, m *measured) {
	m.Cores, m.CoreLimit = e.bystanders.Cores(a.Where)
	if e.bystanders.ChildCores(a.Where) >= activity.BusyCores {
		m.Actors = e.bystanders.ProcessesDuring(a.Where)
		return
	}
	if list := e.bystanders.ProcessesDuring(a.Where); e.bystanders.Covered(a.Where) >= nearlyAlways && e.bystanders.HaveEnded(e.main.Ended) {
		m.Actors, m.Cores = list, math.NaN() // it slept until they were done, or they ran beside it: only that is known
		return
	}
	for _, actor := range e.bystanders.ThreadsDuring(a.Where) {
		if actor.Cause.Computes() && float64(actor.CPU) >= activity.BusyCores*float64(a.Total) {
			m.Actors = append(m.Actors, actor)
		}
	}
}

// nearlyAlways is the share of a sleep for which children lived that may be what it was for.
const nearlyAlways = 0.8

func waitingForChildren(e *evidence, a activity.Account, m *measured) {
	m.Actors = e.bystanders.ProcessesDuring(a.Where)
	m.Cores, m.CoreLimit = e.bystanders.ChildCores(a.Where), 0
	if _, limit := e.bystanders.Cores(a.Where); limit > 0 {
		m.CoreLimit = limit
	}
	e.whileTheyLived(m, a)
}

// whileTheyLived takes off a wait for child processes what of it was before the first began or after the last had ended, as
// where a shell's end is polled for, if they were seen for most of it: of shorter ones nobody knows when they lived.
func (e *evidence) whileTheyLived(m *measured, a activity.Account) {
	covered := e.bystanders.Covered(a.Where)
	if covered < nearlyAlways || slices.ContainsFunc(m.Actors, func(one activity.Actor) bool { return one.AtLeast }) {
		return
	}
	m.Time = min(m.Time, timeline.Nanos(covered*float64(m.Time)))
	m.Value = e.share(m.Time)
	m.low = min(m.low, m.Value)
}

// waitingForLock adds who had the lock; where that is not known, what was called.
func waitingForLock(e *evidence, a activity.Account, m *measured) {
	switch {
	case e.namesHolder(a, m):
	case e.stacks.Says(a.Place, activity.LocksFile): // a function of C
		m.Call = activity.Call{Package: "fcntl", Function: "flock"}
	default:
		withCall(e, a, m)
	}
}

// namesHolder adds the threads that had the lock which was waited for; false where none is known to have had one.
func (e *evidence) namesHolder(a activity.Account, m *measured) bool {
	holders := e.bystanders.AwaitedDuring(a.Where, timeline.ObjectLock)
	if len(holders) == 0 {
		return false
	}
	m.Actors, m.HasLock = e.own(holders), true
	m.Cores, m.CoreLimit = e.bystanders.Cores(a.Where)
	return true
}

// own leaves out the places of actors that are not in the user's own code.
func (e *evidence) own(list []activity.Actor) []activity.Actor {
	for i := range list {
		if at := &list[i].Place; !e.stacks.Own(at.File) {
			*at = activity.Place{}
		}
	}
	return list
}

// amongst are those of several actors that did the same as one of others; all of them where none did.
func amongst(actors, others []activity.Actor) []activity.Actor {
	var list []activity.Actor
	for _, a := range actors {
		if slices.ContainsFunc(others, func(o activity.Actor) bool { return alike(o, a) }) {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		return actors
	}
	return list
}

// alike reports whether two actors did the same.
func alike(a, b activity.Actor) bool { return a.Place == b.Place && a.Cause == b.Cause }

// isOneOf reports whether a thread is one of several that did the same, as those of a pool, which are waited for one by one.
func isOneOf(actors []activity.Actor, a activity.Actor) bool {
	return len(actors) > 0 && actors[0].Count > 1 && alike(actors[0], a)
}

// delays reports whether a thread that does this waits for nothing that another thread of the program does.
func delays(c activity.Cause) bool {
	return c == activity.Sleep || c == activity.UserInput || c == activity.Child || c.Kind() == activity.InputOutput
}

// littleActivity is the share of a wait below which what other threads did is not what it was for.
const littleActivity = 0.2

// hardlyActive reports whether threads were active for a small part of a wait: they waited, too, as two do that have each other's lock.
func hardlyActive(actors []activity.Actor, wait timeline.Nanos) bool {
	active := timeline.Nanos(0)
	for _, a := range actors {
		active += a.Active
	}
	return float64(active) < littleActivity*float64(wait)
}

// waitingForThreads adds what the other threads did.
func waitingForThreads(e *evidence, a activity.Account, m *measured) {
	if e.namesHolder(a, m) {
		return
	}
	// Another thread may have computed beside those whose end was waited for, but it is they that took so long.
	m.Actors = e.own(e.bystanders.ThreadsDuring(a.Where))
	if joined := e.own(e.bystanders.AwaitedDuring(a.Where, timeline.ObjectThread)); len(joined) > 0 && !isOneOf(m.Actors, joined[0]) {
		// What it did may be unknown, as where its target is a function in C, and nobody else moved.
		if delays(joined[0].Cause) || hardlyActive(m.Actors, a.Total) || e.bystanders.OnlyStill(a.Where) {
			for i := range joined {
				if joined[i].Cause == activity.Lock && joined[i].Place == (activity.Place{}) { // by the line of threading that calls the target
					joined[i].Cause = activity.Waiting
				}
			}
			m.Actors = joined
		}
	}
	if computed := e.own(e.bystanders.AwaitedDuring(a.Where, timeline.ObjectFuture)); len(computed) > 0 {
		m.Actors = amongst(m.Actors, computed)
	}
	m.Cores, m.CoreLimit = e.bystanders.Cores(a.Where)
	if children := e.bystanders.ChildCores(a.Where); children > 0 { // which are no threads' work
		m.Cores = max(m.Cores-children, 0)
	}
	if len(m.Actors) > 0 && m.Actors[0].Place == (activity.Place{}) {
		m.Call, _ = e.main.Called(a.Place, func(c activity.Cause) bool { return c == activity.Thread || activity.NeedsResolving(c) })
	}
}

// waitsForEvents is an event loop without anything to do, where what its tasks waited for is not known.
func waitsForEvents(e *evidence) measured {
	for _, known := range []measured{ofOwnLoop(e, tasksWait), ofOwnLoop(e, awaitsInTurn)} {
		if known.low >= waitsForEventsShare {
			return nothing // the line of the thread would be that at which one task waits for the others
		}
	}
	m := hostRule(awaiting, activity.EventLoop)(e)
	if idle := e.main.LoopIdle(); timeline.Total(idle) > m.Time && m.Time > 0 { // tasks sleep, or wait for threads and processes, too
		m.Time, m.Evidence = timeline.Total(idle), idle
		m.Value = e.share(m.Time)
	}
	return m
}

// waitsForEventsShare is the share of the recording from which on an event loop that waits is a finding.
const waitsForEventsShare = 0.30

func awaiting(e *evidence, a activity.Account, m *measured) {
	if a.Visits >= manyVisits && len(e.stacks.TasksAt(e.main.Process)) == 0 {
		m.Advice = AwaitTogether
	}
}

// noFreeCPU is of a program that has more to compute than there are CPUs.
func noFreeCPU(e *evidence) measured {
	if e.stacks.OthersTakeCPUs {
		return nothing
	}
	return hostRule(coresInUse, activity.NoCPU)(e)
}

func coresInUse(e *evidence, _ activity.Account, m *measured) {
	m.Cores, m.CoreLimit = e.bystanders.Cores(e.always())
	if m.CoreLimit > 1 {
		m.Advice = FewerThreads
	}
}

// noFreeCPUShare is the share of the recording from which on a thread that was seen
// to want a CPU is a finding.
const noFreeCPUShare = 0.15

// worthNative is the share of the recording from which on native code may have used several
// CPUs for a good part of it.
const worthNative = 0.2

// busyMachine is the time for which the main thread wanted a CPU and had none, by what the
// scheduler counts, where the program is not the reason. Where the stacks lay meanwhile is
// true all the same; how long it took is not the program's doing.
func busyMachine(e *evidence) measured {
	if e.main.Thread == nil || e.main.OnCPU < 0 || e.explainedByGPUs() || tooFew(e.rec) != nil ||
		e.share(noFreeCPU(e).Time) >= noFreeCPUShare || !e.bystanders.AllBusy(e.always()) {
		return nothing
	}
	runnable, native, off := timeline.Nanos(0), timeline.Nanos(0), timeline.Nanos(0)
	for _, s := range e.main.Spans {
		if s.State.Runnable() {
			runnable += s.End - s.Start
		}
		switch s.State {
		case timeline.StateNative:
			native += s.End - s.Start
		case timeline.StateOff:
			off += s.End - s.Start
		}
	}
	// Spans that could not be weighed seem to compute when they are delayed.
	f := Finding{Time: max(runnable-e.main.OnCPU, off), Cause: activity.NoCPU, Cores: math.NaN()}
	// It may be a library's own threads or the program's processes that had the CPUs.
	if e.share(native) >= worthNative || e.bystanders.HasChildren(e.always()) {
		f.Cores, f.CoreLimit = e.bystanders.Cores(e.always())
	}
	return e.of(f)
}

// brief is how long a notebook may do something after an error without anybody waiting for it.
const brief = timeline.Nanos(100 * time.Millisecond)

// afterTheError is a time for which a cell's user waited after the error.
func afterTheError(of func(*timeline.Recording) timeline.Nanos) func(*evidence) measured {
	return func(e *evidence) measured {
		took := of(e.rec)
		if took < brief {
			return nothing
		}
		share := float64(took) / float64(took+e.rec.Duration)
		return measured{Finding: Finding{Time: took, Value: share, Cores: math.NaN()}, low: share, lost: share}
	}
}

// begunLate is the time that a cell had run for before it was recorded.
func begunLate(e *evidence) measured {
	if e.rec.Late <= 0 {
		return nothing
	}
	share := float64(e.rec.Late) / float64(e.rec.Late+e.rec.Duration)
	return measured{Finding: Finding{Time: e.rec.Late, Value: share, Cores: math.NaN()}, low: share, lost: share}
}

// stacksUnknown is the time in which nothing is known of the program, and the reason
// of most of it. At its start and end that is said by the interpreter's own findings,
// unless a launcher takes its time.
func stacksUnknown(e *evidence) measured {
	var times [timeline.NumGapReasons]timeline.Nanos
	f := Finding{}
	if e.stacks.About.Launcher {
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
	a := e.main.AccountOf(activity.Only(activity.GIL))
	m := e.of(findingOf(a))
	m.Actors = e.bystanders.HoldersDuring(a.Where)
	m.Advice = AvoidGIL
	return m
}

// threadsTakeTurns looks at the threads that the main thread waits for: of the
// time they would have worked, how much they waited for the GIL.
func threadsTakeTurns(e *evidence) measured {
	a := e.main.AccountOf(activity.Only(activity.Thread))
	if e.explainedByGPUs() || a.Total == 0 {
		return nothing
	}
	turns := e.bystanders.TurnsDuring(a.Where)
	if turns.Threads < 2 {
		return nothing
	}
	f := findingOf(a)
	f.Place, f.PlaceTime, f.Evidence = turns.Place, 0, turns.When // not where the same threads slept before, and none of Time is there
	f.Cost = turns.Held / timeline.Nanos(turns.Threads)
	f.Count, f.Value = int64(turns.Threads), float64(turns.Held)/float64(turns.Active)
	f.Actors = e.bystanders.ThreadsDuring(a.Where)
	f.Cores, f.CoreLimit = e.bystanders.Cores(a.Where)
	f.Advice = AvoidGIL
	return measured{Finding: f, low: f.Value, lost: e.share(a.Total)}
}

// minMessages keeps a short burst of output from counting as printing a lot.
const minMessages = 300

func printing(e *evidence) measured {
	out := e.rec.Output
	if out == nil || out.Messages < minMessages {
		return nothing
	}
	f := Finding{Count: out.Messages, Bytes: out.Bytes, AtLeast: out.AtLeast, Advice: PrintLess, Cores: math.NaN()}
	f.Time, f.Place, f.PlaceTime, f.Evidence = e.main.StackTime(func(f timeline.Frame) bool { return e.stacks.Files.Means(f)&origin.SendsOutput != 0 })
	f.Cost = f.Time
	f.Value = float64(out.Messages) / e.rec.Duration.Seconds()
	return measured{Finding: f, low: f.Value, lost: e.share(f.Time)}
}

func memoryPressure(e *evidence) measured {
	f := Finding{Value: math.NaN(), Advice: FreeMemory, Cores: math.NaN()}
	for _, memory := range []struct{ track, name string }{{"rss", "process"}, {"mem.system", "machine"}} {
		t := e.stacks.Track(memory.track)
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
	t := e.stacks.Track("swap")
	if t == nil || len(t.Points) == 0 || math.IsNaN(t.Peak) {
		return nothing
	}
	grown := t.Peak - t.Points[0].Value
	return measured{Finding: Finding{Value: grown, Bytes: int64(grown), Advice: LessMemory, Cores: math.NaN()}, low: grown, lost: 1}
}
