package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// View is a document that was checked, and what consumers ask of it. Every index in
// it is sound, every number finite, every time within the recording.
type View struct {
	*Document
	histories [][]Span
	lines     map[int][]Line // by file
}

// Span is a stretch of a thread's history: Start < End, nanoseconds since the origin.
type Span struct {
	Start, End int64
	Node       int32
	State      State
	Incomplete bool // frames nearer the leaf could not be read
}

// newView decodes the columns of a sound document.
func newView(d *Document) *View {
	v := &View{Document: d, histories: make([][]Span, len(d.Threads))}
	s := &d.Spans
	all := make([]Span, len(s.Node))
	for t := range d.Threads {
		from, to := s.First[t], s.First[t+1]
		at := int64(0)
		for i := from; i < to; i++ {
			at += s.GapUS[i]
			all[i] = Span{Start: at * 1000, Node: int32(s.Node[i]), State: State(s.State[i])}
			at += s.LengthUS[i]
			all[i].End = min(at*1000, d.DurationNS)
		}
		history := all[from:to:to]
		if n := len(history); n > 0 && history[n-1].Start >= history[n-1].End { // less than a microsecond at the very end
			history = history[:n-1]
		}
		v.histories[t] = history
	}
	for _, i := range s.Incomplete {
		all[i].Incomplete = true
	}
	return v
}

// Target is what was recorded; the first of several.
func (v *View) Target() *Target { return &v.Targets[0] }

// Program is the process whose own lines and functions are summed up: the target's, or the one
// that it started.
func (v *View) Program() int { return v.Subject.Program }

// Runs is the process whose own lines are those of the target.
func (t *Target) Runs() int {
	if t.Program != nil {
		return *t.Program
	}
	return t.Process
}

// History is a thread's spans, in order of time, without overlap.
func (v *View) History(thread int) []Span { return v.histories[thread] }

// MainThread is the thread whose stacks are the flame chart: the subject's; -1 if none is known.
func (v *View) MainThread() int {
	if v.Subject.Thread == nil {
		return -1
	}
	return *v.Subject.Thread
}

// Parent is a node's caller; node 0 is the empty stack.
func (v *View) Parent(node int32) int32 { return int32(v.Nodes.Parent[node]) }

// FrameOf is the frame at a node's leaf.
func (v *View) FrameOf(node int32) int { return int(v.Nodes.Frame[node]) }

// FunctionOf is the function of a frame.
func (v *View) FunctionOf(frame int) int { return int(v.Frames.Function[frame]) }

// LineOf is a frame's line; 0 where it has none.
func (v *View) LineOf(frame int) int { return int(v.Frames.Line[frame]) }

// Stack returns a node's frames, root first, at most so many from the root.
func (v *View) Stack(node int32, most int) []int {
	depth := 0
	for n := node; n > 0; n = v.Parent(n) {
		depth++
	}
	frames := make([]int, min(depth, most))
	for n := node; n > 0; n = v.Parent(n) {
		if depth--; depth < most {
			frames[depth] = v.FrameOf(n)
		}
	}
	return frames
}

// FunctionName is what a function is called for people: a module's own code goes by
// its file.
func (v *View) FunctionName(function int) string {
	f := &v.Functions[function]
	switch {
	case f.Label != nil && *f.Label != "":
		return *f.Label
	case f.Name != "" && f.Name != "<module>":
		return f.Name
	}
	if file := words.ShortFile(v.Files[f.File].Name); file != "" && file != "." {
		return file
	}
	return "<module>"
}

// FileName is a file's display name; empty for none.
func (v *View) FileName(file *int) string {
	if file == nil {
		return ""
	}
	return v.Files[*file].Name
}

// LineText is a line of a file, without the space around it; empty where it is not
// known.
func (v *View) LineText(file, line *int) string {
	if file == nil || line == nil {
		return ""
	}
	return v.Text(*file, *line)
}

// Text is LineText of a file's index.
func (v *View) Text(file, line int) string {
	lines := v.Files[file].Lines
	if line < 1 || line > len(lines) || lines[line-1] == nil {
		return ""
	}
	return strings.TrimSpace(*lines[line-1])
}

