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

// tasksWait is the line of the user's own for which many tasks waited at once while the loop had nothing to do: for most of
// the time, or for what one of them has at a time, as a lock.
func tasksWait(e *evidence) measured {
	if e.main.Thread == nil || e.explainedByGPUs() {
		return nothing
	}
	idle := e.main.LoopIdle()
	lines := e.stacks.TasksAt(e.main.Process)
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
func awaitsInTurn(e *evidence) measured {
	if e.main.Thread == nil || e.explainedByGPUs() {
		return nothing
	}
	idle := e.main.LoopIdle()
	lines := e.stacks.TasksAt(e.main.Process)
	best := nothing
	for i := range lines {
		a := &lines[i]
		f := awaitFinding(a, timeline.Common(a.Alone, idle))
		if !a.InTurn() || f.Time <= best.Time || besideOthers(lines, i) {
			continue
		}
		call, sleeps := e.stacks.Awaited(a)
		if f.Call, f.Count = call, int64(a.Begun); !sleeps {
			f.AtLeast, f.Count = true, int64(min(e.main.Entries(a.Place, origin.Requests|origin.Queries), a.Begun))
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
func loopBlocked(e *evidence) measured {
	if e.main.Thread == nil || e.explainedByGPUs() {
		return nothing
	}
	ready, ok := e.stacks.ReadyTasks(e.main.Process)
	if !ok {
		return nothing
	}
	held, ok := e.main.LoopHeld(&ready)
	if !ok || held.Longest < worthBlocking {
		return nothing
	}
	return e.of(Finding{
		Time: held.Total, Cost: held.Total, Place: held.Place, PlaceTime: held.There, Evidence: held.Where, Cores: math.NaN(),
		Name: held.Function, Call: held.Call, Count: int64(ready.MostWithin(held.Where)), Advice: KeepLoopFree,
	})
}
