package documents

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Answered is a random recording's document and what Go makes of it, for the viewer to come to the same
// by its own way: the document's spans, which it sums up whenever a part of them is shown.
type Answered struct {
	Seed      uint64         `json:"seed"`
	Document  map[string]any `json:"document"`
	Functions []AnsweredTime `json:"functions"` // by index: times of functions over all processes
	Lines     []AnsweredLine `json:"lines"`     // with time of their own, most first
	Threads   [][]float64    `json:"threads"`   // microseconds by state
	Columns   int            `json:"columns"`
	Scale     float64        `json:"scale"`   // columns for each pixel
	Boxes     [][][]box      `json:"boxes"`   // by lane and row of the unzoomed picture
	Figures   [][2]any       `json:"figures"` // nanoseconds, and how they are said
	Subject   AnsweredSubject
	Pools     []report.Pool // that have several members with lines
	Steps     AnsweredSteps
	Findings  []AnsweredFinding
	Stretch   AnsweredStretch `json:"stretch"`
}

// AnsweredSteps are the leading process's steps, and how their lengths are said.
type AnsweredSteps struct {
	Count       int
	Median, P95 string
}

// AnsweredFinding is a finding: what, where, and what it costs in microseconds.
type AnsweredFinding struct {
	Text       string
	File, Line int // -1, 0: none
	Cost       float64
	Serious    bool
}

// AnsweredSubject is whom a document is about; Thread is -1 where none is known.
type AnsweredSubject struct {
	Program, Thread int
	Threads         []int
}

// AnsweredTime is a function's time, in microseconds.
type AnsweredTime struct {
	Self, Total float64
	States      []float64
}

// AnsweredLine is a line's time, in microseconds.
type AnsweredLine struct {
	Process, File, Line int
	Self                float64
	States              []float64
}

// answerColumns are those of the pictures that boxes are compared in.
const answerColumns = 300

// Answer makes a random recording: another one for each seed, the same one each time.
func Answer(seed uint64) (*Answered, error) {
	v, err := randomReport(seed)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(v.Document)
	if err != nil {
		return nil, err
	}
	a := &Answered{Seed: seed, Columns: answerColumns}
	var d Document
	if err := json.Unmarshal(text, &a.Document); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	d.Chart = chartOf(&d, seed%3 > 0)
	a.Document["chart"] = d.Chart
	a.Scale = []float64{0.3, 0.5, 1, 2}[seed%4]
	rnd := rand.New(rand.NewPCG(seed, 28))
	addDevices(&d, rnd)
	a.Document["devices"], a.Document["tracks"], a.Document["idle"] = d.Devices, d.Tracks, d.Idle
	us := float64(d.DurationNS) / 1000
	from := us * rnd.Float64()
	a.Stretch = d.stretch(from, from+(us-from)*(0.01+0.98*rnd.Float64()))
	a.Boxes = geometry(&d, answerColumns, a.Scale)
	a.sum(v)
	a.Subject = subjectOf(v)
	a.say(v)
	for _, p := range v.Pools {
		working := func(member int) bool {
			return member != v.Program() && slices.ContainsFunc(v.Lines, func(l report.Line) bool { return l.Process == member })
		}
		if p.Members = slices.DeleteFunc(slices.Clone(p.Members), func(m int) bool { return !working(m) }); len(p.Members) > 1 {
			a.Pools = append(a.Pools, p)
		}
	}
	return a, nil
}

func subjectOf(v *report.View) AnsweredSubject {
	return AnsweredSubject{Program: v.Program(), Thread: v.MainThread(), Threads: append([]int{}, v.Subject.Threads...)}
}

