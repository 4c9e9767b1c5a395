package interpret

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// frames of a worker's stack, root first: "file:function:line".
var (
	forked   = []string{"/u/train.py:<module>:20", "/lib/python3.12/multiprocessing/popen_fork.py:Popen._launch:71", "/lib/python3.12/multiprocessing/pool.py:worker:125"}
	getting  = append(forked[:3:3], "/lib/python3.12/multiprocessing/queues.py:SimpleQueue.get:386", "/lib/python3.12/multiprocessing/connection.py:Connection._recv:395")
	crunch   = append(forked[:3:3], "/u/work.py:crunch:7", "/v/site-packages/np/core.py:dot:3")
	crunch9  = append(forked[:3:3], "/u/work.py:crunch:9")
	library  = append(forked[:3:3], "/v/site-packages/np/core.py:outer:1", "/v/site-packages/np/core.py:dot:3")
	needed   = append(forked[:3:3], "<frozen importlib._bootstrap>:_find_and_load:1360", "/v/site-packages/np/core.py:<module>:1")
	spawning = []string{"/lib/python3.12/multiprocessing/spawn.py:spawn_main:122", "/u/train.py:<module>:1"}
	loading  = []string{"/v/site-packages/torch/utils/data/_utils/worker.py:_worker_loop:309", "/u/transforms.py:Crop.__call__:40"}
)

// A loader that starts its workers anew for each pass has those that live at a time, which are seen to begin before they do; two
// loaders whose workers live together have all.
func TestWorkersThatAreStartedAnew(t *testing.T) {
	const sec = timeline.Nanos(1e9)
	worker := func(number int, start, end timeline.Nanos) timeline.Process {
		return timeline.Process{ParentIndex: 0, Role: timeline.RoleLoaderWorker, Number: &number, Start: start, End: end}
	}
	for name, c := range map[string]struct {
		workers []timeline.Process
		want    int
	}{
		"once":            {[]timeline.Process{worker(0, 0, 0), worker(1, 0, 0)}, 0},
		"three times":     {[]timeline.Process{worker(0, 0, sec), worker(1, 0, sec), worker(0, sec-sec/50, 2*sec), worker(1, sec-sec/50, 2*sec), worker(0, 2*sec, 0), worker(1, 2*sec, 0)}, 2},
		"of two loaders":  {[]timeline.Process{worker(0, 0, 2*sec), worker(1, 0, 2*sec), worker(0, sec, 3*sec), worker(1, sec, 3*sec)}, 0},
		"one, each epoch": {[]timeline.Process{worker(0, 0, sec), worker(0, sec, 2*sec)}, 1},
	} {
		processes := append([]timeline.Process{{Role: timeline.RoleScript, ParentIndex: -1}}, c.workers...)
		if pools := PoolsOf(processes, 0); len(pools) != 1 || pools[0].AtOnce != c.want {
			t.Errorf("%s: %+v, want %d at a time", name, pools, c.want)
		}
	}
}

// Workers that were there before and had nothing to do are not of the pool that begins: loky's, by their command, and those
// of another pool of the same library. Their names are others. What a pool's own idle workers are is not changed.
func TestAPoolThatIsLeftOverIsAPoolOfItsOwn(t *testing.T) {
	const lokys = "joblib.externals.loky.backend.popen_loky_posix"
	one := 1
	idle, works := stint{getting, timeline.StateWaiting, 2}, stint{crunch, timeline.StatePython, 2}
	for name, c := range map[string]struct {
		first, second timeline.Process
		does          [2]stint
		want          [][]int
		text          string
	}{
		"of loky":               {timeline.Process{Role: timeline.RolePoolWorker, Number: &one, Command: lokys, Start: -seconds(1)}, worker(0, 0), [2]stint{idle, works}, [][]int{{1}, {2}}, "1 2"},
		"of loky, both work":    {timeline.Process{Role: timeline.RolePoolWorker, Number: &one, Command: lokys, Start: -seconds(1)}, worker(0, 0), [2]stint{works, works}, [][]int{{1}, {2}}, "1 2"},
		"of an earlier cell":    {worker(-0.02, 0), worker(0, 0), [2]stint{idle, works}, [][]int{{2}, {1}}, "1 2"},
		"a worker was replaced": {worker(-1, 0), worker(0.5, 0), [2]stint{works, works}, [][]int{{1, 2}}, "1 2"},
		"both were there":       {worker(-1, 0), worker(-1, 0), [2]stint{idle, works}, [][]int{{1, 2}}, "1 2"},
		"both began":            {worker(-0.004, 0), worker(0, 0), [2]stint{idle, works}, [][]int{{1, 2}}, "1 2"},
	} {
		s := newScene(c.first, c.second)
		for i, did := range c.does {
			s.worker(i+1, 0, did)
		}
		rec := Of(s.b.Snapshot(seconds(2)))
		var got [][]int
		for _, p := range rec.Pools {
			got = append(got, p.Members)
		}
		text := fmt.Sprint(*rec.Processes[1].Number, *rec.Processes[2].Number)
		if !reflect.DeepEqual(got, c.want) || text != c.text {
			t.Errorf("%s: pools of %v, numbers %s; want %v, %s", name, got, text, c.want, c.text)
		}
	}
}

