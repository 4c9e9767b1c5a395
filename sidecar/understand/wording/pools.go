package wording

import (
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// roles are what one worker of a role is called, and several.
var roles = map[timeline.Role][2]string{
	timeline.RoleRank:         {"rank", "ranks"},
	timeline.RolePoolWorker:   {"pool worker", "pool workers"},
	timeline.RoleLoaderWorker: {"DataLoader worker", "DataLoader workers"},
	timeline.RoleWorker:       {"worker process", "worker processes"},
	timeline.RoleForkServer:   {"fork server", "fork servers"},
	timeline.RoleTracker:      {"resource tracker", "resource trackers"},
	timeline.RoleProfiler:     {"omni-perf", "omni-perf"},
	timeline.RoleDaskWorker:   {"Dask worker", "Dask workers"},
	timeline.RoleRayWorker:    {"Ray worker", "Ray workers"},
	timeline.RoleEngine:       {"engine", "ipyparallel engines"},
}

// Process names a process that descends from the target: "DataLoader worker 3",
// "rank 1", else its command.
func Process(p timeline.Process) string {
	name, known := roles[p.Role]
	text := name[0]
	switch {
	case !known:
		text = words.Clean(p.Command, 40)
	case p.Number != nil:
		text = fmt.Sprintf("%s %d", text, *p.Number)
	}
	if text == "" {
		text = fmt.Sprintf("process %d", p.PID)
	}
	if p.Rank != nil && p.Role != timeline.RoleRank {
		text += fmt.Sprintf(" of rank %d", *p.Rank)
	}
	return text
}

// Pool names the members of a pool: "4 DataLoader workers", "2 DataLoader workers (started 6 times)", "3 runs of pip".
func Pool(p timeline.Pool) string {
	if p.Role == timeline.RoleChild {
		return fmt.Sprintf("%d runs of %s", len(p.Members), words.Clean(p.Command, 40))
	}
	if p.AtOnce > 0 && p.AtOnce < len(p.Members) {
		text := words.Plural(p.AtOnce, roles[p.Role][0], roles[p.Role][1])
		if len(p.Members)%p.AtOnce == 0 {
			return fmt.Sprintf("%s (started %d times)", text, len(p.Members)/p.AtOnce)
		}
		return fmt.Sprintf("%s at a time (%d in all)", text, len(p.Members))
	}
	return counted(len(p.Members), roles[p.Role])
}

var noStacks = map[timeline.NoStacks]string{
	timeline.StacksNotAsked:    "only its figures were asked for",
	timeline.StacksNotPython:   "it does not run Python",
	timeline.StacksDenied:      "the system does not allow reading it",
	timeline.StacksUnsupported: "its Python cannot be read from outside",
	timeline.StacksTooShort:    "it ended before it could be looked at",
	timeline.StacksTooMany:     "there were more processes than are kept apart",
	timeline.StacksFailed:      "no stacks could be read from its memory",
}

// NoStacks says why the stacks of a process were not read.
func NoStacks(s timeline.StackReading) string {
	text := noStacks[s.Reason]
	if text == "" {
		text = string(s.Reason)
	}
	if s.Detail != "" {
		text += ": " + s.Detail
	}
	return text
}

const (
	// worthWorkers are the shares from which on what workers did is worth a word.
	worthPlace     = 0.10
	worthStarting  = 0.30
	worthStarved   = 0.50
	worthImbalance = 0.25
)

// work says what worker processes did, as the end of a sentence about a wait for them.
func (s Scope) work(actors []activity.Actor) string {
	for _, a := range actors {
		w := a.Work
		if w == nil {
			continue
		}
		who, their, one := "they", "their", 1
		if a.Count == 1 {
			who, their, one = "it", "its", 0
		}
		if len(actors) > 1 { // the others did something else
			who = "the " + roles[w.Role][one]
		}
		text := ""
		if place := s.Place(a.Place); place != "" && w.AtPlace*w.Working >= worthPlace {
			text = "; " + who + " spent " + words.Percent(w.AtPlace*w.Working) + " of " + their + " time in " + place
		}
		switch {
		case w.Starting >= worthStarting && text != "":
			text += ", " + words.Percent(w.Starting) + " starting up"
		case w.Starting >= worthStarting:
			text = "; " + who + " spent " + words.Percent(w.Starting) + " of " + their + " time starting up"
		case w.Starved >= worthStarved:
			text += "; for " + words.Percent(w.Starved) + " of " + their + " time " + who + " had no task"
		case w.Imbalance >= worthImbalance && a.Count > 1:
			text += fmt.Sprintf("; %s %d worked longest, they worked %s less on average", roles[w.Role][0], w.Slowest, words.Percent(w.Imbalance))
		}
		return text
	}
	return ""
}
