package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// devices writes every device that the recording or its diagnosis knows.
func (b *builder) devices(d *diagnose.Diagnosis) {
	facts := make(map[int]timeline.GPU)
	for _, g := range b.rec.GPUs {
		facts[g.Index] = g
	}
	times := make(map[int]gpuidle.DeviceTime)
	numbers := make(map[int]bool)
	if d != nil {
		for _, t := range d.GPUs {
			times[t.Device], numbers[t.Device] = t, true
		}
	}
	for n := range facts {
		numbers[n] = true
	}
	for _, t := range b.rec.Tracks {
		if t.Device >= 0 {
			numbers[t.Device] = true
		}
	}
	var sorted []int
	for n := range numbers {
		sorted = append(sorted, n)
	}
	slices.Sort(sorted)
	for _, n := range sorted {
		b.byNumber[n] = len(b.doc.Devices)
		b.doc.Devices = append(b.doc.Devices, b.deviceOf(n, facts, times))
	}
}

// worthEnergy is the share of a recording for which a device must have counted its energy.
const worthEnergy = 0.8

// energyOf is what a device used, between the first of its figures and the last.
func (b *builder) energyOf(number int) *float64 {
	for i := range b.rec.Tracks {
		t := &b.rec.Tracks[i]
		if t.Device != number || t.ID != fmt.Sprintf("gpu%d.energy", number) || len(t.Points) < 2 {
			continue
		}
		first, last := t.Points[0], t.Points[len(t.Points)-1]
		joules := last.Value - first.Value
		if float64(last.At-first.At) < worthEnergy*float64(b.rec.Duration) || !(joules >= 0) || math.IsInf(joules, 0) {
			return nil
		}
		return &joules
	}
	return nil
}

func (b *builder) deviceOf(number int, facts map[int]timeline.GPU, times map[int]gpuidle.DeviceTime) Device {
	out := Device{Number: number, UnknownNS: int64(b.rec.Duration), Processes: []int{}}
	if t, ok := times[number]; ok {
		out.BusyNS, out.IdleNS, out.UnknownNS, out.Used = int64(t.Busy), int64(t.Idle), int64(t.Unknown), t.Used
	}
	out.EnergyJ = b.energyOf(number)
	g, ok := facts[number]
	if !ok {
		return out
	}
	out.UUID, out.Name, out.Driver, out.Source = clean(g.UUID), clean(g.Name), clean(g.Driver), clean(g.Source)
	out.ResolutionNS, out.Simulated = known(int64(g.Resolution), 0), g.Simulated
	if g.OtherProcesses >= 0 {
		out.Others = pointer(g.OtherProcesses)
	}
	if g.Lost > 0 {
		out.LostAtNS = pointer(int64(min(g.Lost, b.rec.Duration)))
	}
	for _, x := range g.Xids {
		out.Xids = append(out.Xids, Xid{int64(min(x.At, b.rec.Duration)), x.Code})
	}
	for _, pid := range g.PIDs {
		if i, ok := b.byPID[pid]; ok {
			out.Processes = append(out.Processes, i)
		}
	}
	return out
}

// device is the index of a device's number; one that nothing else knows is added.
func (b *builder) device(number int) int {
	i, ok := b.byNumber[number]
	if !ok {
		i = len(b.doc.Devices)
		b.byNumber[number] = i
		b.doc.Devices = append(b.doc.Devices, b.deviceOf(number, nil, nil))
	}
	return i
}

// diagnosis fills Idle, Steps, Regions, Findings and the headline, and returns the
// idle time of each source line.
func (b *builder) diagnosis(d *diagnose.Diagnosis) map[place]int64 {
	idle := make(map[place]int64)
	if d == nil {
		return idle
	}
	if d.Idle != nil {
		b.doc.Idle = b.idle(d)
		for _, l := range d.Idle.Lines {
			if l.Place.Line > 0 {
				idle[l.Place] += int64(l.Nanos)
			}
		}
	}
	b.steps(d)
	b.loaders(d)
	b.paceTracks()
	b.phases(d)
	b.ranks(d)
	s := wording.Scope{Duration: b.rec.Duration, Place: b.names.place}
	for _, f := range d.Findings {
		b.doc.Findings = append(b.doc.Findings, b.finding(f, s))
	}
	b.headline(d, s)
	return idle
}

// OneOfOptimizers is the id of the note that steps are those of one optimizer, and another one steps, too.
const OneOfOptimizers = "steps-of-one-optimizer"

// OneOfProcesses is the id of the note that steps are those of one process, and others made steps of their own.
const OneOfProcesses = "steps-of-one-process"

