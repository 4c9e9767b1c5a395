package activity

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// HasChildren reports whether child processes lived in a good part of the intervals.
func (c *Bystanders) HasChildren(where []timeline.Interval) bool {
	return slices.ContainsFunc(c.children, func(p child) bool { return c.lived(p, where) > 0 })
}

func (c *Bystanders) lived(p child, where []timeline.Interval) timeline.Nanos {
	end, sum := p.End, timeline.Nanos(0)
	if end == 0 {
		end = c.s.Rec.Duration
	}
	timeline.Overlap(where, p.Start, end, func(_ int, part timeline.Nanos) { sum += part })
	return sum
}

// minActor is the share of the CPU time of the busiest from which on others are named
// beside it: what ranks start at their beginning is nothing that anybody waits for. Without CPU time a process
// is named that was waited for, alone, for minAlone of the time: one that slept.
const (
	minActor = 0.02
	minAlone = 0.1
)

// ProcessesDuring are the child processes that lived in some intervals, those that
// ran the same command together, the busiest first.
func (c *Bystanders) ProcessesDuring(where []timeline.Interval) []Actor {
	type group struct {
		command string
		role    timeline.Role // of workers
	}
	groups := make(map[group]*Actor)
	lived, lives, spans := make(map[group]timeline.Nanos), make(map[group]timeline.Nanos), make(map[group][]timeline.Interval)
	idle := c.idleBeside(where)
	for _, p := range c.children {
		if c.lived(p, where) == 0 || c.isHelper(p) || p.Command == "" || slices.Contains(idle, p.index) {
			continue
		}
		kind := group{command: p.Command}
		if p.IsWorker() {
			kind = group{role: p.Role}
		}
		a := groups[kind]
		if a == nil {
			a = &Actor{Process: true, Name: kind.command, Cause: Unknown, Start: p.Start, Exit: p.Exit}
			groups[kind] = a
		}
		a.Count++
		lived[kind] += c.lived(p, where)
		end := cmp.Or(p.End, c.s.Rec.Duration)
		lives[kind] += end - p.Start
		spans[kind] = append(spans[kind], timeline.Between(p.Start, end))
		a.Start = min(a.Start, p.Start)
		a.End = max(a.End, p.End)
		a.CPU += max(p.CPU, 0)
	}
	var list []Actor
	busiest := timeline.Nanos(0)
	for kind, a := range groups {
		if float64(lived[kind]) < minActive*float64(timeline.Total(where)) {
			delete(groups, kind) // it did the others a small service
			continue
		}
		busiest = max(busiest, a.CPU)
	}
	works := func(a *Actor) bool { return float64(a.CPU) >= minActor*float64(busiest) }
	var working []timeline.Interval
	for kind, a := range groups {
		if works(a) {
			working = append(working, spans[kind]...)
		}
	}
	working = timeline.Joined(working)
	for kind, a := range groups {
		alone := timeline.Common(timeline.Without(timeline.Joined(spans[kind]), working), where)
		if !works(a) && float64(timeline.Total(alone)) < minAlone*float64(timeline.Total(where)) {
			continue
		}
		a.AtLeast = a.Count >= manyChildren && lives[kind] < shortLife*timeline.Nanos(a.Count)
		if kind.role != "" {
			a.Work, a.Place = c.workOf(kind.role, where)
			a.Count = c.atOnce(kind.role, a.Count)
		} else {
			a.Work, a.Place = c.workOfRuns(kind.command, where)
		}
		list = append(list, *a)
	}
	slices.SortFunc(list, byWork)
	if c.Covered(where) < 0.5 { // most of them were too short to be seen: nobody knows how many there were
		list = slices.DeleteFunc(list, func(a Actor) bool { return !a.AtLeast })
	}
	return list
}

// Of processes that run the same command, so many and so short as a rule that others were
// started and ended between two looks (proctree looks for new ones every 20 ms).
const (
	manyChildren = 4
	shortLife    = timeline.Nanos(100e6)
)

// HaveEnded reports whether the processes that the program has started were over by then.
func (c *Bystanders) HaveEnded(by timeline.Nanos) bool {
	return !slices.ContainsFunc(c.children, func(p child) bool { return p.End == 0 || p.End > by })
}

// Covered is the share of some intervals in which a child process was seen.
func (c *Bystanders) Covered(where []timeline.Interval) float64 {
	var lives []timeline.Interval
	for _, p := range c.children {
		if end := cmp.Or(p.End, c.s.Rec.Duration); end > p.Start && !c.isHelper(p) {
			lives = append(lives, timeline.Between(p.Start, end))
		}
	}
	sum := timeline.Nanos(0)
	for _, life := range timeline.Joined(lives) {
		timeline.Overlap(where, life.Start, life.End, func(_ int, part timeline.Nanos) { sum += part })
	}
	return float64(sum) / math.Max(float64(timeline.Total(where)), 1)
}

// isHelper reports whether nobody waits for a process: shells whose work others do, and
// multiprocessing's helper, which only cleans up.
func (c *Bystanders) isHelper(p child) bool {
	if p.Command == "resource_tracker" {
		return true
	}
	return isShell(p) && slices.ContainsFunc(c.children, func(other child) bool { return !isShell(other) })
}

func isShell(p child) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh"}, p.Command)
}
