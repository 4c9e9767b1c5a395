package wording

import (
	"fmt"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
)

// An import that took most of the time of imports did not take all of it.
func TestImportsSayWhatTheNamedOneTook(t *testing.T) {
	scope := Scope{Duration: 20 * second, Place: func(activity.Place) string { return "" }}
	f := diagnose.Finding{ID: diagnose.Imports, Time: 20 * second, Modules: []activity.ModuleTime{
		{Module: "torch", Nanos: 16 * second}, {Module: "torch.fx", Nanos: 2 * second, Inside: true},
	}}
	if got, want := scope.Finding(f), "Importing torch took 16.0 of 20.0 s: torch.fx 2.0 s."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.Modules = []activity.ModuleTime{{Module: "scipy.signal", Nanos: 8 * second}} // the rest was of modules of one's own
	if got, want := scope.Finding(f), "Imports took all of 20.0 s: scipy.signal 8.0 s."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.Modules = []activity.ModuleTime{{Module: "torch", Nanos: 16 * second}, {Module: "pandas", Nanos: 4 * second}}
	if got, want := scope.Finding(f), "Imports took all of 20.0 s: torch 16.0 s, pandas 4.0 s."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Nobody keeps 0.0 of 2 cores busy.
func TestNoCoresAreNotSaid(t *testing.T) {
	scope := Scope{Duration: 10 * second, Place: func(activity.Place) string { return "" }}
	loop := activity.Actor{Name: "IO loop", Count: 1, Cause: activity.Python}
	for _, c := range []struct {
		id    diagnose.FindingID
		cores float64
		want  string
	}{
		{diagnose.WaitsForThreads, 0.04, "The main thread waited 9.0 of 10.0 s for a thread (IO loop)."},
		{diagnose.WaitsForThreads, 0.4, "A thread (IO loop) kept 0.4 of 2 cores busy; the main thread waited for it, 9.0 of 10.0 s."},
		{diagnose.Sleeps, 0.04, "Slept for 9.0 of 10.0 s."},
		{diagnose.Sleeps, 0.4, "Slept for 9.0 of 10.0 s, while a thread (IO loop) kept 0.4 of 2 cores busy."},
	} {
		f := diagnose.Finding{ID: c.id, Time: 9 * second, Cores: c.cores, CoreLimit: 2, Actors: []activity.Actor{loop}}
		if got := scope.Finding(f); got != c.want {
			t.Errorf("%s, %v cores: %q, want %q", c.id, c.cores, got, c.want)
		}
	}
}

// A call is said to be what took a line's time, or most of it.
func TestACallHasALinesTimeOrMostOfIt(t *testing.T) {
	scope := Scope{Duration: 6 * second, Place: func(activity.Place) string { return "line 4" }}
	f := diagnose.Finding{ID: diagnose.OneLine, Time: 57 * second / 10, PlaceTime: 57 * second / 10, Call: activity.Call{Package: "torch", Function: "Tensor.backward"}}
	for share, want := range map[float64]string{
		0.95: "Spent 5.7 of 6.0 s in line 4, in backward (torch).",
		0.62: "Spent 5.7 of 6.0 s in line 4, most of that in backward (torch).",
		0.2:  "Spent 5.7 of 6.0 s in line 4, 1.1 s of it in backward (torch).", // it slept, too
		0.01: "Spent 5.7 of 6.0 s in line 4.",
		0:    "Spent 5.7 of 6.0 s in line 4, in backward (torch).", // not known
	} {
		if f.CallShare = share; scope.Finding(f) != want {
			t.Errorf("%v: %q, want %q", share, scope.Finding(f), want)
		}
	}
}

// Of two lines that have half of a time each neither has most of it.
func TestHalvesAreSaid(t *testing.T) {
	scope := Scope{Duration: 10 * second, Place: func(p activity.Place) string {
		if p.Line == 0 {
			return ""
		}
		return fmt.Sprint("line ", p.Line)
	}}
	f := diagnose.Finding{ID: diagnose.Sleeps, Time: 10 * second, Place: activity.Place{File: "a", Line: 2}, PlaceTime: 49 * second / 10}
	f.Next, f.NextTime = activity.Place{File: "a", Line: 4}, 5*second
	if got, want := scope.Finding(f), "Slept for all of 10.0 s, half of it in line 2 and half in line 4."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.Next, f.NextTime, f.PlaceTime = activity.Place{}, 0, 7*second
	if got, want := scope.Finding(f), "Slept for all of 10.0 s, most of it in line 2."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
