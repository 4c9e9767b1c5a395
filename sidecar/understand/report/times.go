package report

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
)

// spent is time by state.
type spent struct {
	all, incomplete int64
	state           [NumStates]int64
}

func (s *spent) add(span timeline.Span) {
	d := int64(span.End - span.Start)
	s.all += d
	s.state[stateOf(span.State)] += d
	if span.Truncated {
		s.incomplete += d
	}
}

func (s *spent) plus(o spent) {
	s.all += o.all
	s.incomplete += o.incomplete
	for i, d := range o.state {
		s.state[i] += d
	}
}

// stackTimes are times by process and stack.
type stackTimes map[stackKey]*spent

type stackKey struct {
	process int
	node    timeline.NodeID
}

func (t stackTimes) add(process int, span timeline.Span) {
	key := stackKey{process, span.Node}
	if t[key] == nil {
		t[key] = &spent{}
	}
	t[key].add(span)
}

// workTimes sums each stack's time over the threads of each process: of the thread that
// runs the cell, and the target's main thread, all of it, of other threads what was not
// spent waiting, since a parked pool of workers would else outweigh the work, of the
// notebook's own nothing.
func (b *builder) workTimes() stackTimes {
	times := make(stackTimes)
	for i, th := range b.rec.Threads {
		if th.Internal {
			continue
		}
		process := b.owner(th.Process, th.PID)
		all := slices.Contains(b.about.Runs, i) || th.Main && process == b.program
		for _, s := range th.Spans {
			if all || !stateOf(s.State).Idle() {
				times.add(process, s)
			}
		}
	}
	return times
}

type selfTotal struct {
	self  spent
	total int64
	gc    int64 // of self, of a line
}

// maxFunctions bounds the function table; what is further down cost nothing. Of the
// user's own as many again are kept.
const maxFunctions = 500

// functionTimes is the table of self and total times, longest self time first.
func (b *builder) functionTimes() []FunctionTime {
	type key struct{ process, function int }
	sums := make(map[key]*selfTotal)
	var seen []int
	for at, d := range b.workTimes() {
		path := b.tree.path(at.node)
		seen = seen[:0]
		for i, id := range path {
			k := key{at.process, b.codes.functionOf(id)}
			s := sums[k]
			if s == nil {
				s = &selfTotal{}
				sums[k] = s
			}
			if i == len(path)-1 {
				s.self.plus(*d)
			}
			if !slices.Contains(seen, k.function) { // recursion counts once
				seen = append(seen, k.function)
				s.total += d.all
			}
		}
	}
	out := make([]FunctionTime, 0, len(sums))
	for k, s := range sums {
		out = append(out, FunctionTime{
			Function: k.function, Process: k.process, SelfNS: s.self.all, TotalNS: s.total,
			IncompleteNS: s.self.incomplete, StateNS: s.self.state[:],
		})
	}
	functions := b.codes.functions
	slices.SortFunc(out, func(x, y FunctionTime) int {
		f, g := functions[x.Function], functions[y.Function]
		return cmp.Or(cmp.Compare(y.SelfNS, x.SelfNS), cmp.Compare(y.TotalNS, x.TotalNS),
			cmp.Compare(b.codes.files[f.File].Name, b.codes.files[g.File].Name), cmp.Compare(f.Name, g.Name),
			cmp.Compare(f.FirstLine, g.FirstLine), cmp.Compare(x.Process, y.Process), cmp.Compare(x.Function, y.Function))
	})
	kept := out[:min(len(out), maxFunctions)]
	for _, f := range out[len(kept):] {
		if functions[f.Function].Code.Own() && len(kept) < 2*maxFunctions {
			kept = append(kept, f)
		}
	}
	return kept
}

// userLine is the innermost line of the user's own code on a stack.
func (b *builder) userLine(n timeline.NodeID) (place, bool) {
	path := b.tree.path(n)
	for i := len(path) - 1; i >= 0; i-- {
		if f := b.rec.Frames[path[i]]; f.Line > 0 && b.codes.own(path[i]) {
			return place{File: f.File, Line: f.Line}, true
		}
	}
	return place{}, false
}

// worthFreeing is the share of a line's own time from which on it is mentioned that it was the freeing of locals.
const worthFreeing = 0.05

// lineKey is a line as one process runs it.
type lineKey struct {
	place
	process int
}

