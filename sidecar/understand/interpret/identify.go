package interpret

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// loopOf is the role of a worker that runs in a function from its start to its end.
func loopOf(means origin.Meanings) (timeline.Role, bool) {
	switch {
	case means&origin.LoaderLoop != 0:
		return timeline.RoleLoaderWorker, true
	case means&origin.PoolLoop != 0:
		return timeline.RolePoolWorker, true
	}
	return "", false
}

// Identify assigns the roles that only stacks show, numbers workers as their owner counts
// them, marks blocking reads of pipes as waiting, and sets RunsCell on the main thread of the
// program where the target only starts it. It returns a recording that shares with rec what
// it does not change.
//
// A pool that replaces a worker, or a loader that starts anew each epoch, gives the same
// numbers again: the least one that no living worker of the same owner has. A process that belongs to neither has
// a number of its own.
func Identify(rec *timeline.Recording) *timeline.Recording {
	rec = withOwnStacks(rec)
	out := *rec
	out.Processes = slices.Clone(rec.Processes)
	r := newReader(&out)
	runs, launches := r.loops()
	r.poolsOrLoaders(runs)
	beforeExec := isBeforeExec(rec, launches)
	for i := range out.Processes {
		if p := &out.Processes[i]; i > 0 && p.Role == timeline.RoleWorker && beforeExec(i) {
			p.Role, p.Command, p.Number = timeline.RoleChild, "", nil // the program it became was not seen
		}
	}
	r.ranksByCollectives()
	number(&out)
	out.Threads = slices.Clone(rec.Threads)
	for i := range out.Threads {
		out.Threads[i].Spans = r.pipeReadsAsWaits(out.Threads[i].Spans)
	}
	if program := r.program(); program > 0 {
		for i := range out.Threads {
			t := &out.Threads[i]
			t.RunsCell = t.Main && t.Process == program
		}
	}
	return &out
}

// loops are, by node, the role of the loop that is on a stack, and whether a function that
// starts processes is.
func (r *reader) loops() (runs []timeline.Role, launches []bool) {
	rec := r.rec
	runs, launches = make([]timeline.Role, len(rec.Nodes)), make([]bool, len(rec.Nodes))
	for i := 1; i < len(rec.Nodes); i++ {
		n := rec.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(rec.Frames) { // a damaged file
			continue
		}
		runs[i] = runs[n.Parent]
		means := r.means[n.Frame]
		launches[i] = launches[n.Parent] || means&origin.Spawns != 0
		if role, ok := loopOf(means); ok { // the innermost: a fork has its owner's stack below
			runs[i] = role
		}
	}
	return runs, launches
}

// poolsOrLoaders gives workers the role of the loop that their main thread was in the longest.
func (r *reader) poolsOrLoaders(runs []timeline.Role) {
	for _, t := range r.rec.Threads {
		if !t.Main || t.Process <= 0 || t.Process >= len(r.rec.Processes) || r.rec.Processes[t.Process].Role != timeline.RoleWorker {
			continue
		}
		times := make(map[timeline.Role]timeline.Nanos)
		for _, s := range t.Spans {
			if int(s.Node) < len(runs) {
				times[runs[s.Node]] += s.End - s.Start
			}
		}
		switch p := &r.rec.Processes[t.Process]; {
		case times[timeline.RoleLoaderWorker] > times[timeline.RolePoolWorker]:
			p.Role = timeline.RoleLoaderWorker
		case times[timeline.RolePoolWorker] > 0:
			p.Role = timeline.RolePoolWorker
		}
	}
}

func number(rec *timeline.Recording) {
	type family struct {
		role  timeline.Role
		owner int
	}
	taken := make(map[family]map[int]timeline.Nanos) // number → end of who has it; 0: it lives
	order := make([]int, len(rec.Processes))
	for i := range order {
		order[i] = i
		if p := &rec.Processes[i]; p.Number != nil { // a library's, which nobody else's may seem to be
			f := family{p.Role, ownerOf(rec.Processes, i)}
			if taken[f] == nil {
				taken[f] = make(map[int]timeline.Nanos)
			}
			taken[f][*p.Number] = 0
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(rec.Processes[a].Start - rec.Processes[b].Start) })
	for _, i := range order {
		p := &rec.Processes[i]
		if i == 0 || p.Number != nil || !p.IsWorker() {
			continue
		}
		f := family{p.Role, ownerOf(rec.Processes, i)}
		if taken[f] == nil {
			taken[f] = make(map[int]timeline.Nanos)
		}
		n := 1
		if p.Role == timeline.RoleLoaderWorker { // torch counts from 0
			n = 0
		}
		for ; ; n++ {
			if end, used := taken[f][n]; !used || p.Role != timeline.RoleWorker && end != 0 && end <= p.Start+startsEarly {
				break
			}
		}
		taken[f][n] = p.End
		p.Number = &n
	}
}