// Processes of no pool have a number each, though one has ended when the next begins.
func TestProcessesThatFollowEachOtherHaveNumbersOfTheirOwn(t *testing.T) {
	rec := &timeline.Recording{Processes: []timeline.Process{{Role: timeline.RoleScript, ParentIndex: -1}, worker(0, 1), worker(1, 2), worker(2, 3)}}
	number(rec)
	for i, p := range rec.Processes[1:] {
		if p.Number == nil || *p.Number != i+1 {
			t.Errorf("process %d has the number %v", i+1, p.Number)
		}
	}
}

// A worker whose start is seen before the end of the one that had its number has that number all the same.
func TestAWorkerThatSeemsToStartEarlyHasANumberThatIsFree(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	rec := &timeline.Recording{Processes: []timeline.Process{{Role: timeline.RoleScript, ParentIndex: -1}}}
	for life := range timeline.Nanos(3) {
		for range 2 {
			rec.Processes = append(rec.Processes, timeline.Process{Role: timeline.RoleLoaderWorker, Start: life*1000*ms - 10*ms, End: (life + 1) * 1000 * ms})
		}
	}
	number(rec)
	for i, p := range rec.Processes[1:] {
		if p.Number == nil || *p.Number != i%2 {
			t.Errorf("worker %d has the number %v, want %d", i, p.Number, i%2)
		}
	}
}

// Two workers that did the same in six lives are not six of which some did little.
func TestImbalanceIsByNumber(t *testing.T) {
	a := Account{}
	for life := range timeline.Nanos(3) {
		for number := range 2 {
			a.Members = append(a.Members, Share{Number: number, Alive: 10 * (life + 1), Working: 4 * (life + 1)})
		}
	}
	if share, most := a.Imbalance(); share != 0 || most.Number != 0 || most.Working != 24 {
		t.Errorf("imbalance %v by %+v", share, most)
	}
	for i := range a.Members {
		a.Members[i].Number = -1
	}
	if share, _ := a.Imbalance(); share == 0 {
		t.Error("workers without a number are compared as one")
	}
}

type scene struct {
	b     *timeline.Builder
	nodes map[string]timeline.NodeID
}

func newScene(processes ...timeline.Process) *scene {
	s := &scene{timeline.NewBuilder(timeline.Options{Origin: 1}), make(map[string]timeline.NodeID)}
	s.b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 1, Argv: []string{"python", "/u/train.py"}}
		r.Processes = append([]timeline.Process{{PID: 1, Role: timeline.RoleScript, ParentIndex: -1}}, processes...)
	})
	return s
}

func (s *scene) node(frames []string) timeline.NodeID {
	node := timeline.RootNode
	for _, text := range frames {
		var f timeline.Frame
		var at, second int
		for i := len(text) - 1; i >= 0 && at == 0; i-- {
			if text[i] == ':' {
				at = i
			}
		}
		for i, c := range text {
			if c == ':' {
				second = i
				break
			}
		}
		f.File, f.Function = text[:second], text[second+1:at]
		fmt.Sscan(text[at+1:], &f.Line)
		node = s.b.Child(node, s.b.Frame(f))
	}
	return node
}

