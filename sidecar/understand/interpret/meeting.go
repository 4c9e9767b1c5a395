package interpret

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// minRanks is how many processes of one owner must meet to be ranks.
const minRanks = 2

// ranksByCollectives makes ranks of processes that their launcher gave no rank which could be read, as
// mp.spawn, notebook_launcher and a fork server do, whose workers set RANK themselves: of those of one
// owner whose main threads were in collectives, or in the function that another called one from: the slowest
// of all waits for nobody and is hardly ever seen in one. Their launchers start them in the order of their ranks.
func (r *reader) ranksByCollectives() {
	rec := r.rec
	found := false
	for _, family := range r.meeting() {
		if len(family) < minRanks {
			continue
		}
		found = true
		for _, i := range family {
			rec.Processes[i].Role, rec.Processes[i].Number = timeline.RoleRank, nil
		}
		r.numberRanks(family)
	}
	if found {
		rec.Notes = append(slices.Clip(rec.Notes), timeline.Note{
			ID: timeline.NoteEstimated, What: "ranks", Reason: "numbered in the order in which their processes began, as they were started without a number that could be read",
		})
		r.ranksOfDescendants()
	}
}

// aFunction is one, whichever of its lines runs.
type aFunction struct {
	name, file string
	first      int
}

func functionOf(f *timeline.Frame) aFunction { return aFunction{f.Function, f.File, f.FirstLine} }

// meeting are the processes that meet in collectives, or would, by who owns them.
func (r *reader) meeting() map[int][]int {
	together := r.inCollectives()
	families := make(map[int][]int)
	for owner, threads := range r.mayMeet() {
		callers := make(map[aFunction]bool)
		for _, t := range threads {
			r.addCallers(callers, t, together)
		}
		if len(callers) == 0 && !slices.ContainsFunc(threads, func(t *timeline.Thread) bool { return wasAt(t, together) }) {
			continue
		}
		calls := r.running(callers)
		for _, t := range threads {
			if (wasAt(t, together) || wasAt(t, calls)) && !slices.Contains(families[owner], t.Process) {
				families[owner] = append(families[owner], t.Process)
			}
		}
	}
	return families
}

// mayMeet are the main threads of the processes that may be ranks, by who owns them.
func (r *reader) mayMeet() map[int][]*timeline.Thread {
	rec, list := r.rec, make(map[int][]*timeline.Thread)
	for i := range rec.Threads {
		t := &rec.Threads[i]
		if t.Main && t.Process > 0 && t.Process < len(rec.Processes) && mayBeRank(&rec.Processes[t.Process]) {
			owner := ownerOf(rec.Processes, t.Process)
			list[owner] = append(list[owner], t)
		}
	}
	return list
}

// addCallers adds the functions from which a thread called collectives.
func (r *reader) addCallers(callers map[aFunction]bool, t *timeline.Thread, together []bool) {
	for _, s := range t.Spans {
		if int(s.Node) >= len(together) || !together[s.Node] {
			continue
		}
		if caller := r.callerOf(s.Node, together); caller != timeline.RootNode {
			callers[functionOf(&r.rec.Frames[r.rec.Nodes[caller].Frame])] = true
		}
	}
}

// wasAt reports whether a thread was at one of these nodes.
func wasAt(t *timeline.Thread, nodes []bool) bool {
	return slices.ContainsFunc(t.Spans, func(s timeline.Span) bool { return int(s.Node) < len(nodes) && nodes[s.Node] })
}

// callerOf is the node that called the outermost collective of a stack; the root: nobody did.
func (r *reader) callerOf(n timeline.NodeID, together []bool) timeline.NodeID {
	for together[n] {
		n = r.rec.Nodes[n].Parent
	}
	return n
}

// running are the nodes with one of these functions on their stack.
func (r *reader) running(functions map[aFunction]bool) []bool {
	return r.below(func(f timeline.FrameID) bool { return functions[functionOf(&r.rec.Frames[f])] })
}

// mayBeRank reports whether a process may be a rank of which the environment does not say so.
func mayBeRank(p *timeline.Process) bool {
	switch p.Role {
	case timeline.RoleWorker, timeline.RolePoolWorker, timeline.RoleChild:
		return p.Rank == nil
	}
	return false
}

// inCollectives are the nodes with a collective on their stack, the set-up of one, or a model whose
// gradients meet in native code.
func (r *reader) inCollectives() []bool {
	return r.below(func(f timeline.FrameID) bool {
		return r.means[f]&(origin.Collective|origin.SetsUp|origin.Replicates) != 0
	})
}

// below are the nodes with such a frame on their stack.
func (r *reader) below(is func(timeline.FrameID) bool) []bool {
	rec := r.rec
	nodes := make([]bool, len(rec.Nodes))
	for i := 1; i < len(rec.Nodes); i++ {
		n := rec.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(rec.Frames) { // a damaged file
			continue
		}
		nodes[i] = nodes[n.Parent] || is(n.Frame)
	}
	return nodes
}

// numberRanks numbers ranks from 0 in the order of their begin; those of a second run, which begin when the
// ones of the first have ended, anew.
func (r *reader) numberRanks(family []int) {
	processes := r.rec.Processes
	slices.SortStableFunc(family, func(a, b int) int {
		if d := processes[a].Start - processes[b].Start; d != 0 {
			return int(d)
		}
		return processes[a].PID - processes[b].PID
	})
	var ends []timeline.Nanos // by number, of who has it; 0: it lives
	for _, i := range family {
		p := &processes[i]
		number := slices.IndexFunc(ends, func(end timeline.Nanos) bool { return end != 0 && end <= p.Start })
		if number < 0 {
			number = len(ends)
			ends = append(ends, 0)
		}
		ends[number] = p.End
		rank, shown := number, number
		p.Rank, p.Number = &rank, &shown
	}
}

// ranksOfDescendants gives what a rank has started, as its DataLoader workers, the rank's number.
func (r *reader) ranksOfDescendants() {
	processes := r.rec.Processes
	for i := range processes {
		at := i
		for n := 0; n < maxAncestors && processes[i].Rank == nil; n++ {
			if at = processes[at].ParentIndex; at < 0 || at >= len(processes) {
				break
			}
			if p := &processes[at]; p.Role == timeline.RoleRank {
				processes[i].Rank = p.Rank
			}
		}
	}
}
