package wording_test

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
)

func TestHowAProcessEnded(t *testing.T) {
	for _, c := range []struct {
		code     int
		bySignal bool
		want     string
	}{
		{0, false, ""}, {1, false, "exit code 1"}, {137, false, "exit code 137"}, {137, true, "ended by SIGKILL"}, {130, true, "interrupted"},
		{130, false, "exit code 130"}, {139, true, "ended by SIGSEGV"}, {128 + 40, true, "ended by signal 40"},
	} {
		if got := wording.Ended(c.code, c.bySignal); got != c.want {
			t.Errorf("%d, by a signal %v: %q, want %q", c.code, c.bySignal, got, c.want)
		}
	}
}
