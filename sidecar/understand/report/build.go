package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Options of Build; the zero value is usable.
type Options struct {
	Version string // of omni_perf
	Home    string // the target user's home folder, shown as ~
	// Line reads a line of a file of the target, empty if it cannot; nil = the
	// cells' own sources only.
	Line func(file string, line int) string
	// Text reads a whole file of the target, nil if it cannot; nil = none.
	Text func(file string) []byte
	// Kernels are the lanes of devices' streams, by device and stream, with the recording's numbers of devices;
	// nil: those of the work that was delivered to the recording.
	Kernels []KernelLane
	// Torch is what else those traces have; nil: there is none.
	Torch *Torch
	// Allocations are those of a cell, where each was recorded.
	Allocations *RecordedAllocations
	// TorchMemory is what torch's allocator said of each device before the cell and after it.
	TorchMemory []TorchDevice
	// OutOfMemory are allocations on devices that failed meanwhile, in the order of time.
	OutOfMemory []Failure
}

// Build makes the document of a recording, of which package usercode left the
// program's own stacks, and its diagnosis, which may be nil. An error means that the
// two do not fit each other.
func Build(rec *timeline.Recording, d *diagnose.Diagnosis, opts Options) (*View, error) {
	b := newBuilder(rec, opts)
	b.hosts()
	b.processes()
	b.target()
	b.threads()
	b.pools()
	b.devices(d)
	b.tracks()
	b.doc.FunctionTimes = b.functionTimes()
	idle := b.diagnosis(d)
	b.subject()
	b.lineTimes(idle)
	b.blocked()
	b.awaits()
	b.memory()
	b.kernels(opts.Kernels)
	b.torch(opts.Torch)
	b.outOfMemory(opts.OutOfMemory)
	b.gpuMemory(opts.TorchMemory)
	b.allocations(opts.Allocations)
	b.gaps()
	b.notes()
	b.codes.texts(b.source, opts.Text, b.wanted)

	doc := b.doc
	doc.Frames, doc.Nodes = b.tree.frames.out, b.tree.nodes.out
	doc.Files, doc.Functions = b.codes.files, b.codes.functions
	return Check(doc)
}

// builder is a document in the making. Only it knows pids and device numbers.
type builder struct {
	rec    *timeline.Recording
	doc    *Document
	names  *names
	codes  *codeBook
	tree   *tree
	source *activity.Source
	wanted map[place]bool // lines whose text is wanted
	about  timeline.Subject

	program  int   // the process whose own lines are summed up, about.Program in the document
	order    []int // of Recording.Threads in the document
	byPID    map[int]int
	byPlace  []int          // by index in Recording.Processes
	byThread map[[2]int]int // process and native id
	byNumber map[int]int    // devices
}

func newBuilder(rec *timeline.Recording, opts Options) *builder {
	n := newNames(rec, opts.Home)
	codes := newCodeBook(rec, n)
	return &builder{
		rec: rec, names: n, codes: codes, tree: newTree(rec, codes), source: activity.NewSource(rec, opts.Line), about: interpret.SubjectOf(rec),
		wanted: make(map[place]bool), byPID: make(map[int]int), byThread: make(map[[2]int]int), byNumber: make(map[int]int),
		doc: &Document{
			Document: Kind, Version: Version, Generator: Generator{"omni_perf", opts.Version},
			StartedAt: rec.StartedAt.Round(time.Millisecond), DurationNS: int64(rec.Duration),
			Headline: Headline{Kind: HeadlineSummary, Limits: []int{}},
			Hosts:    []Host{}, Targets: []Target{}, Processes: []Process{}, Threads: []Thread{}, Devices: []Device{}, Tracks: []Track{},
			Steps: []Step{}, Regions: []Region{}, Lines: []Line{}, Phases: []Phase{}, Findings: []Finding{}, Gaps: []Gap{}, Notes: []Note{},
			Enumerations: enumerations(),
		},
	}
}

func (b *builder) hosts() {
	h := Host{
		BootID: known(b.rec.Host.BootID, ""), Name: known(clean(b.rec.Host.Name), ""),
		Cores: known(b.rec.Host.Cores, 0), MemoryBytes: known(b.rec.Host.Memory, 0),
		Clock: Clock{MonotonicNS: b.rec.Origin, WallNS: b.rec.StartedAt.UnixNano()},
	}
	if begin, end := b.rec.Wall.Begin, b.rec.Wall.End; begin != (timeline.Bridge{}) {
		h.Clock.WallNS = b.rec.Origin - begin.Offset
		h.Clock.ErrorNS = pointer(begin.Error)
		if end != (timeline.Bridge{}) {
			at := b.rec.Origin + int64(b.rec.Duration)
			h.Clock.EndMonotonicNS, h.Clock.EndWallNS = pointer(at), pointer(at-end.Offset)
			h.Clock.ErrorNS = pointer(max(begin.Error, end.Error))
		}
	}
	h.Clock.WallNS = max(h.Clock.WallNS, 0) // the zero time is no time
	b.doc.Hosts = append(b.doc.Hosts, h)
}