// stint is what a thread does for some seconds.
type stint struct {
	stack   []string
	state   timeline.State
	seconds float64
}

func (s *scene) worker(process int, from float64, stints ...stint) {
	s.history(timeline.Thread{PID: 100 + process, Process: process, Main: true}, from, stints)
}

// thread is another thread of a process.
func (s *scene) thread(process int, from float64, stints ...stint) {
	s.history(timeline.Thread{PID: 100 + process, Process: process}, from, stints)
}

func (s *scene) history(thread timeline.Thread, from float64, stints []stint) {
	id := s.b.Thread(thread)
	at := seconds(from)
	for _, one := range stints {
		s.b.Set(id, at, s.node(one.stack), one.state, false)
		at += seconds(one.seconds)
	}
	s.b.End(id, at)
}

func seconds(s float64) timeline.Nanos { return timeline.Nanos(s * float64(time.Second)) }

func worker(start, end float64) timeline.Process {
	return timeline.Process{Role: timeline.RoleWorker, Start: seconds(start), End: seconds(end)}
}

func names(rec *timeline.Recording) (out []string) {
	for _, p := range rec.Processes[1:] {
		name := string(p.Role)
		if p.Number != nil {
			name += fmt.Sprint(" ", *p.Number)
		}
		out = append(out, name)
	}
	return out
}

const (
	python = timeline.StatePython
	io     = timeline.StateIO
)

func TestWorkersAreNamedAsTheirOwnerCounts(t *testing.T) {
	server := timeline.Process{Role: timeline.RoleForkServer}
	underServer := worker(0, 5)
	underServer.ParentIndex = 4
	s := newScene(worker(0, 3), worker(0, 9), worker(3, 9), server, underServer, worker(0, 4), worker(0, 4), worker(4, 9), timeline.Process{Role: timeline.RoleChild, Command: "pip"}, worker(1, 2))
	for i, stack := range map[int][]string{1: crunch, 2: getting, 3: crunch, 5: crunch, 6: loading, 7: loading, 8: loading, 10: spawning} {
		s.worker(i, 0, stint{stack, python, 1})
	}
	raw := s.b.Snapshot(seconds(9))
	rec := Identify(raw)
	want := "[pool-worker 1 pool-worker 2 pool-worker 1 fork-server pool-worker 3 loader-worker 0 loader-worker 1 loader-worker 0 child worker 1]"
	if got := fmt.Sprint(names(rec)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := names(raw)[0]; got != "worker" {
		t.Errorf("the recording that was handed in has changed: %s", got)
	}
	all := RecordedPools(rec)
	if got, want := fmt.Sprint(all), "[{pool-worker  0 [1 3 2 5] 0} {loader-worker  0 [6 8 7] 2} {child pip 0 [9] 0} {worker  0 [10] 0}]"; got != want {
		t.Errorf("pools %s, want %s", got, want)
	}
}

// subprocess forks before it runs another program, and what was seen until then is the
// program that started it.
func TestWhatWasSeenOnlyBeforeItsExecIsNoWorker(t *testing.T) {
	launch := []string{"/u/work.py:main:3", "/lib/python3.12/subprocess.py:Popen._execute_child:1900"}
	notPython := worker(0, 9)
	notPython.Stacks.Reason = timeline.StacksNotPython
	brief, busy, long, unknown := worker(1, 1.05), worker(1, 1.05), worker(1, 4), worker(1, 1.05)
	for _, p := range []*timeline.Process{&brief, &busy, &long} {
		p.Stacks.Reason, p.Command = timeline.StacksRead, "work.py"
	}
	s := newScene(notPython, brief, busy, long, unknown)
	s.worker(2, 1, stint{launch, python, 0.05})
	s.worker(3, 1, stint{launch, python, 0.02}, stint{crunch9, python, 0.03})
	s.worker(4, 1, stint{launch, python, 3})
	rec := Identify(s.b.Snapshot(seconds(9)))
	if got, want := fmt.Sprint(names(rec)), "[child child pool-worker 1 worker 1 worker 2]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if p := rec.Processes[2]; p.Command != "" {
		t.Errorf("a command that nobody has seen is called %q", p.Command)
	}
}

