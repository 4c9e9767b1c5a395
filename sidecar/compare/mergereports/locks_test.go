package mergereports

import (
	"fmt"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Who had a lock keeps its place in the code, whichever number its file has in the merged report.
func TestWhoHadALock(t *testing.T) {
	locked := func(number int, holder string) *report.View {
		b := timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: time.Unix(1000, 0)})
		b.Describe(func(r *timeline.Recording) {
			r.Target = timeline.Target{PID: 50 + number, Argv: []string{"python", "/u/train.py"}, Rank: &timeline.Rank{Global: number, Local: number, World: 2}}
			r.Processes = []timeline.Process{{PID: 50 + number, ParentIndex: -1, Role: timeline.RoleScript, Command: "train.py"}}
			r.Host.BootID = "boot"
		})
		at := func(file string, line int) timeline.NodeID {
			return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: file, Line: line, FirstLine: 1}))
		}
		main := b.Thread(timeline.Thread{PID: 50 + number, NativeID: 50 + number, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
		other := b.Thread(timeline.Thread{PID: 50 + number, NativeID: 60 + number, Name: "loader", OnCPU: -1})
		lock := b.Object(timeline.Object{Call: "lock", Kind: timeline.ObjectLock, Holder: other})
		b.Set(main, 0, at("/u/train.py", 4), timeline.StateWaiting, false)
		b.SetWait(main, 0, timeline.WaitLock, lock)
		b.Set(other, 0, at(holder, 7), timeline.StatePython, false)
		return viewOf(t, b.Snapshot(10*second))
	}
	r, err := Merge([]*report.View{locked(0, "/u/a.py"), locked(1, "/u/b.py")}, []string{"0.json", "1.json"})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]bool)
	for _, w := range r.Blocked {
		if w.Holder == nil {
			t.Fatalf("%+v", w)
		}
		got[fmt.Sprintf("%s %s:%d by %s at %s:%d", r.Processes[w.Process].Text, r.FileName(&w.File), w.Line, w.Object, r.FileName(&w.Holder.File), w.Holder.Line)] = true
	}
	if !got["rank 0 /u/train.py:4 by loader at /u/a.py:7"] || !got["rank 1 /u/train.py:4 by loader at /u/b.py:7"] || len(got) != 2 {
		t.Errorf("%v", got)
	}
}
