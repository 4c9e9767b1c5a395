package report

import (
	"errors"
	"iter"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// ErrTooSmall is a budget that no report fits.
var ErrTooSmall = errors.New("no report is so small")

const (
	maxThinning = 24
	tableRows   = 512 // of a table that was thinned once
	trackPoints = 2048
	keptCell    = 4 << 10 // bytes of a recorded cell whose whole text is kept
)

// Excerpt is a document made smaller, the same packed, and where it has what the whole
// one has. Its threads are the first ones of all.
type Excerpt struct {
	*Document
	Packed    []byte
	Tracks    []int // by the whole document's tracks: their new indices, -1 where not kept
	Files     []int // the same for files
	Functions []int // the same for functions
}

// Thin makes the same document smaller, so that it takes at most budget bytes when it
// is compressed by gzip. Spans are put on a coarser grid by the resampling that a
// recording uses while it runs, long tables are cut, tracks joined; Thinned says what
// was done. A document that fits stays as it is.
func (v *View) Thin(budget int) (*Excerpt, error) {
	level := v.leastThinning(budget)
	for {
		e := v.Whole()
		if level > 0 {
			e = v.thinned(budget, level)
		}
		var err error
		if e.Packed, err = Pack(e.Document); err != nil {
			return nil, err
		}
		if len(e.Packed) <= budget {
			return e, nil
		}
		if level == maxThinning {
			return nil, ErrTooSmall
		}
		level = min(level+max(halvings(len(e.Packed), budget), 1), maxThinning)
	}
}

// halvings is how often a size is to be halved to come near a budget, not below it: what is twice too
// large needs twice the step, at least.
func halvings(size, budget int) int { return max(bits.Len(uint(size/max(budget, 1)))-1, 0) }

// leastThinning is the level to begin with, by what a part of the spans takes: to write them all, only to
// see that they are too many, would take most of the time between a cell's end and its chart.
func (v *View) leastThinning(budget int) int {
	const part = 4096
	n := len(v.Spans.Node)
	if n < 8*part {
		return 0
	}
	from, to := n/2, n/2+part
	packed, err := Pack(&Document{Spans: Spans{
		GapUS: v.Spans.GapUS[from:to], LengthUS: v.Spans.LengthUS[from:to], Node: v.Spans.Node[from:to], State: v.Spans.State[from:to],
	}})
	if err != nil {
		return 0
	}
	size := len(packed) * (n / part) * 3 / 4 // others may take less
	if size <= budget {
		return 0
	}
	return min(max(halvings(size, budget), 1), maxThinning)
}

// Whole is all of a document, not packed.
func (v *View) Whole() *Excerpt {
	return &Excerpt{Document: v.Document, Tracks: same(len(v.Tracks)), Files: same(len(v.Files)), Functions: same(len(v.Functions))}
}

// same are the indices of a list that is kept whole.
func same(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// thinner is a smaller document in the making. It takes over from the whole one what
// it keeps, and numbers it anew.
type thinner struct {
	v     *View
	d     *Document
	level int

	threadAt, nodes, frames, functions, files, trackAt []int // new indices; -1: not kept
}

// WithoutMachines is the document in which machines have no name: a notebook is shown to others. Launchers put names
// into what they call a run. Readings of clocks are for those who merge, and long.
func (d *Document) WithoutMachines() *Document {
	shown := *d
	shown.Hosts, shown.Targets = slices.Clone(d.Hosts), slices.Clone(d.Targets)
	for i := range shown.Hosts {
		shown.Hosts[i].Name, shown.Hosts[i].Readings = nil, nil
	}
	for i := range shown.Targets {
		shown.Targets[i].Run = nil
	}
	return &shown
}

func (v *View) thinned(budget, level int) *Excerpt {
	d := *v.Document
	d.Thinned = &Thinned{BudgetBytes: budget, Tables: make(map[string]KeptOf)}
	d = *d.WithoutMachines()
	t := &thinner{v: v, d: &d, level: level}
	t.threads(same(min(len(v.Threads), t.rows(16)))) // the first ones, which are the busiest
	t.spans()
	t.tracks(max(trackPoints>>level, 16))
	t.kernels(*d.Thinned.SpansStepNS)
	t.tables()
	t.code()
	return &Excerpt{Document: t.d, Tracks: t.trackAt, Files: t.files, Functions: t.functions}
}

// cut shortens a table, and says so.
func cut[T any](t *thinner, name string, rows []T, most int) []T {
	if len(rows) <= most {
		return rows
	}
	t.d.Thinned.Tables[name] = KeptOf{Kept: most, Of: len(rows)}
	return rows[:most:most]
}

// rows is how long a table may be.
func (t *thinner) rows(least int) int { return max(tableRows>>(t.level-1), least) }

// threads keeps these, in ascending order.
func (t *thinner) threads(keep []int) {
	t.threadAt = indices(len(t.v.Threads))
	t.d.Threads = []Thread{}
	for _, at := range keep {
		t.threadAt[at] = len(t.d.Threads)
		t.d.Threads = append(t.d.Threads, t.v.Threads[at])
	}
	if len(keep) < len(t.v.Threads) {
		t.d.Thinned.Tables["threads"] = KeptOf{Kept: len(keep), Of: len(t.v.Threads)}
	}
	subject := *t.d.Subject
	subject.Thread, subject.Threads = t.thread(subject.Thread), []int{}
	for _, at := range t.d.Subject.Threads {
		if kept := t.thread(&at); kept != nil {
			subject.Threads = append(subject.Threads, *kept)
		}
	}
	t.d.Subject = &subject
}

// thread is the new index of a thread; nil where it is not kept, and of none.
func (t *thinner) thread(at *int) *int {
	if at == nil || t.threadAt[*at] < 0 {
		return nil
	}
	return pointer(t.threadAt[*at])
}

func (t *thinner) spans() {
	resolution := int64(1e6)
	for _, target := range t.v.Targets {
		resolution = max(resolution, target.Sampling.ResolutionNS)
	}
	step := resolution << t.level
	if step <= 0 || step > max(t.d.DurationNS, resolution) {
		step = max(t.d.DurationNS, resolution)
	}
	t.d.Thinned.SpansStepNS = &step

	t.nodes = indices(len(t.v.Nodes.Parent))
	out := newThinSpans(t)
	for i := range t.d.Threads {
		out.thread(slices.Values(timeline.Resample(recorded(t.v.History(i)), timeline.Nanos(step))))
	}
	t.d.Spans = out.finish()
}

// thinSpans writes the histories of a smaller document, thread after thread.
type thinSpans struct {
	t   *thinner
	out Spans
}

func newThinSpans(t *thinner) *thinSpans {
	return &thinSpans{t, Spans{First: Column{}, GapUS: Column{}, LengthUS: Column{}, Node: Column{}, State: Column{}, Incomplete: Column{}}}
}

func (w *thinSpans) thread(history iter.Seq[timeline.Span]) {
	out := &w.out
	out.First = append(out.First, int64(len(out.Node)))
	end := int64(0)
	for s := range history {
		from, to := microseconds(s.Start), min(microseconds(s.End), microseconds(timeline.Nanos(w.t.d.DurationNS)))
		if to <= from {
			continue
		}
		if s.Truncated {
			out.Incomplete = append(out.Incomplete, int64(len(out.Node)))
		}
		w.t.nodes[s.Node] = 0 // used
		out.GapUS, out.LengthUS = append(out.GapUS, from-end), append(out.LengthUS, to-from)
		out.Node, out.State = append(out.Node, int64(s.Node)), append(out.State, int64(s.State))
		end = to
	}
}

// finish leaves out the stacks that no span has, and numbers the others anew.
func (w *thinSpans) finish() Spans {
	out := w.out
	out.First = append(out.First, int64(len(out.Node)))
	w.t.stacks()
	for i, n := range out.Node {
		out.Node[i] = int64(w.t.nodes[n])
	}
	return out
}

// recorded are spans as package timeline has them; only equality of states matters.
func recorded(history []Span) iter.Seq[timeline.Span] {
	return func(yield func(timeline.Span) bool) {
		for _, s := range history {
			span := timeline.Span{
				Start: timeline.Nanos(s.Start), End: timeline.Nanos(s.End), Node: timeline.NodeID(s.Node),
				State: timeline.State(s.State), Truncated: s.Incomplete,
			}
			if !yield(span) {
				return
			}
		}
	}
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = -1
	}
	return list
}

// stacks keeps the nodes in use and their callers, and the frames of these.
func (t *thinner) stacks() {
	v := t.v
	t.nodes[0] = 0
	for n := len(t.nodes) - 1; n > 0; n-- {
		if t.nodes[n] >= 0 {
			t.nodes[v.Nodes.Parent[n]] = 0
		}
	}
	t.frames = indices(len(v.Frames.Function))
	nodes, frames := Nodes{Parent: Column{0}, Frame: Column{0}}, Frames{Function: Column{}, Line: Column{}}
	for n := 1; n < len(t.nodes); n++ {
		if t.nodes[n] < 0 {
			continue
		}
		f := v.Nodes.Frame[n]
		if t.frames[f] < 0 {
			t.frames[f] = len(frames.Line)
			frames.Function, frames.Line = append(frames.Function, v.Frames.Function[f]), append(frames.Line, v.Frames.Line[f])
		}
		t.nodes[n] = len(nodes.Parent)
		nodes.Parent, nodes.Frame = append(nodes.Parent, int64(t.nodes[v.Nodes.Parent[n]])), append(nodes.Frame, int64(t.frames[f]))
	}
	t.d.Nodes, t.d.Frames = nodes, frames
}

// tracks keeps those of the machine and of threads that are kept, each with so many points at most.
func (t *thinner) tracks(most int) {
	t.d.Thinned.TracksPoints = &most
	kept := []Track{}
	t.trackAt = indices(len(t.d.Tracks))
	for i, track := range t.d.Tracks {
		if track.Thread != nil {
			if track.Thread = t.thread(track.Thread); track.Thread == nil {
				continue
			}
		}
		t.trackAt[i] = len(kept)
		kept = append(kept, thinTrack(track, most))
	}
	if len(kept) < len(t.d.Tracks) {
		t.d.Thinned.Tables["tracks"] = KeptOf{Kept: len(kept), Of: len(t.d.Tracks)}
	}
	t.d.Tracks = kept
}

func thinTrack(track Track, most int) Track {
	if len(track.AtUS) <= most {
		return track
	}
	kind := timeline.KindGauge
	if track.Kind == Rate {
		kind = timeline.KindRate
	}
	points := make([]timeline.Point, len(track.AtUS))
	last := int64(0)
	for i, at := range track.AtUS {
		points[i] = timeline.Point{From: timeline.Nanos(last), At: timeline.Nanos(at), Value: track.Value[i]}
		last = at
	}
	points = timeline.ThinPoints(points, kind, most)
	track.AtUS, track.Value = make(Column, len(points)), make(Figures, len(points))
	for i, p := range points {
		track.AtUS[i], track.Value[i] = int64(p.At), single(p.Value)
	}
	if n := len(points); n > 1 {
		step := int64(points[n-1].At-points[0].At) / int64(n-1) * 1000
		if track.ResolutionNS == nil || *track.ResolutionNS < step {
			track.ResolutionNS = &step
		}
	}
	return track
}

// kernels joins blocks that are closer together than a step.
func (t *thinner) kernels(step int64) {
	lanes := slices.Clone(t.d.Kernels)
	for i := range lanes {
		lanes[i] = joinBlocks(lanes[i], step)
		for n, thread := range lanes[i].Launcher {
			if thread >= 0 {
				lanes[i].Launcher[n] = int64(t.threadAt[thread])
			}
		}
	}
	t.d.Kernels = lanes
}

func joinBlocks(l KernelLane, step int64) KernelLane {
	out := KernelLane{Device: l.Device, Stream: l.Stream, ResolutionNS: max(l.ResolutionNS, step), Names: []string{},
		GapNS: Column{}, LengthNS: Column{}, Name: Column{}, Count: Column{}}
	launched := len(l.LaunchNS) > 0
	names := make(map[int64]int64)
	longest, at, start := int64(0), int64(0), int64(0) // of the block being built: an event, its end, its start
	for i := range l.GapNS {
		name, ok := names[l.Name[i]]
		if !ok {
			name = int64(len(out.Names))
			names[l.Name[i]] = name
			out.Names = append(out.Names, l.Names[l.Name[i]])
		}
		n := len(out.GapNS) - 1
		if end := at + l.GapNS[i] + l.LengthNS[i]; n >= 0 && end-start <= step {
			out.LengthNS[n] = end - start
			out.Count[n] = min(out.Count[n]+l.Count[i], math.MaxInt32)
			if l.LengthNS[i] > longest {
				longest, out.Name[n] = l.LengthNS[i], name
				if launched { // from where the block begins
					out.LaunchNS[n], out.Launcher[n] = max(l.LaunchNS[i]-(at+l.GapNS[i]-start), 0), l.Launcher[i]
				}
			}
			at = end
			continue
		}
		start, longest = at+l.GapNS[i], l.LengthNS[i]
		at = start + l.LengthNS[i]
		out.GapNS, out.LengthNS = append(out.GapNS, l.GapNS[i]), append(out.LengthNS, l.LengthNS[i])
		out.Name, out.Count = append(out.Name, name), append(out.Count, l.Count[i])
		if launched {
			out.LaunchNS, out.Launcher = append(out.LaunchNS, l.LaunchNS[i]), append(out.Launcher, l.Launcher[i])
		}
	}
	return out
}

func (t *thinner) tables() {
	d, rows := t.d, t.rows(8)
	d.Lines = cut(t, "lines", d.Lines, rows)
	d.FunctionTimes = cut(t, "function_times", d.FunctionTimes, rows)
	d.Blocked = cut(t, "blocked", d.Blocked, rows)
	d.Awaits = cut(t, "awaits", d.Awaits, rows)
	d.Memory = cut(t, "memory", d.Memory, rows)
	d.FunctionMemory = cut(t, "memory_functions", d.FunctionMemory, rows)
	if a := d.Allocations; a != nil {
		kept := *a
		kept.Lines = cut(t, "allocations.lines", kept.Lines, rows)
		d.Allocations = &kept
	}
	d.GPUMemory = cut(t, "gpu_memory", d.GPUMemory, rows)
	d.GPUMemoryReads = cut(t, "gpu_memory_reading", d.GPUMemoryReads, rows)
	d.TorchMemory = cut(t, "torch_memory", d.TorchMemory, rows)
	d.MemoryReading = cut(t, "memory_reading", d.MemoryReading, rows)
	d.Operators = cut(t, "operators", d.Operators, rows)
	d.KernelTimes = cut(t, "kernel_times", d.KernelTimes, rows)
	d.Traces = cut(t, "traces", d.Traces, rows)
	d.OutOfMemory = cut(t, "out_of_memory", d.OutOfMemory, rows)
	d.Steps = cut(t, "steps", d.Steps, t.rows(32))
	d.SlowSteps = cut(t, "slow_steps", d.SlowSteps, rows)
	d.Loaders = cut(t, "loaders", d.Loaders, rows)
	d.RankLines = cut(t, "rank_lines", d.RankLines, rows)
	d.Regions = cut(t, "regions", d.Regions, rows)
	d.Notes = cut(t, "notes", d.Notes, rows)
	for _, i := range d.Headline.Limits {
		rows = max(rows, i+1)
	}
	if d.Headline.Finding != nil {
		rows = max(rows, *d.Headline.Finding+1)
	}
	d.Findings = cut(t, "findings", d.Findings, rows)
}

// code keeps the functions and files that something still refers to, and of files
// only the lines that the document refers to.
func (t *thinner) code() {
	t.functions, t.files = indices(len(t.v.Functions)), indices(len(t.v.Files))
	functions, files := []Function{}, []File{}
	file := func(i *int) *int {
		if i == nil {
			return nil
		}
		if t.files[*i] < 0 {
			t.files[*i] = len(files)
			f := t.v.Files[*i]
			if t.v.IsCell(*i) && textSize(f.Lines) <= keptCell {
				f.Lines = slices.Clone(f.Lines)
			} else if f.Lines != nil {
				f.Lines = []*string{}
			}
			files = append(files, f)
		}
		return pointer(t.files[*i])
	}
	function := func(i *int) *int {
		if i == nil {
			return nil
		}
		if t.functions[*i] < 0 {
			f := t.v.Functions[*i]
			f.File = *file(&f.File)
			t.functions[*i] = len(functions)
			functions = append(functions, f)
		}
		return pointer(t.functions[*i])
	}
	place := func(f, line, fn **int) {
		if *f != nil && *line != nil {
			text := t.v.LineText(*f, *line)
			*f = file(*f)
			files[**f].keepLine(**line, text)
		} else {
			*f = file(*f)
		}
		*fn = function(*fn)
	}
	t.places(place, file, function)
	t.d.Functions, t.d.Files = functions, files
}

func textSize(lines []*string) (size int) {
	for _, l := range lines {
		if l != nil {
			size += len(*l)
		}
	}
	return size
}

// places visits everything that refers to code.
func (t *thinner) places(place func(file, line, function **int), file, function func(*int) *int) {
	d := t.d
	for i, f := range d.Frames.Function {
		d.Frames.Function[i] = int64(*function(pointer(int(f))))
	}
	d.FunctionTimes = slices.Clone(d.FunctionTimes)
	for i := range d.FunctionTimes {
		d.FunctionTimes[i].Function = *function(&d.FunctionTimes[i].Function)
	}
	d.Lines = slices.Clone(d.Lines)
	for i := range d.Lines {
		l := &d.Lines[i]
		at, line, none := &l.File, &l.Line, (*int)(nil)
		place(&at, &line, &none)
		l.File = *at
		if l.FreeingFunction != nil {
			l.FreeingFunction = function(l.FreeingFunction)
		}
	}
	d.SlowSteps = slices.Clone(d.SlowSteps)
	for i := range d.SlowSteps {
		s, none := &d.SlowSteps[i], (*int)(nil)
		place(&s.File, &s.Line, &none)
	}
	d.RankLines = slices.Clone(d.RankLines)
	for i := range d.RankLines {
		l, none := &d.RankLines[i], (*int)(nil)
		at, line := &l.File, &l.Line
		place(&at, &line, &none)
		l.File = *at
	}
	d.Processes = slices.Clone(d.Processes)
	for i := range d.Processes {
		if raised := d.Processes[i].Exception; raised != nil {
			kept, none := *raised, (*int)(nil)
			place(&kept.File, &kept.Line, &none)
			d.Processes[i].Exception = &kept
		}
	}
	known := func(file, line *int, function **int) {
		at := file
		place(&at, &line, function)
		*file = *at
	}
	d.Blocked = slices.Clone(d.Blocked)
	for i := range d.Blocked {
		known(&d.Blocked[i].File, &d.Blocked[i].Line, &d.Blocked[i].Function)
		if h := d.Blocked[i].Holder; h != nil {
			kept := *h
			known(&kept.File, &kept.Line, &kept.Function)
			d.Blocked[i].Holder = &kept
		}
	}
	d.Awaits = slices.Clone(d.Awaits)
	for i := range d.Awaits {
		known(&d.Awaits[i].File, &d.Awaits[i].Line, &d.Awaits[i].Function)
	}
	d.Memory = slices.Clone(d.Memory)
	for i := range d.Memory {
		known(&d.Memory[i].File, &d.Memory[i].Line, &d.Memory[i].Function)
	}
	if d.Allocations != nil {
		d.Allocations = d.Allocations.inFiles(func(f, line **int) {
			none := (*int)(nil)
			place(f, line, &none)
		})
	}
	d.GPUMemory = slices.Clone(d.GPUMemory)
	for i := range d.GPUMemory {
		known(&d.GPUMemory[i].File, &d.GPUMemory[i].Line, &d.GPUMemory[i].Function)
	}
	d.FunctionMemory = slices.Clone(d.FunctionMemory)
	for i := range d.FunctionMemory {
		d.FunctionMemory[i].Function = *function(&d.FunctionMemory[i].Function)
	}
	d.OutOfMemory = slices.Clone(d.OutOfMemory)
	for i := range d.OutOfMemory {
		d.OutOfMemory[i].places(func(f, line **int) {
			none := (*int)(nil)
			place(f, line, &none)
		})
	}
	d.Targets = slices.Clone(d.Targets)
	for i := range d.Targets {
		if cell := d.Targets[i].Cell; cell != nil {
			kept := *cell
			kept.File = *file(&cell.File)
			d.Targets[i].Cell = &kept
		}
	}
	d.Findings = slices.Clone(d.Findings)
	for i := range d.Findings {
		f := &d.Findings[i]
		place(&f.File, &f.Line, &f.Function)
		if _, there := f.Args["alternatives"]; there { // causes, which refer to code of the whole document
			f.Args = maps.Clone(f.Args)
			delete(f.Args, "alternatives")
		}
	}
	causes := func(list []Cause) []Cause {
		list = slices.Clone(list)
		for i := range list {
			place(&list[i].File, &list[i].Line, &list[i].Function)
		}
		return list
	}
	if d.Idle != nil {
		idle := *d.Idle
		idle.Causes, idle.Devices = causes(idle.Causes), slices.Clone(idle.Devices)
		for i := range idle.Devices {
			idle.Devices[i].Causes = causes(idle.Devices[i].Causes)
		}
		d.Idle = &idle
	}
	d.Notes = slices.Clone(d.Notes)
	for i, n := range d.Notes {
		if at, ok := integer(n.Args["file"]); ok && at >= 0 && at < len(t.files) {
			d.Notes[i].Args = map[string]any{"file": *file(&at)}
		}
	}
}

// integer reads an argument, which is a float64 in a document that was read.
func integer(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case float64:
		return int(v), v == math.Trunc(v) && math.Abs(v) < math.MaxInt32
	}
	return 0, false
}
