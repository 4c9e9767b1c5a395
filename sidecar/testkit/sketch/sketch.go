// Package sketch writes reports down by hand, in seconds and with names in place of indices, for tests of what is
// shown: samples of every kind, from a training to names that nobody should have.
package sketch

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Sketch is a report as a person writes one down: in seconds, with names in place of
// indices. view makes the document of it.
type Sketch struct {
	DurationS float64
	Name      string
	Headline  string
	Main      *int // finding
	Limits    []int
	Cell      *Cell
	Python    string
	Method    string
	Fallback  string
	Samples   int64
	Stored    float64 // resolution
	Threads   []Thread
	Frames    []Frame
	Nodes     []Node
	Spans     []Span
	LineFile  string
	LineSpans []Line
	Tracks    []Track
	Kernels   []Lane
	GPUs      []GPU
	Certainty string
	Causes    []Cause
	Idle      []Idle
	Steps     []Step
	Regions   []report.Region
	CellLines []Time
	Functions []Time
	Growth    []Growth
	Findings  []Finding
	Output    *report.Output
	Notes     []string
}

// The parts of a sketch.
type (
	Cell struct {
		Count   int
		Source  []string
		Outcome string
	}
	Thread struct {
		Name  string
		Times [report.NumStates]float64
	}
	Frame struct {
		Function, File  string
		Line, FirstLine int
		Code            report.Code
	}
	Node struct{ Parent, Frame int }
	Span struct {
		Thread     int
		Start, End float64
		Node       int
		State      report.State
	}
	Line struct {
		Start, End float64
		Line       int
	}
	Track struct {
		ID         string
		Device     int // -1: none
		Kind       report.TrackKind
		Unit       string
		Source     string
		Resolution float64
		Limit      float64
		T, Value   []float64
		Ended      string
	}
	Lane struct {
		Device int
		Stream int64
		Names  []string
		Blocks [][3]float64 // start, end, index into Names
		Count  []int
	}
	GPU struct {
		Number          int
		Name, Source    string
		BusyS, IdleS    float64
		Used, Simulated bool
	}
	Cause struct {
		Text      string
		Seconds   float64
		Low, High float64 // 0: no bounds
		File      string
		Line      int
		Code      string
		Hint      string
	}
	Idle struct {
		Device    int
		Causes    []Cause
		Intervals [][2]float64
	}
	Step struct{ StartS, EndS, DataWaitS float64 }
	Time struct {
		Name, File  string
		Line        int
		Text        string
		Code        report.Code
		Self, Total float64
	}
	Growth struct {
		Line       int // of the cell
		Bytes      int64
		Start, End float64
	}
	Finding struct {
		ID, Severity, Text, Hint, File, Code string
		Line                                 int
	}
)

func ns(s float64) int64 { return int64(math.Round(s * 1e9)) }

func us(s float64) int64 { return int64(math.Round(s * 1e6)) }

// sketcher makes a document of a sketch.
type sketcher struct {
	*Sketch
	d         *report.Document
	files     map[string]int
	functions map[report.Function]int
	frames    map[[2]int]int64
}

// View makes the document, which has to be sound, and its view.
func (s *Sketch) View() *report.View {
	v, err := report.Check(s.Document())
	if err != nil {
		panic(err)
	}
	return v
}

// Document is the sketch as a report.
func (s *Sketch) Document() *report.Document {
	k := &sketcher{s, &report.Document{
		Document: report.Kind, Version: report.Version, Generator: report.Generator{Name: "omni_perf", Version: "test"},
		StartedAt: time.Unix(1_790_000_000, 0).UTC(), DurationNS: ns(s.DurationS), Name: s.Name,
		Headline: report.Headline{Text: s.Headline, Finding: s.Main, Limits: s.Limits},
		Hosts:    make([]report.Host, 1), Processes: []report.Process{{PID: 100, Role: "kernel"}},
		Regions: s.Regions,
		Enumerations: report.Enumerations{
			State: []string{"python", "native", "waiting", "io", "gil", "off", "unknown"},
			Code:  []string{"cell", "user", "data", "framework", "device", "io", "picture", "other"},
		},
	}, make(map[string]int), make(map[report.Function]int), make(map[[2]int]int64)}
	k.target()
	k.spans()
	k.tracks()
	k.gpus()
	k.tables()
	k.findings()
	return k.d
}

