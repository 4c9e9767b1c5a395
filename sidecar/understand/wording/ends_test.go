package wording_test

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
)

func TestHowAProcessEnded(t *testing.T) {
	for _, c := range []struct {
		code             int
		bySignal         bool
		exception, place string
		want             string
	}{
		{0, false, "", "", ""}, {1, false, "", "", "exit code 1"}, {137, false, "", "", "exit code 137"}, {137, true, "", "", "ended by SIGKILL"},
		{130, true, "", "", "interrupted"}, {130, false, "", "", "exit code 130"}, {139, true, "", "", "ended by SIGSEGV"},
		{128 + 40, true, "", "", "ended by signal 40"}, {1, false, "ValueError", "train.py:31", "ended by ValueError at train.py:31"},
		{1, false, "ValueError", "", "ended by ValueError"}, {130, true, "KeyboardInterrupt", "train.py:31", "interrupted at train.py:31"},
	} {
		end := wording.End{Code: &c.code, BySignal: c.bySignal, Exception: c.exception, Place: c.place}
		if got := end.String(); got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
	if got := (wording.End{Exception: "ValueError"}).String(); got != "ended by ValueError" {
		t.Errorf("without an exit code: %q", got)
	}
}