// CoarsePhases is the id of the note that says to how much of a training's time its phases are known, where that is more than mostOffPhases.
const CoarsePhases = "phases-within"

const mostOffPhases = 0.03

func (b *builder) steps(d *diagnose.Diagnosis) {
	for _, s := range d.Steps {
		step := Step{Process: b.placed(s.Process), StartNS: int64(s.Start), EndNS: int64(s.End), Name: clean(s.Name), DataWaitNS: int64(s.DataWait), Source: clean(string(cmp.Or(s.Source, "unknown"))), PhasesNS: phaseTimes(s.Phases),
			Epoch: s.Batch.Epoch, Samples: known(s.Batch.Samples, 0), Tokens: known(s.Batch.Tokens, 0)}
		if s.InCollectives != nil {
			step.CollectiveNS = pointer(int64(*s.InCollectives))
		}
		if d.Idle != nil && s.Unknown < s.End-s.Start {
			step.BusyNS, step.IdleNS = pointer(int64(max(s.Busy, 0))), pointer(int64(max(s.Idle, 0)))
		}
		b.doc.Steps = append(b.doc.Steps, step)
	}
	if d.StepsUnknown {
		b.doc.Notes = append(b.doc.Notes, Note{ID: "steps-unknown", Args: map[string]any{},
			Text: "steps: not known, as the optimizer's calls are too short for how often the stacks were read; omni-perf run counts the steps of torch, unless --no-step-hook is given or Python was started with -I, -E or -S; elsewhere omni_perf.step() marks them"})
	}
	if d.NoOptimizer {
		reason := "no optimizer of torch was seen to step"
		if slices.ContainsFunc(d.Phases, func(p diagnose.PhaseTime) bool { return p.Phase == origin.CompiledStep }) {
			reason = "one call runs a compiled step, or several of them, and has no frames"
		}
		b.doc.Notes = append(b.doc.Notes, Note{ID: "steps-unknown", Args: map[string]any{},
			Text: "steps: not known, as " + reason + "; omni_perf.step() at the end of the loop's body marks them"})
	}
	if d.PhasesWithin > mostOffPhases {
		b.doc.Notes = append(b.doc.Notes, Note{ID: CoarsePhases, Args: map[string]any{"within": d.PhasesWithin},
			Text: "phases: each is known to about " + words.Percent(d.PhasesWithin) + " of the training's time, by how often the stacks were read"})
	}
	if o := d.Optimizers; o != nil {
		args := map[string]any{"other": clean(o.Other)}
		b.doc.Notes = append(b.doc.Notes, Note{ID: OneOfOptimizers, Args: args, Text: wording.Optimizers(o, b.names.place)})
	}
	if e := d.Elsewhere; e.Processes > 0 {
		b.doc.Notes = append(b.doc.Notes, Note{ID: OneOfProcesses, Args: map[string]any{"processes": e.Processes, "steps": e.Steps},
			Text: "steps: those of " + b.doc.ProcessName(b.doc.Steps[0].Process) + "; " + wording.Elsewhere(e) + ", which are not listed"})
	}
	for _, g := range d.Regions {
		b.doc.Regions = append(b.doc.Regions, Region{
			Process: b.placed(g.Process), Name: clean(g.Name), Count: g.Count, TotalNS: int64(g.Total), P50NS: int64(g.P50), P95NS: int64(g.P95),
		})
	}
}

// headline is the answer in one sentence or two, and what it refers to.
func (b *builder) headline(d *diagnose.Diagnosis, s wording.Scope) {
	h := &b.doc.Headline
	h.Text = s.Headline(d)
	h.Limits = append(h.Limits, d.Headline.Limits...)
	i, ok := d.Main()
	switch {
	case ok:
		h.Kind, h.Finding, h.Hint = HeadlineFinding, &i, wording.Advice(d.Findings[i].Advice)
	case d.Headline.TooFew != nil:
		h.Kind = HeadlineTooFew
	case d.Headline.NoStacks:
		h.Kind = HeadlineNoStacks
	}
}

func (b *builder) idle(d *diagnose.Diagnosis) *Idle {
	out := &Idle{
		IdleNS: int64(d.Idle.Total), Certainty: certainty(d.Idle.Certainty),
		Causes: b.causes(d.Idle.Causes, d.Idle.Certainty.Method), Devices: []DeviceIdle{},
	}
	for _, dev := range d.Idle.Devices {
		shown := DeviceIdle{
			Device: b.device(dev.Device), IdleNS: int64(dev.Idle), Certainty: certainty(dev.Certainty),
			Causes: b.causes(dev.Causes, dev.Certainty.Method), Intervals: []Interval{},
		}
		for _, g := range d.GPUs {
			if g.Device == dev.Device {
				shown.Intervals = intervals(g.Gaps)
			}
		}
		out.Devices = append(out.Devices, shown)
	}
	return out
}

