package pystack

import (
	"os"
	"os/exec"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// How many batches lie ready is read while the thread does something else, on each interpreter, and nothing of what is not torch's.
func TestBatchesThatLieReadyAreCounted(t *testing.T) {
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		folder := t.TempDir() // as in TestBatchesOfALoaderAreRead
		if err := os.CopyFS(folder, os.DirFS("testdata/standin")); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PYTHONPATH", folder)
		retry.Again(t, func(t *retry.Attempt) { checkQueues(t, python.Path) })
	})
}

func checkQueues(t *retry.Attempt, python string) {
	t.Helper()
	var want []struct {
		Began, Ended int64
		Ready        int // -1: nothing is to be read
	}
	source, err := os.ReadFile("testdata/queues.py")
	if err != nil {
		t.Fatal(err)
	}
	rec := recordAnswer(t, exec.Command(python, "-c", string(source)), &want)
	seen := make([]int, len(want))
	for _, r := range rec.Queues {
		at := rec.Origin + int64(r.At)
		for i, w := range want {
			if at < w.Began+2e6 || at > w.Ended-2e6 { // a tick is read a little later than it begins
				continue
			}
			seen[i]++
			if r.Ready != w.Ready {
				t.Errorf("stretch %d: %d batches ready, want %d", i, r.Ready, w.Ready)
			}
		}
	}
	for i, w := range want {
		if w.Ready >= 0 && seen[i] == 0 {
			t.Errorf("stretch %d, with %d batches ready, has no reading", i, w.Ready)
		}
	}
}
