package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A text that nothing proves is not said to be changed.
func TestWhyATextIsNotShown(t *testing.T) {
	start := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		file timeline.CodeFile
		want string
	}{
		"written since the program started, without bytecode": {timeline.CodeFile{}, "[file-unproven /u/mod.py: the file is younger than the program, and whether its code was loaded from this text is not proven: the text of its lines is not shown]"},
		"the target had another text":                         {timeline.CodeFile{Loaded: start.Add(-time.Hour)}, "[file-changed /u/mod.py: the file was changed after its code was loaded: the text of its lines is not shown]"},
		"the target had this one":                             {timeline.CodeFile{Loaded: start.Add(-time.Minute)}, "[]"},
		"the target had this one, and runs functions of another": {timeline.CodeFile{Loaded: start.Add(-time.Minute), Elsewhere: []timeline.FunctionStart{{Function: "load", FirstLine: 5}, {Function: "load", FirstLine: 6}, {Function: "save", FirstLine: 9}}},
			"[function-outdated /u/mod.py: the code that ran of load, save was loaded from a text that the file no longer has: shown without lines]"},
	} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: start})
		main := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Main: true, RunsCell: true})
		b.Set(main, 0, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "load", File: "/u/mod.py", Line: 7})), timeline.StatePython, false)
		rec := b.Snapshot(second)
		rec.Target = timeline.Target{PID: 1, Argv: []string{"python", "/u/main.py"}, Started: start.Add(-time.Hour)}
		file := test.file
		file.Name, file.Modified, file.Placed = "/u/mod.py", start.Add(-time.Minute), start.Add(-time.Minute)
		rec.CodeFiles = []timeline.CodeFile{file}
		var got []string
		for _, note := range build(t, rec, nil, Options{}).Notes {
			got = append(got, note.ID+" "+note.Text)
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}
}
