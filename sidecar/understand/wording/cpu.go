package wording

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

func (s Scope) oneLine(f diagnose.Finding) string {
	return "spent " + s.part(f.Time) + " in " + s.Place(f.Place) + in(f) + cores(f) + cut(f)
}

func (s Scope) computing(f diagnose.Finding) string {
	return besides(f) + "computing took " + s.part(f.Time) + s.where(f) + in(f) + cores(f) + cut(f)
}

// besides says what the computing is without: "besides imports, ".
func besides(f diagnose.Finding) string {
	var names []string
	for _, c := range f.Besides {
		if c == activity.LoadHere { // whose thread it is says the loading's own sentence
			c = activity.Load
		}
		names = append(names, causes[c].name)
	}
	if len(names) == 0 {
		return ""
	}
	return "besides " + strings.Join(names, " and ") + ", "
}

func (s Scope) imports(f diagnose.Finding) string {
	if len(f.Modules) == 0 {
		return "imports took " + s.part(f.Time)
	}
	first, took, rest := "imports", f.Time, f.Modules
	single := len(rest) == 1 || rest[1].Inside
	if single && float64(rest[0].Nanos) >= most*float64(f.Time) { // a single import, and what it imports
		first, took, rest = "importing "+words.Clean(rest[0].Module, 60), rest[0].Nanos, rest[1:]
	}
	var parts []string
	for _, m := range rest {
		parts = append(parts, words.Clean(m.Module, 60)+" "+words.Seconds(m.Nanos.Seconds()))
	}
	text := first + " took " + s.part(took)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

func (s Scope) drawing(f diagnose.Finding) string {
	text := "drawing" + by(f) + " took " + s.part(f.Time)
	if s.Place(f.Place) != "" || f.Time <= 0 {
		return text + s.where(f)
	}
	switch share := float64(f.PlaceTime) / float64(f.Time); { // most of it at no line at all
	case share >= nearlyAll:
		return text + ", after the last line"
	case share >= most:
		return text + ", most of it after the last line"
	}
	return text
}

func (s Scope) aroundCell(f diagnose.Finding) string {
	return "the notebook's own work around the cell's code took " + s.part(f.Time)
}

func (s Scope) tracing(f diagnose.Finding) string {
	return "starting and stopping torch.profiler, and writing its trace, took " + s.part(f.Time)
}

func (s Scope) displaying(f diagnose.Finding) string {
	return "displaying the result took " + s.part(f.Time) + s.where(f) + in(f)
}

func (s Scope) loadsData(f diagnose.Finding) string {
	switch f.Cause {
	case activity.LoadWorker:
		return "waited " + s.part(f.Time) + " for the data loader's workers" + s.where(f) + s.work(f.Actors) + queue(f)
	case activity.LoadSampler:
		return "the data loader's sampler took " + s.part(f.Time) + s.where(f)
	}
	return "loading data took " + s.part(f.Time) + s.where(f) + covered(f)
}

// queue says how full that of a loader's workers was, where that shows whether they are too slow.
func queue(f diagnose.Finding) string {
	switch q := f.Queue; {
	case q.IsEmpty():
		return "; their queue was empty for " + words.Percent(q.Empty) + " of the time"
	case q.LieReady():
		return fmt.Sprintf("; half of the time %d of %s or more lay ready in their queue", q.Median, words.Plural(q.Most, "batch", "batches"))
	}
	return ""
}

// trainingLoads says of a training what loadsData says of a recording.
func (s Scope) trainingLoads(f diagnose.Finding) string {
	s.Duration = f.Whole
	if f.Cause == activity.LoadWorker {
		return "the training itself " + s.loadsData(f)
	}
	return "in the training itself, " + s.loadsData(f)
}

// stepsSlowDown says how much longer the last steps of a training were than its first, and with what.
func (s Scope) stepsSlowDown(f diagnose.Finding) string {
	verb := "took"
	if f.Computed {
		verb = "computed for"
	}
	text := "the last quarter of the steps " + verb + " " + words.Fixed(f.Against, 1) + " times as long as the first quarter, which cost " + s.part(f.Time)
	var in []string
	if f.Name != "" {
		in = append(in, words.Clean(f.Name, 60))
	}
	if place := s.Place(f.Place); place != "" {
		in = append(in, place)
	}
	if len(in) > 0 {
		text += ", most of it in " + strings.Join(in, ", ")
	}
	if f.Bytes > 0 {
		text += "; resident memory grew by " + words.Quantity(float64(f.Bytes), "B") + " meanwhile"
	}
	return text
}

// worthCovering is the share of the loading from which on it is said that workers could save it.
const worthCovering = 0.1

// covered says how much shorter a training could be at most whose loading workers do: handing over batches costs time, too.
func covered(f diagnose.Finding) string {
	if f.Against < worthCovering {
		return ""
	}
	return "; with worker processes it could be up to " + words.Seconds(f.Against*f.Time.Seconds()) + " shorter"
}

func (s Scope) waitsForChildren(f diagnose.Finding) string {
	text := "waited " + s.part(f.Time) + " for " + processes(f.Actors) + s.where(f)
	if f.Cores >= worthCores {
		text += "; " + pronoun(f.Actors) + " kept " + words.CoresUsed(f.Cores, f.CoreLimit) + " busy"
	}
	return text + s.work(f.Actors)
}

// worthCores is how many cores are worth saying: less is "0.0".
const worthCores = 0.05

// processes names child processes: "a child process (pip)", "4 pool workers and a child
// process (ffmpeg)".
func processes(actors []activity.Actor) string {
	others := 0
	var parts, names, short []string
	for _, a := range actors {
		role := timeline.RoleWorker
		if a.Work != nil {
			role = a.Work.Role
		}
		switch {
		case a.Name == "" && a.AtLeast:
			parts = append(parts, "many short "+roles[role][1])
			continue
		case a.Name == "":
			parts = append(parts, counted(a.Count, roles[role]))
			continue
		case a.AtLeast:
			if len(short) < 3 {
				short = append(short, words.Clean(a.Name, 40))
			}
			continue
		case len(names) < 3:
			names = append(names, words.Clean(a.Name, 40))
		}
		others += a.Count
	}
	if others > 0 {
		parts = append(parts, counted(others, [2]string{"child process", "child processes"})+" ("+strings.Join(names, ", ")+")")
	}
	if len(short) > 0 {
		parts = append(parts, "many short child processes ("+strings.Join(short, ", ")+")")
	}
	switch n := len(parts); n {
	case 0:
		return "child processes"
	case 1:
		return parts[0]
	default:
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
}

func counted(count int, of [2]string) string {
	if count == 1 {
		return "a " + of[0]
	}
	return words.Plural(count, of[0], of[1])
}

func pronoun(actors []activity.Actor) string {
	if len(actors) == 1 && actors[0].Count == 1 && !actors[0].AtLeast {
		return "it"
	}
	return "they"
}

func them(actors []activity.Actor) string {
	if pronoun(actors) == "it" {
		return "it"
	}
	return "them"
}

// threads names threads: "2 threads", "a thread (loader)".
func threads(actors []activity.Actor) string {
	count := 0
	for _, a := range actors {
		count += a.Count
	}
	what := words.Plural(count, "thread", "threads")
	switch count {
	case 0:
		return "other threads"
	case 1:
		what = "a thread"
	}
	if len(actors) == 1 && actors[0].Name != "" {
		what += " (" + words.Clean(actors[0].Name, 40) + ")"
	}
	return what
}

// at is the place where the first, busiest actors were: " in line 5".
func (s Scope) at(actors []activity.Actor) string {
	if len(actors) == 0 {
		return ""
	}
	place := s.Place(actors[0].Place)
	switch {
	case place == "":
		return ""
	case len(actors) > 1:
		return ", most in " + place
	}
	return " in " + place
}

func (s Scope) waitsForThreads(f diagnose.Finding) string {
	if f.HasLock {
		text := "the main thread waited " + s.part(f.Time) + s.where(f) + " for a lock that " + threads(f.Actors) + " had"
		if who, time := longest(f.Actors); who != "" {
			text += ", for " + time + " " + who
		}
		return text + ", which " + did(f.Actors[0].Cause) + s.at(f.Actors[:1])
	}
	if len(f.Actors) > 0 && computes(f.Actors[0].Cause) && f.Cores >= worthCores {
		busy, others := atWork(f.Actors)
		lock := ""
		if share := s.queued(busy); share != "" {
			lock = "; they queued for a lock " + share
		}
		return threads(busy) + " kept " + words.CoresUsed(f.Cores, f.CoreLimit) + " busy" + s.at(busy) +
			"; the main thread waited for " + them(busy) + others + ", " + s.part(f.Time) + s.where(f) + in(f) + lock
	}
	text := "the main thread waited " + s.part(f.Time) + s.where(f) + in(f) + " for " + threads(f.Actors)
	switch {
	case len(f.Actors) == 0, f.Actors[0].Cause == activity.Waiting: // for what is not known
	case !(f.Cores < worthCores && computes(f.Actors[0].Cause)): // who got no CPU did nothing
		first := f.Actors
		if who, time := longest(f.Actors); who != "" {
			text, first = text+", "+time+" of it for "+who, f.Actors[:1]
		}
		share := s.queued(f.Actors)
		if share != "" && f.Actors[0].Queued >= most {
			return text + ", which waited for a lock " + share + ", while one that had it " + did(f.Actors[0].Cause) + s.at(first)
		}
		text += ", which " + did(f.Actors[0].Cause) + s.at(first)
		if share != "" {
			text += " and queued for a lock " + share
		}
	}
	return text
}

// longest names the first of several actors, "one (load)", and for how long it was waited for; empty where that is not known.
func longest(actors []activity.Actor) (who, time string) {
	if len(actors) < 2 || actors[0].Awaited == 0 {
		return "", ""
	}
	who = "one"
	if actors[0].Count > 1 {
		who = strconv.Itoa(actors[0].Count)
	}
	if actors[0].Name != "" {
		who += " (" + words.Clean(actors[0].Name, 40) + ")"
	}
	return who, words.Seconds(actors[0].Awaited.Seconds())
}

// worthQueueing is the share of the time of threads for which they must have waited for locks, to be said.
const worthQueueing = 0.3

// queued is where and for how much of their time threads waited for a lock that one of them had: "in line 3, 62 % of their time";
// empty where that is little.
func (s Scope) queued(actors []activity.Actor) string {
	if len(actors) == 0 || actors[0].Count < 2 || actors[0].Queued < worthQueueing {
		return ""
	}
	text := words.Percent(actors[0].Queued) + " of their time"
	if place := s.Place(actors[0].QueuedAt); place != "" {
		return "in " + place + ", " + text
	}
	return text
}

// atWork are the actors that computed, or wanted to; others names those that did not:
// " and another thread".
func atWork(actors []activity.Actor) (busy []activity.Actor, others string) {
	rest := 0
	for _, a := range actors {
		if computes(a.Cause) || a.Cause.Kind() == activity.Contention {
			busy = append(busy, a)
		} else {
			rest += a.Count
		}
	}
	switch rest {
	case 0:
		return busy, ""
	case 1:
		return busy, " and another thread"
	}
	return busy, " and " + words.Plural(rest, "other thread", "other threads")
}

func computes(c activity.Cause) bool {
	return c.Kind() == activity.Host || c.Kind() == activity.Compilation
}

// did is what a thread did, in the past tense.
func did(c activity.Cause) string {
	switch {
	case c == activity.Sleep:
		return "slept"
	case c == activity.Waiting:
		return "waited"
	case c == activity.Import:
		return "imported modules"
	case c == activity.Draw:
		return "drew"
	case computes(c):
		return "computed"
	case c.Kind() == activity.Starvation:
		return "loaded data"
	}
	return "waited " + strings.TrimPrefix(causes[c].waited, "while the program ")
}

func (s Scope) waitsForEvents(f diagnose.Finding) string {
	text := "for " + s.part(f.Time) + " every task was waiting"
	if where := s.where(f); strings.HasPrefix(where, " in ") { // that of the program, or of the cell: where the others wait is the tasks'
		return text + ", the main one" + where
	}
	return text + s.where(f)
}

func (s Scope) sleeps(f diagnose.Finding) string {
	text := "slept for " + s.part(f.Time) + s.where(f)
	switch {
	case len(f.Actors) == 0:
		return text
	case math.IsNaN(f.Cores) && f.Actors[0].Process:
		return text + ", while " + processes(f.Actors) + " ran"
	case !(f.Cores >= worthCores):
		return text
	}
	who := threads(f.Actors)
	if f.Actors[0].Process {
		who = processes(f.Actors)
	}
	return text + ", while " + who + " kept " + words.CoresUsed(f.Cores, f.CoreLimit) + " busy"
}

func (s Scope) gilContention(f diagnose.Finding) string {
	text := "waited " + s.part(f.Time) + " for the GIL" + s.where(f)
	if len(f.Actors) > 0 {
		text += "; " + threads(f.Actors) + " held it" + s.at(f.Actors)
	}
	return text
}

func (s Scope) threadsTakeTurns(f diagnose.Finding) string {
	text := words.Plural(int(f.Count), "thread", "threads") + " took turns at the GIL"
	if place := s.Place(f.Place); place != "" {
		text += " in " + place
	}
	return text + ": they waited for it " + words.Percent(f.Value) + " of their time"
}

func (s Scope) noFreeCPU(f diagnose.Finding) string {
	text := "waited " + s.part(f.Time) + " for a free CPU" + s.where(f)
	if f.CoreLimit > 0 && !math.IsNaN(f.Cores) {
		text += "; the program itself used " + words.CoresUsed(f.Cores, f.CoreLimit)
	}
	return text
}

func (s Scope) busyMachine(f diagnose.Finding) string {
	text := "for " + s.part(f.Time) + " no CPU was free"
	if f.CoreLimit > 0 && !math.IsNaN(f.Cores) {
		text += "; the program itself used " + words.CoresUsed(f.Cores, f.CoreLimit)
	}
	return text
}

// noLine names the function, where one has most of the time, or those that have a good part of it.
func (s Scope) noLine(f diagnose.Finding) string {
	if place := s.Place(f.Place); place != "" && f.Name != "" {
		text := "spent " + s.part(f.PlaceTime) + " in the function " + words.Clean(f.Name, 60) + " (" + place + ")"
		if line := s.Place(f.Next); line != "" {
			return text + ", most of it in " + line
		}
		return text + "; no single line of it stands out"
	}
	if len(f.Lines) > 0 {
		parts := make([]string, len(f.Lines))
		for i, l := range f.Lines {
			parts[i] = s.Place(l.Place) + " " + words.Seconds(l.Nanos.Seconds())
		}
		return "no single line stands out; the lines with the most time: " + strings.Join(parts, ", ")
	}
	if len(f.Functions) == 0 {
		return "no single line stands out"
	}
	parts := make([]string, len(f.Functions))
	for i, m := range f.Functions {
		parts[i] = words.Clean(m.Name, 60) + " " + words.Seconds(m.Nanos.Seconds())
	}
	return "no single line stands out; the functions with the most time: " + strings.Join(parts, ", ")
}

// saving distinguishes writing from reading, where the call does.
func (s Scope) saving(f diagnose.Finding) string {
	what := "saving or loading"
	switch name := f.Call.Function[strings.LastIndexByte(f.Call.Function, '.')+1:]; {
	case strings.HasPrefix(name, "save"), strings.HasPrefix(name, "dump"):
		what = "saving"
	case strings.HasPrefix(name, "load"):
		what = "loading"
	}
	return took(what)(s, f)
}

// lockKinds are what their users call them.
var lockKinds = map[string]string{
	"threading.Event": "an event", "threading.Barrier": "a barrier", "threading.Condition": "a condition",
	"threading.Semaphore": "a semaphore", "threading.BoundedSemaphore": "a semaphore",
	"fcntl.flock": "the lock of a file",
	"queue.Queue": "a queue", "queue.PriorityQueue": "a queue", "queue.LifoQueue": "a queue",
}

// waitsForLock names the kind of what was waited for, where the call does at which nearly all of it was.
func (s Scope) waitsForLock(f diagnose.Finding) string {
	if f.HasLock {
		return s.waitsForThreads(f)
	}
	what := "a lock, a queue or an event"
	class, _, _ := strings.Cut(f.Call.Function, ".")
	if kind, known := lockKinds[f.Call.Package+"."+class]; known && float64(f.PlaceTime) >= nearlyAll*float64(f.Time) {
		what = kind
	}
	f.Call = activity.Call{}
	return waited("for "+what)(s, f)
}

func (s Scope) stacksUnknown(f diagnose.Finding) string {
	return "for " + s.part(f.Time) + " nothing is known of the program: " + Gap(f.Gap)
}

func (s Scope) traceback(f diagnose.Finding) string {
	return "formatting the traceback took " + words.Seconds(f.Time.Seconds()) + " after the error"
}

func (s Scope) drawnAfterError(f diagnose.Finding) string {
	return "drawing figures took " + words.Seconds(f.Time.Seconds()) + " after the error"
}

func (s Scope) begunLate(f diagnose.Finding) string {
	if f.Value >= nearlyAll {
		return "nearly all of the cell was not recorded, the first " + words.Seconds(f.Time.Seconds()) +
			": the profiler was not ready, or did not know of it, as where the code holds the GIL from the start"
	}
	return "the first " + words.Seconds(f.Time.Seconds()) + " of the cell were not recorded: the profiler was not ready"
}

func (s Scope) printing(f diagnose.Finding) string {
	least := ""
	if f.AtLeast {
		least = "at least "
	}
	return fmt.Sprintf("the cell printed %s%s (%s), %s a second", least, words.Plural(int(f.Count), "message", "messages"),
		words.Quantity(float64(f.Bytes), "B"), words.Count(int64(f.Value)))
}

func (s Scope) memoryPressure(f diagnose.Finding) string {
	if f.Name == "machine" {
		return "the machine's memory was " + words.Percent(f.Value) + " full"
	}
	return "the program's memory reached " + words.Percent(f.Value) + " of what it may use"
}

func (s Scope) swapping(f diagnose.Finding) string {
	return words.Quantity(float64(f.Bytes), "B") + " of memory was swapped out to disk meanwhile"
}
