package mergereports

import (
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
)

// part is one report on its way into the merged one.
type part struct {
	*merging
	r         *report.View
	at        int // of the report
	shift     int64
	shiftUS   int64
	process   []int  // that each of its own becomes
	described []bool // by process: what it did is taken from this report
	thread    []int  // that each of its own becomes, -1: none
	target    int    // that the first one becomes
	host      int    // merged
	code      translation
	name      string // of the target, for sentences: "rank 3"
}

func (m *merging) add(i int) {
	r := m.reports[i]
	shift := m.shift(i)
	p := &part{merging: m, r: r, at: i, shift: shift, shiftUS: shift / 1000, process: m.places[i], target: len(m.doc.Targets), host: m.clocks.host[i], code: m.code.add(r)}
	for k := range r.Processes {
		p.described = append(p.described, m.describes(sighting{i, k}))
	}
	p.processes()
	p.targets()
	p.threads()
	p.addDevices()
	p.tracks()
	p.tables()
	p.findings()
}

func (p *part) processes() {
	root := p.r.Target().Process
	for i, process := range p.r.Processes {
		process.Target, process.Host = p.target+process.Target, p.host
		process.StartNS += p.shift
		process.EndNS = p.instant(process.EndNS)
		process.Parent = moved(process.Parent, p.process)
		if process.Exception != nil {
			raised := *process.Exception
			raised.File = p.code.file(raised.File)
			process.Exception = &raised
		}
		if rank := p.r.Target().Rank; i == root && rank != nil {
			number := *rank
			process.Role, process.RoleNumber, process.Rank = string(timeline.RoleRank), &number, &number
			process.Text = fmt.Sprintf("rank %d", number)
		}
		if number, is := p.numbers[p.at]; i == root && is {
			process.RoleNumber = &number
			process.Text = wording.Process(timeline.Process{Role: timeline.Role(process.Role), Number: &number})
		}
		if i == root {
			p.name = process.Text
			if process.Stacks.IntervalNS == nil && process.Stacks.Read {
				if interval := p.r.Target().Sampling.Interval(p.r.DurationNS); interval > 0 {
					process.Stacks.IntervalNS = &interval
				}
			}
		}
		into := &p.doc.Processes[p.process[i]]
		if p.described[i] {
			process, *into = *into, process // what another report knows of it
		}
		complete(into, process)
	}
}

func (p *part) targets() {
	for _, t := range p.r.Targets {
		t.Host, t.Process = p.host, p.process[t.Process]
		t.StartNS, t.EndNS = t.StartNS+p.shift, t.EndNS+p.shift
		if t.Program != nil && !p.described[*t.Program] { // another report's target
			t.Program, t.ThreadNS, t.NoLineNS = nil, 0, 0
		}
		t.Program, t.Leading = moved(t.Program, p.process), moved(t.Leading, p.process)
		if t.Cell != nil {
			cell := *t.Cell
			cell.File = p.code.files[cell.File]
			t.Cell = &cell
		}
		kept := make([][2]int64, len(t.Sampling.Kept))
		for i, k := range t.Sampling.Kept {
			kept[i] = [2]int64{k[0] + p.shift, k[1]}
		}
		t.Sampling.Kept = kept
		p.doc.Targets = append(p.doc.Targets, t)
	}
}

func (p *part) threads() {
	to, from := &p.doc.Spans, &p.r.Spans
	incomplete := make(map[int64]bool, len(from.Incomplete))
	for _, i := range from.Incomplete {
		incomplete[i] = true
	}
	for i, t := range p.r.Threads {
		if !p.described[t.Process] {
			p.thread = append(p.thread, -1)
			continue
		}
		t.Process = p.process[t.Process]
		p.thread = append(p.thread, len(p.doc.Threads))
		p.doc.Threads = append(p.doc.Threads, t)
		for k := from.First[i]; k < from.First[i+1]; k++ {
			gap := from.GapUS[k]
			if k == from.First[i] {
				gap += p.shiftUS
			}
			if incomplete[k] {
				to.Incomplete = append(to.Incomplete, int64(len(to.Node)))
			}
			to.GapUS, to.LengthUS = append(to.GapUS, gap), append(to.LengthUS, from.LengthUS[k])
			to.Node, to.State = append(to.Node, p.code.nodes[from.Node[k]]), append(to.State, from.State[k])
		}
		to.First = append(to.First, int64(len(to.Node)))
	}
}

