// Package twosides makes up recordings of programs whose times are known, for tests of
// comparisons: a cell with a loop, seen by a sampler that looks each millisecond at a moment
// of chance, as the real one does. Nothing of the product imports it.
package twosides

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Part is what a step of the loop does for some time.
type Part struct {
	Line     int           // of the cell
	Function string        // that the line calls; empty: none
	Library  string        // file of the function; empty: the cell
	Mean     time.Duration // in a step
	Spread   float64       // standard deviation from step to step, of the mean
	Busy     bool          // a GPU works meanwhile
	Waits    bool          // it does not compute
}

// Program is a cell.
type Program struct {
	Cell   int // execution count
	Name   string
	Text   string
	Steps  int
	Parts  []Part
	Runs   float64 // standard deviation from run to run, of everything in one
	GPU    bool
	Marked bool    // steps are known
	OnCPU  float64 // share of the time on a CPU; 0: all of it
}

const (
	interval = timeline.Nanos(time.Millisecond)
	window   = 20 * timeline.Nanos(time.Millisecond) // of the GPU's activity
)

// stretch is a part as it was.
type stretch struct {
	part       Part
	start, end timeline.Nanos
}

// Record makes a recording of a run; another seed is another run.
func (p Program) Record(seed uint64) (*report.View, error) {
	r := rand.New(rand.NewPCG(seed, 17))
	run := 1 + p.Runs*r.NormFloat64()
	b := timeline.NewBuilder(timeline.Options{Origin: 5e12, StartedAt: time.Unix(1_790_000_000+int64(seed%1000), 0).UTC()})
	main := timeline.Thread{PID: 100, NativeID: 100, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1}
	var parts []stretch
	at := timeline.Nanos(0)
	for range p.Steps {
		start := at
		for _, part := range p.Parts {
			length := timeline.Nanos(float64(part.Mean) * max(run*(1+part.Spread*r.NormFloat64()), 0))
			parts = append(parts, stretch{part, at, at + length})
			at += length
		}
		if p.Marked {
			b.Mark(timeline.Mark{Kind: "step", Start: start, End: at, Source: timeline.StepMarked})
		}
	}
	if p.OnCPU > 0 {
		main.OnCPU = timeline.Nanos(p.OnCPU * float64(at))
	}
	p.sample(b, b.Thread(main), parts, at, r)
	if p.GPU {
		p.activity(b, parts, at)
	}
	b.Describe(func(rec *timeline.Recording) {
		rec.Target = timeline.Target{PID: 100, Cell: &timeline.Cell{ExecutionCount: p.Cell, File: p.file(), Text: p.Text, Name: p.Name, Outcome: "ok"}}
		rec.Sampling = timeline.Sampling{Method: timeline.MethodOutside, Interval: time.Duration(interval), Samples: int64(at / interval)}
		rec.Processes = []timeline.Process{{PID: 100, Parent: 1, Role: timeline.RoleKernel, Command: "python", Start: -2e9, CPU: -1}}
		if p.GPU {
			rec.GPUs = []timeline.GPU{{Index: 0, UUID: "GPU-4a3b", Name: "NVIDIA H100", Source: "GPM", Resolution: time.Duration(window), PIDs: []int{100}}}
		}
	})
	rec := b.Snapshot(at)
	line := func(file string, line int) string {
		if lines := strings.Split(p.Text, "\n"); file == p.file() && line >= 1 && line <= len(lines) {
			return lines[line-1]
		}
		return ""
	}
	d := diagnose.Options{Line: line}.Run(rec)
	return report.Build(rec, &d, report.Options{Line: line})
}

func (p Program) file() string { return fmt.Sprintf("/tmp/ipykernel_1/%d.py", 1000+p.Cell) }

// sample looks at a random moment of each interval. A change is half-way between two
// looks.
func (p Program) sample(b *timeline.Builder, thread timeline.ThreadID, parts []stretch, end timeline.Nanos, r *rand.Rand) {
	next, last := 0, timeline.Nanos(0)
	for tick := timeline.Nanos(0); tick < end; tick += interval {
		now := tick + timeline.Nanos(r.Int64N(int64(interval)))
		for next < len(parts)-1 && parts[next].end <= now {
			next++
		}
		state := timeline.StatePython
		if parts[next].part.Waits {
			state = timeline.StateWaiting
		}
		b.Set(thread, (last+now)/2, p.stack(b, parts[next].part), state, false)
		last = now
	}
}

