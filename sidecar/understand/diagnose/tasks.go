package diagnose

import (
	"math"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

const (
	// worthBlocking is from when on a call is said to block an event loop: shorter ones are what tasks are made of.
	worthBlocking = timeline.Nanos(20 * time.Millisecond)
	// besides is the share of the time of awaits that others may overlap, of those that are said to be alone.
	besides = 0.1
	// mostlyWaits is the share of the recording from which on tasks that wait are a finding by themselves.
	mostlyWaits = 0.30
	// inTurnShare and inTurnTime are what has to be saved where awaits that follow each other overlap: of less nobody
	// would rewrite a program.
	inTurnShare = 0.10
	inTurnTime  = timeline.Nanos(300 * time.Millisecond)
)

// couldOverlap reports whether it is worth a finding that so many awaits followed each other: at once they would take as
// long as one.
func (e *evidence) couldOverlap(took timeline.Nanos, awaits int64) bool {
	saved := took - took/timeline.Nanos(max(awaits, 1))
	return e.share(took) >= mostlyWaits || awaits >= manyVisits && saved >= inTurnTime && e.share(saved) >= inTurnShare
}

// ofLoops measures the loop of the thread that the recording is about; where that shows nothing, and the thread mostly waits, those
// of its child processes: theirs may be what it waits for, so it comes after what says so.
func ofLoops(measure func(*evidence, *activity.Reading) measured) func(*evidence) measured {
	return func(e *evidence) measured {
		m := ofOwnLoop(e, measure)
		if math.IsNaN(m.low) && e.onlyWaits() {
			m = ofChildLoops(e, measure)
		}
		return m
	}
}

func ofOwnLoop(e *evidence, measure func(*evidence, *activity.Reading) measured) measured {
	if e.main.Thread == nil || e.explainedByGPUs() {
		return nothing
	}
	return measure(e, e.main)
}

// ofChildLoops is the child process in whose loop the longest time was so, with the number of those in which the same line was it.
func ofChildLoops(e *evidence, measure func(*evidence, *activity.Reading) measured) measured {
	best, places := nothing, make(map[activity.Place]int64)
	for _, process := range e.stacks.WithTasks() {
		t := e.stacks.MainThread(process)
		if process == e.main.Process || t == nil {
			continue
		}
		m := measure(e, t)
		if math.IsNaN(m.low) {
			continue
		}
		if places[m.Place]++; math.IsNaN(best.low) || m.Time > best.Time {
			m.Process = &e.rec.Processes[process]
			best = m
		}
	}
	if best.lost *= partly; best.Process != nil && places[best.Place] > 1 {
		best.Actors = []activity.Actor{{Process: true, Count: int(places[best.Place]) - 1, CPU: -1}}
	}
	return best
}

// onlyWaits reports whether the thread that the recording is about did nothing itself for most of the time.
func (e *evidence) onlyWaits() bool {
	if e.main.Thread == nil || e.explainedByGPUs() || e.leading() != nil {
		return false
	}
	waits := timeline.Nanos(0)
	for _, s := range e.diagnosis.Spent {
		if kind := s.Cause.Kind(); kind == activity.Waits || kind == activity.InputOutput {
			waits += s.Nanos
		}
	}
	return 2*waits > e.whole()
}

// tasksWait is the line of the user's own for which many tasks waited at once while the loop had nothing to do: for most of
// the time, or for what one of them has at a time, as a lock.
func tasksWait(e *evidence, t *activity.Reading) measured {
	idle := t.LoopIdle()
	lines := e.stacks.TasksAt(t.Process)
	for i := range lines { // that with the most waiting first
		a := &lines[i]
		if a.Most < 2 || a.InTurn() {
			continue
		}
		f := awaitFinding(a, timeline.Common(a.Where, idle))
		f.Count, f.Against = int64(a.Most), a.Mean()
		f.Name = e.rec.Frames[a.Function].Function
		inTurn := false
		if f.Call, _ = e.stacks.Awaited(a); strings.HasSuffix(f.Call.Function, ".acquire") {
			if held := e.stacks.Held(a, lines); held != nil {
				f.Next, f.NextTime = held.Place, held.Some
				inTurn = held.InTurn() && e.couldOverlap(f.Time, int64(held.Begun))
			}
		}
		m := e.of(f)
		if m.low >= mostlyWaits {
			m.lost = e.share(timeline.Total(idle)) // of all waits that of these tasks is the one to look at
			return m
		}
		if inTurn {
			return m
		}
	}
	return nothing
}

// awaitsInTurn is the line of the user's own at which tasks waited again and again, mostly one alone.
func awaitsInTurn(e *evidence, t *activity.Reading) measured {
	idle := t.LoopIdle()
	lines := e.stacks.TasksAt(t.Process)
	best := nothing
	for i := range lines {
		a := &lines[i]
		f := awaitFinding(a, timeline.Common(a.Alone, idle))
		if !a.InTurn() || f.Time <= best.Time || besideOthers(lines, i) {
			continue
		}
		call, sleeps := e.stacks.Awaited(a)
		if f.Call, f.Count = call, int64(a.Begun); !sleeps {
			f.AtLeast, f.Count = true, int64(min(t.Entries(a.Place, origin.Requests|origin.Queries), a.Begun))
		}
		if f.Count < manyVisits || !e.couldOverlap(f.Time, f.Count) {
			continue
		}
		f.Advice, f.Against = AwaitTogether, timeline.Total(a.Alone).Seconds()/float64(f.Count)
		if a.Most > 1 {
			f.Together, f.NextTime = a.Most, a.Some-timeline.Total(a.Alone)
		}
		best = e.of(f)
	}
	return best
}

func awaitFinding(a *activity.AwaitLine, where []timeline.Interval) Finding {
	time := timeline.Total(where)
	return Finding{Time: time, Cost: time, Cause: activity.EventLoop, Place: a.Place, PlaceTime: time, Evidence: where, Cores: math.NaN()}
}

// besideOthers reports whether tasks waited at other lines while one did at the line of a list.
func besideOthers(lines []activity.AwaitLine, at int) bool {
	for i := range lines {
		if i != at && float64(timeline.Total(timeline.Common(lines[i].Where, lines[at].Alone))) > besides*float64(timeline.Total(lines[at].Alone)) {
			return true
		}
	}
	return false
}

// loopBlocked is the call that kept the event loop from tasks that were ready.
func loopBlocked(e *evidence, t *activity.Reading) measured {
	ready, ok := e.stacks.ReadyTasks(t.Process)
	if !ok {
		return nothing
	}
	held, ok := t.LoopHeld(&ready)
	if !ok || held.Longest < worthBlocking {
		return nothing
	}
	return e.of(Finding{
		Time: held.Total, Cost: held.Total, Place: held.Place, PlaceTime: held.There, Evidence: held.Where, Cores: math.NaN(),
		Name: held.Function, Call: held.Call, Count: int64(ready.MostWithin(held.Where)), Advice: KeepLoopFree,
	})
}
