package wording

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Headline is what to read first: the main finding, or why there is none, and
// what was not observed.
func (s Scope) Headline(d *diagnose.Diagnosis) string {
	var sentences []string
	main, found := d.Main()
	switch h := d.Headline; {
	case h.TooFew != nil && (has(d, diagnose.Traceback) || has(d, diagnose.DrawnAfterError) || has(d, diagnose.BegunLate)): // the time that was waited for is there
	case h.TooFew != nil:
		sentences = append(sentences, TooFew(*h.TooFew))
	case found:
		sentences = append(sentences, s.Finding(d.Findings[main]))
	case h.NoStacks:
		sentences = append(sentences, "No Python stacks were recorded.")
	case !mostlyUnknown(d):
		sentences = append(sentences, "Nothing stands out.")
	}
	for _, i := range d.Headline.Limits {
		sentences = append(sentences, s.Finding(d.Findings[i]))
	}
	return strings.Join(sentences, " ")
}

// mostlyUnknown reports whether nothing is known of the program for most of the time: then
// what stands out is that.
func mostlyUnknown(d *diagnose.Diagnosis) bool {
	return slices.ContainsFunc(d.Headline.Limits, func(i int) bool {
		return d.Findings[i].ID == diagnose.StacksUnknown && d.Findings[i].Value >= most
	})
}

// has reports whether one of the headline's limits is this one.
func has(d *diagnose.Diagnosis, id diagnose.FindingID) bool {
	return slices.ContainsFunc(d.Headline.Limits, func(i int) bool { return d.Findings[i].ID == id })
}

// TooFew says that a recording was too short for its interval.
func TooFew(t diagnose.TooFew) string {
	text := "Too short to profile: only " + words.Plural(int(t.Samples), "sample", "samples") + "."
	if t.Samples == 0 {
		text = "Too short to profile: no samples."
	}
	if t.Interval > 0 {
		text += " Run again with -p " + words.Decimal(t.Interval.Seconds()) + "."
	}
	return text
}

// Finding is a finding in one sentence with the figure it rests on.
func (s Scope) Finding(f diagnose.Finding) string {
	if write, ok := sentences[f.ID]; ok {
		if f.OfRank {
			s.Duration = f.Whole
		}
		text := write(s, f)
		if f.AfterEnd && f.ID != diagnose.SlowExit && f.ID != diagnose.Tracing { // torch.profiler starts behind an import
			text = "after the last line " + text
		}
		if f.OfRank {
			text = fmt.Sprintf("rank %d: ", f.Rank) + text
		}
		return words.Sentence(text)
	}
	return ""
}

