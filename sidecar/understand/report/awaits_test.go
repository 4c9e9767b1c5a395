package report

import (
	"encoding/json"
	"math/rand/v2"
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
	b.AddAwaits(0, 0, 2*s, timeline.AwaitsOther, map[timeline.NodeID]int{node("fetch", 3): 18, node("main", 7): 1}, nil)
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

// A task of a file's own level, as of a cell with await, is called by the file: "<module> waiting" would name nothing.
func TestTasksOfAFilesOwnLevelAreNamedByIt(t *testing.T) {
	rec := awaited()
	for i := range rec.Frames {
		if rec.Frames[i].Function == "main" {
			rec.Frames[i].Function = "<module>"
		}
	}
	v, err := Build(rec, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, track := range v.Tracks {
		if track.ID == TasksWaiting {
			names = append(names, track.Name)
		}
	}
	if got := strings.Join(names, " "); got != "fetch app.py" {
		t.Errorf("got %q", got)
	}
}

// However tasks waited, and whatever part of it is shown: the report is one that its reader takes.
func TestAnyAwaitsMakeAReport(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 3))
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) {
			r.Target = timeline.Target{PID: 7, Argv: []string{"app.py"}}
			r.Processes = []timeline.Process{{PID: 7, ParentIndex: -1, Role: timeline.RoleScript, CPU: -1}}
			r.Tasks = timeline.TaskReading{Reads: 1}
		})
		var nodes []timeline.NodeID // two ways to line 3, one to line 4
		for i, line := range []int{3, 3, 4} {
			caller := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "main", File: "app.py", Line: 20 + i}))
			nodes = append(nodes, b.Child(caller, b.Frame(timeline.Frame{Function: "fetch", File: "app.py", Line: line})))
		}
		b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true, OnCPU: -1})
		at := timeline.Nanos(0)
		for range 5000 { // more than are kept apart
			from := at + timeline.Nanos(max(0, random.IntN(20)-12))
			at = from + 1 + timeline.Nanos(random.IntN(5_000))
			b.AddAwaits(0, from, at, timeline.AwaitsOther, map[timeline.NodeID]int{nodes[0]: random.IntN(3), nodes[1]: random.IntN(3), nodes[2]: 1}, nil)
		}
		rec := b.Snapshot(at)
		for range 10 {
			from := timeline.Nanos(random.Int64N(int64(at)))
			v, err := Build(rec.Slice(from, from+1+timeline.Nanos(random.Int64N(int64(at-from)))), nil, Options{})
			if err != nil {
				t.Fatalf("seed %d, from %d: %v", seed, from, err)
			}
			text, err := json.Marshal(v.Document)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Read(text); err != nil {
				t.Fatalf("seed %d, from %d: %v", seed, from, err)
			}
		}
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