func (p *part) tables() {
	d, r := &p.doc, p.r
	d.Steps = append(d.Steps, rowsOf(p, r.Steps, func(s *report.Step) *int {
		s.StartNS, s.EndNS = s.StartNS+p.shift, s.EndNS+p.shift
		return &s.Process
	})...)
	d.Regions = append(d.Regions, rowsOf(p, r.Regions, func(g *report.Region) *int { return &g.Process })...)
	d.Lines = append(d.Lines, rowsOf(p, r.Lines, func(l *report.Line) *int {
		l.File, l.FreeingFunction = p.code.files[l.File], p.code.function(l.FreeingFunction)
		return &l.Process
	})...)
	d.FunctionTimes = append(d.FunctionTimes, rowsOf(p, r.FunctionTimes, func(f *report.FunctionTime) *int {
		f.Function = p.code.functions[f.Function]
		return &f.Process
	})...)
	d.Blocked = append(d.Blocked, rowsOf(p, r.Blocked, func(w *report.Blocked) *int {
		w.File, w.Function = p.code.files[w.File], p.code.function(w.Function)
		if w.Holder != nil {
			h := *w.Holder
			h.File, h.Function = p.code.files[h.File], p.code.function(h.Function)
			w.Holder = &h
		}
		return &w.Process
	})...)
	d.Awaits = append(d.Awaits, rowsOf(p, r.Awaits, func(a *report.Await) *int {
		a.File, a.Function = p.code.files[a.File], p.code.function(a.Function)
		return &a.Process
	})...)
	d.Memory = append(d.Memory, rowsOf(p, r.Memory, func(m *report.Memory) *int {
		m.File, m.Function = p.code.files[m.File], p.code.function(m.Function)
		if m.Evidence != nil {
			m.Evidence = p.intervals(m.Evidence)
		}
		return &m.Process
	})...)
	d.GPUMemory = append(d.GPUMemory, rowsOf(p, r.GPUMemory, func(m *report.GPUMemory) *int {
		m.File, m.Function = p.code.files[m.File], p.code.function(m.Function)
		m.Device, _ = p.device(m.Device)
		return &m.Process
	})...)
	d.GPUMemoryReads = append(d.GPUMemoryReads, rowsOf(p, r.GPUMemoryReads, func(m *report.GPUMemoryReading) *int {
		m.Device, _ = p.device(m.Device)
		return &m.Process
	})...)
	d.TorchMemory = append(d.TorchMemory, rowsOf(p, r.TorchMemory, func(m *report.TorchMemory) *int { return &m.Process })...)
	d.FunctionMemory = append(d.FunctionMemory, rowsOf(p, r.FunctionMemory, func(m *report.MemoryFunction) *int {
		m.Function = p.code.functions[m.Function]
		return &m.Process
	})...)
	d.MemoryReading = append(d.MemoryReading, rowsOf(p, r.MemoryReading, func(m *report.MemoryReading) *int { return &m.Process })...)
	d.OutOfMemory = append(d.OutOfMemory, rowsOf(p, r.OutOfMemory, func(o *report.OutOfMemory) *int {
		*o = o.InFiles(p.code.file)
		o.AtNS += p.shift
		return &o.Process
	})...)
	d.TrainingPhases = append(d.TrainingPhases, rowsOf(p, r.TrainingPhases, func(t *report.TrainingPhase) *int { return &t.Process })...)
	d.SlowSteps = append(d.SlowSteps, rowsOf(p, r.SlowSteps, func(s *report.SlowSteps) *int {
		s.File = p.code.file(s.File)
		return &s.Process
	})...)
	d.Loaders = append(d.Loaders, rowsOf(p, r.Loaders, func(l *report.Loader) *int { return &l.Process })...)
	d.Phases = append(d.Phases, rowsOf(p, r.Phases, func(f *report.Phase) *int { return &f.Process })...)
	d.Ranks = append(d.Ranks, rowsOf(p, r.Ranks, func(k *report.Rank) *int { return &k.Process })...)
	d.Gaps = append(d.Gaps, rowsOf(p, r.Gaps, func(g *report.Gap) *int {
		g.StartNS, g.EndNS = g.StartNS+p.shift, g.EndNS+p.shift
		return &g.Process
	})...)
	p.notes()
	p.thinned()
}

