package report

import (
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// awaited is a recording of a script with 18 tasks that wait for 2 s at line 3 and one that does at line 7.
func awaited() *timeline.Recording {
	const s = timeline.Nanos(time.Second)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 7, Argv: []string{"app.py"}}
		r.Processes = []timeline.Process{{PID: 7, ParentIndex: -1, Role: timeline.RoleScript, CPU: -1}}
		r.Tasks = timeline.TaskReading{Reads: 400, Longest: s / 100, Most: 19, CPU: s / 50}
	})
	node := func(function string, line int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: function, File: "app.py", Line: line, FirstLine: line - 1, Suspended: true}))
	}
	main := b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true, OnCPU: -1})
	b.Set(main, 0, node("main", 7), timeline.StateWaiting, false)
	b.AddAwaits(0, 0, 2*s, map[timeline.NodeID]int{node("fetch", 3): 18, node("main", 7): 1})
	return b.Snapshot(2 * s)
}

func TestAwaitsAreInTheReport(t *testing.T) {
	v, err := Build(awaited(), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Awaits) != 2 || v.TaskReading == nil || v.TaskReading.MaxTasks != 19 {
		t.Fatalf("got %+v, %+v", v.Awaits, v.TaskReading)
	}
	a := v.Awaits[0]
	if v.FileName(&a.File) != "app.py" || a.Line != 3 || a.WaitingNS != 36e9 || a.SomeNS != 2e9 || a.MaxTasks != 18 || a.MeanTasks() != 18 || v.FunctionName(*a.Function) != "fetch" {
		t.Errorf("got %+v", a)
	}
}

// What is damaged in the table is refused.
func TestDamagedAwaitsAreRefused(t *testing.T) {
	for want, damage := range map[string]func(*Await){
		"awaits.file":       func(a *Await) { a.File = 99 },
		"awaits.process":    func(a *Await) { a.Process = -1 },
		"awaits.line":       func(a *Await) { a.Line = 0 },
		"awaits.waiting_ns": func(a *Await) { a.WaitingNS = -1 },
		"awaits.some_ns":    func(a *Await) { a.SomeNS = 3e9 },
		"more tasks":        func(a *Await) { a.MaxTasks = 17 },
		"awaits.function":   func(a *Await) { a.Function = pointer(99) },
	} {
		v, err := Build(awaited(), nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		damage(&v.Awaits[0])
		if _, err := Check(v.Document); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
