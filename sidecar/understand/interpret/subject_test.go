package interpret

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/usercode"
)

var (
	ownCode     = []string{"/u/train.py:<module>:20"}
	toolCode    = []string{"/v/site-packages/tool/cli.py:main:3"}
	childScript = timeline.Process{Role: timeline.RoleChild, Stacks: timeline.StackReading{Reason: timeline.StacksRead}}
)

// ran is what the main thread of a process did from the begin of a recording on.
type ran struct {
	process int
	stack   []string
	state   timeline.State
	seconds float64
}

// recorded is a recording of ten seconds whose target's thread runs the script.
func recorded(processes []timeline.Process, list []ran) *timeline.Recording {
	s := newScene(processes...)
	for _, r := range list {
		s.worker(r.process, 0, stint{r.stack, r.state, r.seconds})
	}
	rec := s.b.Snapshot(seconds(10))
	for i := range rec.Threads {
		rec.Threads[i].RunsCell = rec.Threads[i].Process == 0
	}
	return rec
}

func rankNumber(n int) timeline.Process {
	return timeline.Process{Role: timeline.RoleRank, Rank: &n, Number: &n}
}

func TestWhomARecordingIsAbout(t *testing.T) {
	ranks := []timeline.Process{rankNumber(1), rankNumber(0)}
	waits := timeline.StateWaiting
	for _, test := range []struct {
		name      string
		processes []timeline.Process // beside the target
		ran       []ran
		want      string // process, program, and why
	}{
		{"a script", []timeline.Process{childScript}, []ran{{0, ownCode, python, 9}, {1, ownCode, python, 9}}, "0 0 target"},
		{"a shell script", []timeline.Process{childScript}, []ran{{1, ownCode, python, 9}}, "1 1 launched"},
		{"a launcher without code of the user's own", ranks, []ran{{0, toolCode, python, 10}, {1, ownCode, python, 9}, {2, ownCode, python, 9}}, "2 0 leading-rank"},
		{"a launcher that waits", ranks, []ran{{0, ownCode, waits, 10}, {1, ownCode, python, 9}, {2, ownCode, python, 9}}, "2 0 leading-rank"},
		{"a launcher that computes", ranks, []ran{{0, ownCode, python, 10}, {1, ownCode, python, 9}, {2, ownCode, python, 9}}, "0 0 target"},
		{"ranks that were seen for a moment", ranks, []ran{{0, toolCode, python, 10}, {1, ownCode, python, 0.5}, {2, ownCode, python, 0.5}}, "0 0 target"},
		{"a program without Python and its workers", []timeline.Process{worker(0, 0), worker(0, 0)}, []ran{{1, ownCode, python, 3}, {2, ownCode, python, 9}}, "2 0 longest"},
		{"nothing was seen", []timeline.Process{childScript}, nil, "0 0 target"},
	} {
		s := Of(recorded(test.processes, test.ran)).Subject
		if got := fmt.Sprintf("%d %d %s", s.Process, s.Program, s.Why); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
		if s.Launcher != (len(test.ran) > 0 && test.ran[0].process != 0) {
			t.Errorf("%s: the target only starts others: %v", test.name, s.Launcher)
		}
	}
}

// Two owners have two pools of the same role; the ranks of a run are one, whoever started them.
func TestPoolsHaveOneOwner(t *testing.T) {
	under := func(p timeline.Process, parent int) timeline.Process { p.ParentIndex = parent; return p }
	loader := timeline.Process{Role: timeline.RoleLoaderWorker}
	pip := timeline.Process{Role: timeline.RoleChild, Command: "pip"}
	front := timeline.Process{Role: timeline.RoleProfiler}
	processes := []timeline.Process{
		{Role: timeline.RoleScript, ParentIndex: -1}, front, front,
		under(rankNumber(0), 1), under(rankNumber(1), 2), under(loader, 3), under(loader, 4), under(loader, 3), under(pip, 3), under(pip, 4),
	}
	want := []timeline.Pool{
		{Role: timeline.RoleRank, Owner: 0, Members: []int{3, 4}},
		{Role: timeline.RoleChild, Command: "pip", Owner: 0, Members: []int{8, 9}},
		{Role: timeline.RoleLoaderWorker, Owner: 3, Members: []int{5, 7}},
		{Role: timeline.RoleLoaderWorker, Owner: 4, Members: []int{6}},
	}
	if got := PoolsOf(processes, 0); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// What a recording is about is not another run of itself.
	want = append(slices.Delete(want, 1, 2), timeline.Pool{Role: timeline.RoleChild, Command: "pip", Owner: 4, Members: []int{9}})
	if got := PoolsOf(processes, 8); !reflect.DeepEqual(got, want) {
		t.Errorf("of the program 8: got  %+v\nwant %+v", got, want)
	}
}

// A report at the end, a partial one and a live look come to one subject: it is found in one
// recording whatever was decided about it before, and a part of a recording keeps it.
func TestTheSubjectIsTheSameForAll(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 22))
	roles := []timeline.Role{timeline.RoleRank, timeline.RoleWorker, timeline.RolePoolWorker, timeline.RoleLoaderWorker, timeline.RoleChild, timeline.RoleForkServer}
	stacks := [][]string{ownCode, toolCode, crunch, getting, loading}
	for range 500 {
		processes := make([]timeline.Process, rnd.IntN(6))
		for i := range processes {
			processes[i] = timeline.Process{Role: roles[rnd.IntN(len(roles))], ParentIndex: rnd.IntN(i + 1), Command: "tool"}
			if processes[i].Role == timeline.RoleRank {
				number := i
				processes[i].Rank, processes[i].Number = &number, &number
			}
		}
		var list []ran
		for i := range len(processes) + 1 {
			if rnd.IntN(4) > 0 {
				list = append(list, ran{i, stacks[rnd.IntN(len(stacks))], timeline.State(rnd.IntN(timeline.NumStates)), 10 * rnd.Float64()})
			}
		}
		raw := recorded(processes, list)
		rec := Of(raw)
		about := *rec.Subject
		for name, got := range map[string]timeline.Subject{
			"again": *Of(raw).Subject, "of the result": *Of(rec).Subject, "step by step": SubjectOf(usercode.Strip(Identify(raw))), "as it was decided": SubjectOf(rec),
		} {
			if !reflect.DeepEqual(got, about) {
				t.Fatalf("%s: got %+v, want %+v", name, got, about)
			}
		}
		part := rec.Slice(0, rec.Duration)
		if s := part.Subject; s.Thread >= 0 && (part.Threads[s.Thread].PID != rec.Threads[about.Thread].PID || part.Processes[s.Process].PID != rec.Processes[about.Process].PID) {
			t.Fatalf("a slice has %+v, the whole %+v", s, about)
		}
		member := make(map[int]bool)
		for _, p := range rec.Pools {
			for _, m := range p.Members {
				if member[m] {
					t.Fatalf("process %d is in two of the pools %+v", m, rec.Pools)
				}
				member[m] = true
			}
		}
	}
}
