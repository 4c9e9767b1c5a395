package live

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

const (
	ms       = timeline.Nanos(1e6)
	start    = int64(1e12)
	cellFile = "/tmp/ipykernel_7/1.py"
	cellText = "for batch in loader:\n    loss = train(batch)\n    report(loss)\n"
)

// program is a recording in progress, written by hand.
type program struct {
	b     *timeline.Builder
	main  timeline.ThreadID
	cpu   *timeline.TrackWriter
	gpu   *timeline.TrackWriter
	began int64
	f     *Follower
}

func newProgram() *program {
	b := timeline.NewBuilder(timeline.Options{Origin: start})
	p := &program{b: b, began: start, f: New(Options{})}
	p.main = b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true})
	p.cpu = b.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindRate, Limit: 4, Device: -1})
	b.Describe(func(rec *timeline.Recording) {
		rec.Processes = []timeline.Process{{PID: 7, ParentIndex: -1}}
		rec.Target = timeline.Target{PID: 7, Cell: &timeline.Cell{ExecutionCount: 5, File: cellFile, Text: cellText}}
	})
	return p
}

// withGPU adds a device that the program is on.
func (p *program) withGPU() *program {
	p.gpu = p.b.Track(timeline.TrackSpec{ID: "gpu0.util", Kind: timeline.KindRate, Device: 0})
	p.b.Describe(func(rec *timeline.Recording) { rec.GPUs = []timeline.GPU{{Index: 0, PIDs: []int{7}}} })
	return p
}

// call is a frame: "file:line function".
func (p *program) stack(calls ...string) timeline.NodeID {
	node := timeline.RootNode
	for _, call := range calls {
		var f timeline.Frame
		place, function, _ := strings.Cut(call, " ")
		i := strings.LastIndexByte(place, ':')
		f.File, f.Function = place[:i], function
		fmt.Sscan(place[i+1:], &f.Line)
		node = p.b.Child(node, p.b.Frame(f))
	}
	return node
}

func (p *program) cell(line int, calls ...string) timeline.NodeID {
	return p.stack(append([]string{fmt.Sprintf("%s:%d <module>", cellFile, line)}, calls...)...)
}

func (p *program) look(at timeline.Nanos, marked Progress) Now {
	monotonic := start + int64(at)
	rec := p.b.Recent(p.b.Since(p.f.From(monotonic)), at)
	return p.f.Look(rec, p.began, marked)
}

func TestALookTellsTheLineOfTheLastSecondAndHowLongItHasBeenThere(t *testing.T) {
	p := newProgram()
	p.b.Set(p.main, 0, p.cell(1), timeline.StatePython, false)
	p.b.Set(p.main, 500*ms, p.cell(2, "/home/u/model.py:40 train", "/lib/python3.12/site-packages/torch/nn/linear.py:9 forward"), timeline.StateNative, false)
	for at := 1000 * ms; at <= 30_000*ms; at += 1000 * ms {
		p.look(at, Progress{})
	}
	now := p.look(31_000*ms, Progress{})
	want := Position{Place: "line 2", Text: "loss = train(batch)", SinceNS: 30_500e6}
	if now.Line == nil || *now.Line != want {
		t.Errorf("line %+v, want %+v", now.Line, want)
	}
	want = Position{Place: "model.py:40", Function: "train", SinceNS: 30_500e6}
	if now.Inner == nil || *now.Inner != want {
		t.Errorf("inner line %+v, want %+v", now.Inner, want)
	}
	if now.ElapsedNS != 31_000e6 || now.Cell != 5 {
		t.Errorf("elapsed %d in cell %d", now.ElapsedNS, now.Cell)
	}
	if got := now.Lines[0]; got.Place != "model.py:40" || got.SelfNS != 30_500e6 || math.Abs(got.Share-30.5/31) > 1e-9 {
		t.Errorf("hottest line %+v", got)
	}
	if d := now.Doing; d == nil || d.Cause != activity.Native || d.Share != 1 {
		t.Errorf("doing %+v, want native code all the time", d)
	}
}

