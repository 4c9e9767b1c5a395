package report

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
	"github.com/omni-perf/omni-perf/sidecar/wording"
)

// function identifies a function across its lines.
type function struct {
	name, file string
	firstLine  int
}

type selfTotal struct{ self, total timeline.Nanos }

// nodeTimes sums each stack's time over the threads: of the thread that runs
// the cell all of it, of other threads what was not spent waiting, since a
// parked pool of workers would else outweigh the work, of the notebook's own
// nothing.
func nodeTimes(t *tree) map[timeline.NodeID]timeline.Nanos {
	times := make(map[timeline.NodeID]timeline.Nanos)
	for _, th := range t.rec.Threads {
		if th.Internal || th.Process > 0 { // other processes are told apart
			continue
		}
		all := th.RunsCell || th.Main
		for _, s := range th.Spans {
			if all || (s.State != timeline.StateWaiting && s.State != timeline.StateOff) {
				times[s.Node] += s.End - s.Start
			}
		}
	}
	return times
}

// functions is the table of self and total times, longest self time first, at
// most limit of them.
func functions(t *tree, times map[timeline.NodeID]timeline.Nanos, limit int) []Function {
	sums := make(map[function]*selfTotal)
	frameOf := make(map[function]timeline.FrameID)
	for node, d := range times {
		path := t.path(node)
		for i, id := range path {
			f := t.rec.Frames[id]
			key := function{f.Function, f.File, f.FirstLine}
			s := sums[key]
			if s == nil {
				s = &selfTotal{}
				sums[key], frameOf[key] = s, id
			}
			if i == len(path)-1 {
				s.self += d
			}
			if !calledAbove(t.rec, path[:i], key) {
				s.total += d
			}
		}
	}
	out := make([]Function, 0, len(sums))
	for key, s := range sums {
		id := frameOf[key]
		out = append(out, Function{
			Function: t.names.function(t.rec.Frames[id]), File: t.names.file(key.file), Line: key.firstLine,
			Kind: t.kinds[id], SelfS: s.self.Seconds(), TotalS: s.total.Seconds(),
		})
	}
	slices.SortFunc(out, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.SelfS, a.SelfS), cmp.Compare(b.TotalS, a.TotalS),
			cmp.Compare(a.File, b.File), cmp.Compare(a.Function, b.Function), cmp.Compare(a.Line, b.Line))
	})
	return out[:min(len(out), limit)]
}

// calledAbove tells recursion: the function stands further out on the stack.
func calledAbove(rec *timeline.Recording, outer []timeline.FrameID, key function) bool {
	for _, id := range outer {
		f := rec.Frames[id]
		if f.FirstLine == key.firstLine && f.Function == key.name && f.File == key.file {
			return true
		}
	}
	return false
}

// place is a line of a file that the user wrote: a notebook cell, the script or
// a module of theirs.
type place struct {
	file string
	line int
}

// userLine is the innermost line of the user's own code on a stack.
func (t *tree) userLine(n timeline.NodeID) (place, bool) {
	path := t.path(n)
	for i := len(path) - 1; i >= 0; i-- {
		if f := t.rec.Frames[path[i]]; t.own(path[i]) && f.Line > 0 {
			return place{f.File, f.Line}, true
		}
	}
	return place{}, false
}

// own tells the frames of code that the user wrote.
func (t *tree) own(id timeline.FrameID) bool {
	return t.kinds[id] == KindCell || t.kinds[id] == KindUser
}

