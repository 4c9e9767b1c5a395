package interpret

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestSentFunctionsAreFoundInTheCellThatDefinesThem(t *testing.T) {
	cells := []timeline.Source{
		{File: "/tmp/1.py", ExecutionCount: 1, Text: "import x\n\ndef work(i):\n    return i"},
		{File: "/tmp/2.py", ExecutionCount: 2, Text: "@timed\n@cached\nasync def fetch():\n    pass\nf = lambda i: i"},
		{File: "/tmp/3.py", ExecutionCount: 3, Text: "class Model:\n    def fit(self):\n        pass"},
		{File: "/tmp/4.py", ExecutionCount: 4, Text: "import x\n\ndef work(i):\n    return i"}, // run again
		{File: "/tmp/5.py", ExecutionCount: 5, Text: "def twice():\n    return 1"},
		{File: "/tmp/6.py", ExecutionCount: 6, Text: "def twice():\n    return 2"},
	}
	for _, c := range []struct {
		function string
		line     int
		want     string
	}{
		{"work", 3, "/tmp/4.py"}, {"fetch", 1, "/tmp/2.py"}, {"<lambda>", 5, "/tmp/2.py"}, {"Model.fit", 2, "/tmp/3.py"},
		{"make.<locals>.work", 3, "/tmp/4.py"}, {"work", 2, ""}, {"twice", 1, ""}, {"other", 1, ""}, {"work", 0, ""}, {"work", 99, ""},
	} {
		if got := definedIn(cells, c.function, c.line); got != c.want {
			t.Errorf("%s in line %d is of %q, want %q", c.function, c.line, got, c.want)
		}
	}
}
