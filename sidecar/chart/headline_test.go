package chart

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/report"
)

func TestSubjectOfARecording(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"/usr/bin/python3", "/home/ann/train.py", "--epochs", "3"}, "train.py"},
		{[]string{"python", "-m", "pytest", "tests"}, "-m pytest"},
		{[]string{"python", "-c", "import time\ntime.sleep(3)"}, "python -c"},
		{[]string{"python"}, "Process 7"},
	} {
		r := &report.Report{}
		r.Target.Argv, r.Target.PID = c.argv, 7
		if got := subjectOf(r); got != c.want {
			t.Errorf("%q: got %q, want %q", c.argv, got, c.want)
		}
	}
}