func certainty(c gpuidle.Certainty) Certainty {
	return Certainty{
		Method: string(c.Method), WindowNS: known(int64(c.Window), 0), Windows: c.Windows, Repeats: c.Repeats,
		LagNS: known(int64(c.Lag), 0), R2: finite(c.R2), HeldOut: finite(c.HeldOut), Text: wording.Certainty(c),
	}
}

func (b *builder) causes(list []gpuidle.CauseTime, method gpuidle.Method) []Cause {
	out := make([]Cause, 0, len(list))
	for _, c := range list {
		shown := b.cause(c)
		if method == gpuidle.ByAverage {
			shown.LowNS, shown.HighNS = pointer(int64(min(max(c.Low, 0), c.Nanos))), pointer(int64(max(c.High, c.Nanos)))
		}
		out = append(out, shown)
	}
	return out
}

func (b *builder) cause(c gpuidle.CauseTime) Cause {
	shown := Cause{
		ID: string(c.Cause), Kind: string(c.Cause.Kind()), NS: int64(c.Nanos), Share: min(max(c.Share, 0), 1),
		Evidence: intervals(c.Evidence), Text: wording.Cause(c.Cause), Hint: wording.Advice(diagnose.AdviceForIdle(c.Cause)),
	}
	shown.File, shown.Line, shown.Function = b.place(c.Place)
	return shown
}

// place also asks for the line's text.
func (b *builder) place(p activity.Place) (file, line, function *int) {
	if p.Line > 0 {
		b.wanted[p] = true
	}
	return b.codes.place(p)
}

func (b *builder) finding(f diagnose.Finding, s wording.Scope) Finding {
	out := Finding{
		ID: string(f.ID), Severity: string(f.Severity), Unit: known(string(f.Unit), ""), Args: b.arguments(f),
		Evidence: intervals(f.Evidence), CostNS: known(int64(f.Cost), 0), Text: s.Finding(f), Hint: wording.Advice(f.Advice),
	}
	if out.Unit != nil {
		out.Value, out.Threshold = finite(f.Value), finite(f.Threshold)
	}
	out.File, out.Line, out.Function = b.place(f.Place)
	return out
}

// Number is an argument that is a number; NaN where there is none. It is a float64 in a document that was read.
func (f *Finding) Number(name string) float64 {
	switch v := f.Args[name].(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return math.NaN()
}

// arguments are the figures of a finding that its sentence contains. What a finding does
// not use is left out.
func (b *builder) arguments(f diagnose.Finding) map[string]any {
	args := make(map[string]any)
	nanos := func(name string, n timeline.Nanos) {
		if n != 0 {
			args[name] = int64(n)
		}
	}
	number := func(name string, v float64) {
		if v != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
			args[name] = v
		}
	}
	text := func(name, v string) {
		if v != "" {
			args[name] = clean(v)
		}
	}
	nanos("time_ns", f.Time)
	if f.Low != f.High {
		nanos("low_ns", f.Low)
		nanos("high_ns", f.High)
	}
	nanos("place_ns", f.PlaceTime)
	nanos("next_ns", f.NextTime)
	number("next_line", float64(f.Next.Line))
	nanos("cut_ns", f.CutTime)
	nanos("at_ns", f.At)
	if f.AtLast != f.At {
		nanos("at_last_ns", f.AtLast)
	}
	number("against", f.Against)
	number("cores", f.Cores)
	number("core_limit", f.CoreLimit)
	number("count", float64(f.Count))
	number("bytes", float64(f.Bytes))
	text("cause", string(f.Cause))
	text("kind", string(f.Kind))
	text("package", f.Call.Package)
	text("function", f.Call.Function)
	number("call_share", f.CallShare)
	text("name", f.Name)
	text("collective", string(f.Collective))
	nanos("collective_ns", f.CollectiveTime)
	nanos("after_steps_ns", f.AfterSteps)
	nanos("whole_ns", f.Whole)
	if f.ID == diagnose.Straggler || f.ID == diagnose.RankFailed || f.OfRank {
		args["rank"] = f.Rank
		if f.Steps > 0 {
			args["steps"], args["late_steps"] = f.Steps, f.LateSteps
		}
	}
	if f.Process != nil {
		args["pid"] = f.Process.PID
		ended := f.ID == diagnose.RankFailed || f.ID == diagnose.WorkerKilled
		if name := wording.Process(*f.Process); ended {
			text("name", name)
		} else { // name may be a function's
			text("process", name)
		}
		if ended && f.Process.Exit != nil {
			args["exit_code"] = *f.Process.Exit
		}
		if e := f.Process.Raised; e != nil && f.ID == diagnose.RankFailed {
			text("exception", e.Type)
			text("message", e.Message)
		}
	}
	if q := f.Queue; q.Readings > 0 {
		args["queue_empty"], args["queue_median"], args["queue_most"] = q.Empty, q.Median, q.Most
	}
	text("advice", string(f.Advice))
	if f.AtLeast {
		args["at_least"] = true
	}
	b.lists(args, f)
	return args
}