// LinesOf are the times of a file's lines, most self time first.
func (v *View) LinesOf(file int) []Line {
	if v.lines == nil {
		v.lines = make(map[int][]Line)
		for _, l := range v.Lines {
			v.lines[l.File] = append(v.lines[l.File], l)
		}
	}
	return v.lines[file]
}

// IsCell reports whether a file is the recorded cell.
func (v *View) IsCell(file int) bool {
	cell := v.Target().Cell
	return cell != nil && cell.File == file
}

// DeviceTrack is a device's figure by its id; nil if there is none.
func (v *View) DeviceTrack(device int, id string) *Track {
	for i := range v.Tracks {
		if t := &v.Tracks[i]; t.ID == id && t.Device != nil && *t.Device == device {
			return t
		}
	}
	return nil
}

// HostTrack is a figure of the target or of the whole machine by its id; nil if there
// is none.
func (v *View) HostTrack(id string) *Track {
	for i := range v.Tracks {
		if t := &v.Tracks[i]; t.ID == id && t.Device == nil && t.Thread == nil {
			return t
		}
	}
	return nil
}

// LeadingSteps are the training steps of the process that leads: the rank for which the others waited, where there is
// one, else the target or the first rank. Others reports whether there are steps of other processes, too.
func (v *View) LeadingSteps() (steps []Step, others bool) {
	if len(v.Steps) == 0 {
		return nil, false
	}
	leading := v.Steps[0].Process
	if late := v.stragglersProcess(); slices.ContainsFunc(v.Steps, func(s Step) bool { return s.Process == late }) {
		leading = late
	}
	first := slices.IndexFunc(v.Steps, func(s Step) bool { return s.Process == leading })
	last := first
	for last < len(v.Steps) && v.Steps[last].Process == leading {
		last++
	}
	return v.Steps[first:last], last-first < len(v.Steps)
}

// StepsElsewhere are how many steps other processes made that are not listed, by the note that says so.
func (v *View) StepsElsewhere() (e diagnose.Elsewhere) {
	for i := range v.Notes {
		if n := &v.Notes[i]; n.ID == OneOfProcesses {
			e.Processes, _ = integer(n.Args["processes"])
			e.Steps, _ = integer(n.Args["steps"])
		}
	}
	return e
}

// ProcessName is a process's text, with its pid where another one has the same.
func (d *Document) ProcessName(process int) string {
	p := &d.Processes[process]
	for i := range d.Processes {
		if i != process && d.Processes[i].Text == p.Text {
			return p.Text + " " + strconv.Itoa(p.PID)
		}
	}
	return p.Text
}

// stragglersProcess is the process of the rank for which the others waited; -1: none is known.
func (v *View) stragglersProcess() int {
	for i := range v.Findings {
		if v.Findings[i].ID != string(diagnose.Straggler) {
			continue
		}
		if number, ok := integer(v.Findings[i].Args["rank"]); ok {
			if at := slices.IndexFunc(v.Ranks, func(r Rank) bool { return r.Rank == number }); at >= 0 {
				return v.Ranks[at].Process
			}
		}
	}
	return -1
}

// StepTimes sums up the training steps of the leading process.
type StepTimes struct {
	Count                      int
	Others                     bool  // other processes had steps, too
	MedianNS, P95NS, SlowestNS int64 // of their lengths
	TotalNS                    int64
	EvaluationNS               int64 // of it, in evaluation: no pace has that
	DataWaitNS, BusyNS         int64
	Samples, Tokens            Worked
	SamplesKnown               int // steps of which the samples are known, not just likely
}

// Worked is how much some steps worked on, how many steps these were, and how long they took without evaluation.
type Worked struct {
	Count, NS int64
	Steps     int
}

// PerSecond is the mean over those steps; 0 where nothing is known.
func (w Worked) PerSecond() float64 {
	if w.NS <= 0 {
		return 0
	}
	return float64(w.Count) / Seconds(w.NS)
}

