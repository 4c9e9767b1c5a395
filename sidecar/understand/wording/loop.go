package wording

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// FewerOnAverage is the part of the most tasks at once from which on the average is no news.
const FewerOnAverage = 0.8

// ofLoop is a sentence about an event loop with the process that runs it, where it is not that of the recording's own thread.
func ofLoop(say func(Scope, diagnose.Finding) string) func(Scope, diagnose.Finding) string {
	return func(s Scope, f diagnose.Finding) string {
		text := say(s, f)
		if f.Process == nil {
			return text
		}
		text = "in " + Process(*f.Process) + ", " + text
		if len(f.Actors) > 0 {
			text += "; likewise in " + words.Plural(f.Actors[0].Count, "other process", "other processes")
		}
		return text
	}
}

func (s Scope) tasksWait(f diagnose.Finding) string {
	text := words.Plural(int(f.Count), "task", "tasks")
	switch {
	case f.Against <= 0 || f.Against >= FewerOnAverage*float64(f.Count):
		text += " waited at once"
	default:
		text = "up to " + text + " waited at once, " + words.Fixed(f.Against, 1) + " on average,"
	}
	var where []string
	for _, part := range []string{functionName(f.Name), s.Place(f.Place)} {
		if part != "" {
			where = append(where, part)
		}
	}
	if len(where) > 0 {
		text += " in " + strings.Join(where, ", ")
	}
	text += awaited(f) + ", for " + s.part(f.Time)
	if next := s.Place(f.Next); next != "" {
		had := "those that had it"
		if strings.HasSuffix(f.Call.Function, "Lock.acquire") {
			had = "the one that had it"
		}
		text += "; " + had + " waited in " + next
	}
	return text
}

// awaited is the library that was waited for, of one that runs tasks the function: " (httpx)", " (asyncio.Queue.get)".
func awaited(f diagnose.Finding) string {
	if origin.KnownModule(f.Call.Package).RunsTasks() && f.Call.Function != "" {
		return " (" + f.Call.Package + "." + words.Clean(f.Call.Function, 60) + ")"
	}
	return by(f)
}

func (s Scope) awaitsInTurn(f diagnose.Finding) string {
	text := "one after the other: "
	switch {
	case f.AtLeast && f.Together > 0: // those of which several waited at once are counted, too
		text += "awaits"
	case f.AtLeast:
		text += "at least " + words.Plural(int(f.Count), "await", "awaits")
	default:
		text += words.Plural(int(f.Count), "await", "awaits") + " of " + words.Seconds(f.Against)
	}
	if place := s.Place(f.Place); place != "" {
		text += " in " + place
	}
	if text += awaited(f); f.Together == 0 {
		return text + " never overlapped, " + s.part(f.Time)
	}
	return text + ", " + s.part(f.Time) + "; up to " + words.Plural(f.Together, "task", "tasks") + " waited there at once for " + words.Seconds(f.NextTime.Seconds())
}

func (s Scope) loopBlocked(f diagnose.Finding) string {
	text := "the event loop was blocked for " + s.part(f.Time)
	switch name := functionName(f.Name); {
	case f.Call.Function != "":
		text += " by " + words.Clean(displayName(f.Call.Function), 60) + "()" + by(f)
	case name != "":
		text += " by " + name + "()"
	}
	return text + s.where(f) + ready(f)
}

func ready(f diagnose.Finding) string {
	if f.Count == 1 {
		return "; a task was ready meanwhile"
	}
	return "; up to " + words.Plural(int(f.Count), "task", "tasks") + " were ready meanwhile"
}

// functionName is a function of the user's own by its name; empty for the code of a module or cell.
func functionName(function string) string {
	if function == "" || function[0] == '<' {
		return ""
	}
	return words.Clean(displayName(function), 60)
}

// Optimizers says whose steps a training's are where two optimizers step.
func Optimizers(o *diagnose.Optimizers, place func(activity.Place) string) string {
	in := func(at activity.Place) string {
		if text := place(at); text != "" {
			return " in " + text
		}
		return ""
	}
	return "steps: those of the optimizer that stepped first" + in(o.Place) + "; another one, " + words.Clean(o.Other, 60) + ", steps" + in(o.At) +
		", too: omni_perf.step() at the end of the loop's body decides what a step is"
}

// Elsewhere says how many steps other processes made than those whose steps are listed.
func Elsewhere(e diagnose.Elsewhere) string {
	return words.Plural(e.Processes, "other process", "other processes") + " made " + words.Plural(e.Steps, "step", "steps") + " of " + map[bool]string{true: "its", false: "their"}[e.Processes == 1] + " own"
}
