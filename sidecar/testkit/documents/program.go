package documents

import (
	"math"
	"slices"
	"strings"
)

// program records a made-up program, call by call. Times are seconds.
type program struct {
	d        *Document
	files    map[string]int
	fns      map[fn]int
	frames   map[[2]int]int
	nodes    map[[2]int]int
	threads  [][]span
	duration float64
}

// fn is a function; at gives it a line.
type fn struct {
	name, file string
	first      int
	code       Code
}

// call is a function at a line.
type call struct {
	fn
	line int
}

func (f fn) at(line int) call { return call{f, line} }

type span struct {
	start, end int64 // µs
	node       int
	state      State
}

func newProgram(duration float64) *program {
	return &program{
		d: &Document{
			Document: "omni_perf.report", Version: 2, DurationNS: int64(duration * 1e9),
			Targets:      []Target{{Kind: "cell"}},
			Subject:      Subject{Threads: []int{0}},
			Processes:    []Process{{PID: 100, Role: "kernel"}},
			Nodes:        Nodes{Parent: []int{0}, Frame: []int{0}},
			Enumerations: map[string]any{"state": stateIDs, "code": codeIDs},
		},
		files: make(map[string]int), fns: make(map[fn]int), frames: make(map[[2]int]int), nodes: make(map[[2]int]int),
		duration: duration,
	}
}

// source is the text of a file; of a cell with its number.
func (p *program) source(file string, cell int, lines ...string) {
	f := &p.d.Files[p.file(file, Cell)]
	f.Lines = lines
	if cell > 0 {
		f.ExecutionCount = &cell
	}
}

func (p *program) file(name string, code Code) int {
	id, ok := p.files[name]
	if !ok {
		id = len(p.d.Files)
		p.files[name] = id
		f := File{Name: name, Code: int(code)}
		if _, rest, found := strings.Cut(name, "site-packages/"); found {
			pkg, _, _ := strings.Cut(strings.TrimSuffix(rest, ".py"), "/")
			f.Package = &pkg
		}
		p.d.Files = append(p.d.Files, f)
	}
	return id
}

// node interns a stack, outermost call first.
func (p *program) node(stack ...call) int {
	at := 0
	for _, c := range stack {
		own := c.code
		if own > User && !strings.Contains(c.file, "site-packages") && strings.HasPrefix(c.file, "Cell") {
			own = Cell
		}
		f, ok := p.fns[c.fn]
		if !ok {
			f = len(p.d.Functions)
			p.fns[c.fn] = f
			p.d.Functions = append(p.d.Functions, Function{p.file(c.file, own), c.name, c.first, int(c.code)})
		}
		fr, ok := p.frames[[2]int{f, c.line}]
		if !ok {
			fr = len(p.d.Frames.Function)
			p.frames[[2]int{f, c.line}] = fr
			p.d.Frames.Function = append(p.d.Frames.Function, f)
			p.d.Frames.Line = append(p.d.Frames.Line, c.line)
		}
		key := [2]int{at, fr}
		n, ok := p.nodes[key]
		if !ok {
			n = len(p.d.Nodes.Parent)
			p.nodes[key] = n
			p.d.Nodes.Parent = append(p.d.Nodes.Parent, at)
			p.d.Nodes.Frame = append(p.d.Nodes.Frame, fr)
		}
		at = n
	}
	return at
}

func (p *program) thread(process int, name string) int {
	n := len(p.d.Threads)
	p.d.Threads = append(p.d.Threads, Thread{Process: process, NativeID: 100 + n, Name: name, Main: n == 0 || process > 0, RunsCell: n == 0})
	p.threads = append(p.threads, nil)
	return n
}

func (p *program) process(role string, number int) int {
	p.d.Processes = append(p.d.Processes, Process{PID: 200 + number, Role: role, Number: &number})
	return len(p.d.Processes) - 1
}

func micros(s float64) int64 { return int64(math.Round(s * 1e6)) }

