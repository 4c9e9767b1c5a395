package pytasks

import (
	"encoding/json"
	"slices"
	"strings"
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
		pid, line := start(t, python, "testdata/trio_kinds.py")
		var all []said
		if err := json.Unmarshal([]byte(line), &all); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, s := range all {
			if r := []rune(s.Name); len(r) > maxNameSize {
				s.Name = string(r[:maxNameSize]) + "…"
			}
			want = append(want, s.String())
		}
		slices.Sort(want)
		snapshot, err := open(t, pid).Read()
		if err != nil {
			t.Fatal(err)
		}
		running := 0
		snapshot.Tasks = slices.DeleteFunc(snapshot.Tasks, func(task Task) bool {
			if task.State == Running {
				running++
			}
			return task.State == Running
		})
		if got := describe(snapshot.Tasks); !slices.Equal(got, want) {
			t.Errorf("got %d tasks\n%s\nwant %d\n%s", len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
		}
		for _, task := range snapshot.Tasks {
			if task.State != Waiting || task.Cut {
				t.Errorf("%s is in state %d, cut %v: it waits", task.Name, task.State, task.Cut)
			}
		}
		if running != 2 || len(snapshot.Unread) > 0 || snapshot.Lost > 0 {
			t.Errorf("%d tasks run, want 2; unread %v, %d lost", running, snapshot.Unread, snapshot.Lost)
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