func (k *sketcher) file(name string, code report.Code) int {
	i, ok := k.files[name]
	if !ok {
		i = len(k.d.Files)
		k.files[name] = i
		k.d.Files = append(k.d.Files, report.File{Name: name, Code: code})
	}
	return i
}

func (k *sketcher) function(name, file string, line int, code report.Code) int {
	f := report.Function{File: k.file(file, code), Name: name, FirstLine: max(line, 0), Code: code}
	i, ok := k.functions[f]
	if !ok {
		i = len(k.d.Functions)
		k.functions[f] = i
		k.d.Functions = append(k.d.Functions, f)
	}
	return i
}

// place also gives the line its text.
func (k *sketcher) place(file string, line int, text string) (*int, *int) {
	if line <= 0 {
		return nil, nil
	}
	if file == "" {
		file = k.d.Targets[0].Name
	}
	i := k.file(file, report.CodeUser)
	f := &k.d.Files[i]
	for text != "" && len(f.Lines) < line {
		f.Lines = append(f.Lines, nil)
	}
	if text != "" {
		f.Lines[line-1] = &text
	}
	return &i, &line
}

func (k *sketcher) target() {
	t := report.Target{
		Kind: report.TargetProcess, Name: "Process 100", PythonVersion: k.Python, EndNS: k.d.DurationNS, Output: k.Output,
		Sampling: report.Sampling{Text: k.Method, AskedNS: 1e6, ResolutionNS: max(ns(k.Stored), 1e6), Ticks: k.Samples, Incomplete: 3},
	}
	if k.Fallback != "" {
		t.Sampling.Fallback = &report.Fallback{ID: "not-readable", Text: k.Fallback}
	}
	if k.Cell != nil {
		t.Kind, t.Name = report.TargetCell, k.LineFile
		t.Cell = &report.Cell{ExecutionCount: &k.Cell.Count, File: k.file(k.LineFile, report.CodeCell), Outcome: report.OutcomeOK}
		if k.Cell.Outcome != "ok" {
			t.Cell.Outcome, t.Cell.Exception = report.OutcomeError, &k.Cell.Outcome
		}
		for _, line := range k.Cell.Source {
			k.d.Files[t.Cell.File].Lines = append(k.d.Files[t.Cell.File].Lines, &line)
		}
	}
	k.d.Targets = []report.Target{t}
}

// lineAt is the line of the cell that ran at a time.
func (k *sketcher) lineAt(t float64) int {
	i, _ := slices.BinarySearchFunc(k.LineSpans, t, func(l Line, t float64) int {
		switch {
		case l.End <= t:
			return -1
		case l.Start > t:
			return 1
		}
		return 0
	})
	if i < len(k.LineSpans) && k.LineSpans[i].Start <= t {
		return k.LineSpans[i].Line
	}
	return 0
}

