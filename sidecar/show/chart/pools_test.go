package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/testkit/golden"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

const second = timeline.Nanos(time.Second)

// program is a scripted recording of a script and the processes it starts.
type program struct{ *timeline.Builder }

func newProgram(argv ...string) program {
	p := program{timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: time.Unix(1_790_000_000, 0).UTC()})}
	p.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 1, Argv: argv}
		r.Sampling.Method, r.Sampling.Interval, r.Sampling.Samples = timeline.MethodOutside, time.Millisecond, 10_000
		r.Processes = []timeline.Process{{PID: 1, ParentIndex: -1, Role: timeline.RoleScript, Command: "train.py", CPU: second}}
	})
	return p
}

func (p program) stack(frames ...timeline.Frame) timeline.NodeID {
	n := timeline.RootNode
	for _, f := range frames {
		f.FirstLine = 1
		n = p.Child(n, p.Frame(f))
	}
	return n
}

// start adds a process and its main thread.
func (p program) start(process timeline.Process) timeline.ThreadID {
	place := 0
	p.Describe(func(r *timeline.Recording) {
		place = len(r.Processes)
		process.PID, process.Parent = 100+place, 1
		r.Processes = append(r.Processes, process)
	})
	return p.Thread(timeline.Thread{PID: 100 + place, Process: place, NativeID: 100 + place, Name: "MainThread", Main: true, OnCPU: -1})
}

