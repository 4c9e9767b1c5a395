package diagnose

import (
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// unreadAfter is a script whose line runs for a second, after which its process has
// no stacks that can be read until the end, or until it is back in what was registered for the exit.
func unreadAfter(reason timeline.GapReason, back bool) *timeline.Recording {
	s := scene{script: true, acts: []act{{sec, 8, "", "", timeline.StatePython, 0}, {2 * sec, 0, "", "", timeline.StateUnknown, 0}}}
	if back {
		s.acts = append(s.acts, act{sec, 0, "/usr/lib/python3.12/threading.py", "_shutdown", timeline.StateNative, 0})
	}
	s.change = func(b *timeline.Builder) {
		b.BeginGap(1, sec, reason)
		if back {
			b.EndGap(1, 3*sec)
		}
	}
	return s.record()
}

// What a process did while nobody could read it is not known to be its exit.
func TestWhatIsUnreadIsNoExit(t *testing.T) {
	for _, reason := range []timeline.GapReason{timeline.GapUnreadable, timeline.GapExec, timeline.GapPermission, timeline.GapStopped, timeline.GapTraced} {
		d := Run(unreadAfter(reason, false))
		if slices.Contains(ids(d.Findings), SlowExit) {
			t.Errorf("%v: %+v", reason, d.Findings)
		}
		i := slices.IndexFunc(d.Findings, func(f Finding) bool { return f.ID == StacksUnknown })
		if i < 0 || d.Findings[i].Gap != reason || d.Findings[i].Time != 2*sec {
			t.Errorf("%v: %+v, want 2 s of which nothing is known", reason, d.Findings)
		}
		if got := timeOf(d, activity.Unknown); got != 2*sec {
			t.Errorf("%v: %v unknown, want 2 s", reason, got)
		}
	}
	if d := Run(unreadAfter(timeline.GapExit, false)); !slices.Contains(ids(d.Findings), SlowExit) || timeOf(d, activity.Exit) != 2*sec {
		t.Errorf("an interpreter that has shut down: %v, %+v", ids(d.Findings), d.Spent)
	}
}

// What follows a stop at the end is the exit.
func TestAnExitThatIsStopped(t *testing.T) {
	d := Run(unreadAfter(timeline.GapStopped, true))
	if got := timeOf(d, activity.Unknown); got != 2*sec {
		t.Errorf("%v unknown, want 2 s: %+v", got, d.Spent)
	}
	if got := timeOf(d, activity.Exit); got != sec {
		t.Errorf("%v of exit, want 1 s: %+v", got, d.Spent)
	}
}

// A stop before the first line is no start of the interpreter.
func TestAStartThatIsStopped(t *testing.T) {
	s := scene{script: true, acts: []act{
		{sec, 0, "<frozen site>", "main", timeline.StatePython, 0}, {2 * sec, 0, "", "", timeline.StateUnknown, 0}, {sec, 8, "", "", timeline.StatePython, 0},
	}}
	s.change = func(b *timeline.Builder) {
		b.BeginGap(1, sec, timeline.GapStopped)
		b.EndGap(1, 3*sec)
	}
	d := Run(s.record())
	if start, unknown := timeOf(d, activity.StartUp), timeOf(d, activity.Unknown); start != sec || unknown != 2*sec {
		t.Errorf("%v of start-up and %v unknown, want 1 and 2 s: %+v", start, unknown, d.Spent)
	}
}

func timeOf(d Diagnosis, c activity.Cause) (sum timeline.Nanos) {
	for _, s := range d.Spent {
		if s.Cause == c {
			sum += s.Nanos
		}
	}
	return sum
}
