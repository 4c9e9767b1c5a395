package comparison

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// ranAs is a report of a script, or of a cell, of which functions of its own ran.
func ranAs(name, text string, cell bool, functions ...string) *report.View {
	doc := &report.Document{Targets: []report.Target{{Name: name}}, Files: []report.File{{Name: name, Code: report.CodeCell}}}
	if cell {
		doc.Targets[0].Cell = &report.Cell{}
	}
	if text != "" {
		for line := range strings.SplitSeq(text, "\n") {
			doc.Files[0].Lines = append(doc.Files[0].Lines, &line)
		}
	}
	for _, f := range append(functions, "<module>", "main") {
		doc.Functions = append(doc.Functions, report.Function{Name: f})
	}
	return &report.View{Document: doc}
}

func TestDifferentPrograms(t *testing.T) {
	const fib = "import time\ndef fib(n):\n    return fib(n - 1) + fib(n - 2)\ndef main():\n    print(fib(27))\nmain()"
	const parse = "import time\nimport json\ndef parse(text):\n    return json.loads(text)\ndef main():\n    for i in range(4):\n        parse(text)\nmain()"
	script := ranAs("a.py", fib, false, "fib")
	for _, c := range []struct {
		name  string
		other *report.View
		want  bool
	}{
		{"another script", ranAs("b.py", parse, false, "parse"), true},
		{"another one without functions", ranAs("b.py", "x = 1\ny = x + 1", false), true},
		{"another one whose text is not known", ranAs("b.py", "", false, "parse"), true},
		{"nothing is known of it", ranAs("b.py", "", false), false},
		{"the same script, rewritten", ranAs("a.py", parse, false, "parse"), false},
		{"a version under another name", ranAs("a2.py", strings.Replace(fib, "27", "28", 1), false, "fib"), false},
		{"a version whose functions have other names", ranAs("a2.py", strings.Replace(fib, "27", "28", 1), false, "helper"), false},
		{"a version with all lines edited", ranAs("a2.py", parse, false, "fib", "parse"), false},
		{"a cell", ranAs("Cell [7]", parse, true, "parse"), true},
	} {
		if got, back := unrelated(script, c.other), unrelated(c.other, script); got != c.want || back != c.want {
			t.Errorf("%s: %v and %v, want %v", c.name, got, back, c.want)
		}
	}
	if unrelated(ranAs("Cell [6]", fib, true, "fib"), ranAs("Cell [7]", parse, true, "parse")) {
		t.Error("two cells are different programs")
	}
}