func (p program) report(t *testing.T, end timeline.Nanos) *report.View {
	t.Helper()
	rec := p.Snapshot(end)
	d := diagnose.Run(rec)
	v, err := report.Build(rec, &d, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var read = timeline.StackReading{Reason: timeline.StacksRead, Interval: 4 * time.Millisecond}

func own(function string, line int) timeline.Frame {
	return timeline.Frame{Function: function, File: "/u/train.py", Line: line}
}

// poolOf waits for so many workers, of which the last ones have less to do.
func poolOf(t *testing.T, workers int) *report.View {
	p := newProgram("python", "/u/train.py")
	main := p.Thread(timeline.Thread{PID: 1, NativeID: 1, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
	p.Set(main, 0, p.stack(own("<module>", 9), timeline.Frame{Function: "Pool.map", File: "/usr/lib/python3.12/multiprocessing/pool.py", Line: 3}), timeline.StateWaiting, false)
	loop := timeline.Frame{Function: "worker", File: "/usr/lib/python3.12/multiprocessing/pool.py", Line: 125}
	for i := range workers {
		number, exit := i+1, 0
		w := p.start(timeline.Process{Role: timeline.RolePoolWorker, Number: &number, Command: "train.py", Start: second, End: 9 * second, Exit: &exit, CPU: timeline.Nanos(8-i) * second, Stacks: read})
		p.Set(w, second, p.stack(loop, own("crunch", 4)), timeline.StatePython, false)
		p.Set(w, timeline.Nanos(9-i)*second, p.stack(loop, timeline.Frame{Function: "SimpleQueue.get", File: "/usr/lib/python3.12/multiprocessing/queues.py", Line: 3}), timeline.StateWaiting, false)
		p.End(w, 9*second)
	}
	killed := 137
	p.start(timeline.Process{Role: timeline.RoleChild, Command: "ffmpeg", Start: 2 * second, End: 5 * second, Exit: &killed, Signal: 9, CPU: second, Stacks: timeline.StackReading{Reason: timeline.StacksNotPython}})
	p.start(timeline.Process{Role: timeline.RoleChild, Command: "sh", Start: 2 * second, End: 2*second + 1, CPU: 0})
	return p.report(t, 10*second)
}

// ranksOf is a launcher of ranks with a GPU each, of which rank 1 is slow in a line of its own.
func ranksOf(t *testing.T, count int) *report.View {
	p := newProgram("torchrun", "train.py")
	for i := range count {
		number := i
		w := p.start(timeline.Process{Role: timeline.RoleRank, Rank: &number, Number: &number, Command: "train.py", CPU: 6 * second, Stacks: read})
		place := i + 1
		for at := timeline.Nanos(0); at < 10*second; at += second {
			work := 4 * second / 10
			if i == 1 {
				work *= 2
			}
			p.Set(w, at, p.stack(own("<module>", 6), own("load", 2+i%2)), timeline.StatePython, false)
			p.Set(w, at+work, p.stack(own("<module>", 8), timeline.Frame{Function: "all_reduce", File: "/v/site-packages/torch/distributed/distributed_c10d.py", Line: 3}), timeline.StateWaiting, false)
			p.Mark(timeline.Mark{Kind: "step", Start: at, End: at + second, Process: place, Source: timeline.StepOptimizer})
			busy := p.Track(timeline.TrackSpec{ID: fmt.Sprintf("gpu%d.util", i), Kind: timeline.KindRate, Unit: "%", Device: i, Limit: 100})
			busy.AddWindow(at, at+work, 0)
			busy.AddWindow(at+work, at+second, 80)
		}
		p.Describe(func(r *timeline.Recording) {
			r.GPUs = append(r.GPUs, timeline.GPU{Index: i, Name: "Test GPU", PIDs: []int{100 + place}})
		})
	}
	return p.report(t, 10*second)
}

func TestGoldenOfSeveralProcesses(t *testing.T) {
	for name, r := range map[string]*report.View{"pool": poolOf(t, 3), "bigpool": poolOf(t, 8), "ranks": ranksOf(t, 4)} {
		svg, err := SVG(r, scene.Options{Width: 900})
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name+".svg", svg)
		golden.Check(t, name+".txt", []byte(Text(r, 120)))
	}
}

// Two programs that were started train for themselves: the steps are of the one that made more, and it is said that there are others.
func TestWhoseStepsTheyAre(t *testing.T) {
	p := newProgram("launch.py")
	for place, steps := range map[int]int{1: 5, 2: 9} {
		for i := range timeline.Nanos(steps) {
			p.Mark(timeline.Mark{Kind: "step", Start: i * second, End: (i + 1) * second, Process: place, Source: timeline.StepOptimizer})
		}
	}
	for range 2 {
		w := p.start(timeline.Process{Role: timeline.RoleChild, Command: "train.py", CPU: 6 * second, Stacks: read})
		p.Set(w, 0, p.stack(own("<module>", 6)), timeline.StatePython, false)
	}
	r := p.report(t, 10*second)
	text := Text(r, 200)
	for _, want := range []string{"Steps of train.py 102", "9 steps, ", "1 other process made 5 steps of its own"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text has no %q:\n%s", want, text)
		}
	}
	if !slices.ContainsFunc(r.Notes, func(n report.Note) bool { return n.ID == report.OneOfProcesses }) {
		t.Errorf("no note among %+v", r.Notes)
	}
}

// A pool is one strip; its members follow where they are few, else they are in its tooltip.
func TestAPoolIsOneStrip(t *testing.T) {
	for _, workers := range []int{3, 8} {
		d := digestOf(poolOf(t, workers))
		var names []string
		for _, lane := range d.threads {
			if lane.strip != nil {
				names = append(names, "strip "+lane.strip.name)
				if !strings.Contains(lane.strip.about, fmt.Sprintf("pool worker %d: %d %% busy", workers, 100*(9-workers)/10)) {
					t.Errorf("the strip says %q", lane.strip.about)
				}
				// All work until the first has no more to do, one second after they start.
				if at := lane.strip.points[len(lane.strip.points)*3/20]; math.Abs(at.Value-float64(workers)) > 1e-6 || lane.strip.top != float64(workers) {
					t.Errorf("at the start %+v of %g", at, lane.strip.top)
				}
				continue
			}
			names = append(names, lane.name)
		}
		want := fmt.Sprintf("strip %d pool workers", workers)
		if workers <= few {
			for i := range workers {
				want += fmt.Sprintf(",pool worker %d", i+1)
			}
		}
		if got := strings.Join(names, ","); got != want {
			t.Errorf("%d workers: lanes %s, want %s", workers, got, want)
		}
	}
}

// The names of a loader's workers have room beside their lanes.
func TestLoaderWorkersAreNamedInFull(t *testing.T) {
	p := newProgram("python", "/u/train.py")
	main := p.Thread(timeline.Thread{PID: 1, NativeID: 1, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
	p.Set(main, 0, p.stack(own("<module>", 9)), timeline.StateWaiting, false)
	for i := range 4 { // of two epochs
		number, begin := i%2, timeline.Nanos(i/2)*5*second
		w := p.start(timeline.Process{Role: timeline.RoleLoaderWorker, Number: &number, Command: "train.py", Start: begin, End: begin + 4*second, CPU: second, Stacks: read})
		p.Set(w, begin, p.stack(own("__getitem__", 4)), timeline.StatePython, false)
		p.End(w, begin+4*second)
	}
	d := digestOf(p.report(t, 10*second))
	var names []string
	for _, lane := range d.threads {
		if lane.strip != nil {
			names = append(names, lane.strip.name)
			if !strings.HasPrefix(lane.strip.about, "2 DataLoader workers (started 2 times): ") {
				t.Errorf("the strip says %q", lane.strip.about)
			}
			continue
		}
		names = append(names, lane.name)
	}
	if want := []string{"2 loader workers", "loader worker 0", "loader worker 0", "loader worker 1", "loader worker 1"}; !slices.Equal(names, want) {
		t.Errorf("lanes %q, want %q", names, want)
	}
	for _, name := range names {
		if room := scene.GutterLeft - 16; scene.WidthOf(name, scene.TextSize, scene.Sans) > room {
			t.Errorf("%q is wider than %g", name, room)
		}
	}
}

func TestRanksStandInOrderWithTheirGPUs(t *testing.T) {
	r := ranksOf(t, 4)
	d := digestOf(r)
	lanes := []string{d.flames[0].name}
	for _, lane := range d.threads {
		lanes = append(lanes, lane.name)
	}
	for i, want := range []string{"rank 0", "rank 2", "rank 3"} { // beside the one that is the flame chart
		if !strings.Contains(strings.Join(lanes[1:], ","), want) && lanes[0] != want {
			t.Errorf("lane %d: %v has no %s", i, lanes, want)
		}
	}
	table := ranksTable(r)
	if len(table.rows) != 4 || table.rows[2].name != "rank 2" || table.rows[2].seconds != 1 || !strings.Contains(table.rows[2].hint, "waited for others 60 %: all_reduce 60 %; GPU 2 idle") {
		t.Errorf("the table is %+v", table.rows)
	}
}

// Of many ranks those are shown that computed most: for them the others waited.
func TestOfManyRanksThoseThatComputeMostAreShown(t *testing.T) {
	r := ranksOf(t, maxRanks+4)
	late := len(r.Ranks) - 1
	r.Ranks[late].ComputingNS = r.Ranks[late].KnownNS
	table := ranksTable(r)
	name := r.Processes[r.Ranks[late].Process].Text
	if len(table.rows) != maxRanks || table.rows[0].name != name || !strings.Contains(table.note, "4 more ranks in the report") {
		t.Errorf("%d rows, the first %q, note %q", len(table.rows), table.rows[0].name, table.note)
	}
	d := digestOf(r)
	if !slices.ContainsFunc(d.threads, func(lane threadLane) bool { return lane.name == name }) && d.flames[0].name != name {
		t.Errorf("%s has no lane", name)
	}
}

// A rank that marks no steps has no step of zero seconds.
func TestARankWithoutSteps(t *testing.T) {
	r := ranksOf(t, 2)
	r.Ranks[1].StepNS, r.Ranks[1].Steps = nil, 0
	rows := ranksTable(r).rows
	if got := rows[0].time() + ", " + rows[1].time(); got != "1.0 s, –" {
		t.Errorf("steps of %s", got)
	}
	if text := Text(r, 120); !strings.Contains(text, "  rank 1      –  ") {
		t.Errorf("the terminal shows\n%s", text)
	}
}

// Zoomed, a pool's strip has the figures that the picture has: no track of the report does.
func TestTheViewerHasAPoolsStrip(t *testing.T) {
	r := poolOf(t, 8)
	for form, draw := range map[string]func(*report.View, scene.Options) ([]byte, error){"notebook": HTML, "folded": Folded, "page": Page} {
		html, err := draw(r, scene.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := documentIn(t, html)
		found := false
		for _, l := range got.Chart.Lanes {
			if l.Name != "8 pool workers" {
				continue
			}
			found = true
			if l.Kind != "track" || l.Index < len(r.Tracks) || l.Index >= len(got.Tracks) {
				t.Fatalf("%s: the pool's lane is %+v of %d tracks", form, l, len(got.Tracks))
			}
			track, most := got.Tracks[l.Index], 0.0
			for _, v := range track.Value {
				most = max(most, v)
			}
			if at := track.AtUS; len(at) == 0 || at[len(at)-1] != r.DurationNS/1000 || most < 1 || most > 8 {
				t.Errorf("%s: the pool's track ends at %v and has at most %v of 8 computing", form, at, most)
			}
		}
		if !found {
			t.Errorf("%s: no lane of the pool", form)
		}
	}
}

// A resource tracker reads a pipe all its life: that is nobody's work.
func TestAResourceTrackerHasNeitherLaneNorRow(t *testing.T) {
	p := newProgram("python", "/u/train.py")
	main := p.Thread(timeline.Thread{PID: 1, NativeID: 1, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
	p.Set(main, 0, p.stack(own("<module>", 9)), timeline.StatePython, false)
	read := p.start(timeline.Process{Role: timeline.RoleTracker, Command: "resource_tracker", CPU: 17e6, Stacks: read})
	p.Set(read, 0, p.stack(timeline.Frame{Function: "main", File: "/usr/lib/python3.12/multiprocessing/resource_tracker.py", Line: 3}), timeline.StateIO, false)
	r := p.report(t, 10*second)
	lanes, _ := lanesOf(r, 0, historiesOf(r), poolsOf(r), 10)
	if len(lanes) != 0 {
		t.Errorf("lanes %+v", lanes)
	}
	for _, row := range processesTable(r, 10).rows {
		if !row.rest {
			t.Errorf("a row %q", row.name)
		}
	}
}

// The row of the rank that the others waited for says so, and no other.
func TestTheStragglersRowIsMarked(t *testing.T) {
	for i, row := range ranksTable(ranksOf(t, 4)).rows {
		if marked := strings.HasPrefix(row.hint, "the others waited 4.0 s for it; "); marked != (i == 1) {
			t.Errorf("rank %d: %q", i, row.hint)
		}
	}
}

// How a program ended, where that was not well, is in its title, and in the row of a worker, however long that is.
func TestABadEndIsShown(t *testing.T) {
	r := poolOf(t, 2)
	code, signal, end := 1, "signal", int64(3e9)
	target := &r.Processes[r.Target().Process]
	target.EndNS, target.ExitCode = &end, &code
	killed := 137
	for i := range r.Processes {
		if p := &r.Processes[i]; i != r.Target().Process {
			p.EndNS, p.EndReason, p.ExitCode, p.Command = &end, &signal, &killed, strings.Repeat("a-long-name-", 3)
			break
		}
	}
	text := Text(r, 100)
	title, _, _ := strings.Cut(text, "\n")
	if r.Target().Cell == nil && !strings.Contains(title, "  exit code 1  ") || !strings.Contains(text, "ended by SIGKILL at 3.0 s") {
		t.Errorf("the terminal shows\n%s", text)
	}
}

// Processes that were forked one after the other are in the order of time, whatever they used, and each has its exit code where
// one of them has failed. Those that lived together are by their CPU time.
func TestProcessesThatFollowEachOtherAreInOrder(t *testing.T) {
	p := newProgram("python", "/u/train.py")
	main := p.Thread(timeline.Thread{PID: 1, NativeID: 1, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
	p.Set(main, 0, p.stack(own("<module>", 9)), timeline.StateWaiting, false)
	for i := range 3 {
		number, code, start := i+1, i, timeline.Nanos(i)*second
		p.start(timeline.Process{Role: timeline.RoleWorker, Number: &number, Command: "train.py", Start: start - second/100, End: start + second, CPU: second/2 + start/8, Exit: &code, Stacks: read})
	}
	r := p.report(t, 4*second)
	rows := func() (list []string) {
		for _, row := range processesTable(r, 4).rows {
			end, _, _ := strings.Cut(row.hint, ",")
			list = append(list, row.name+" "+end)
		}
		return list
	}
	if got, want := rows(), []string{"worker process 1 exit code 0 at 1.0 s", "worker process 2 exit code 1 at 2.0 s", "worker process 3 exit code 2 at 3.0 s"}; !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	for i := range r.Processes {
		if r.Processes[i].EndNS != nil {
			r.Processes[i].StartNS, r.Processes[i].ExitCode = 0, nil
		}
	}
	if got, want := rows(), []string{"worker process 3 ended at 3.0 s", "worker process 2 ended at 2.0 s", "worker process 1 ended at 1.0 s"}; !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
}

// dasksOf are two of Dask's workers that were recorded as one, the second for half of the time, and what their tasks took.
func dasksOf(t *testing.T) *report.View {
	p := newProgram("python", "-c", "x")
	number := 1
	main := p.Thread(timeline.Thread{PID: 1, NativeID: 1, Name: "MainThread", Main: true, OnCPU: -1})
	p.Set(main, 0, p.stack(own("load", 4)), timeline.StatePython, false)
	w := p.start(timeline.Process{Role: timeline.RoleDaskWorker, Number: &number, Command: "python", Start: 5 * second, Stacks: read})
	p.Set(w, 5*second, p.stack(own("inc", 7)), timeline.StatePython, false)
	p.Mark(timeline.Mark{Kind: "region", Name: "load", Start: 0, End: 3 * second})
	r := p.report(t, 10*second)
	r.Processes[0].Role = string(timeline.RoleDaskWorker)
	r.Regions = append(r.Regions, report.Region{Name: "inc", Process: 1, Count: 1, TotalNS: 3e9, P50NS: 3e9, P95NS: 3e9})
	r.Findings = append(r.Findings, report.Finding{ID: string(diagnose.EngineTasks), Args: map[string]any{"whole_ns": int64(15e9)}})
	return r
}

// The tasks of an engine are a share of what the headline says they are, and so are the lines that they ran.
func TestSharesOfTasksAreOfTheWorkersTime(t *testing.T) {
	r := dasksOf(t)
	regions := regionsTable(r, 10)
	if regions.note != "shares of the workers' 15.0 s" || len(regions.rows) != 2 {
		t.Fatalf("regions %+v", regions)
	}
	for _, row := range regions.rows {
		if row.aside != "20 %" {
			t.Errorf("%s is %s, want 20 %%", row.name, row.aside)
		}
	}
	workers := pool{&report.Pool{Role: string(timeline.RoleDaskWorker), Members: []int{0, 1}, Text: "2 Dask workers"}, []int{0, 1}}
	for i, want := range []string{"67 %", "33 %"} {
		if rows := workers.linesTable(r).rows; len(rows) != 2 || rows[i].aside != want {
			t.Errorf("row %d of %+v, want %s", i, rows, want)
		}
	}
	r.Findings = nil
	if regions := regionsTable(r, 10); regions.note != "" || regions.rows[0].aside != "30 %" {
		t.Errorf("without a sentence about tasks: %+v", regions)
	}
}

// The other workers of an engine are no children of the first one.
func TestSiblingsAreNoChildProcesses(t *testing.T) {
	r := dasksOf(t)
	if note := notesOf(r, nil)[0]; strings.Contains(note, "child") {
		t.Errorf("%q", note)
	}
	r.Processes[1].Role = string(timeline.RoleChild)
	if note := notesOf(r, nil)[0]; !strings.Contains(note, "1 child process") {
		t.Errorf("%q", note)
	}
}

// Shares are by number: a loader that each epoch starts anew has two workers 0, which are one in words. Those that
// have no numbers have none.
func TestSharesOfAPoolAreByNumber(t *testing.T) {
	number := func(n int) *int { return &n }
	r := &report.View{Document: &report.Document{Processes: []report.Process{{RoleNumber: number(0)}, {RoleNumber: number(1)}, {RoleNumber: number(0)}, {}, {}}}}
	loaders := pool{Pool: &report.Pool{}, members: []int{0, 1, 2}}
	if got := loaders.shares(r, map[int]float64{0: 1, 1: 2, 2: 1}); got != "of it by 0: 50 %, 1: 50 %" {
		t.Errorf("got %q", got)
	}
	anew := pool{Pool: &report.Pool{AtOnce: 2}, members: []int{0, 1, 2, 0, 1, 2}}
	if got := anew.shares(r, map[int]float64{0: 1, 1: 2, 2: 1}); !strings.HasPrefix(got, "of it by 0: ") {
		t.Errorf("got %q", got)
	}
	children := pool{Pool: &report.Pool{}, members: []int{3, 4}}
	if got := children.shares(r, map[int]float64{3: 1, 4: 3}); got != "25 % to 75 % of it each" {
		t.Errorf("got %q", got)
	}
}
