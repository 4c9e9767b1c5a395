package activity

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Touch is a growth of resident memory with the stacks of its thread that may have touched it.
type Touch struct {
	timeline.Growth
	// By are these stacks with what of the growth each is given, in all Bytes; one may be given nothing. Where several have
	// one line in common, that is certain. Empty where memory was given back.
	By []Part
	// For is the stack of the thread that waited for it, where none of these has a line of the user's own: that of a
	// library's threads is of the line that called the library. RootNode: no such thread.
	For timeline.NodeID
}

// Part is what of a growth a stack is given.
type Part struct {
	Node  timeline.NodeID
	Bytes int64
}

// same reports whether all the stacks that may have touched the memory agree.
func (t *Touch) same(alike func(a, b timeline.NodeID) bool) bool {
	return !slices.ContainsFunc(t.By, func(p Part) bool { return !alike(t.By[0].Node, p.Node) })
}

const (
	// edgeReadings is how many readings at the begin and at the end of a line's run say how it grows there.
	edgeReadings = 4
	// A line is known that ran for knownReadings whole readings at its edges, in knownRuns runs: in fewer it may have grown once, as its call
	// returned. It is quiet where it grew there by less than quietGrowth of what the growth in question would be in that time, and
	// than quietShare of what grew beside it: a reading is a moment later than the stack, and now and then much later.
	knownReadings = 10
	knownRuns     = 3
	quietGrowth   = 0.05
	quietShare    = 0.1
	// unseenRate is how fast a line is taken to grow that was never seen to, and sparedRate how much faster than it does
	// a known line may have.
	unseenRate = 0.1
	sparedRate = 2
	// maxBetween bounds the lines that are known to run between two others.
	maxBetween = 8
	// usualReading is the time between two readings of a process of which it is not known.
	usualReading = timeline.Nanos(1e6)
)

// Touches are the growths of a recording, each divided among the stacks that may have touched it: those at both ends of it.
// How lines grow in readings that are wholly in them decides between two lines:
//
//   - A line that is quiet, with many such readings and no growth, is not what grew at its edge.
//   - A thread that sleeps touches no memory. Of a loop that takes memory and then sleeps most readings find the thread asleep, before and
//     after: then what it ran nearest to it is asked, too, and the line that slept has nothing but where it was seen to grow, or the other is quiet.
//   - Where neither is it, a line that was seen to run between the two at other times, and to grow, has it.
//   - What is left is divided by how fast each line grows. Of one without a whole reading little is taken to be, but for what a known one cannot have.
//
// owner gives the process of a thread, own says which frames are the user's.
func Touches(rec *timeline.Recording, owner func(*timeline.Thread) int, own func(timeline.FrameID) bool) []Touch {
	e := evidenceOf(rec, owner, own)
	touches := make([]Touch, len(rec.Growth))
	for i, g := range rec.Growth {
		touches[i] = Touch{Growth: g}
		if g.Bytes > 0 {
			touches[i].By = e.divide(&g)
			touches[i].For = e.waiter(&touches[i])
		}
	}
	return touches
}

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