// sentences write each finding; words.Sentence gives them their capital and stop.
var sentences = map[diagnose.FindingID]func(Scope, diagnose.Finding) string{
	diagnose.GPUWaitsForData:        Scope.gpuWaited,
	diagnose.GPUWaitsForLaunches:    Scope.gpuWaited,
	diagnose.GPUWaitsForHost:        Scope.gpuWaited,
	diagnose.GPUWaitsForIO:          Scope.gpuWaited,
	diagnose.GPUWaitsForCheckpoint:  Scope.gpuWaited,
	diagnose.GPUWaitsForCompilation: Scope.gpuWaited,
	diagnose.GPUWaitsForRanks:       Scope.gpuWaited,
	diagnose.GPUWaitsForWaits:       Scope.gpuWaited,
	diagnose.GPUWaitsForContention:  Scope.gpuWaited,
	diagnose.GPUWaitsForCopies:      Scope.gpuWaited,
	diagnose.GPUWaitsForSync:        Scope.gpuWaited,
	diagnose.GPUWaitsAtStart:        Scope.gpuWaited,
	diagnose.GPUWaitsAtExit:         Scope.gpuWaited,
	diagnose.GPUIdleUndecided:       Scope.gpuUndecided,
	diagnose.GPUIdle:                Scope.gpuIdle,
	diagnose.GPUBusy:                Scope.gpuBusy,
	diagnose.GPULost:                Scope.gpuLost,
	diagnose.GPUError:               Scope.gpuError,
	diagnose.GPUUnused:              Scope.gpuUnused,
	diagnose.GPUMemoryNearFull:      Scope.gpuMemory,
	diagnose.GPUMemoryCollectives:   Scope.gpuMemoryCollectives,
	diagnose.GPUThrottled:           Scope.gpuThrottled,
	diagnose.GPUPowerCapped:         Scope.gpuThrottled,
	diagnose.SomeGPUsIdle:           Scope.someGPUsIdle,
	diagnose.SyncInLoop:             Scope.syncInLoop,
	diagnose.HostDeviceCopies:       Scope.copies,

	diagnose.RankFailed:       Scope.rankFailed,
	diagnose.WorkerKilled:     Scope.workerKilled,
	diagnose.OneLine:          Scope.oneLine,
	diagnose.Computing:        Scope.computing,
	diagnose.NoLineStandsOut:  Scope.noLine,
	diagnose.CollectsGarbage:  took("garbage collection"),
	diagnose.Imports:          Scope.imports,
	diagnose.Drawing:          Scope.drawing,
	diagnose.Displaying:       Scope.displaying,
	diagnose.AroundCell:       Scope.aroundCell,
	diagnose.Tracing:          Scope.tracing,
	diagnose.Compiling:        took("compiling"),
	diagnose.Saving:           Scope.saving,
	diagnose.LoadsData:        Scope.loadsData,
	diagnose.TrainingLoads:    Scope.trainingLoads,
	diagnose.StepsSlowDown:    Scope.stepsSlowDown,
	diagnose.WaitsForNetwork:  waited("for the network"),
	diagnose.WaitsForDatabase: waited("for a database"),
	diagnose.WaitsForIO:       waited("for input or output"),
	diagnose.WaitsForUser:     waited("for the user's input"),
	diagnose.WaitsForChildren: Scope.waitsForChildren,
	diagnose.WaitsForThreads:  Scope.waitsForThreads,
	diagnose.WaitsForLock:     Scope.waitsForLock,
	diagnose.WaitsForRanks:    waited("for other ranks"),
	diagnose.WaitsForEvents:   Scope.waitsForEvents,
	diagnose.TasksWait:        ofLoop(Scope.tasksWait),
	diagnose.AwaitsInTurn:     ofLoop(Scope.awaitsInTurn),
	diagnose.LoopBlocked:      ofLoop(Scope.loopBlocked),
	diagnose.WaitsUnknown:     waited(""),
	diagnose.Sleeps:           Scope.sleeps,
	diagnose.Straggler:        Scope.straggler,
	diagnose.GILContention:    Scope.gilContention,
	diagnose.ThreadsTakeTurns: Scope.threadsTakeTurns,
	diagnose.NoFreeCPU:        Scope.noFreeCPU,
	diagnose.BusyMachine:      Scope.busyMachine,
	diagnose.StacksUnknown:    Scope.stacksUnknown,
	diagnose.Traceback:        Scope.traceback,
	diagnose.DrawnAfterError:  Scope.drawnAfterError,
	diagnose.BegunLate:        Scope.begunLate,
	diagnose.Printing:         Scope.printing,
	diagnose.MemoryPressure:   Scope.memoryPressure,
	diagnose.Swapping:         Scope.swapping,
	diagnose.SlowStartUp: func(s Scope, f diagnose.Finding) string {
		if part, whole := strings.CutPrefix(s.part(f.Time), "all of "); whole {
			return "the interpreter's start took all of it (" + part + ")"
		}
		return "the interpreter took " + s.part(f.Time) + " to start"
	},
	diagnose.SlowExit: func(s Scope, f diagnose.Finding) string {
		text := "after the last line the interpreter took " + s.part(f.Time) + " to end"
		if where, whole := strings.CutPrefix(s.where(f), " in "); whole {
			return text + ", in " + where
		}
		return text + s.where(f)
	},
}

// part says a length of time and the recording's: "1.9 of 2.1 s".
func (s Scope) part(n timeline.Nanos) string { return words.PartOf(n.Seconds(), s.Duration.Seconds()) }

// Where the whole of a time, or most of it, is said to be at a place.
const (
	nearlyAll = 0.9
	most      = 0.5
)

