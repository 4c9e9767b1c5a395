package pystack

import (
	"math"
	"os"
	"os/exec"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// The time of the garbage collector is above the line in which it set in, as long as its own callbacks say.
func TestGarbageCollection(t *testing.T) {
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(t *retry.Attempt) {
			rec, want := recordCollections(t, python.Path)
			var got timeline.Nanos
			for _, thread := range rec.Threads {
				for _, s := range thread.Spans {
					node := rec.Nodes[s.Node]
					if s.Node == timeline.RootNode || rec.Frames[node.Frame] != timeline.GarbageCollection {
						continue
					}
					got += s.End - s.Start
					if node.Parent == timeline.RootNode || s.State != timeline.StatePython {
						t.Errorf("a collection of no line, in state %v", s.State)
					}
				}
			}
			t.Logf("%.3f s of collections, it says %.3f", got.Seconds(), want)
			if off := math.Abs(got.Seconds() - want); off > 0.01+0.1*want {
				t.Errorf("%.3f s of collections, it says %.3f", got.Seconds(), want)
			}
		})
	})
}

func recordCollections(t *retry.Attempt, python string) (rec *timeline.Recording, seconds float64) {
	t.Helper()
	source, err := os.ReadFile("testdata/collects.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", string(source)) // an interpreter in a container has its own files
	var said struct{ Seconds float64 }
	rec = recordAnswer(t, cmd, &said)
	return rec, said.Seconds
}