func (b *builder) target() {
	root := b.process(b.rec.Target.PID)
	t := Target{
		Kind: TargetProcess, Process: root, Rank: b.doc.Processes[root].Rank, Argv: []string{},
		Interpreter: b.names.file(b.rec.Target.Interpreter), PythonVersion: clean(b.rec.Target.PythonVersion),
		EndNS: int64(b.rec.Duration), Sampling: samplingOf(b.rec),
	}
	if b.program != root {
		t.Program = pointer(b.program)
	}
	if b.about.Why == timeline.SubjectLeadingRank {
		t.Leading = pointer(b.placed(b.about.Process))
	}
	if r := b.rec.Target.Rank; r != nil {
		t.Rank, t.LocalRank, t.WorldSize, t.Node = known(r.Global, -1), known(r.Local, -1), known(r.World, -1), known(r.Node, -1)
		t.Run = known(clean(r.Run), "")
	}
	if b.doc.Processes[root].Role == string(timeline.RoleScript) {
		t.Kind = TargetScript
	}
	if o := b.rec.Output; o != nil {
		t.Output = &Output{Messages: o.Messages, Bytes: o.Bytes, AtLeast: o.AtLeast}
	}
	if c := b.rec.Target.Cell; c != nil {
		t.Kind, t.Name = TargetCell, cellName(c.ExecutionCount)
		t.Cell = &Cell{ExecutionCount: known(max(c.ExecutionCount, 0), 0), File: b.codes.file(c.File)}
		t.Cell.Outcome, t.Cell.Exception = outcomeOf(c.Outcome)
		b.doc.Name = clean(c.Name)
	} else {
		for _, a := range maskSecrets(b.rec.Target.Argv) {
			t.Argv = append(t.Argv, b.names.file(a))
		}
		if t.Name = programName(t.Argv); t.Name == "" {
			t.Name = "process " + itoa(b.rec.Target.PID)
		}
		t.Name = b.started(t.Name, cmp.Or(t.Leading, t.Program))
	}
	b.doc.Targets = append(b.doc.Targets, t)
}

// started is a launcher's name with what it started, as a command line has them: "torchrun train.py".
func (b *builder) started(launcher string, program *int) string {
	if program == nil {
		return launcher
	}
	command := b.doc.Processes[*program].Command
	if command == "" || strings.HasPrefix(command, "python") || slices.Contains(strings.Fields(launcher), command) { // a process that multiprocessing has spawned runs no file
		return launcher
	}
	return launcher + " " + command
}

// outcomeOf reads what the front door says of a cell's end: "ok", "error:
// ValueError", "interrupted", "timed out", "kernel died", "kernel restarted".
func outcomeOf(said string) (Outcome, *string) {
	if exception, ok := strings.CutPrefix(said, "error"); ok {
		exception = strings.TrimSpace(strings.TrimPrefix(exception, ":"))
		return OutcomeError, known(clean(exception), "")
	}
	o := Outcome(strings.ReplaceAll(said, " ", "-"))
	switch o {
	case OutcomeOK, OutcomeInterrupted, OutcomeTimedOut, OutcomeKernelDied, OutcomeRestarted, OutcomeRunning:
		return o, nil
	}
	return OutcomeUnknown, nil
}

func (b *builder) threads() {
	w := newSpanWriter(b.tree)
	b.order = b.threadOrder()
	atWork := interpret.AtWork(b.rec)
	for i, from := range b.order {
		th := b.rec.Threads[from]
		w.thread(th.Spans)
		process := b.owner(th.Process, th.PID)
		b.byThread[[2]int{process, th.NativeID}] = i
		shown := Thread{
			StateNS: make(StateTimes, NumStates),
			Process: process, NativeID: max(th.NativeID, 0), Name: clean(th.Name), Main: th.Main, RunsCell: th.RunsCell, AtWork: atWork[from],
			Internal: th.Internal, Leaf: known(clean(th.Leaf), ""),
		}
		for _, s := range th.Spans {
			shown.StateNS[stateOf(s.State)] += int64(s.End - s.Start)
		}
		if th.OnCPU >= 0 {
			shown.OnCPUNS, shown.OnCPUAtLeast = pointer(amount(th.OnCPU)), th.OnCPUAtLeast
		}
		b.doc.Threads = append(b.doc.Threads, shown)
	}
	b.doc.Spans = w.spans()
}

