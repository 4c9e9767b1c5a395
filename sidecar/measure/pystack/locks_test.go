package pystack

import (
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// Who has the lock that a thread waits for, or which thread it joins, is said for as long as the program says itself; of
// locks whose holder nothing shows, nobody is.
func TestWhoHasALock(t *testing.T) {
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		source, err := os.ReadFile("testdata/locks.py")
		if err != nil {
			t.Fatal(err)
		}
		right := make(map[string]bool) // in this attempt or an earlier one
		retry.Again(t, func(t *retry.Attempt) {
			want := make(map[string]float64)
			rec := recordAnswer(t, exec.Command(python.Path, "-c", string(source)), &want)
			got := mainWaited(rec, func(on timeline.Object) string {
				if on.IsOfThread() && on.Holder >= 0 && (on.Kind == timeline.ObjectLock || rec.Threads[on.Holder].Name == "is joined") {
					return rec.Threads[on.Holder].Name
				}
				return ""
			})
			for name, seconds := range want {
				found := got[name]
				if delete(got, name); strings.HasPrefix(name, "no ") {
					seconds = 0
				}
				right[name] = right[name] || math.Abs(found-seconds) <= 0.03
				if !right[name] || found > seconds+0.03 {
					t.Errorf("%s: %.3f s, it says %.3f", name, found, seconds)
				}
			}
			for name, seconds := range got {
				t.Errorf("%s was waited for for %.3f s", name, seconds)
			}
		})
	})
}