func (w *Worked) add(count *int64, ns int64) {
	if count != nil {
		w.Count, w.NS, w.Steps = w.Count+*count, w.NS+ns, w.Steps+1
	}
}

// PerSecond is how many steps there were in a second of their time without evaluation; 0 where there were none.
func (t *StepTimes) PerSecond() float64 {
	if t.TotalNS <= t.EvaluationNS {
		return 0
	}
	return float64(t.Count) / Seconds(t.TotalNS-t.EvaluationNS)
}

// StepTimes sums up the leading process's steps that took time.
func (v *View) StepTimes() (t StepTimes) {
	leading, others := v.pacedSteps()
	t = stepTimes(leading)
	t.Others = others
	known, _ := v.LeadingSteps()
	for i := range known {
		if s := &known[i]; s.Samples != nil && s.EndNS > s.StartNS {
			t.SamplesKnown++
		}
	}
	return t
}

// pacedSteps are the leading process's steps that took time, with the samples that they had in all likelihood.
func (v *View) pacedSteps() (steps []Step, others bool) {
	steps, others = v.LeadingSteps()
	if slices.ContainsFunc(v.LeadingLoaders(), func(l *Loader) bool { return l.CountedSteps > 0 }) {
		steps = likelySamples(steps)
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s Step) bool { return s.EndNS <= s.StartNS }), others
}

var (
	evaluationPhase = origin.Evaluation.String()
	checkpointPhase = origin.Checkpoint.String()
)

// evaluation is for how long a step was in evaluation.
func (s *Step) evaluation() int64 {
	return min(max(s.PhasesNS[evaluationPhase], 0), max(s.EndNS-s.StartNS, 0))
}

func stepTimes(steps []Step) (t StepTimes) {
	var lengths []int64
	for _, s := range steps {
		evaluation := s.evaluation()
		t.Samples.add(s.Samples, s.EndNS-s.StartNS-evaluation)
		t.Tokens.add(s.Tokens, s.EndNS-s.StartNS-evaluation)
		lengths = append(lengths, s.EndNS-s.StartNS)
		t.TotalNS += s.EndNS - s.StartNS
		t.EvaluationNS += evaluation
		t.DataWaitNS += s.DataWaitNS
		if s.BusyNS != nil {
			t.BusyNS += *s.BusyNS
		}
	}
	if t.Count = len(lengths); t.Count > 0 {
		slices.Sort(lengths)
		t.MedianNS, t.P95NS, t.SlowestNS = lengths[t.Count/2], lengths[t.Count*95/100], lengths[t.Count-1]
	}
	return t
}

// StepPhase is a phase of the leading process's steps.
type StepPhase struct {
	Phase *TrainingPhase
	NS    int64 // in the steps, all together
	// Outside is what an evaluation or a checkpoint took in no step, as after the last one: the first step of the next epoch has what was
	// before it, so that of n epochs the steps have the validation of n-1.
	Outside int64
}

// StepPhases are the phases of the leading process's steps, most time first.
func (v *View) StepPhases() (list []StepPhase) {
	leading, _ := v.LeadingSteps()
	times := make(map[string]int64)
	for _, s := range leading {
		for id, ns := range s.PhasesNS {
			times[id] += ns
		}
	}
	for i := range v.TrainingPhases {
		p := &v.TrainingPhases[i]
		if ns := times[p.ID]; ns > 0 && p.Process == leading[0].Process && p.Epoch == nil {
			phase := StepPhase{Phase: p, NS: ns}
			if p.ID == evaluationPhase || p.ID == checkpointPhase {
				phase.Outside = max(p.TotalNS-ns, 0)
			}
			list = append(list, phase)
		}
	}
	slices.SortStableFunc(list, func(a, b StepPhase) int { return cmp.Compare(b.NS, a.NS) })
	return list
}

// MainFinding is the finding of the headline; nil where it has none.
func (v *View) MainFinding() *Finding {
	if v.Headline.Finding == nil {
		return nil
	}
	return &v.Findings[*v.Headline.Finding]
}

// Seconds converts nanoseconds, for display.
func Seconds(ns int64) float64 { return float64(ns) / 1e9 }