// tracks writes the figures in columns; an unknown stretch before a rate's window
// becomes a null of its own.
func (b *builder) tracks() {
	for _, t := range b.rec.Tracks {
		if len(t.Points) == 0 && t.Ended == "" {
			continue
		}
		shown := Track{
			Kind: Gauge, Unit: clean(t.Unit), Source: clean(t.Source),
			ResolutionNS: known(int64(max(t.Resolution, t.Step)), 0),
			AtUS:         make(Column, 0, len(t.Points)), Value: make(Figures, 0, len(t.Points)),
			Mean: finite(mean(t)), Peak: finite(t.Peak), Ended: known(clean(t.Ended), ""),
		}
		if t.Kind == timeline.KindRate {
			shown.Kind = Rate
		}
		if t.Limit > 0 {
			shown.Limit = finite(t.Limit)
		}
		b.owned(&shown, t.TrackSpec)
		last, ended := int64(0), timeline.Nanos(0) // a point's column and its end
		add := func(at timeline.Nanos, value float64) {
			us := min(microseconds(at), microseconds(b.rec.Duration))
			if us < 0 || us < last || us == last && len(shown.AtUS) > 0 {
				return
			}
			shown.AtUS, shown.Value = append(shown.AtUS, us), append(shown.Value, single(value))
			last = us
		}
		for _, p := range t.Points {
			if shown.Kind == Rate && p.From > ended {
				add(p.From, math.NaN())
			}
			add(p.At, p.Value)
			ended = p.At
		}
		b.doc.Tracks = append(b.doc.Tracks, shown)
	}
}

// owned says whose a track's figures are; its id then needs no number.
func (b *builder) owned(t *Track, spec timeline.TrackSpec) {
	t.ID = clean(spec.ID)
	if spec.Device >= 0 {
		if i, ok := b.byNumber[spec.Device]; ok {
			t.Device = &i
			t.ID = strings.Replace(t.ID, fmt.Sprintf("gpu%d.", spec.Device), "gpu.", 1)
		}
	}
	owner := b.owner(spec.Process, spec.PID)
	if _, listed := b.byPID[spec.PID]; spec.PID != 0 && listed {
		t.Process = &owner
	}
	var number int
	var what string
	if n, _ := fmt.Sscanf(spec.ID, "thread.%d.%s", &number, &what); n == 2 {
		if i, ok := b.byThread[[2]int{owner, number}]; ok {
			t.Thread, t.ID = &i, "thread."+clean(what)
		}
	}
	if n, _ := fmt.Sscanf(spec.ID, "process.%d.%s", &number, &what); n == 2 && t.Process != nil {
		t.ID = "process." + clean(what)
	}
}

// single rounds a figure to single precision, which every display and comparison is
// content with and which is half as long in JSON. Whole numbers stay as they are.
func single(v float64) float64 {
	if v == math.Trunc(v) {
		return v
	}
	return float64(float32(v))
}

// finite is nil for what is no number.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// mean is over time: a rate's windows by their length, a gauge's values by the
// time to the next.
func mean(t timeline.Track) float64 {
	var sum, weight float64
	for i, p := range t.Points {
		w := float64(p.At - p.From)
		if t.Kind == timeline.KindGauge {
			w = 1
			if i+1 < len(t.Points) {
				w = float64(t.Points[i+1].At - p.At)
			} else if i > 0 {
				w = float64(p.At - t.Points[i-1].At)
			}
		}
		if !math.IsNaN(p.Value) && w > 0 {
			sum += p.Value * w
			weight += w
		}
	}
	if weight == 0 {
		return math.NaN()
	}
	return sum / weight
}

// kernels makes given lanes fit for the document; the given ones stay as they are.
func (b *builder) kernels(lanes []KernelLane) {
	if lanes == nil {
		lanes = b.lanesOf()
	}
	for _, l := range lanes {
		names := make([]string, len(l.Names))
		for i, name := range l.Names {
			names[i] = clean(name)
		}
		l.Names, l.Device = names, b.device(l.Device)
		b.doc.Kernels = append(b.doc.Kernels, l)
	}
}

func (b *builder) gaps() {
	for _, g := range b.rec.Gaps {
		b.doc.Gaps = append(b.doc.Gaps, Gap{
			Process: b.process(g.PID), StartNS: int64(g.Start), EndNS: int64(g.End), Reason: g.Reason.String(), Text: wording.Gap(g.Reason),
		})
	}
}

