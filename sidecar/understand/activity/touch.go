package activity

import (
	"cmp"
	"maps"
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
	unseen := make(map[int]timeline.NodeID)
	for process := range e.users {
		maps.Copy(unseen, e.unseen(process))
	}
	touches := make([]Touch, len(rec.Growth))
	for i, g := range rec.Growth {
		touches[i] = Touch{Growth: g}
		if g.Bytes > 0 {
			touches[i].By = e.divide(&g)
			if node, ok := unseen[i]; ok && !e.sleeps(&g) {
				touches[i].By = []Part{{node, g.Bytes}, {g.Before, 0}, {g.After, 0}}
			}
			touches[i].For = e.waiter(&touches[i])
		}
	}
	return touches
}

// sleeps reports whether a growth's thread slept at an end of it.
func (e *evidence) sleeps(g *timeline.Growth) bool {
	return slices.ContainsFunc(e.candidates(g), func(c candidate) bool { return c.asleep })
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
