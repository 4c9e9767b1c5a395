package report

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
	"github.com/omni-perf/omni-perf/sidecar/wording"
)

// maxFunctions bounds the function table; what is further down cost nothing.
const maxFunctions = 500

// Options of Build; the zero value is usable.
type Options struct {
	Version string // of omni_perf
	Home    string // the target user's home folder, shown as ~
	// Line reads a line of a file of the target, empty if it cannot; nil = the
	// cells' own sources only.
	Line func(file string, line int) string
	// Kernels are the lanes of a trace that was merged into the recording, by
	// device and stream.
	Kernels []KernelLane
}

// Build makes the document of a recording, of which package surround left the
// program's own stacks, and its diagnosis.
func Build(rec *timeline.Recording, d *diagnose.Diagnosis, opts Options) *Report {
	n := newNames(rec, opts.Home)
	t := newTree(rec, n)
	source := diagnose.NewSource(rec, opts.Line)
	text := func(file string, line int) string { return excerpt(source.Line(file, line)) }
	r := &Report{
		SchemaVersion: SchemaVersion,
		Generator:     strings.TrimSpace("omni_perf " + opts.Version),
		StartedAt:     rec.StartedAt.Round(time.Millisecond),
		DurationS:     rec.Duration.Seconds(),
		Target:        target(rec, n),
		Sampling:      sampling(rec),
		Processes:     processes(rec),
		Tracks:        tracks(rec),
		Kernels:       kernels(opts.Kernels),
		Functions:     functions(t, nodeTimes(t), maxFunctions),
		Notes:         notes(rec),
	}
	if rec.Target.Cell != nil {
		r.Name = clean(rec.Target.Cell.Name)
	}
	if o := rec.Output; o != nil {
		r.Output = &Output{Messages: o.Messages, Bytes: o.Bytes, AtLeast: o.AtLeast}
	}
	r.Threads, r.Stacks = threads(rec, t)
	file, spans := lineSpans(t)
	r.LineFile, r.LineSpans = n.file(file), spans
	idle := r.addDiagnosis(rec, d, n, text)
	r.CellLines = cellLines(t, text, idle)
	r.Around = aroundTimes(t)
	r.Notes = append(r.Notes, changedNotes(t, source)...)
	if d != nil && len(d.Steps) > 0 && d.Steps[0].Source == timeline.Sampled {
		r.Notes = append(r.Notes, Note{What: "steps", Reason: "taken from sampled calls of the optimizer; import omni_perf in the script, or call omni_perf.step(), to have them exactly"})
	}
	return r
}

// excerpt is a source line as tables show it, control characters replaced.
func excerpt(line string) string {
	const most = 200
	line = clean(strings.ReplaceAll(line, "\t", " "))
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}

func target(rec *timeline.Recording, n *names) Target {
	t := Target{
		PID:           rec.Target.PID,
		PythonVersion: rec.Target.PythonVersion,
		Interpreter:   n.file(rec.Target.Interpreter),
	}
	if c := rec.Target.Cell; c != nil {
		lines := strings.Split(strings.TrimSuffix(c.Text, "\n"), "\n")
		for i, l := range lines {
			lines[i] = clean(strings.ReplaceAll(strings.TrimSuffix(l, "\r"), "\t", "    "))
		}
		t.Cell = &Cell{ExecutionCount: c.ExecutionCount, Source: lines, Outcome: clean(c.Outcome)}
		return t
	}
	for _, a := range maskSecrets(rec.Target.Argv) {
		t.Argv = append(t.Argv, n.file(a))
	}
	return t
}

func sampling(rec *timeline.Recording) Sampling {
	s := Sampling{
		Method:         rec.Sampling.Method,
		IntervalS:      rec.Sampling.Interval.Seconds(),
		ResolutionS:    rec.Resolution.Seconds(),
		Samples:        rec.Sampling.Samples,
		Lost:           rec.Sampling.Lost,
		Truncated:      rec.Sampling.Truncated,
		FallbackReason: rec.Sampling.FallbackReason,
	}
	if rec.Sampling.CPU >= 0 {
		cost := rec.Sampling.CPU.Seconds()
		s.CPUS = &cost
	}
	return s
}

