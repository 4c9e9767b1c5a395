package activity

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	// edgeReadings is how many readings at the begin and at the end of a line's run say how it grows there.
	edgeReadings = 4
	// maxBetween bounds the lines that are known to run between two others.
	maxBetween = 8
	// usualReading is the time between two readings of a process of which it is not known.
	usualReading = timeline.Nanos(1e6)
)

// stackOf is a stack in a process.
type stackOf struct {
	process int
	node    timeline.NodeID
}

// lineOf is the innermost line of the user's own in a process; without one, none of them.
type lineOf struct {
	process int
	own     bool
	place   Place
}

// lineRun is a time in which a thread was in one line, awake or asleep.
type lineRun struct {
	timeline.Interval
	line   lineOf
	asleep bool
}

// edge is the begin or the end of a line's runs.
type edge struct {
	line lineOf
	end  bool
}

// density is how a line grew in its whole readings at an edge.
type density struct {
	bytes  float64
	beside float64        // bytes in readings from it to another line, or from that to it
	grew   timeline.Nanos // for how long
	ran    timeline.Nanos // for at least how long it was in whole readings, in so many runs
	runs   int
}

func (d density) time() timeline.Nanos { return max(d.ran, d.grew) }

// evidence is what a recording shows of how lines grow.
type evidence struct {
	rec     *timeline.Recording
	own     func(timeline.FrameID) bool
	lines   map[stackOf]lineOf
	threads map[stackOf][]*timeline.Thread // of the stacks at the ends of growths, those that had them
	runs    map[*timeline.Thread][]lineRun
	users   map[int][]*timeline.Thread // of a process, those that ran lines of the user's own
	times   map[*timeline.Thread]map[timeline.NodeID]timeline.Nanos
	at      map[edge]density
	grown   map[lineOf]Part // the stack with which a line grew most in one growth
	between map[[2]lineOf][]lineOf
}

func evidenceOf(rec *timeline.Recording, owner func(*timeline.Thread) int, own func(timeline.FrameID) bool) *evidence {
	e := &evidence{
		rec: rec, own: own, lines: make(map[stackOf]lineOf), threads: make(map[stackOf][]*timeline.Thread), runs: make(map[*timeline.Thread][]lineRun),
		users: make(map[int][]*timeline.Thread), times: make(map[*timeline.Thread]map[timeline.NodeID]timeline.Nanos),
		at: make(map[edge]density), grown: make(map[lineOf]Part), between: make(map[[2]lineOf][]lineOf),
	}
	processes := make(map[int]bool)
	for i := range rec.Growth {
		if g := &rec.Growth[i]; g.Bytes > 0 {
			processes[g.Process] = true
			e.threads[stackOf{g.Process, g.Before}], e.threads[stackOf{g.Process, g.After}] = nil, nil
		}
	}
	for i := range rec.Threads {
		if t := &rec.Threads[i]; processes[owner(t)] {
			e.follow(t, owner(t))
		}
	}
	for i := range rec.Growth {
		e.learn(&rec.Growth[i])
	}
	return e
}

// line is the user's line of a stack.
func (e *evidence) line(process int, node timeline.NodeID) lineOf {
	key := stackOf{process, node}
	l, ok := e.lines[key]
	if !ok {
		l.process = process
		if frame, known := InnermostOwn(e.rec, node, e.own); known {
			l.own, l.place = true, placeOf(e.rec, frame)
		}
		e.lines[key] = l
	}
	return l
}

// follow finds in which lines a thread ran, for how long at the edges of each, and what ran between two others.
func (e *evidence) follow(t *timeline.Thread, process int) {
	var runs []lineRun
	for i := range t.Spans {
		span := &t.Spans[i]
		if span.Node == timeline.RootNode {
			continue
		}
		key := stackOf{process, span.Node}
		if threads, asked := e.threads[key]; asked && !slices.Contains(threads, t) {
			e.threads[key] = append(threads, t)
		}
		next := lineRun{timeline.Between(span.Start, span.End), e.line(process, span.Node), span.Wait == timeline.WaitSleep}
		if n := len(runs); n > 0 && runs[n-1].line == next.line && runs[n-1].asleep == next.asleep && runs[n-1].End == next.Start {
			runs[n-1].End = next.End
		} else {
			runs = append(runs, next)
		}
	}
	e.runs[t] = runs
	if slices.ContainsFunc(runs, func(r lineRun) bool { return r.line.own }) {
		e.users[process] = append(e.users[process], t)
	}
	reading := e.reading(process)
	for i := range runs {
		r := &runs[i]
		if r.asleep {
			continue
		}
		// At its End it was seen in another line, and two readings are up to twice as far apart as they are on average.
		if whole := r.End - r.Start - 2*reading; whole > 0 {
			for _, end := range []bool{false, true} {
				d := e.at[edge{r.line, end}]
				d.ran, d.runs = d.ran+min(whole, edgeReadings*reading), d.runs+1
				e.at[edge{r.line, end}] = d
			}
		}
		if i > 0 && i+1 < len(runs) {
			key := [2]lineOf{runs[i-1].line, runs[i+1].line}
			if known := e.between[key]; len(known) < maxBetween && !slices.Contains(known, r.line) {
				e.between[key] = append(known, r.line)
			}
		}
	}
}

// reading is the time between two readings of a process's memory.
func (e *evidence) reading(process int) timeline.Nanos {
	if process < len(e.rec.Processes) {
		if interval := e.rec.Processes[process].Memory.Growth.Interval; interval > 0 {
			return interval
		}
	}
	return usualReading
}

// learn counts a growth that was wholly in one line, awake, or between two.
func (e *evidence) learn(g *timeline.Growth) {
	line := e.line(g.Process, g.After)
	if g.End-g.Start > edgeReadings*e.reading(g.Process)*timeline.Nanos(max(g.Ticks, 1)) {
		return // who knows what ran between two readings that far apart
	}
	if g.Bytes <= 0 || g.After == timeline.RootNode || g.Before == timeline.RootNode {
		return
	}
	if other := e.line(g.Process, g.Before); other != line {
		for _, at := range []edge{{other, true}, {line, false}} {
			d := e.at[at]
			d.beside += float64(g.Bytes)
			e.at[at] = d
		}
		return
	}
	near := edgeReadings * e.reading(g.Process)
	for _, t := range e.threads[stackOf{g.Process, g.After}] {
		i := runAt(e.runs[t], g.Start)
		if i < 0 || e.runs[t][i].line != line || e.runs[t][i].asleep || g.End > e.runs[t][i].End {
			continue
		}
		run := e.runs[t][i]
		for end, window := range map[bool]timeline.Interval{
			false: timeline.Between(run.Start, run.Start+near), true: timeline.Between(run.End-e.reading(g.Process)-near, run.End),
		} {
			d := e.at[edge{line, end}]
			within := max(min(window.End, g.End)-max(window.Start, g.Start), 0)
			d.grew += within
			d.bytes += float64(g.Bytes) * (float64(within) / float64(g.End-g.Start))
			e.at[edge{line, end}] = d
		}
		if g.Bytes > e.grown[line].Bytes {
			e.grown[line] = Part{g.After, g.Bytes}
		}
		return
	}
}

// runAt is the run that a time is in; -1: none.
func runAt(runs []lineRun, at timeline.Nanos) int {
	i, _ := slices.BinarySearchFunc(runs, at+1, func(r lineRun, at timeline.Nanos) int { return cmp.Compare(r.End, at) })
	if i < len(runs) && runs[i].Start <= at {
		return i
	}
	return -1
}
