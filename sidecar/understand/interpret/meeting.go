package interpret

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// minRanks is how many processes of one owner must have been in collectives to be ranks.
const minRanks = 2

// ranksByCollectives makes ranks of processes that their launcher gave no rank which could be read, as
// mp.spawn, notebook_launcher and a fork server do, whose workers set RANK themselves: of those of one
// owner whose main threads were in collectives. Their launchers start them in the order of their ranks.
func (r *reader) ranksByCollectives() {
	rec, together := r.rec, r.inCollectives()
	families := make(map[int][]int)
	for _, t := range rec.Threads {
		if !t.Main || t.Process <= 0 || t.Process >= len(rec.Processes) || !mayBeRank(&rec.Processes[t.Process]) {
			continue
		}
		met := slices.ContainsFunc(t.Spans, func(s timeline.Span) bool { return int(s.Node) < len(together) && together[s.Node] })
		if owner := ownerOf(rec.Processes, t.Process); met && !slices.Contains(families[owner], t.Process) {
			families[owner] = append(families[owner], t.Process)
		}
	}
	found := false
	for _, family := range families {
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

// mayBeRank reports whether a process may be a rank of which the environment does not say so.
func mayBeRank(p *timeline.Process) bool {
	switch p.Role {
	case timeline.RoleWorker, timeline.RolePoolWorker, timeline.RoleChild:
		return p.Rank == nil
	}
	return false
}

// inCollectives are the nodes with a collective, or the set-up of one, on their stack.
func (r *reader) inCollectives() []bool {
	rec := r.rec
	together := make([]bool, len(rec.Nodes))
	for i := 1; i < len(rec.Nodes); i++ {
		n := rec.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(rec.Frames) { // a damaged file
			continue
		}
		together[i] = together[n.Parent] || r.means[n.Frame]&(origin.Collective|origin.SetsUp) != 0
	}
	return together
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