func TestWhatAPoolDid(t *testing.T) {
	s := newScene(worker(0, 0), worker(0, 0), worker(0, 0))
	s.worker(1, 0, stint{spawning, python, 1}, stint{crunch, python, 6}, stint{crunch9, io, 2}, stint{getting, io, 1})
	s.worker(2, 0, stint{spawning, python, 1}, stint{library, python, 2}, stint{getting, io, 7})
	s.worker(3, 10, stint{crunch, python, 1})
	rec := Identify(s.b.Snapshot(seconds(12)))
	pool := RecordedPools(rec)[0]
	did := During(rec, pool, []timeline.Interval{timeline.Between(seconds(0.5), seconds(4)), timeline.Between(seconds(6), seconds(10))})
	sum := did.Starting + did.Starved + did.InLibrary + did.Working
	if sum != did.Alive || did.Alive != 2*seconds(7.5) || did.Starting != 2*seconds(0.5) || did.Starved != seconds(1+1+4) {
		t.Errorf("%+v: adds up to %v", did, sum)
	}
	if len(did.Members) != 2 || did.Members[0] != (Share{1, seconds(7.5), seconds(6), -1}) || did.Members[1] != (Share{2, seconds(7.5), seconds(2), -1}) {
		t.Errorf("members %+v", did.Members)
	}
	if share, most := did.Imbalance(); math.Abs(share-1./3) > 1e-9 || most.Process != 1 {
		t.Errorf("imbalance %v, most %+v", share, most)
	}
	want := []Line{
		{"crunch", "/u/work.py", 7, true, seconds(4), 0},
		{"crunch", "/u/work.py", 9, true, seconds(2), seconds(2)},
		{"outer", "/v/site-packages/np/core.py", 1, false, seconds(2), 0},
	}
	if fmt.Sprint(did.Lines) != fmt.Sprint(want) {
		t.Errorf("lines %+v\nwant  %+v", did.Lines, want)
	}
}

// Who reads what another process sends waits for it: a worker for its next task, its owner
// for a result. What a task itself reads is input.
func TestWhatAnotherProcessSendsIsWaitedFor(t *testing.T) {
	s := newScene(worker(0, 0))
	file := append(crunch9[:len(crunch9):len(crunch9)], "/lib/python3.12/gzip.py:_GzipReader.read:395")
	s.worker(1, 0, stint{getting, io, 1}, stint{crunch, python, 1}, stint{file, io, 1}, stint{getting, python, 1}, stint{getting, io, 1})
	s.worker(0, 0, stint{append([]string{"/lib/python3.12/multiprocessing/pool.py:Pool._handle_results:579"}, getting[4:]...), io, 1})
	raw := s.b.Snapshot(seconds(5))
	states := func(rec *timeline.Recording) (out []timeline.State) {
		for _, t := range rec.Threads {
			for _, span := range t.Spans {
				out = append(out, span.State)
			}
		}
		return out
	}
	waits := timeline.StateWaiting
	if got, want := states(Identify(raw)), []timeline.State{waits, python, io, python, waits, waits}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := states(raw), []timeline.State{io, python, io, python, io, io}; !slices.Equal(got, want) {
		t.Errorf("the recording that was handed in has changed: %v", got)
	}
}