// cellLines is the table of lines of the user's own code, by self time. A line's self time is the time for which it is the innermost such
// line; its total time also has the lines it called.
func cellLines(t *tree, text func(file string, line int) string, idle map[place]float64) []CellLine {
	sums := make(map[place]*selfTotal)
	get := func(p place) *selfTotal {
		if sums[p] == nil {
			sums[p] = &selfTotal{}
		}
		return sums[p]
	}
	for node, d := range cellThreadTimes(t.rec) {
		if p, ok := t.userLine(node); ok {
			get(p).self += d
		}
		var seen []place
		for _, id := range t.path(node) {
			f := t.rec.Frames[id]
			p := place{f.File, f.Line}
			if t.own(id) && f.Line > 0 && !slices.Contains(seen, p) {
				seen = append(seen, p)
				get(p).total += d
			}
		}
	}
	for p := range idle {
		if _, ok := t.names.cells[p.file]; ok || sums[p] != nil {
			get(p)
		}
	}
	out := make([]CellLine, 0, len(sums))
	for p, s := range sums {
		out = append(out, CellLine{
			File: t.names.file(p.file), Line: p.line, Text: text(p.file, p.line),
			SelfS: s.self.Seconds(), TotalS: s.total.Seconds(), IdleS: idle[p],
		})
	}
	slices.SortFunc(out, func(a, b CellLine) int {
		return cmp.Or(cmp.Compare(b.SelfS, a.SelfS), cmp.Compare(b.TotalS, a.TotalS),
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return out
}

// aroundTimes is the time of the notebook's phases without the user's own lines.
func aroundTimes(t *tree) []Around {
	sums := make(map[timeline.Phase]timeline.Nanos)
	for node, d := range cellThreadTimes(t.rec) {
		if _, ok := t.userLine(node); ok {
			continue
		}
		for _, id := range t.path(node) {
			if phase := t.rec.Frames[id].Phase; phase != timeline.PhaseNone {
				sums[phase] += d
				break
			}
		}
	}
	out := make([]Around, 0, len(sums))
	for phase, d := range sums {
		out = append(out, Around{Phase: phase.String(), Name: wording.Phase(phase), Seconds: d.Seconds()})
	}
	slices.SortFunc(out, func(a, b Around) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Phase, b.Phase))
	})
	return out
}

// cellThreadTimes sums each stack's time on the threads that run the cell.
func cellThreadTimes(rec *timeline.Recording) map[timeline.NodeID]timeline.Nanos {
	times := make(map[timeline.NodeID]timeline.Nanos)
	for _, t := range cellThreads(rec) {
		for _, s := range t.Spans {
			times[s.Node] += s.End - s.Start
		}
	}
	return times
}

// cellThreads are the threads that run the cell; where none is known, the main
// ones.
func cellThreads(rec *timeline.Recording) []timeline.Thread {
	var runs, main []timeline.Thread
	for _, t := range rec.Threads {
		if t.RunsCell {
			runs = append(runs, t)
		} else if t.Main && (rec.Target.PID == 0 || t.PID == rec.Target.PID) {
			main = append(main, t)
		}
	}
	if len(runs) > 0 {
		return runs
	}
	return main
}

// lineSpans is the lane of the user's own lines: of the one cell, or the script,
// that holds most of the time; where there is neither, of a module.
func lineSpans(t *tree) (file string, spans []LineSpan) {
	threads := cellThreads(t.rec)
	if len(threads) == 0 {
		return "", []LineSpan{}
	}
	var typed, modules = make(map[string]timeline.Nanos), make(map[string]timeline.Nanos)
	for _, s := range threads[0].Spans {
		path := t.path(s.Node)
		for i := len(path) - 1; i >= 0; i-- {
			if kind := t.kinds[path[i]]; kind == KindCell {
				typed[t.rec.Frames[path[i]].File] += s.End - s.Start
				break
			} else if kind == KindUser {
				modules[t.rec.Frames[path[i]].File] += s.End - s.Start
			}
		}
	}
	if len(typed) == 0 {
		typed = modules
	}
	for f, d := range typed {
		if file == "" || d > typed[file] || (d == typed[file] && f < file) {
			file = f
		}
	}
	spans = []LineSpan{}
	for _, s := range threads[0].Spans {
		line := t.lineIn(s.Node, file)
		start, end := s.Start.Seconds(), s.End.Seconds()
		if n := len(spans); n > 0 && spans[n-1].Line == line && spans[n-1].EndS == start {
			spans[n-1].EndS = end
			continue
		}
		spans = append(spans, LineSpan{StartS: start, EndS: end, Line: line})
	}
	return file, spans
}

// lineIn is the innermost line of one file on a stack, 0 if it is not on it.
func (t *tree) lineIn(n timeline.NodeID, file string) int {
	path := t.path(n)
	for i := len(path) - 1; i >= 0; i-- {
		if f := t.rec.Frames[path[i]]; f.File == file {
			return f.Line
		}
	}
	return 0
}