// say takes the report's steps and findings.
func (a *Answered) say(v *report.View) {
	if steps := v.StepTimes(); steps.Count > 0 {
		a.Steps = AnsweredSteps{steps.Count, words.Seconds(report.Seconds(steps.MedianNS)), words.Seconds(report.Seconds(steps.P95NS))}
	}
	for _, f := range v.Findings {
		to := AnsweredFinding{Text: f.Text, File: -1, Serious: f.Severity != "info"}
		if f.File != nil && f.Line != nil && *f.Line > 0 {
			to.File, to.Line = *f.File, *f.Line
		}
		if f.CostNS != nil {
			to.Cost = float64(*f.CostNS) / 1000
		}
		a.Findings = append(a.Findings, to)
	}
}

// sum takes the report's own figures.
func (a *Answered) sum(v *report.View) {
	a.Functions = make([]AnsweredTime, len(v.Functions))
	for i := range a.Functions {
		a.Functions[i].States = make([]float64, report.NumStates)
	}
	for _, f := range v.FunctionTimes {
		to := &a.Functions[f.Function]
		to.Self += float64(f.SelfNS) / 1000
		to.Total += float64(f.TotalNS) / 1000
		for s, ns := range f.StateNS {
			to.States[s] += float64(ns) / 1000
		}
		a.Figures = append(a.Figures, [2]any{f.SelfNS, words.Duration(time.Duration(f.SelfNS))})
	}
	for _, l := range v.Lines {
		if l.SelfNS > 0 {
			a.Lines = append(a.Lines, AnsweredLine{l.Process, l.File, l.Line, float64(l.SelfNS) / 1000, micro(l.StateNS)})
		}
	}
	for _, t := range v.Threads {
		a.Threads = append(a.Threads, micro(t.StateNS))
	}
}

func micro(ns []int64) []float64 {
	out := make([]float64, len(ns))
	for i, v := range ns {
		out[i] = float64(v) / 1000
	}
	return out
}

// randomReport is of a few processes and threads, whose stacks go through the user's files and packages,
// with recursion, direct and not, and gaps.
func randomReport(seed uint64) (*report.View, error) {
	rnd := rand.New(rand.NewPCG(seed, 22))
	b := timeline.NewBuilder(timeline.Options{Origin: 5e12, StartedAt: time.Unix(1_790_000_000, 0).UTC()})
	duration := timeline.Nanos(1+rnd.IntN(2_000_000)) * 1000 * timeline.Nanos(1+rnd.IntN(20))
	processes := []timeline.Process{{PID: 100, Parent: 1, Role: timeline.RoleKernel, Command: "python", Start: -2e9, CPU: -1}}
	roles := []timeline.Role{timeline.RoleWorker, timeline.RoleLoaderWorker, timeline.RoleRank, timeline.RoleChild, timeline.RoleForkServer}
	for i := range rnd.IntN(7) {
		number, parent := i, rnd.IntN(i+1)
		processes = append(processes, timeline.Process{
			PID: 200 + i, Parent: processes[parent].PID, ParentIndex: parent, Role: roles[rnd.IntN(len(roles))], Number: &number, Command: "serve 8", Start: -1e9, CPU: -1})
	}
	stacks := randomStacks(b, rnd)
	runs := rnd.IntN(3) // 0: no thread is known to run the cell
	for i := range 1 + rnd.IntN(8) {
		process := 0
		if i > 0 {
			process = rnd.IntN(len(processes))
		}
		main := i == 0 || process > 0 && rnd.IntN(2) == 0
		id := b.Thread(timeline.Thread{
			PID: processes[process].PID, Process: process, NativeID: 100 + i, Name: fmt.Sprint("thread ", i), OnCPU: -1,
			Main: main, RunsCell: process == 0 && i < runs, Internal: i > 0 && rnd.IntN(8) == 0,
		})
		randomHistory(b, id, stacks, duration, rnd)
	}
	randomSteps(b, len(processes), duration, rnd)
	b.Describe(func(rec *timeline.Recording) {
		rec.Target = timeline.Target{PID: 100, Cell: &timeline.Cell{ExecutionCount: 1, File: cellPath, Text: "a\nb\nc\nd\ne", Outcome: "ok"}}
		rec.Sampling = timeline.Sampling{Method: timeline.MethodOutside, Interval: time.Millisecond, Samples: int64(duration / 1e6)}
		rec.Processes = processes
	})
	rec := interpret.Of(b.Snapshot(duration))
	found := diagnose.Run(rec)
	return report.Build(rec, &found, report.Options{})
}