func processes(rec *timeline.Recording) []Process {
	out := make([]Process, 0, len(rec.Processes))
	for _, p := range rec.Processes {
		out = append(out, Process{PID: p.PID, Parent: p.Parent, Role: string(p.Role), Rank: p.Rank})
	}
	return out
}

func notes(rec *timeline.Recording) []Note {
	out := make([]Note, 0, len(rec.Notes))
	for _, n := range rec.Notes {
		out = append(out, Note{What: clean(n.What), Reason: clean(n.Reason)})
	}
	return out
}

// changedNotes say of which of the user's own files no text is shown, and why.
func changedNotes(t *tree, source *diagnose.Source) []Note {
	var out []Note
	told := make(map[string]bool)
	for i, f := range t.rec.Frames {
		if t.kinds[i] == KindUser && source.Changed(f.File) && !told[f.File] {
			told[f.File] = true
			out = append(out, Note{What: t.names.file(f.File), Reason: "the file was changed after its code was loaded: the text of its lines is not shown"})
		}
	}
	return out
}

func threads(rec *timeline.Recording, t *tree) ([]Thread, Stacks) {
	c := newCompact(t)
	out := make([]Thread, 0, len(rec.Threads))
	for _, i := range threadOrder(rec.Threads) {
		th := rec.Threads[i]
		c.thread(len(out), th.Spans)
		shown := Thread{
			NativeID: th.NativeID, PID: th.PID, Name: clean(th.Name), IsMain: th.Main, RunsCell: th.RunsCell,
			Leaf: clean(th.Leaf), StateS: stateTimes(th.Spans), Internal: th.Internal,
		}
		if th.Process > 0 && th.Process < len(rec.Processes) { // one lane per process at first sight: its main thread's is named so
			name := clean(wording.Process(rec.Processes[th.Process]))
			if shown.Name = name + " · " + shown.Name; th.Main {
				shown.Name = name
			}
		}
		if th.OnCPU >= 0 {
			s := th.OnCPU.Seconds()
			shown.OnCPUS = &s
		}
		out = append(out, shown)
	}
	return out, *c.out
}

func stateTimes(spans []timeline.Span) map[string]float64 {
	var sums [timeline.NumStates]timeline.Nanos
	for _, s := range spans {
		sums[s.State] += s.End - s.Start
	}
	out := make(map[string]float64)
	for state, d := range sums {
		if d > 0 {
			out[timeline.State(state).String()] = d.Seconds()
		}
	}
	return out
}

// tracks writes the figures in columns; an unknown stretch before a rate's
// window becomes a null of its own.
func tracks(rec *timeline.Recording) []Track {
	out := make([]Track, 0, len(rec.Tracks))
	for _, t := range rec.Tracks {
		if len(t.Points) == 0 && t.Ended == "" {
			continue
		}
		shown := Track{
			ID: clean(t.ID), Kind: t.Kind, Unit: t.Unit, Source: clean(t.Source), PID: t.PID, Limit: t.Limit,
			ResolutionS: max(t.Resolution, t.Step).Seconds(),
			T:           make([]float64, 0, len(t.Points)), Value: make([]Figure, 0, len(t.Points)),
			Mean: Figure(mean(t)), Peak: Figure(t.Peak), Ended: clean(t.Ended),
		}
		if t.Device >= 0 {
			device := t.Device
			shown.Device = &device
		}
		last := timeline.Nanos(0)
		for _, p := range t.Points {
			if t.Kind == timeline.KindRate && p.From > last {
				shown.T = append(shown.T, p.From.Seconds())
				shown.Value = append(shown.Value, Figure(math.NaN()))
			}
			shown.T = append(shown.T, p.At.Seconds())
			shown.Value = append(shown.Value, Figure(p.Value))
			last = p.At
		}
		out = append(out, shown)
	}
	return out
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

// maskSecrets hides the values of options whose name tells of a secret, as
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