// gapNotes describe the target's gaps, those together that have one reason, from a hundredth of
// the time on.
func (b *builder) gapNotes() {
	var sums [timeline.NumGapReasons]timeline.Nanos
	for _, g := range b.rec.Gaps {
		if g.PID == b.rec.Target.PID && !b.about.Launcher {
			sums[g.Reason] += g.End - g.Start
		}
	}
	for reason, sum := range sums {
		if r := timeline.GapReason(reason); sum > 0 && 100*sum >= b.rec.Duration {
			b.doc.Notes = append(b.doc.Notes, Note{ID: "stacks-unknown", Args: map[string]any{"gap": r.String(), "time_ns": int64(sum)},
				Text: "stacks: unknown for " + words.Seconds(sum.Seconds()) + ": " + wording.Gap(r)})
		}
	}
}

// notes passes on what collectors said, which they say in words only, and reports
// which of the user's own files no text is shown.
func (b *builder) notes() {
	for _, n := range b.rec.Notes {
		if n.What == timeline.NoteStacks && b.about.Launcher {
			continue // that a shell runs no Python is no news
		}
		what, reason := clean(n.What), clean(n.Reason)
		b.doc.Notes = append(b.doc.Notes, Note{ID: string(n.ID), Args: map[string]any{"what": what, "reason": reason}, Text: what + ": " + reason})
	}
	if busy := activity.BusyNative(b.rec); len(busy) > 0 {
		b.doc.Notes = append(b.doc.Notes, Note{ID: "native-threads", Args: map[string]any{"name": clean(busy[0].Name), "threads": busy[0].Count, "cpu_ns": int64(busy[0].CPU)},
			Text: wording.NativeThreads(busy)})
	}
	b.gapNotes()
	if len(b.doc.Steps) > 0 && b.doc.Steps[0].Source == string(timeline.StepSampled) {
		b.doc.Notes = append(b.doc.Notes, Note{ID: "steps-sampled", Args: map[string]any{},
			Text: "steps: taken from sampled calls of the optimizer; import omni_perf in the script, or call omni_perf.step(), to have them exactly"})
	}
	if n := b.rec.Target.Restarts; n > 0 {
		b.doc.Notes = append(b.doc.Notes, Note{ID: "kernel-restarted", Args: map[string]any{"restarts": n}, Text: "kernel: " + wording.Restarted(n)})
	}
	outdated := origin.Outdated(b.rec)
	for i, f := range b.codes.files {
		if note, ok := textNotes[b.source.Text(b.codes.raw[i])]; ok && f.Code == CodeUser {
			b.doc.Notes = append(b.doc.Notes, Note{ID: note.id, Args: map[string]any{"file": i}, Text: f.Name + ": " + note.text + ": the text of its lines is not shown"})
		}
		if functions := outdated[b.codes.raw[i]]; len(functions) > 0 && f.Code == CodeUser {
			b.doc.Notes = append(b.doc.Notes, outdatedNote(i, f.Name, functions))
		}
	}
}

// maxOutdated is how many functions of a file a note names.
const maxOutdated = 5

// outdatedNote says which of a file's functions are shown without lines, and why.
func outdatedNote(file int, name string, functions []timeline.FunctionStart) Note {
	var names []string
	for _, f := range functions {
		if called := clean(f.Function); !slices.Contains(names, called) {
			names = append(names, called)
		}
	}
	more := ""
	if n := len(names) - maxOutdated; n > 0 {
		more = fmt.Sprintf(" and %d others", n)
	}
	return Note{ID: "function-outdated", Args: map[string]any{"file": file, "functions": names},
		Text: name + ": the code that ran of " + strings.Join(names[:min(len(names), maxOutdated)], ", ") + more +
			" was loaded from a text that the file no longer has: shown without lines"}
}

// textNotes say why a file's text is not shown.
var textNotes = map[origin.Text]struct{ id, text string }{
	origin.TextChanged:  {"file-changed", "the file was changed after its code was loaded"},
	origin.TextUnproven: {"file-unproven", "the file is younger than the program, and whether its code was loaded from this text is not proven"},
}

// maskSecrets hides the values of options whose name suggests a secret, as
// "--api-key=…" or "--api-key …".
func maskSecrets(argv []string) []string {
	out := slices.Clone(argv)
	secret := func(option string) bool {
		option = strings.ToLower(option)
		return strings.HasPrefix(option, "-") && (strings.Contains(option, "token") || strings.Contains(option, "key") ||
			strings.Contains(option, "password") || strings.Contains(option, "secret"))
	}
	for i, a := range out {
		name, _, hasValue := strings.Cut(a, "=")
		switch {
		case !secret(name):
		case hasValue:
			out[i] = name + "=***"
		case i+1 < len(out) && !strings.HasPrefix(out[i+1], "-"):
			out[i+1] = "***"
		}
	}
	return out
}