// spans writes the stacks. The frames of the cell itself are at the line that ran.
func (k *sketcher) spans() {
	d := k.d
	d.Nodes = report.Nodes{Parent: report.Column{0}, Frame: report.Column{0}}
	nodes := make(map[[2]int64]int64)
	node := func(n, line int) int64 {
		var path []int
		for ; n > 0; n = k.Nodes[n].Parent {
			path = append(path, k.Nodes[n].Frame)
		}
		at := int64(0)
		for _, f := range slices.Backward(path) {
			fr := k.Frames[f]
			if fr.File == k.LineFile {
				fr.Line = line
			}
			key := [2]int{k.function(fr.Function, fr.File, fr.FirstLine, fr.Code), max(fr.Line, 0)}
			frame, ok := k.frames[key]
			if !ok {
				frame = int64(len(d.Frames.Line))
				k.frames[key] = frame
				d.Frames.Function, d.Frames.Line = append(d.Frames.Function, int64(key[0])), append(d.Frames.Line, int64(key[1]))
			}
			child, ok := nodes[[2]int64{at, frame}]
			if !ok {
				child = int64(len(d.Nodes.Parent))
				nodes[[2]int64{at, frame}] = child
				d.Nodes.Parent, d.Nodes.Frame = append(d.Nodes.Parent, at), append(d.Nodes.Frame, frame)
			}
			at = child
		}
		return at
	}
	for t, th := range k.Threads {
		d.Spans.First = append(d.Spans.First, int64(len(d.Spans.Node)))
		shown := report.Thread{NativeID: 100 + t, Name: th.Name, Main: t == 0, RunsCell: t == 0, StateNS: make(report.StateTimes, report.NumStates)}
		left := d.DurationNS
		for i, s := range th.Times {
			shown.StateNS[i] = min(ns(s), left)
			left -= shown.StateNS[i]
		}
		d.Threads = append(d.Threads, shown)
		last := int64(0)
		for _, s := range k.Spans {
			from, to := max(us(s.Start), last), min(us(s.End), us(k.DurationS))
			if s.Thread != t || from >= to {
				continue
			}
			line := 0
			if t == 0 {
				line = k.lineAt((s.Start + s.End) / 2)
			}
			d.Spans.GapUS, d.Spans.LengthUS = append(d.Spans.GapUS, from-last), append(d.Spans.LengthUS, to-from)
			d.Spans.Node, d.Spans.State = append(d.Spans.Node, node(s.Node, line)), append(d.Spans.State, int64(s.State))
			last = to
		}
	}
	d.Spans.First = append(d.Spans.First, int64(len(d.Spans.Node)))
}

func (k *sketcher) tracks() {
	for _, t := range k.Tracks {
		shown := report.Track{ID: t.ID, Kind: t.Kind, Unit: t.Unit, Source: t.Source}
		if t.Resolution > 0 {
			shown.ResolutionNS = pointer(ns(t.Resolution))
		}
		if t.Limit > 0 {
			shown.Limit = &t.Limit
		}
		if t.Ended != "" {
			shown.Ended = &t.Ended
		}
		if t.Device >= 0 {
			shown.Device = &t.Device
		}
		for i, at := range t.T {
			shown.AtUS, shown.Value = append(shown.AtUS, us(at)), append(shown.Value, t.Value[i])
		}
		k.d.Tracks = append(k.d.Tracks, shown)
	}
}

func pointer[T any](v T) *T { return &v }