// Where the target only starts the program, as a shell script or a launcher does, it is the
// program that the report is about.
func TestWhoseCodeItIs(t *testing.T) {
	var (
		train  = []string{"/u/train.py:<module>:20"}
		tool   = []string{"/v/site-packages/tool/cli.py:main:3"}
		script = timeline.Process{Role: timeline.RoleChild, Stacks: timeline.StackReading{Reason: timeline.StacksRead}}
		shell  = timeline.Process{Role: timeline.RoleChild}
		under  = func(p timeline.Process, parent int) timeline.Process { p.ParentIndex = parent; return p }
		rank   = timeline.Process{Role: timeline.RoleRank}
	)
	type ran struct {
		process int
		stack   []string
		seconds float64
	}
	for _, test := range []struct {
		name      string
		processes []timeline.Process // beside the target
		ran       []ran
		want      int
	}{
		{"a script", []timeline.Process{script}, []ran{{0, train, 1}, {1, train, 9}}, 0},
		{"a shell script that runs two", []timeline.Process{shell, under(script, 1), script}, []ran{{2, train, 3}, {3, train, 6}}, 3},
		{"a shell that runs a tool", []timeline.Process{script}, []ran{{1, tool, 9}}, 1},
		{"a launcher in Python", []timeline.Process{script}, []ran{{0, tool, 10}, {1, train, 8}}, 1},
		{"a tool that runs a script for a moment", []timeline.Process{script}, []ran{{0, tool, 10}, {1, train, 2}}, 0},
		{"a tool that runs another", []timeline.Process{script}, []ran{{0, tool, 10}, {1, tool, 9}}, 0},
		{"what the program starts is not it", []timeline.Process{script, under(script, 1)}, []ran{{1, train, 8}, {2, train, 9}}, 1},
		{"ranks", []timeline.Process{rank, rank}, []ran{{0, tool, 10}, {1, train, 9}, {2, train, 9}}, 0},
		{"one rank", []timeline.Process{rank}, []ran{{0, tool, 10}, {1, train, 9}}, 1},
		{"a shell without Python", []timeline.Process{shell}, nil, 0},
	} {
		s := newScene(test.processes...)
		for _, r := range test.ran {
			s.worker(r.process, 0, stint{r.stack, python, r.seconds})
		}
		raw := s.b.Snapshot(seconds(10))
		for i := range raw.Threads {
			raw.Threads[i].RunsCell = raw.Threads[i].Process == 0
		}
		got := 0
		for _, thread := range Identify(raw).Threads {
			if thread.RunsCell {
				got = thread.Process
			}
		}
		if got != test.want {
			t.Errorf("%s: it is process %d, want %d", test.name, got, test.want)
		}
	}
}

// A task is unpickled in the pool's loop, which imports what it names.
func TestImportsOfATaskAreStartingUp(t *testing.T) {
	s := newScene(worker(0, 0))
	s.worker(1, 0, stint{needed, python, 2}, stint{crunch, python, 1})
	rec := Identify(s.b.Snapshot(seconds(3)))
	if did := During(rec, RecordedPools(rec)[0], []timeline.Interval{timeline.Between(0, seconds(3))}); did.Starting != seconds(2) || did.Working != seconds(1) || len(did.Lines) != 1 {
		t.Errorf("%+v, want 2 s of starting up and 1 s of work", did)
	}
}

func TestADamagedRecordingIsBorne(t *testing.T) {
	rec := &timeline.Recording{
		Processes: []timeline.Process{{}, {Role: timeline.RolePoolWorker, ParentIndex: 7}, {Role: timeline.RoleWorker, ParentIndex: -1}},
		Nodes:     []timeline.Node{{}, {Parent: 9, Frame: 9}, {Parent: 2}},
		Threads: []timeline.Thread{{Main: true, Process: 1, Spans: []timeline.Span{{Start: 0, End: 9, Node: 1}, {Start: 9, End: 10, Node: 77}, {Start: 10, End: 11, Node: 2}}},
			{Main: true, Process: 9}, {Main: true, Process: -1}},
		Duration: 20,
	}
	rec = Identify(rec)
	for _, p := range RecordedPools(rec) {
		During(rec, p, []timeline.Interval{timeline.Between(0, 20)})
	}
}

// Members that hardly lived are no part of how evenly the others shared their work.
func TestMembersThatHardlyLivedAreNotCompared(t *testing.T) {
	const s = timeline.Nanos(1e9)
	did := Account{Members: []Share{{1, 10 * s, 9 * s, -1}, {2, 10 * s, 9 * s, -1}, {3, s / 10, s / 20, -1}}}
	if share, _ := did.Imbalance(); share != 0 {
		t.Errorf("imbalance %v, want none", share)
	}
	did.Members[1].Working = 3 * s
	if share, most := did.Imbalance(); math.Abs(share-1./3) > 1e-9 || most.Process != 1 {
		t.Errorf("imbalance %v, most %+v, want a third", share, most)
	}
}
