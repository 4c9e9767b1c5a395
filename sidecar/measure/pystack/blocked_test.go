package pystack

import (
	"fmt"
	"maps"
	"math"
	"os/exec"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// What a thread waits for in a system call is said by its name, and for as long as the program says itself.
func TestWhatSystemCallsWaitFor(t *testing.T) {
	python := truth.Any(t).Path
	retry.Again(t, func(t *retry.Attempt) {
		got, want := blockedIn(t, python)
		for name, seconds := range want {
			if found := got[name]; math.Abs(found-seconds) > 0.03 {
				t.Errorf("%s: %.3f s, it says %.3f", name, found, seconds)
			}
		}
		for name, seconds := range got {
			if _, known := want[name]; !known && seconds > 0.05 {
				t.Errorf("%s was waited for for %.3f s", name, seconds)
			}
		}
	})
}

// Connections that follow one another at one line are kept apart, though the stack looks the same at each reading.
func TestNewConnectionsAreWaitedForApart(t *testing.T) {
	python := truth.Any(t).Path
	retry.Again(t, func(t *retry.Attempt) {
		want := make(map[string]float64)
		rec := recordAnswer(t, exec.Command(python, "testdata/connections.py"), &want)
		got, connections := make(map[string]float64), make(map[string]map[int]bool)
		for _, thread := range rec.Threads {
			for _, s := range thread.Spans {
				if on := rec.Objects[s.On]; thread.Main && on.Call == "recv" {
					got[on.Name] += (s.End - s.Start).Seconds()
					if connections[on.Name] == nil {
						connections[on.Name] = make(map[int]bool)
					}
					connections[on.Name][on.Connection] = true
				}
			}
		}
		for name, seconds := range want {
			if math.Abs(got[name]-seconds) > 0.1*seconds || len(connections[name]) != 4 {
				t.Errorf("%s: %.3f s in %d connections; it says %.3f s in 4", name, got[name], len(connections[name]), seconds)
			}
		}
	})
}

func TestNamesOfWhatIsWaitedForAreLeftOut(t *testing.T) {
	t.Setenv(MaskWaits, "1")
	python := truth.Any(t).Path
	retry.Again(t, func(t *retry.Attempt) {
		got, _ := blockedIn(t, python)
		names := slices.Sorted(maps.Keys(got))
		want := []string{"accept socket ", "flock file ", "poll socket ", "read pipe ", "recv socket ", "select pipe ", "wait process sleep"}
		if !slices.Equal(names, want) {
			t.Errorf("%q, want %q", names, want)
		}
	})
}

// blockedIn is for how long the main thread of the program was blocked on what, and what it says of that.
func blockedIn(t *retry.Attempt, python string) (got, want map[string]float64) {
	t.Helper()
	want, got = make(map[string]float64), make(map[string]float64)
	rec := recordAnswer(t, exec.Command(python, "testdata/blocks.py", t.TempDir()), &want)
	for _, thread := range rec.Threads {
		for _, s := range thread.Spans {
			if s.On != 0 && thread.Main && s.State != timeline.StateUnknown {
				on := rec.Objects[s.On]
				got[fmt.Sprintf("%s %s %s", on.Call, on.Kind, on.Name)] += (s.End - s.Start).Seconds()
			}
		}
	}
	return got, want
}