// waiter is the stack of the one thread that waited for others in a line of the user's own while memory grew in none, and no thread ran in one.
func (e *evidence) waiter(t *Touch) timeline.NodeID {
	if slices.ContainsFunc(t.By, func(p Part) bool { return e.line(t.Process, p.Node).own }) {
		return timeline.RootNode
	}
	found, middle := timeline.RootNode, (t.Start+t.End)/2
	for _, thread := range e.users[t.Process] {
		i := firstSpan(thread.Spans, middle+1)
		if i == len(thread.Spans) || thread.Spans[i].Start > middle || !e.line(t.Process, thread.Spans[i].Node).own {
			continue
		}
		switch span := &thread.Spans[i]; {
		case span.State == timeline.StateWaiting && span.Wait != timeline.WaitLock: // for what is no thread's
		case span.State == timeline.StateWaiting && found == timeline.RootNode:
			found = span.Node
		default:
			return timeline.RootNode
		}
	}
	return found
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

// candidate is a stack that may have touched a growth.
type candidate struct {
	node   timeline.NodeID
	line   lineOf
	asleep bool
	density
}

// known reports whether a line ran for so long that it can be judged by how it grew.
func (c *candidate) known(reading timeline.Nanos) bool {
	return c.runs >= knownRuns && c.ran >= knownReadings*reading
}

// divide gives a growth to the stacks that may have touched it.
func (e *evidence) divide(g *timeline.Growth) []Part {
	half := g.Bytes / 2
	ends := []Part{{g.Before, half}, {g.After, g.Bytes - half}}
	if g.Before == g.After {
		ends = []Part{{g.Before, g.Bytes}}
	}
	if g.Before == timeline.RootNode || g.After == timeline.RootNode {
		return ends
	}
	all := e.candidates(g)
	if len(all) == 1 || !all[0].asleep && !all[1].asleep && all[0].line == all[1].line {
		return ends
	}
	reading := e.reading(g.Process)
	rate := float64(g.Bytes) / float64(max(g.End-g.Start, 1))
	quiet := func(c candidate) bool {
		return c.known(reading) && c.bytes < quietGrowth*rate*float64(c.ran) && c.bytes <= quietShare*c.beside
	}
	idle := func(c candidate) bool { return c.asleep && c.bytes == 0 }
	left := slices.DeleteFunc(slices.Clone(all), quiet)
	awake := slices.DeleteFunc(slices.Clone(left), idle)
	switch {
	case len(awake) > 0:
	case len(e.amid(all)) > 0:
		awake = e.amid(all)
		left = append(awake, all...)
	case len(left) > 0:
		if awake = left; e.line(g.Process, g.Before) != e.line(g.Process, g.After) {
			left = all // a line that was never met may have run between
		}
	default:
		awake, left = all, all
	}
	// The rest have nothing, and are still in doubt.
	parts := byRate(awake, g, reading)
	for _, c := range left {
		if !slices.ContainsFunc(parts, func(p Part) bool { return p.Node == c.node }) {
			parts = append(parts, Part{Node: c.node})
		}
	}
	return parts
}

// byRate divides a growth by how fast lines grow, with edgeReadings at the growth's own rate added to what is known of each: at unseenRate of it for
// one that was never seen to grow. A line that is well known has at most sparedRate of what it grows by in that time, where another one is not.
func byRate(lines []candidate, g *timeline.Growth, reading timeline.Nanos) []Part {
	length := max(g.End-g.Start, 1)
	weigh := func(lines []candidate, bytes int64, parts map[timeline.NodeID]int64) {
		weights, sum := make([]float64, len(lines)), 0.0
		for i, c := range lines {
			added, rate := edgeReadings*reading, float64(g.Bytes)/float64(length)
			if c.bytes == 0 {
				rate *= unseenRate
			}
			weights[i] = (c.bytes + rate*float64(added)) / float64(c.time()+added)
			sum += weights[i]
		}
		rest := bytes
		for i, c := range lines {
			part := min(int64(float64(bytes)*(weights[i]/sum)), rest)
			if i == len(lines)-1 {
				part = rest
			}
			parts[c.node], rest = parts[c.node]+part, rest-part
		}
	}
	given := make(map[timeline.NodeID]int64)
	weigh(lines, g.Bytes, given)
	var open []candidate
	over := int64(0)
	for _, c := range lines {
		most := int64(math.MaxInt64)
		if c.known(reading) {
			most = int64(sparedRate * c.bytes / float64(c.time()) * float64(length))
		}
		if given[c.node] <= most {
			if c.line.own { // as the interpreter starts it is no faster than what the program does first
				open = append(open, c)
			}
			continue
		}
		over, given[c.node] = over+given[c.node]-most, most
	}
	if len(open) > 0 {
		weigh(open, over, given)
	} else {
		clear(given)
		weigh(lines, g.Bytes, given)
	}
	parts := make([]Part, 0, len(lines))
	for _, c := range lines {
		parts = append(parts, Part{c.node, given[c.node]})
	}
	return parts
}

// candidates are the stacks at both ends of a growth. Where the thread sleeps with one before and after, what it ran nearest to it is the
// other one.
func (e *evidence) candidates(g *timeline.Growth) []candidate {
	with := func(node timeline.NodeID, asleep bool, densities ...density) candidate {
		c := candidate{node: node, line: e.line(g.Process, node), asleep: asleep}
		for _, d := range densities {
			c.bytes, c.beside, c.grew, c.ran, c.runs = c.bytes+d.bytes, c.beside+d.beside, c.grew+d.grew, c.ran+d.ran, max(c.runs, d.runs)
		}
		return c
	}
	ofEdge := func(node timeline.NodeID, end bool) density { return e.at[edge{e.line(g.Process, node), end}] }
	anywhere := func(node timeline.NodeID, asleep bool) candidate {
		return with(node, asleep, ofEdge(node, false), ofEdge(node, true))
	}
	before := asleepAt(e.threads[stackOf{g.Process, g.Before}], g.Start, g.Before)
	afters := e.threads[stackOf{g.Process, g.After}]
	after := cmp.Or(asleepAt(afters, g.End, g.After), asleepAt(afters, g.End-1, g.After))
	switch thread := cmp.Or(before, after); {
	case thread == nil:
		return []candidate{with(g.Before, false, ofEdge(g.Before, true)), with(g.After, false, ofEdge(g.After, false))}
	case before != nil && after != nil, g.Before == g.After: // on its way to sleep, or from it
		ran, ok := e.nearest(g.Process, thread, (g.Start+g.End)/2, g.After)
		if !ok || ran == g.After {
			return []candidate{anywhere(g.After, true)}
		}
		return []candidate{anywhere(ran, false), anywhere(g.After, true)}
	case before != nil:
		return []candidate{anywhere(g.After, false), anywhere(g.Before, true)}
	}
	return []candidate{anywhere(g.Before, false), anywhere(g.After, true)}
}

// amid are the lines that were seen to run between two others, and to grow.
func (e *evidence) amid(ends []candidate) (out []candidate) {
	if len(ends) != 2 {
		return nil
	}
	a, b := ends[0].line, ends[1].line
	for _, key := range [][2]lineOf{{a, b}, {b, a}} {
		for _, line := range e.between[key] {
			if line == a || line == b || e.grown[line].Bytes == 0 || slices.ContainsFunc(out, func(c candidate) bool { return c.line == line }) {
				continue
			}
			out = append(out, candidate{node: e.grown[line].Node, line: line, density: e.at[edge{line, false}]})
		}
	}
	return out
}

// asleepAt is the thread that slept at a time with a stack; nil: none did.
func asleepAt(threads []*timeline.Thread, at timeline.Nanos, node timeline.NodeID) *timeline.Thread {
	for _, t := range threads {
		if i := firstSpan(t.Spans, at+1); i < len(t.Spans) && t.Spans[i].Start <= at && t.Spans[i].Node == node && t.Spans[i].Wait == timeline.WaitSleep {
			return t
		}
	}
	return nil
}

// firstSpan is the first of a thread's spans that has not ended before a time.
func firstSpan(spans []timeline.Span, at timeline.Nanos) int {
	i, _ := slices.BinarySearchFunc(spans, at, func(s timeline.Span, at timeline.Nanos) int { return cmp.Compare(s.End, at) })
	return i
}

// ran reports whether a thread ran in a span, or would have if it had not been held up.
func ran(s *timeline.Span) bool {
	switch s.State {
	case timeline.StatePython, timeline.StateNative, timeline.StateOff, timeline.StateGIL:
		return s.Node != timeline.RootNode
	}
	return false
}

// mostSpans is how far it is looked for what a thread ran, on either side. What it runs in some turns of a loop that sleeps is no further off than
// turnSpans: a turn in which it was not met has two, and what ran before the loop has nothing of it.
const (
	mostSpans = 1000
	turnSpans = 16
)

// nearest is the stack that a thread ran nearest to a time. With the one that it sleeps with it also runs, on its way to sleep and
// from it: that is it only where it ran so for longer than with the other one that is nearest.
func (e *evidence) nearest(process int, t *timeline.Thread, at timeline.Nanos, slept timeline.NodeID) (timeline.NodeID, bool) {
	fits := func(node timeline.NodeID) bool { // what runs in turn with a line of the user's is called by the user's code, too
		return node == slept || e.line(process, node).own || !e.line(process, slept).own
	}
	with, ok := nearestOf(t, at, mostSpans, fits)
	if !ok || with != slept {
		return with, ok
	}
	other, ok := nearestOf(t, at, turnSpans, func(node timeline.NodeID) bool { return node != slept && fits(node) })
	if ok && e.timesOf(t)[other] > e.timesOf(t)[slept] {
		return other, true
	}
	return slept, true
}

// timesOf is for how long a thread ran with each stack.
func (e *evidence) timesOf(t *timeline.Thread) map[timeline.NodeID]timeline.Nanos {
	times := e.times[t]
	if times == nil {
		times = make(map[timeline.NodeID]timeline.Nanos)
		for i := range t.Spans {
			if span := &t.Spans[i]; ran(span) {
				times[span.Node] += span.End - span.Start
			}
		}
		e.times[t] = times
	}
	return times
}

// nearestOf is the stack of those that fit that a thread ran nearest to a time, at most so many spans before it or after it.
func nearestOf(t *timeline.Thread, at timeline.Nanos, most int, fits func(timeline.NodeID) bool) (timeline.NodeID, bool) {
	runs := func(i int) bool { return ran(&t.Spans[i]) && fits(t.Spans[i].Node) }
	middle := firstSpan(t.Spans, at+1)
	first, end := max(middle-most, 0), min(middle+most, len(t.Spans))
	before, after := middle-1, middle
	for before >= first && !runs(before) {
		before--
	}
	for after < end && !runs(after) {
		after++
	}
	switch {
	case before < first && after >= end:
		return timeline.RootNode, false
	case before < first:
		return t.Spans[after].Node, true
	case after < end && t.Spans[after].Start-at < at-t.Spans[before].End:
		return t.Spans[after].Node, true
	}
	return t.Spans[before].Node, true
}