const cellPath = "/tmp/ipykernel_1/1001.py"

func randomStacks(b *timeline.Builder, rnd *rand.Rand) []timeline.NodeID {
	files := []string{cellPath, "/home/u/train.py", "/home/u/model.py", "/v/lib/python3.12/site-packages/torch/a.py", "/v/lib/python3.12/site-packages/torch/b.py",
		"/v/lib/python3.12/site-packages/numpy/c.py", "/usr/lib/python3.12/json/decoder.py"}
	nodes := []timeline.NodeID{timeline.RootNode}
	for range 2 + rnd.IntN(60) {
		file := rnd.IntN(len(files))
		function := rnd.IntN(4)
		frame := timeline.Frame{Function: fmt.Sprint("f", file, function), File: files[file], Line: 1 + 10*function + rnd.IntN(3), FirstLine: 1 + 10*function}
		if rnd.IntN(10) == 0 {
			frame.Line = 0 // not known
		}
		nodes = append(nodes, b.Child(nodes[rnd.IntN(len(nodes))], b.Frame(frame)))
	}
	return nodes
}

// randomSteps are those of up to two processes, some without a pause between.
func randomSteps(b *timeline.Builder, processes int, duration timeline.Nanos, rnd *rand.Rand) {
	for range rnd.IntN(3) {
		process, at, steps := rnd.IntN(processes), timeline.Nanos(0), 1+rnd.IntN(50)
		for i := range steps {
			end := min(at+1000*timeline.Nanos(rnd.Int64N(2*int64(duration)/int64(steps)/1000+1)), duration)
			b.Mark(timeline.Mark{Kind: "step", Name: fmt.Sprint("step ", i), Process: process, Source: timeline.StepMarked, Start: at, End: end})
			if at = end; rnd.IntN(4) == 0 {
				at = min(at+1000, duration)
			}
		}
	}
}

// randomHistory has changes at whole microseconds, as documents have them.
func randomHistory(b *timeline.Builder, id timeline.ThreadID, stacks []timeline.NodeID, duration timeline.Nanos, rnd *rand.Rand) {
	states := []timeline.State{timeline.StatePython, timeline.StateNative, timeline.StateWaiting, timeline.StateIO, timeline.StateGIL, timeline.StateOff, timeline.StateUnknown}
	changes := 1 + rnd.IntN(80)
	if rnd.IntN(4) == 0 {
		changes *= 20 // more than there are columns
	}
	at := timeline.Nanos(0)
	for range changes {
		node := stacks[rnd.IntN(len(stacks))]
		b.Set(id, at, node, states[rnd.IntN(len(states))], rnd.IntN(10) == 0)
		at += timeline.Nanos(rnd.Int64N(2*int64(duration)/int64(changes)+1)) / 1000 * 1000
		if at >= duration {
			return
		}
		if rnd.IntN(changes) == 0 {
			b.End(id, at)
			if rnd.IntN(2) == 0 {
				return
			}
			at += 1000
		}
	}
}

// chartOf has a lane of each kind for each thread.
func chartOf(d *Document, folded bool) *Chart {
	c := &Chart{Folded: folded, Finding: [][3]string{}}
	for i, f := range d.Files {
		if f.Code <= int(User) {
			c.Lanes = append(c.Lanes, Lane{Kind: "lines", Index: i, Name: f.Name})
		}
	}
	for i, t := range d.Threads {
		c.Lanes = append(c.Lanes, Lane{Kind: "flame", Index: i, Rows: 30, Name: t.Name}, Lane{Kind: "thread", Index: i, Name: t.Name}, Lane{Kind: "thread", Index: i, By: "code", Name: t.Name})
	}
	return lay(1120, c)
}
