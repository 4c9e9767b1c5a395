package origin

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestWhatIsKnownOfATextIsProvenUnprovenOrChanged(t *testing.T) {
	start := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) // of the recording; the target has run for an hour
	const second = timeline.Nanos(1e9)
	function := timeline.Frame{Function: "load", File: "/home/u/helpers.py", Line: 7}
	module := timeline.Frame{Function: "<module>", File: "/home/u/helpers.py", Line: 9}
	caller := timeline.Frame{Function: "<module>", File: "/tmp/ipykernel_1/2.py", Line: 1}
	stacks := func(s ...[]timeline.Frame) [][]timeline.Frame { return s }
	called := stacks([]timeline.Frame{caller, function})
	compiled := func(d time.Duration) *timeline.Bytecode {
		return &timeline.Bytecode{Written: start.Add(d), Matches: true}
	}
	for _, c := range []struct {
		name        string
		modified    time.Duration // from the recording's start
		placed      time.Duration // 0: with the text
		compiled    *timeline.Bytecode
		contradicts bool
		script      bool
		stacks      [][]timeline.Frame // one second each
		want        Text
	}{
		{name: "older than the target", modified: -2 * time.Hour, stacks: called},
		{name: "unpacked with an old time before the target started", modified: -9000 * time.Hour, placed: -2 * time.Hour, stacks: called},
		{name: "unpacked with an old time before the script started", modified: -9000 * time.Hour, placed: -2 * time.Hour, script: true, stacks: called},
		{name: "edited, and nothing shows what the code was made of", modified: -time.Minute, stacks: called, want: TextUnproven},
		{name: "edited since it was imported", modified: -time.Minute, compiled: &timeline.Bytecode{Written: start.Add(-time.Hour)}, stacks: called, want: TextUnproven},
		{name: "edited and then imported", modified: -time.Minute, compiled: compiled(-time.Second), stacks: called},
		{name: "edited and then imported, by another process", modified: -time.Minute, compiled: compiled(-time.Second), contradicts: true, stacks: called, want: TextChanged},
		{name: "of a script, edited and then imported by who knows whom", modified: -time.Minute, compiled: compiled(-time.Second), script: true, stacks: called, want: TextUnproven},
		{name: "imported by another process after it had been seen here", modified: -time.Minute, compiled: compiled(2 * time.Second), stacks: stacks([]timeline.Frame{caller, function}, []timeline.Frame{caller}), want: TextUnproven},
		{name: "run anew by the recorded cell", modified: -time.Minute, stacks: stacks([]timeline.Frame{caller}, []timeline.Frame{caller, module}, []timeline.Frame{caller, module, function})},
		{name: "edited while it ran", modified: 2500 * time.Millisecond, stacks: stacks([]timeline.Frame{caller}, []timeline.Frame{caller, module}, []timeline.Frame{caller, function}), want: TextChanged},
		{name: "written by the recorded cell and then run", modified: 500 * time.Millisecond, stacks: stacks([]timeline.Frame{caller}, []timeline.Frame{caller, module})},
		{name: "a script that ran before the recording", modified: -time.Minute, script: true, stacks: stacks([]timeline.Frame{module}, []timeline.Frame{module, function}), want: TextUnproven},
		{name: "replaced by a file with an older time", modified: -3 * time.Hour, placed: -time.Minute, script: true, stacks: called, want: TextUnproven},
		{name: "replaced by a file with an older time, of which there is no bytecode", modified: -3 * time.Hour, placed: -time.Minute, compiled: &timeline.Bytecode{Written: start.Add(-time.Hour)}, stacks: called, want: TextUnproven},
		{name: "made executable while it ran", modified: -3 * time.Hour, placed: -time.Minute, compiled: compiled(-time.Hour), script: true, stacks: called},
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
		if !c.script {
			rec.Target.Cell = &timeline.Cell{File: caller.File}
		}
		file := timeline.CodeFile{Name: function.File, Modified: start.Add(c.modified), Placed: start.Add(c.modified), Compiled: c.compiled, Contradicts: c.contradicts}
		if c.placed != 0 {
			file.Placed = start.Add(c.placed)
		}
		rec.CodeFiles = []timeline.CodeFile{file}
		if got := Texts(rec)[function.File]; got != c.want {
			t.Errorf("%s: the text is %v, want %v", c.name, got, c.want)
		}
		for loaded, want := range map[time.Time]Text{file.Modified: TextProven, file.Modified.Add(-1): TextChanged} { // the target reports it
			rec.CodeFiles[0].Loaded = loaded
			if got := Texts(rec)[function.File]; got != want {
				t.Errorf("%s, and the target reported the time: the text is %v, want %v", c.name, got, want)
			}
		}
	}
}