// lineTimes fills Lines, Phases and the target's times. idle is what of the GPUs'
// idle time is charged to each line.
func (b *builder) lineTimes(idle map[place]int64) {
	sums := make(map[lineKey]*selfTotal)
	get := func(p place, process int) *selfTotal {
		k := lineKey{p, process}
		if sums[k] == nil {
			sums[k] = &selfTotal{}
		}
		return sums[k]
	}
	target, program := &b.doc.Targets[0], b.program
	phases := make(map[timeline.Phase]int64)
	var seen []place
	for at, d := range b.lineThreadTimes() {
		ours := at.process == program
		if ours {
			target.ThreadNS += d.all
		}
		if p, ok := b.userLine(at.node); ok {
			sum := get(p, at.process)
			if sum.self.plus(*d); at.node != timeline.RootNode && b.rec.Frames[b.rec.Nodes[at.node].Frame] == timeline.GarbageCollection {
				sum.gc += d.all
			}
		} else if ours {
			target.NoLineNS += d.all
			if phase := b.phaseOf(at.node); phase != timeline.PhaseNone {
				phases[phase] += d.all
			}
		}
		seen = seen[:0]
		for _, id := range b.tree.path(at.node) {
			f := b.rec.Frames[id]
			p := place{File: f.File, Line: f.Line}
			if f.Line > 0 && b.codes.own(id) && !slices.Contains(seen, p) {
				seen = append(seen, p)
				get(p, at.process).total += d.all
			}
		}
	}
	for p := range idle {
		if _, cell := b.names.cells[p.File]; cell {
			get(p, program)
		}
	}
	freed := b.freedByLine()
	for k, s := range sums {
		line := Line{
			File: b.codes.file(k.File), Line: k.Line, Process: k.process,
			SelfNS: s.self.all, TotalNS: s.total, StateNS: s.self.state[:],
			IncompleteNS: s.self.incomplete, GCNS: s.gc,
		}
		if k.process == program {
			line.IdleNS = idle[k.place]
		}
		if f, known := freed[k]; known && int64(f.Time) <= line.SelfNS && float64(f.Time) >= worthFreeing*float64(line.SelfNS) {
			function := b.codes.functionOf(f.Function)
			line.FreeingNS, line.FreeingFunction = int64(f.Time), &function
		}
		b.doc.Lines = append(b.doc.Lines, line)
		b.wanted[k.place] = true
	}
	slices.SortFunc(b.doc.Lines, func(x, y Line) int {
		return cmp.Or(cmp.Compare(y.SelfNS, x.SelfNS), cmp.Compare(y.TotalNS, x.TotalNS),
			cmp.Compare(b.codes.files[x.File].Name, b.codes.files[y.File].Name), cmp.Compare(x.Line, y.Line),
			cmp.Compare(b.codes.raw[x.File], b.codes.raw[y.File]), cmp.Compare(x.Process, y.Process))
	})
	b.phaseTimes(phases)
}

// phaseTimes fills Phases.
func (b *builder) phaseTimes(phases map[timeline.Phase]int64) {
	process := b.doc.Targets[0].Process
	for phase, d := range phases {
		b.doc.Phases = append(b.doc.Phases, Phase{ID: phase.String(), Process: process, SelfNS: d, Text: wording.Phase(phase)})
	}
	slices.SortFunc(b.doc.Phases, func(x, y Phase) int {
		return cmp.Or(cmp.Compare(y.SelfNS, x.SelfNS), cmp.Compare(x.ID, y.ID))
	})
}

// freedByLine is what took longest to be freed at each line.
func (b *builder) freedByLine() map[lineKey]activity.Freed {
	freed := make(map[lineKey]activity.Freed)
	for _, f := range activity.Freeing(b.rec, b.ownerOf, b.codes.own) {
		k := lineKey{place{File: f.Place.File, Line: f.Place.Line}, f.Process}
		if _, known := freed[k]; !known { // the longest comes first
			freed[k] = f
		}
	}
	return freed
}

func (b *builder) phaseOf(n timeline.NodeID) timeline.Phase {
	for _, id := range b.tree.path(n) {
		if phase := b.rec.Frames[id].Phase; phase != timeline.PhaseNone {
			return phase
		}
	}
	return timeline.PhaseNone
}

// lineThreadTimes sums each stack's time on the threads that run the program's code. Of other
// processes it is all of the time of the threads that work there, and workTimes' of the others.
func (b *builder) lineThreadTimes() stackTimes {
	times := make(stackTimes)
	for _, i := range b.about.Runs {
		for _, s := range b.rec.Threads[i].Spans {
			times.add(b.program, s)
		}
	}
	atWork := interpret.AtWork(b.rec)
	for i, t := range b.rec.Threads {
		process := b.owner(t.Process, t.PID)
		if t.Internal || process == b.program {
			continue
		}
		for _, s := range t.Spans {
			if atWork[i] || !stateOf(s.State).Idle() {
				times.add(process, s)
			}
		}
	}
	return times
}