func TestALineInALoopHasNoSince(t *testing.T) {
	p := newProgram()
	for i := range 2000 {
		p.b.Set(p.main, timeline.Nanos(i)*ms, p.cell(2+i%2, fmt.Sprintf("/home/u/m.py:%d f", i%2)), timeline.StatePython, false)
	}
	now := p.look(2000*ms, Progress{})
	if now.Line.SinceNS > int64(2*ms) {
		t.Errorf("a line that comes and goes is said to be there for %d ns", now.Line.SinceNS)
	}
	sum := int64(0)
	for _, l := range now.Lines {
		sum += l.SelfNS
	}
	if sum != 2000e6 {
		t.Errorf("the lines add up to %d ns of 2 s: %+v", sum, now.Lines)
	}
}

func TestNoTimeIsCountedTwiceOrLostBetweenLooks(t *testing.T) {
	p := newProgram()
	random := rand.New(rand.NewPCG(1, 2))
	nodes := []timeline.NodeID{p.cell(1), p.cell(2), p.cell(3), timeline.RootNode}
	next := 1000 * ms
	var now Now
	for at := timeline.Nanos(0); at <= 20_000*ms; at += ms {
		p.b.Set(p.main, at, nodes[random.IntN(len(nodes))], timeline.StatePython, false)
		if at >= next {
			now = p.look(at, Progress{})
			next = at + timeline.Nanos(random.IntN(6000))*ms // also rarer than the window
		}
	}
	now = p.look(20_000*ms, Progress{})
	sum := now.Without * 20_000e6
	for _, l := range now.Lines {
		sum += float64(l.SelfNS)
	}
	if math.Abs(sum-20_000e6) > 1e3 {
		t.Errorf("%g s were counted of 20", sum/1e9)
	}
}

func TestStepsAndTimeLeft(t *testing.T) {
	p := newProgram()
	p.b.Set(p.main, 0, p.cell(2), timeline.StatePython, false)
	if now := p.look(1000*ms, Progress{}); now.Steps != nil {
		t.Errorf("steps %+v of a program that marks none", now.Steps)
	}
	var now Now
	for i := int64(1); i <= 20; i++ { // 10 s until the first step, then 4 a second
		at := 10_000*ms + timeline.Nanos(i)*1000*ms
		now = p.look(at, Progress{Steps: 4 * i, LastNS: start + int64(at), Total: 400})
	}
	s := now.Steps
	if s == nil || *s.Count != 80 || *s.Total != 400 || math.Abs(*s.PerSecond-4) > 1e-9 || math.Abs(float64(*s.LeftNS)-80e9) > 1e6 {
		text, _ := json.Marshal(s)
		t.Errorf("steps %s, want 80 of 400, 4 a second, 80 s left", text)
	}
	now = p.look(31_000*ms, Progress{Steps: 81, LastNS: start + int64(31_000*ms)})
	if now.Steps.Total != nil || now.Steps.LeftNS != nil {
		t.Error("there is a time left without a known total")
	}
}

func TestStepsAreTheOptimizersCallsWhereNobodyTellsThem(t *testing.T) {
	p := newProgram()
	for i := range 40 { // 100 ms each, 20 of it in the optimizer
		at := timeline.Nanos(i) * 100 * ms
		p.b.Set(p.main, at, p.cell(2), timeline.StatePython, false)
		p.b.Set(p.main, at+80*ms, p.cell(3, "/lib/python3.12/site-packages/torch/optim/sgd.py:10 SGD.step"), timeline.StateNative, false)
	}
	now := p.look(4000*ms, Progress{})
	if s := now.Steps; s == nil || s.Count != nil || math.Abs(*s.PerSecond-10) > 0.1 {
		t.Errorf("steps %+v, want 10 a second and no count", s)
	}
}