// rowsOf are the rows of a part's table that are of processes which the result describes, as the result has them: moved
// changes what else a row refers to, and returns which process it is of.
func rowsOf[T any](p *part, rows []T, moved func(*T) *int) (list []T) {
	for _, row := range rows {
		process := moved(&row)
		if p.described[*process] {
			*process = p.process[*process]
			list = append(list, row)
		}
	}
	return list
}

func (p *part) notes() {
	for _, n := range p.r.Notes {
		known := false
		for _, other := range p.doc.Notes {
			known = known || other.Text == n.Text
		}
		if !known {
			p.doc.Notes = append(p.doc.Notes, n)
		}
	}
}

// thinned adds up what was left out.
func (p *part) thinned() {
	t := p.r.Thinned
	if t == nil {
		return
	}
	if p.doc.Thinned == nil {
		p.doc.Thinned = &report.Thinned{Tables: make(map[string]report.KeptOf)}
	}
	into := p.doc.Thinned
	into.BudgetBytes += t.BudgetBytes
	if t.SpansStepNS != nil && (into.SpansStepNS == nil || *t.SpansStepNS > *into.SpansStepNS) {
		into.SpansStepNS = t.SpansStepNS
	}
	if t.TracksPoints != nil && (into.TracksPoints == nil || *t.TracksPoints < *into.TracksPoints) {
		into.TracksPoints = t.TracksPoints
	}
	for name, kept := range t.Tables {
		sum := into.Tables[name]
		into.Tables[name] = report.KeptOf{Kept: sum.Kept + kept.Kept, Of: sum.Of + kept.Of}
	}
}

// findings takes over what each report says, under the name of its target. Whom ranks waited
// for is found anew, of all of them.
func (p *part) findings() {
	for i, f := range p.r.Findings {
		if len(p.reports) > 1 && f.ID == string(diagnose.Straggler) || p.isInRankReport(f) {
			continue
		}
		main := p.r.Headline.Finding != nil && *p.r.Headline.Finding == i
		f.File, f.Function = p.code.file(f.File), p.code.function(f.Function)
		f.Evidence = p.intervals(f.Evidence)
		args := make(map[string]any, len(f.Args))
		for name, v := range f.Args {
			if name != "devices" && name != "peer" && name != "alternatives" { // by indices of another document
				args[name] = v
			}
		}
		f.Args, f.Text = args, p.name+": "+f.Text
		p.doc.Findings = append(p.doc.Findings, f)
		if main && p.doc.Headline.Finding == nil {
			at := len(p.doc.Findings) - 1
			p.doc.Headline = report.Headline{Kind: report.HeadlineFinding, Finding: &at, Limits: []int{}, Text: f.Text, Hint: f.Hint}
		}
	}
	if p.doc.Headline.Text == "" {
		p.doc.Headline.Text = p.name + ": " + p.r.Headline.Text
	}
}

// isInRankReport reports whether a launcher's finding is about a rank that has a report of its own.
func (p *part) isInRankReport(f report.Finding) bool {
	rank, of := f.Args["rank"]
	if !of {
		return false
	}
	for _, r := range p.r.Ranks {
		if fmt.Sprint(r.Rank) == fmt.Sprint(rank) && !p.described[r.Process] {
			return true
		}
	}
	return false
}

func (p *part) instant(v *int64) *int64 {
	if v == nil {
		return nil
	}
	at := *v + p.shift
	return &at
}

func (p *part) intervals(list []report.Interval) []report.Interval {
	out := make([]report.Interval, len(list))
	for i, iv := range list {
		out[i] = report.Interval{iv[0] + p.shift, iv[1] + p.shift}
	}
	return out
}
