package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
)

// family is a cell with two loader workers, of which the second got the pid of the first, and a command.
func family() *timeline.Recording {
	s := newScene()
	s.run(10*second, timeline.StateWaiting, cellLine(2), loaderFrame)
	zero, one, exit := 0, 1, 0
	s.Describe(func(r *timeline.Recording) {
		r.Target.Rank = &timeline.Rank{Global: 3, Local: 1, Node: -1, World: 4}
		r.Processes = []timeline.Process{
			{PID: 1, ParentIndex: -1, Role: timeline.RoleKernel, Command: "ipykernel", Start: -second, CPU: second},
			{PID: 50, Parent: 1, ParentIndex: 0, Role: timeline.RoleLoaderWorker, Number: &zero, Rank: &one, Start: second, End: 4 * second, Exit: &exit,
				Stacks: timeline.StackReading{Reason: timeline.StacksRead, Interval: 5 * time.Millisecond}},
			{PID: 50, Parent: 1, ParentIndex: 0, Role: timeline.RoleLoaderWorker, Number: &one, Start: 5 * second, End: 9 * second, Exit: pointer(137), Signal: 9},
			{PID: 60, Parent: 50, ParentIndex: 1, Role: timeline.RoleChild, Command: "ffmpeg", Start: 2 * second, CPU: -1,
				Stacks: timeline.StackReading{Reason: timeline.StacksDenied, Detail: "ptrace_scope is 1"}},
		}
	})
	for place, lived := range [][2]timeline.Nanos{1: {second, 4 * second}, 2: {5 * second, 9 * second}} {
		if place == 0 {
			continue
		}
		th := s.Thread(timeline.Thread{PID: 50, Process: place, NativeID: 50, Name: "MainThread", Main: true, OnCPU: -1})
		s.Set(th, lived[0], s.stack(cellLine(2), trainLine(2)), timeline.StatePython, false)
		s.Set(th, lived[1]-second, s.stack(cellLine(2), trainLine(3)), timeline.StateWaiting, false)
		s.End(th, lived[1])
	}
	cpu := s.Track(timeline.TrackSpec{ID: "process.1.cpu", Kind: timeline.KindRate, Unit: "cores", PID: 50, Process: 1, Device: -1})
	cpu.Add(2*second, 1)
	return s.Snapshot(10 * second)
}