func (p Program) stack(b *timeline.Builder, part Part) timeline.NodeID {
	n := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: p.file(), Line: part.Line, FirstLine: 1}))
	if part.Function == "" {
		return n
	}
	file, line := part.Library, 10
	if file == "" {
		file = p.file()
		for i, text := range strings.Split(p.Text, "\n") {
			if strings.HasPrefix(text, "def "+part.Function+"(") {
				line = i + 1
			}
		}
		return b.Child(n, b.Frame(timeline.Frame{Function: part.Function, File: file, Line: line + 1, FirstLine: line}))
	}
	return b.Child(n, b.Frame(timeline.Frame{Function: part.Function, File: file, Line: line + 3, FirstLine: line}))
}

// activity returns the share of each window for which the GPU worked.
func (p Program) activity(b *timeline.Builder, parts []stretch, end timeline.Nanos) {
	util := b.Track(timeline.TrackSpec{ID: "gpu0.util", Kind: timeline.KindRate, Unit: "%", Source: "GPM", Resolution: time.Duration(window), Device: 0, Limit: 100})
	next := 0
	for from := timeline.Nanos(0); from < end; from += window {
		to := min(from+window, end)
		busy := timeline.Nanos(0)
		for next < len(parts) && parts[next].end <= from {
			next++
		}
		for i := next; i < len(parts) && parts[i].start < to; i++ {
			if parts[i].part.Busy {
				busy += min(parts[i].end, to) - max(parts[i].start, from)
			}
		}
		util.AddWindow(from, to, 100*float64(busy)/float64(to-from))
	}
}

// Training is a cell that waits for its loader before each step of a GPU; Faster is the
// same with a loader that takes less, a line more and a function less.
func Training() Program {
	return Program{
		Cell: 7, Steps: 100, GPU: true, Marked: true,
		Text: "%%omni_perf\ndef augment(x):\n    return [flip(row) for row in x]\n\nfor x, y in loader:\n    x = augment(x)\n    loss = model(x, y)\n    losses.append(loss.item())\n",
		Parts: []Part{
			{Line: 5, Function: "_next_data", Library: "/v/lib/python3.12/site-packages/torch/utils/data/dataloader.py", Mean: 30 * time.Millisecond, Spread: 0.1},
			{Line: 6, Function: "augment", Mean: 6 * time.Millisecond, Spread: 0.1},
			{Line: 7, Function: "forward", Library: "/v/lib/python3.12/site-packages/torch/nn/module.py", Mean: 12 * time.Millisecond, Spread: 0.05, Busy: true},
			{Line: 8, Function: "Tensor.item", Library: "/v/lib/python3.12/site-packages/torch/_tensor.py", Mean: 10 * time.Millisecond, Spread: 0.05, Busy: true},
		},
	}
}

// Faster is Training after a change, in another cell.
func Faster() Program {
	p := Training()
	p.Cell = 9
	p.Text = "%%omni_perf\nfor x, y in DataLoader(data, num_workers=4):\n    loss = model(x, y)\n    losses.append(loss.item())\n    bar.update()\n"
	p.Parts = []Part{
		{Line: 2, Function: "_next_data", Library: "/w/lib/python3.13/site-packages/torch/utils/data/dataloader.py", Mean: 8 * time.Millisecond, Spread: 0.1},
		{Line: 3, Function: "forward", Library: "/w/lib/python3.13/site-packages/torch/nn/module.py", Mean: 12 * time.Millisecond, Spread: 0.05, Busy: true},
		{Line: 4, Function: "Tensor.item", Library: "/w/lib/python3.13/site-packages/torch/_tensor.py", Mean: 10 * time.Millisecond, Spread: 0.05, Busy: true},
		{Line: 5, Function: "update", Library: "/w/lib/python3.13/site-packages/tqdm/std.py", Mean: 3 * time.Millisecond, Spread: 0.1},
	}
	return p
}
