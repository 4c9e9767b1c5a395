package origin

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

func TestChanged(t *testing.T) {
	start := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) // of the recording; the target has run for an hour
	const second = timeline.Nanos(1e9)
	function := timeline.Frame{Function: "load", File: "/home/u/helpers.py", Line: 7}
	module := timeline.Frame{Function: "<module>", File: "/home/u/helpers.py", Line: 9}
	caller := timeline.Frame{Function: "<module>", File: "/tmp/ipykernel_1/2.py", Line: 1}
	for _, c := range []struct {
		name     string
		modified time.Duration // from the recording's start
		compiled *timeline.Bytecode
		stacks   [][]timeline.Frame // one second each
		want     bool
	}{
		{"older than the target", -2 * time.Hour, nil, [][]timeline.Frame{{caller, function}}, false},
		{"edited, and nothing tells what the code was made of", -time.Minute, nil, [][]timeline.Frame{{caller, function}}, true},
		{"edited since it was imported", -time.Minute, &timeline.Bytecode{Written: start.Add(-time.Hour)}, [][]timeline.Frame{{caller, function}}, true},
		{"edited and then imported", -time.Minute, &timeline.Bytecode{Written: start.Add(-time.Second), Matches: true}, [][]timeline.Frame{{caller, function}}, false},
		{"imported by another process after it had been seen here", -time.Minute, &timeline.Bytecode{Written: start.Add(2 * time.Second), Matches: true}, [][]timeline.Frame{{caller, function}, {caller}}, true},
		{"run anew by the recorded cell", -time.Minute, nil, [][]timeline.Frame{{caller}, {caller, module}, {caller, module, function}}, false},
		{"edited while it ran", 2500 * time.Millisecond, nil, [][]timeline.Frame{{caller}, {caller, module}, {caller, function}}, true},
		{"written by the recorded cell and then run", 500 * time.Millisecond, nil, [][]timeline.Frame{{caller}, {caller, module}}, false},
		{"a script that ran before the recording", -time.Minute, nil, [][]timeline.Frame{{module}, {module, function}}, true},
	} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: start})
		main := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Main: true})
		for i, stack := range c.stacks {
			node := timeline.RootNode
			for _, f := range stack {
				node = b.Child(node, b.Frame(f))
			}
			b.Set(main, timeline.Nanos(i)*second, node, timeline.StatePython, false)
		}
		rec := b.Snapshot(timeline.Nanos(len(c.stacks)) * second)
		rec.Target.Started = start.Add(-time.Hour)
		file := timeline.CodeFile{Name: function.File, Modified: start.Add(c.modified), Compiled: c.compiled}
		rec.CodeFiles = []timeline.CodeFile{file}
		if got := Changed(rec)[function.File]; got != c.want {
			t.Errorf("%s: changed %v, want %v", c.name, got, c.want)
		}
		if c.modified < -time.Hour {
			continue
		}
		for loaded, want := range map[time.Time]bool{file.Modified: false, file.Modified.Add(-1): true} { // the target tells
			rec.CodeFiles[0].Loaded = loaded
			if got := Changed(rec)[function.File]; got != want {
				t.Errorf("%s, and the target told the time: changed %v, want %v", c.name, got, want)
			}
		}
	}
}
