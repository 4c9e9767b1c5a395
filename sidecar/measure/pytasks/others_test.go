package pytasks

import (
	"errors"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// A loop whose tasks are not read is said to run while it does, and tasks of asyncio are read beside it.
func TestALoopThatIsNotReadIsSaidToRun(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target := startSteps(t, python.Path, "testdata/foreign.py")
		reader := open(t, target.pid)
		for _, want := range []struct {
			step   string
			unread bool
		}{{"nothing", false}, {"being imported", false}, {"imported", false}, {"runs", true}, {"ended", false}} {
			if line := target.next(); line != want.step {
				t.Fatalf("the program is at %q, want %q", line, want.step)
			}
			snapshot, err := reader.Read()
			if err != nil && !errors.Is(err, ErrNoLoops) {
				t.Fatal(err)
			}
			if got := len(snapshot.Unread) == 1 && strings.Contains(snapshot.Unread[0].Error(), "those of curio,"); got != want.unread || !got && len(snapshot.Unread) > 0 {
				t.Errorf("%s: unread are %v", want.step, snapshot.Unread)
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
