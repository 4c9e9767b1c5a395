package chart

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// A process of an earlier cell that did nothing in this one has neither a lane nor a row: loky keeps its workers, and a server waits.

// aboutOthers are the findings that are about other processes, whose lanes are then of interest whatever they did.
var aboutOthers = []diagnose.FindingID{diagnose.WaitsForChildren, diagnose.WaitsForRanks, diagnose.GPUWaitsForData, diagnose.WorkerKilled, diagnose.RankFailed}

// leftovers are the processes that began before the recording, outlived it and did nothing in it. A pool of which some worked is none.
func leftovers(r *report.View, duration float64) map[int]bool {
	idle := make(map[int]bool)
	if slices.ContainsFunc(r.Findings, func(f report.Finding) bool { return slices.Contains(aboutOthers, diagnose.FindingID(f.ID)) }) {
		return idle
	}
	for i := range r.Processes {
		p := &r.Processes[i]
		role := timeline.Role(p.Role)
		idle[i] = i != r.Program() && i != r.Target().Process && p.StartNS < 0 && p.EndNS == nil && role != timeline.RoleRank && !role.OfEngine() && !onlyCleansUp(p) && !isOurs(p) &&
			p.CPUNS != nil && cpuOf(p) <= worthOwnLane*duration && report.Seconds(atTasks(p)) <= worthOwnLane*duration
	}
	for i := range r.Threads {
		t := &r.Threads[i]
		if report.Seconds(t.StateNS.Sum()-t.StateNS.Of(report.State.Idle)-t.StateNS[report.StateUnknown]) > worthOwnLane*duration {
			idle[t.Process] = false
		}
	}
	for _, p := range r.Pools {
		if slices.ContainsFunc(p.Members, func(m int) bool { return !idle[m] }) {
			for _, m := range p.Members {
				idle[m] = false
			}
		}
	}
	return idle
}

// atTasks is for how long a worker was at its tasks, if only to sleep there. Any other program is at its own task all its life.
func atTasks(p *report.Process) int64 {
	if p.Work == nil || p.Role == string(timeline.RoleChild) {
		return 0
	}
	return max(p.Work.ThreadNS-p.Work.StartingNS-p.Work.NoTaskNS-p.Work.PassingNS, 0)
}

// idleText is how many of them there were; empty for none.
func idleText(idle map[int]bool) string {
	n := 0
	for _, is := range idle {
		n += btoi(is)
	}
	if n == 0 {
		return ""
	}
	return words.Plural(n, "idle process", "idle processes")
}

// waitedThroughout reports whether a row is of threads that waited in one call for all of a cell: an earlier one began them, and waits for
// whoever connects, say. Of locks, whoever has them is of interest.
func waitedThroughout(r *report.View, w *report.Blocked, duration float64) bool {
	const whole = 0.95
	return r.Target().Cell != nil && w.MainNS == 0 && w.Holder == nil && w.Times > 0 && report.Seconds(w.BlockedNS) >= whole*float64(w.Times)*duration
}