// lists are the arguments of which there may be several.
func (b *builder) lists(args map[string]any, f diagnose.Finding) {
	if len(f.Devices) > 0 {
		devices := make([]int, len(f.Devices))
		for i, number := range f.Devices {
			devices[i] = b.device(number)
		}
		args["devices"] = devices
	}
	if f.ID == diagnose.SomeGPUsIdle {
		args["peer"] = b.device(f.Peer)
	}
	if len(f.Throttle) > 0 {
		args["throttle"] = f.Throttle
	}
	objects(args, "modules", f.Modules, func(m activity.ModuleTime) map[string]any {
		return map[string]any{"module": clean(m.Module), "ns": int64(m.Nanos), "inside": m.Inside}
	})
	objects(args, "functions", f.Functions, func(t activity.FunctionTime) map[string]any {
		return map[string]any{"function": clean(t.Name), "ns": int64(t.Nanos)}
	})
	objects(args, "lines", f.Lines, func(t activity.FunctionTime) map[string]any {
		return map[string]any{"file": b.codes.files[b.codes.file(t.Place.File)].Name, "line": t.Place.Line, "ns": int64(t.Nanos)}
	})
	objects(args, "actors", f.Actors, actorObject)
	if f.HasLock {
		args["has_lock"] = true
	}
	if len(f.Parts) > 0 {
		args["parts"] = parts(f.Parts)
	}
	if len(f.Alternatives) > 0 {
		args["alternatives"] = b.alternatives(f.Alternatives)
	}
}

// objects adds a list of objects to the arguments, if there are any.
func objects[T any](args map[string]any, name string, from []T, object func(T) map[string]any) {
	if len(from) == 0 {
		return
	}
	list := make([]map[string]any, len(from))
	for i, v := range from {
		list[i] = object(v)
	}
	args[name] = list
}

func actorObject(a activity.Actor) map[string]any {
	actor := map[string]any{"process": a.Process, "count": a.Count, "name": clean(a.Name), "cause": string(a.Cause)}
	if a.AtLeast {
		actor["at_least"] = true
	}
	if a.CPU >= 0 {
		actor["cpu_ns"] = int64(a.CPU)
	}
	if a.Exit != nil {
		actor["exit_code"] = *a.Exit
	}
	if a.Awaited > 0 {
		actor["awaited_ns"] = int64(a.Awaited)
	}
	if a.Queued > 0 {
		actor["queued_share"] = a.Queued
	}
	return actor
}

// alternatives are written as causes are; the id is empty where a kind has several.
func (b *builder) alternatives(list []gpuidle.Alternative) []Cause {
	out := make([]Cause, 0, len(list))
	for _, a := range list {
		shown := Cause{
			ID: string(a.Cause), Kind: string(a.Kind), NS: int64(a.Nanos), Share: min(max(a.Share, 0), 1),
			LowNS: pointer(int64(max(a.Low, 0))), HighNS: pointer(int64(a.High)), Evidence: intervals(nil), Text: wording.Alternative(a),
		}
		shown.File, shown.Line, shown.Function = b.place(a.Place)
		out = append(out, shown)
	}
	return out
}

// parts are causes with their part of a finding's time.
func parts(list []gpuidle.Part) []map[string]any {
	out := make([]map[string]any, 0, len(list))
	for _, p := range list {
		out = append(out, map[string]any{"cause": string(p.Cause), "ns": int64(p.Nanos), "low_ns": int64(p.Low), "high_ns": int64(p.High)})
	}
	return out
}

func intervals(list []timeline.Interval) []Interval {
	out := make([]Interval, 0, len(list))
	for _, i := range list {
		out = append(out, Interval{int64(i.Start), int64(i.End)})
	}
	return out
}