func (k *sketcher) gpus() {
	d := k.d
	for _, g := range k.GPUs {
		v := report.Device{Number: g.Number, Name: g.Name, Source: g.Source, BusyNS: ns(g.BusyS), IdleNS: ns(g.IdleS), Used: g.Used, Simulated: g.Simulated}
		v.UnknownNS = d.DurationNS - v.BusyNS - v.IdleNS
		d.Devices = append(d.Devices, v)
	}
	for _, l := range k.Kernels {
		for l.Device >= len(d.Devices) {
			d.Devices = append(d.Devices, report.Device{Number: len(d.Devices), UnknownNS: d.DurationNS})
		}
		lane := report.KernelLane{Device: l.Device, Stream: l.Stream, Names: l.Names}
		last := int64(0)
		for i, b := range l.Blocks {
			from, to := max(ns(b[0]), last), min(ns(b[1]), d.DurationNS)
			if from >= to {
				continue
			}
			count := 1
			if i < len(l.Count) {
				count = l.Count[i]
			}
			lane.GapNS, lane.LengthNS = append(lane.GapNS, from-last), append(lane.LengthNS, to-from)
			lane.Name, lane.Count = append(lane.Name, int64(b[2])), append(lane.Count, int64(count))
			last = to
		}
		d.Kernels = append(d.Kernels, lane)
	}
	if k.Idle == nil {
		return
	}
	idle := &report.Idle{Certainty: report.Certainty{Method: "windows", Text: k.Certainty}}
	for _, v := range k.Idle {
		shown := report.DeviceIdle{Device: v.Device, IdleNS: d.Devices[v.Device].IdleNS}
		shown.Causes = k.causes(v.Causes, shown.IdleNS)
		last := int64(0)
		for _, iv := range v.Intervals {
			if from, to := max(ns(iv[0]), last), min(ns(iv[1]), d.DurationNS); from < to {
				shown.Intervals = append(shown.Intervals, report.Interval{from, to})
				last = to
			}
		}
		idle.Devices = append(idle.Devices, shown)
		idle.IdleNS += shown.IdleNS
	}
	idle.Causes = k.causes(k.Causes, idle.IdleNS)
	d.Idle = idle
}

// causes add up to the idle time: the last one takes what rounding leaves.
func (k *sketcher) causes(list []Cause, idle int64) []report.Cause {
	var out []report.Cause
	left := idle
	for i, c := range list {
		shown := report.Cause{ID: "native", Kind: "host", NS: ns(c.Seconds), Share: c.Seconds * 1e9 / float64(idle), Text: c.Text, Hint: c.Hint}
		if i == len(list)-1 {
			shown.NS = left
		}
		left -= shown.NS
		if c.High > 0 {
			shown.LowNS, shown.HighNS = pointer(ns(c.Low)), pointer(ns(c.High))
		}
		shown.File, shown.Line = k.place(c.File, c.Line, c.Code)
		out = append(out, shown)
	}
	return out
}

func (k *sketcher) tables() {
	d := k.d
	for _, s := range k.Steps {
		d.Steps = append(d.Steps, report.Step{StartNS: ns(s.StartS), EndNS: min(ns(s.EndS), d.DurationNS), DataWaitNS: ns(s.DataWaitS)})
	}
	times := func(self float64) report.StateTimes {
		t := make(report.StateTimes, report.NumStates)
		t[report.StatePython] = ns(self)
		return t
	}
	for _, l := range k.CellLines {
		file, line := k.place(l.File, l.Line, l.Text)
		d.Lines = append(d.Lines, report.Line{File: *file, Line: *line, SelfNS: ns(l.Self), TotalNS: ns(max(l.Total, l.Self)), StateNS: times(l.Self)})
		d.Targets[0].ThreadNS += ns(l.Self)
	}
	for _, g := range k.Growth {
		d.Memory = append(d.Memory, report.Memory{File: k.file(k.LineFile, report.CodeCell), Line: g.Line, GrownBytes: g.Bytes, AtPeakBytes: g.Bytes, Evidence: []report.Interval{{ns(g.Start), ns(g.End)}}})
	}
	for _, f := range k.Functions {
		fn := k.function(f.Name, f.File, f.Line, f.Code)
		d.FunctionTimes = append(d.FunctionTimes, report.FunctionTime{Function: fn, SelfNS: ns(f.Self), TotalNS: ns(max(f.Total, f.Self)), StateNS: times(f.Self)})
	}
}

func (k *sketcher) findings() {
	for _, f := range k.Findings {
		shown := report.Finding{ID: f.ID, Severity: f.Severity, Text: f.Text, Hint: f.Hint}
		shown.File, shown.Line = k.place(f.File, f.Line, f.Code)
		k.d.Findings = append(k.d.Findings, shown)
	}
	for _, n := range k.Notes {
		k.d.Notes = append(k.d.Notes, report.Note{ID: "unavailable", Text: strings.TrimSpace(n)})
	}
}