func TestTheGPUsIdleTimeHasACause(t *testing.T) {
	p := newProgram().withGPU()
	load := p.cell(1, "/lib/python3.12/site-packages/torch/utils/data/dataloader.py:700 _SingleProcessDataLoaderIter._next_data")
	train := p.cell(2, "/lib/python3.12/site-packages/torch/nn/linear.py:9 forward")
	for at := timeline.Nanos(0); at < 4000*ms; at += 1000 * ms { // 800 ms loading, 200 ms training
		p.b.Set(p.main, at, load, timeline.StatePython, false)
		p.b.Set(p.main, at+800*ms, train, timeline.StateNative, false)
		for w := timeline.Nanos(0); w < 10; w++ {
			busy := 0.0
			if w >= 8 {
				busy = 100
			}
			p.gpu.AddWindow(at+w*100*ms, at+(w+1)*100*ms, busy)
		}
	}
	now := p.look(4000*ms, Progress{})
	i := now.Idle
	if i == nil || i.Cause != activity.LoadHere || i.Place != "line 1" || !i.Sure || math.Abs(i.Share-0.8) > 0.01 {
		t.Fatalf("idle %+v, want 80 %% for data in line 1, surely", i)
	}
	if busy := now.Busy(); busy == nil || math.Abs(*busy-0.2) > 0.01 {
		t.Errorf("busy %v, want 0.2 in the last second", busy)
	}
	// Then nothing runs on the device for longer than a look goes back.
	p.b.Set(p.main, 4000*ms, p.cell(3, "/lib/python3.12/threading.py:300 Condition.wait"), timeline.StateWaiting, false)
	for at := 4000 * ms; at < 10_000*ms; at += 100 * ms {
		p.gpu.AddWindow(at, at+100*ms, 0)
	}
	i = p.look(10_000*ms, Progress{}).Idle
	if i == nil || i.Share != 1 || i.Cause != activity.Lock || i.Place != "line 3" {
		t.Errorf("idle %+v, want all of it for a lock in line 3", i)
	}
}

func TestADeviceThatWasNeverUsedHasNoIdleTime(t *testing.T) {
	p := newProgram().withGPU()
	p.b.Set(p.main, 0, p.cell(2), timeline.StatePython, false)
	p.gpu.AddWindow(0, 1000*ms, 0)
	now := p.look(1000*ms, Progress{})
	if now.Idle != nil || len(now.Devices) != 1 || now.Devices[0].Used || now.Busy() != nil {
		t.Errorf("devices %+v, idle %+v", now.Devices, now.Idle)
	}
}

func TestFiguresThatStoppedAreNotThoseOfNow(t *testing.T) {
	p := newProgram()
	p.b.Set(p.main, 0, p.cell(2), timeline.StatePython, false)
	p.cpu.Add(1000*ms, 2)
	if now := p.look(2000*ms, Progress{}); now.CPU == nil || *now.CPU != (Figure{2, 4}) {
		t.Errorf("CPU %+v, want 2 of 4 cores", now.CPU)
	}
	now := p.look(9000*ms, Progress{})
	if now.CPU != nil {
		t.Errorf("CPU %+v of 8 s ago", now.CPU)
	}
	if h := now.History.CPU; len(h) != 2 || h[0] == nil || *h[0] != 0.5 || h[1] != nil {
		t.Errorf("history %v", h)
	}
}

func TestAnEmptyRecordingIsALook(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: start})
	f := New(Options{})
	now := f.Look(b.Recent(0, 0), start, Progress{})
	if now.Line != nil || now.Doing != nil || len(now.Lines) != 0 {
		t.Errorf("%+v", now)
	}
	if _, err := json.Marshal(now); err != nil {
		t.Error(err)
	}
}