// run has a thread run a stack for a while.
func (p *program) run(thread int, start, end float64, s State, stack ...call) {
	a, b := micros(start), micros(min(end, p.duration))
	if b <= a {
		return
	}
	n := p.node(stack...)
	spans := p.threads[thread]
	if k := len(spans) - 1; k >= 0 && spans[k].node == n && spans[k].state == s && spans[k].end == a {
		spans[k].end = b
		return
	}
	p.threads[thread] = append(spans, span{a, b, n, s})
}

// track samples a figure; NaN is unknown.
func (p *program) track(id, kind, unit string, device int, resolution float64, at func(t float64) float64) int {
	t := Track{ID: id, Kind: kind, Unit: unit}
	if device >= 0 {
		t.Device = &device
	}
	for k := 1; float64(k)*resolution <= p.duration+1e-9; k++ {
		v := at((float64(k) - 0.5) * resolution)
		t.At = append(t.At, micros(float64(k)*resolution))
		if math.IsNaN(v) {
			t.Value = append(t.Value, nil)
		} else {
			v = math.Round(v*1000) / 1000
			t.Value = append(t.Value, &v)
		}
	}
	p.d.Tracks = append(p.d.Tracks, t)
	return len(p.d.Tracks) - 1
}

// idle sets the one device's idle stretches (seconds) and their causes.
func (p *program) idle(stretches [][2]float64, causes ...Cause) {
	var all int64
	for _, c := range causes {
		all += c.NS
	}
	p.d.Devices = append(p.d.Devices, Device{Number: 0, Name: "NVIDIA H100 80GB HBM3", Used: true})
	p.d.Idle = &Idle{IdleNS: all, Causes: causes, Devices: []DeviceIdle{{IdleNS: all, Intervals: nanos(stretches)}}}
}

func nanos(stretches [][2]float64) [][2]int64 {
	out := make([][2]int64, 0, len(stretches))
	for _, s := range stretches {
		out = append(out, [2]int64{int64(s[0] * 1e9), int64(s[1] * 1e9)})
	}
	return out
}

// document closes the columns and sums up lines.
func (p *program) document() *Document {
	d := p.d
	s := &d.Spans
	for _, spans := range p.threads {
		s.First = append(s.First, len(s.Gap))
		last := int64(0)
		for _, v := range spans {
			s.Gap = append(s.Gap, v.start-last)
			s.Length = append(s.Length, v.end-v.start)
			s.Node = append(s.Node, v.node)
			s.State = append(s.State, int(v.state))
			last = v.end
		}
	}
	s.First = append(s.First, len(s.Gap))
	p.lines()
	return d
}

// lines sums the first thread by the user's innermost line.
func (p *program) lines() {
	type place struct{ file, line int }
	sums := make(map[place]*Line)
	for _, v := range p.threads[0] {
		for n := v.node; n > 0; n = p.d.Nodes.Parent[n] {
			frame := p.d.Nodes.Frame[n]
			f := p.d.Functions[p.d.Frames.Function[frame]]
			if p.d.Files[f.File].Code > int(User) {
				continue
			}
			key := place{f.File, p.d.Frames.Line[frame]}
			l := sums[key]
			if l == nil {
				l = &Line{File: key.file, Line: key.line}
				sums[key] = l
			}
			ns := (v.end - v.start) * 1000
			l.SelfNS += ns
			l.StateNS[v.state] += ns
			if p.d.Idle != nil {
				for _, i := range p.d.Idle.Devices[0].Intervals {
					l.IdleNS += max(min(i[1], v.end*1000)-max(i[0], v.start*1000), 0)
				}
			}
			break
		}
	}
	p.d.Lines = []Line{}
	for _, l := range sums {
		l.TotalNS = l.SelfNS
		p.d.Lines = append(p.d.Lines, *l)
	}
	slices.SortFunc(p.d.Lines, func(a, b Line) int { return (a.File-b.File)*1e6 + a.Line - b.Line })
}