// where says how much of a time was at a place: " in line 3", ", most of it in
// line 3", ", half of it in line 3 and half in line 5", ", 31 % of it in line 3". Where it is " in line 3", that line has the same figure.
func (s Scope) where(f diagnose.Finding) string {
	place := s.Place(f.Place)
	if place == "" || f.Time <= 0 {
		return ""
	}
	switch share := float64(f.PlaceTime) / float64(f.Time); {
	case share >= nearlyAll && words.Seconds(f.PlaceTime.Seconds()) == words.Seconds(f.Time.Seconds()):
		return " in " + place
	case s.Place(f.Next) != "":
		return ", half of it in " + place + " and half in " + s.Place(f.Next)
	case share >= most:
		return ", most of it in " + place
	default:
		return ", " + words.Percent(share) + " of it in " + place
	}
}

// cut says that the time at a place was for the most part spent in what it called and
// nobody could read: ", in calls that could not be read", ", 1.5 s of it in calls …".
func cut(f diagnose.Finding) string {
	there := cmp.Or(f.PlaceTime, f.Time)
	switch share := float64(f.CutTime) / float64(max(there, 1)); {
	case share >= nearlyAll && there >= f.Time:
		return ", in calls that could not be read"
	case share >= most:
		return ", " + words.Seconds(f.CutTime.Seconds()) + " of it in calls that could not be read"
	}
	return ""
}

// worthCalling is the share of a line's time from which on a library function is named that it called.
const worthCalling = 0.05

// in is the library function a line called: ", in DataFrame.apply (pandas)", ", most of that in backward (torch)", ", 0.13 s of it in
// backward (torch)".
func in(f diagnose.Finding) string {
	name := words.Clean(f.Call.Package, 40)
	called := ", in "
	switch {
	case f.CallShare <= 0 || f.CallShare >= nearlyAll:
	case f.CallShare >= most:
		called = ", most of that in "
	case name == "", f.CallShare < worthCalling:
		return ""
	default:
		there := float64(cmp.Or(f.PlaceTime, f.Time))
		called = ", " + words.Seconds(time.Duration(f.CallShare*there).Seconds()) + " of it in "
	}
	switch {
	case f.Call.Function != "" && name != "":
		return called + words.Clean(displayName(f.Call.Function), 60) + " (" + name + ")"
	case name != "":
		return called + name
	case f.Cause == activity.Native:
		return called + "native code"
	}
	return ""
}

// displayName is a function as its user wrote it: a method by its name, since the class that
// defines it may be one that nobody outside of the library knows, and what Python calls by
// itself as the text of the line.
func displayName(function string) string {
	parts := strings.Split(function, ".")
	name, class := parts[len(parts)-1], ""
	if len(parts) > 1 {
		class = parts[len(parts)-2]
	}
	switch {
	case name == "__setitem__" || name == "__delitem__":
		return "item assignment"
	case name == "__getitem__":
		return "indexing"
	case slices.Contains(builtins, strings.Trim(name, "_")) && strings.HasPrefix(name, "__"):
		return strings.Trim(name, "_") + "()"
	case strings.HasPrefix(name, "__") && class != "": // __init__, __call__
		return class
	}
	return name
}

// builtins are the functions of Python's that ask an object for the method of their name.
var builtins = []string{"float", "int", "bool", "complex", "len", "iter", "next", "repr", "str", "format", "hash", "abs", "round", "reversed", "bytes", "dir"}

// by is the library that did it: " (matplotlib)".
func by(f diagnose.Finding) string {
	if f.Call.Package == "" {
		return ""
	}
	return " (" + words.Clean(f.Call.Package, 40) + ")"
}

// cores says how many CPUs were in use, where it was more than one.
func cores(f diagnose.Finding) string {
	const several = 1.3
	if !(f.Cores >= several) {
		return ""
	}
	return " on " + words.CoresUsed(f.Cores, f.CoreLimit)
}

func took(what string) func(Scope, diagnose.Finding) string {
	return func(s Scope, f diagnose.Finding) string { return what + by(f) + " took " + s.part(f.Time) + s.where(f) }
}

func waited(what string) func(Scope, diagnose.Finding) string {
	return func(s Scope, f diagnose.Finding) string {
		return strings.TrimRight("waited "+s.part(f.Time)+" "+what, " ") + by(f) + s.where(f)
	}
}