// BenchmarkLookAtALongCell is one look at a cell of five threads that are sampled each
// millisecond and change their stack at every sample, among 2,000 stacks of 40,000 frames:
// the worst there is. After ten minutes as after an hour the Builder holds as many spans
// as it keeps at most.
func BenchmarkLookAtALongCell(b *testing.B) {
	p := newProgram().withGPU()
	random := rand.New(rand.NewPCG(1, 2))
	var nodes []timeline.NodeID
	for i := range 2000 {
		calls := []string{fmt.Sprintf("/home/u/train.py:%d step", i%50)}
		for d := range 20 {
			calls = append(calls, fmt.Sprintf("/lib/python3.12/site-packages/torch/m%d.py:%d f%d", d, (i*7+d)%300, d))
		}
		nodes = append(nodes, p.cell(1+i%3, calls...))
	}
	threads := []timeline.ThreadID{p.main}
	for i := range 4 {
		threads = append(threads, p.b.Thread(timeline.Thread{PID: 7, NativeID: 8 + i}))
	}
	at := timeline.Nanos(0)
	run := func(d timeline.Nanos) {
		for end := at + d; at < end; at += ms {
			for _, th := range threads {
				p.b.Set(th, at, nodes[random.IntN(len(nodes))], timeline.State(random.IntN(6)), false)
			}
			if at%(100*ms) == 0 && at > 0 {
				p.gpu.AddWindow(at-100*ms, at, float64(random.IntN(100)))
				p.cpu.Add(at, random.Float64())
			}
		}
	}
	run(600 * 1000 * ms)
	p.look(at, Progress{})
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		run(1000 * ms)
		b.StartTimer()
		p.look(at, Progress{})
	}
}

func TestALookAtALauncherShowsTheProgram(t *testing.T) {
	p := &program{b: timeline.NewBuilder(timeline.Options{Origin: start}), began: start, f: New(Options{})}
	p.main = p.b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true})
	started := p.b.Thread(timeline.Thread{PID: 8, Process: 1, NativeID: 8, Main: true})
	p.b.Describe(func(rec *timeline.Recording) {
		rec.Target = timeline.Target{PID: 7, Argv: []string{"python3", "-m", "launcher", "busy.py"}}
		rec.Processes = []timeline.Process{{PID: 7, ParentIndex: -1, Role: timeline.RoleScript}, {PID: 8, Role: timeline.RoleChild}}
	})
	p.b.Set(p.main, 0, p.stack("/v/lib/python3.12/site-packages/launcher/__main__.py:9 main"), timeline.StateWaiting, false)
	p.b.Set(started, 0, p.stack("/home/u/busy.py:5 <module>"), timeline.StatePython, false)
	now := p.look(3000*ms, Progress{})
	if now.Line == nil || now.Line.Place != "busy.py:5" || len(now.Lines) != 1 || now.Lines[0].SelfNS != 3000e6 {
		t.Errorf("line %+v, lines %+v: want 3 s in busy.py:5", now.Line, now.Lines)
	}
}

// A launcher shows where its first rank is: it runs no code of the user's own itself.
func TestALauncherShowsItsFirstRank(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: start})
	p := &program{b: b, began: start, f: New(Options{})}
	b.Set(b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true}), 0, p.stack("/v/site-packages/torch/distributed/run.py:900 main"), timeline.StateWaiting, false)
	processes := []timeline.Process{{PID: 7, ParentIndex: -1, Role: timeline.RoleScript}}
	for rank := range 2 {
		number := 1 - rank
		processes = append(processes, timeline.Process{PID: 8 + rank, Role: timeline.RoleRank, Rank: &number, Number: &number})
		b.Set(b.Thread(timeline.Thread{PID: 8 + rank, Process: 1 + rank, NativeID: 8 + rank, Main: true}), 0, p.stack(fmt.Sprintf("/u/train.py:%d <module>", 3+number)), timeline.StatePython, false)
	}
	b.Describe(func(rec *timeline.Recording) {
		rec.Processes, rec.Target = processes, timeline.Target{PID: 7, Argv: []string{"torchrun", "/u/train.py"}}
	})
	now := p.f.Look(b.Snapshot(2000*ms), start, Progress{})
	if now.Line == nil || now.Line.Place != "train.py:3" || now.Doing == nil || now.Doing.Cause != activity.Python || len(now.Lines) != 1 {
		t.Errorf("it shows %+v, which does %+v; lines %+v; want line 3 of rank 0", now.Line, now.Doing, now.Lines)
	}
}