func TestProcessesAreTheRecordings(t *testing.T) {
	r := build(t, family(), nil, Options{})
	show := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var got []string
	for _, p := range r.Processes {
		got = append(got, fmt.Sprintf("%d of %s: %s %s %q rank %s, %g to %s %s %s, %s", p.PID, show(p.Parent), p.Role, show(p.RoleNumber), p.Text, show(p.Rank),
			Seconds(p.StartNS), show(p.EndNS), show(p.EndReason), show(p.ExitCode), show(p.Stacks)))
	}
	want := []string{
		`1 of null: kernel null "ipykernel" rank null, -1 to null null null, {"read":true,"interval_ns":null,"reason":null,"text":""}`,
		`50 of 0: loader-worker 0 "DataLoader worker 0 of rank 1" rank 1, 1 to 4000000000 "exit" 0, {"read":true,"interval_ns":5000000,"reason":null,"text":""}`,
		`50 of 0: loader-worker 1 "DataLoader worker 1" rank null, 5 to 9000000000 "signal" 137, {"read":true,"interval_ns":null,"reason":null,"text":""}`,
		`60 of 1: child null "ffmpeg" rank null, 2 to null null null, {"read":false,"interval_ns":null,"reason":"permission","text":"the system does not allow reading it: ptrace_scope is 1"}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("processes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if target := r.Target(); show([]*int{target.Rank, target.LocalRank, target.Node, target.WorldSize}) != "[3,1,null,4]" {
		t.Errorf("the target has the ranks %s", show([]*int{target.Rank, target.LocalRank, target.Node, target.WorldSize}))
	}
}

func TestWhatAProcessDidIsItsOwn(t *testing.T) {
	r := build(t, family(), nil, Options{})
	var got []string
	for _, th := range r.Threads {
		got = append(got, fmt.Sprintf("%d %s %v", th.Process, th.Name, th.RunsCell))
	}
	if want := "[0 MainThread true 2 MainThread false 1 MainThread false]"; fmt.Sprint(got) != want {
		t.Errorf("threads %v, want %s", got, want)
	}
	got = nil
	for _, l := range r.Lines {
		got = append(got, fmt.Sprintf("%d %s:%d self %g total %g", l.Process, r.FileName(&l.File), l.Line, Seconds(l.SelfNS), Seconds(l.TotalNS)))
	}
	// Of workers with what they waited.
	want := "0 Cell [7]:2 self 10 total 10\n2 Cell [5]:2 self 3 total 3\n1 Cell [5]:2 self 2 total 2\n1 Cell [5]:3 self 1 total 1\n2 Cell [5]:3 self 1 total 1\n2 Cell [7]:2 self 0 total 4\n1 Cell [7]:2 self 0 total 3"
	if strings.Join(got, "\n") != want {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if target := r.Target(); target.ThreadNS != int64(10*second) {
		t.Errorf("the target's threads took %d ns, want 10 s", target.ThreadNS)
	}
	for _, f := range r.FunctionTimes {
		if r.FunctionName(f.Function) == "train" && (f.Process == 0 || f.StateNS[StateWaiting] != 0) {
			t.Errorf("train has %+v", f)
		}
	}
	if len(r.Tracks) != 1 || r.Tracks[0].ID != "process.cpu" || *r.Tracks[0].Process != 1 {
		t.Errorf("tracks %+v", r.Tracks)
	}
}

func TestALauncherHasTheStacksOfWhatItStarts(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 1, Argv: []string{"mpirun", "train.py"}}
		r.Processes = []timeline.Process{{PID: 1, ParentIndex: -1, Role: timeline.RoleScript, Command: "mpirun"}, {PID: 2, Parent: 1, Role: timeline.RoleRank}}
	})
	b.BeginGap(1, 0, timeline.GapStarting)
	b.Note(timeline.NoteUnavailable, timeline.NoteStacks, "no CPython in this process")
	busy := b.Thread(timeline.Thread{PID: 2, Process: 1, NativeID: 3, Name: "autograd", OnCPU: -1})
	main := b.Thread(timeline.Thread{PID: 2, Process: 1, NativeID: 2, Name: "MainThread", Main: true, OnCPU: -1})
	n := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/w/train.py", Line: 4, FirstLine: 1}))
	b.Set(busy, 0, n, timeline.StateNative, false)
	b.Set(main, 0, n, timeline.StatePython, false)
	b.Set(main, second, n, timeline.StateWaiting, false)
	r := build(t, b.Snapshot(4*second), nil, Options{})
	if i := r.MainThread(); !r.Threads[i].Main || r.Threads[i].Process != 1 {
		t.Errorf("the flame chart is that of %+v", r.Threads[i])
	}
	if len(r.Notes) != 0 || len(r.Gaps) != 1 {
		t.Errorf("notes %+v, gaps %+v: that the launcher ran no Python is no news", r.Notes, r.Gaps)
	}
}

// The flame chart and the headline are those of one process: of a launcher with code of its own
// that waits for its ranks, of the first of them.
func TestTheFlameChartIsThatOfTheRankThatIsToldOf(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 1, Argv: []string{"train.py"}}
		r.Processes = []timeline.Process{{PID: 1, ParentIndex: -1, Role: timeline.RoleScript, Command: "python"}}
		for rank := range 2 {
			r.Processes = append(r.Processes, timeline.Process{PID: 2 + rank, Parent: 1, Role: timeline.RoleRank, Rank: &rank, Number: &rank})
		}
	})
	module := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/w/train.py", Line: 9, FirstLine: 1}))
	train := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "train", File: "/w/train.py", Line: 4, FirstLine: 2}))
	launcher := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
	b.Set(launcher, 0, module, timeline.StatePython, false)
	b.Set(launcher, second, module, timeline.StateWaiting, false)
	for rank := range 2 {
		b.Set(b.Thread(timeline.Thread{PID: 2 + rank, Process: 1 + rank, NativeID: 2 + rank, Name: "MainThread", Main: true, OnCPU: -1}), second, train, timeline.StatePython, false)
	}
	rec := b.Snapshot(10 * second)
	d := diagnose.Run(rec)
	r := build(t, rec, &d, Options{})
	if leading := r.Target().Leading; leading == nil || *leading != 1 || r.Threads[r.MainThread()].Process != 1 || !strings.HasPrefix(r.Headline.Text, "Rank 0: ") {
		t.Errorf("the flame chart is of process %d, the headline %q", r.Threads[r.MainThread()].Process, r.Headline.Text)
	}
}
