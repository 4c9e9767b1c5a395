package pytasks

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

const both = "[those of trio, whose loop ran, are not read: this version of trio keeps them elsewhere " +
	"those of curio, whose loop ran, are not read]"

// A loop whose tasks are not read is said to run while it does, and tasks of asyncio are read beside it.
func TestALoopThatIsNotReadIsSaidToRun(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target := startSteps(t, python.Path, "testdata/foreign.py")
		reader := open(t, target.pid)
		for _, want := range []struct {
			step, unread string
		}{{"nothing", "[]"}, {"being imported", "[]"}, {"imported", "[]"}, {"runs", both}, {"ended", "[]"}} {
			if line := target.next(); line != want.step {
				t.Fatalf("the program is at %q, want %q", line, want.step)
			}
			snapshot, err := reader.Read()
			if err != nil && !errors.Is(err, ErrNoLoops) {
				t.Fatal(err)
			}
			if got := fmt.Sprint(snapshot.Unread); got != want.unread {
				t.Errorf("%s: unread are %s, want %s", want.step, got, want.unread)
			}
			if want.step == "nothing" {
				continue
			}
			if text := strings.Join(describe(snapshot.Tasks), "\n"); !strings.Contains(text, "sleeps > sleeps:") {
				t.Errorf("%s: the tasks of asyncio are %q", want.step, text)
			}
		}
	})
}
