package pytasks

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// eachTrio runs a test by each version whose environment has trio.
func eachTrio(t *testing.T, test func(*testing.T, truth.Interpreter)) {
	t.Helper()
	for _, minor := range truth.Minors {
		t.Run(minor, func(t *testing.T) {
			test(t, truth.Interpreter{Minor: minor, Path: truth.With(t, "trio", minor)})
		})
	}
}

// The names, chains and lines of trio's tasks in every kind of wait are those that the program itself sees.
func TestTasksOfTrioAreWhatTheProgramSays(t *testing.T) {
	eachTrio(t, func(t *testing.T, python truth.Interpreter) {
		snapshot := compareTasks(t, python, "testdata/trio_kinds.py", 2)
		if len(snapshot.Unread) > 0 || snapshot.Lost > 0 {
			t.Errorf("unread %v, %d lost", snapshot.Unread, snapshot.Lost)
		}
	})
}

// A task of trio whose event is set, or whose deadline has passed, waits for its turn.
func TestTasksOfTrioThatGoOnAreReady(t *testing.T) {
	eachTrio(t, func(t *testing.T, python truth.Interpreter) { readyOnes(t, python, "testdata/trio_ready.py") })
}

// The seconds that tasks of trio wait in a function, and how many do on average, are what the tasks measure.
func TestWaitingTimesOfTrio(t *testing.T) {
	eachTrio(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(t *retry.Attempt) { compareClocks(t, python, "testdata/trio_clocked.py") })
	})
}
