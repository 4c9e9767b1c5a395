package mergereports

import (
	"fmt"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/straggler"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// addRanks adds what no single report could know: how the ranks differ, and which one the others waited for.
func addRanks(r *report.View, bound int64) {
	lanes := lanesOf(r)
	addCollectives(r, lanes)
	r.RankLines = nil
	for _, t := range straggler.CompareLines(lanes) {
		if file := slices.IndexFunc(r.Files, func(f report.File) bool { return f.Name == t.Place.File }); file >= 0 {
			r.RankLines = append(r.RankLines, report.RankLineOf(t, file))
		}
	}
	addStraggler(r, lanes, bound)
}

// addCollectives adds to steps for how long they were in collectives, where reports of older versions do not have it.
func addCollectives(r *report.View, lanes []straggler.Lane) {
	of := stepsOf(r)
	for _, lane := range lanes {
		for k, time := range lane.InCollectives() {
			if s := &r.Steps[of[lane.Process][k]]; s.CollectiveNS == nil && time != nil {
				ns := int64(*time)
				s.CollectiveNS = &ns
			}
		}
	}
}

// addStraggler makes a rank that the others waited for the first finding, and the headline. Waits that are
// shorter than the clocks are related exactly to are none.
func addStraggler(r *report.View, lanes []straggler.Lane, bound int64) {
	s := straggler.FindStraggler(lanes)
	if s == nil || int64(s.Time) <= bound*int64(len(s.Intervals)) {
		return
	}
	f := diagnose.StragglerFinding(lanes, s)
	scope := wording.Scope{Duration: timeline.Nanos(r.DurationNS), Place: func(p activity.Place) string {
		if p.Line <= 0 {
			return ""
		}
		return fmt.Sprintf("%s:%d", words.ShortFile(p.File), p.Line)
	}}
	value, unit, threshold, cost := f.Value, string(f.Unit), 0.10, int64(f.Cost)
	out := report.Finding{
		ID: string(f.ID), Severity: string(f.Severity), Value: &value, Unit: &unit, Threshold: &threshold, CostNS: &cost,
		Args: map[string]any{
			"time_ns": int64(f.Time), "whole_ns": int64(f.Whole), "place_ns": int64(f.PlaceTime), "rank": f.Rank, "count": f.Count, "collective": string(f.Collective), "collective_ns": int64(f.CollectiveTime),
		},
		Evidence: []report.Interval{}, Text: scope.Finding(f), Hint: wording.Advice(f.Advice),
	}
	if f.Steps > 0 {
		out.Args["steps"], out.Args["late_steps"] = f.Steps, f.LateSteps
	}
	if f.AfterSteps > 0 {
		out.Args["after_steps_ns"] = int64(f.AfterSteps)
	}
	for _, iv := range f.Evidence {
		out.Evidence = append(out.Evidence, report.Interval{int64(iv.Start), int64(iv.End)})
	}
	for i := range r.Files {
		if r.Files[i].Name == f.Place.File && f.Place.Line > 0 {
			line := f.Place.Line
			out.File, out.Line = &i, &line
			break
		}
	}
	r.Findings = append([]report.Finding{out}, r.Findings...)
	for i := range r.Headline.Limits {
		r.Headline.Limits[i]++
	}
	first := 0
	r.Headline = report.Headline{Kind: report.HeadlineFinding, Finding: &first, Limits: r.Headline.Limits, Text: out.Text, Hint: out.Hint}
	r.FollowRank(f.Rank)
}

// stepsOf are the steps of each process, by their places in the report.
func stepsOf(r *report.View) map[int][]int {
	of := make(map[int][]int)
	for i := range r.Steps {
		of[r.Steps[i].Process] = append(of[r.Steps[i].Process], i)
	}
	return of
}

// lanesOf are the main threads of the ranks.
func lanesOf(r *report.View) (lanes []straggler.Lane) {
	usesGPU := slices.ContainsFunc(r.Devices, func(d report.Device) bool { return d.Used })
	facts, steps := factsOf(r), stepsOf(r)
	for _, rank := range r.Ranks {
		thread := longestMain(r, rank.Process)
		if thread < 0 {
			continue
		}
		lane := straggler.Lane{Process: rank.Process, Rank: rank.Rank}
		for _, i := range steps[rank.Process] {
			lane.Steps = append(lane.Steps, timeline.Between(timeline.Nanos(r.Steps[i].StartNS), timeline.Nanos(r.Steps[i].EndNS)))
		}
		for _, s := range r.History(thread) {
			if s.Node == 0 { // it starts, or ends
				continue
			}
			f := facts[s.Node]
			if f.in == straggler.Backward && (usesGPU || s.State.Computes()) {
				f.in = straggler.None
			}
			lane.Spans = append(lane.Spans, straggler.Span{Interval: timeline.Between(timeline.Nanos(s.Start), timeline.Nanos(s.End)), In: f.in, Place: f.at})
		}
		lanes = append(lanes, lane)
	}
	return lanes
}

// stackFacts is what a stack says of a rank: what it did together with others, and in which own line.
type stackFacts struct {
	in straggler.Collective
	at straggler.Place
}

// factsOf are those of all stacks, by node: what is nearer the leaf counts.
func factsOf(r *report.View) []stackFacts {
	var files origin.Names
	facts := make([]stackFacts, len(r.Nodes.Parent))
	for n := 1; n < len(facts); n++ {
		facts[n] = facts[r.Nodes.Parent[n]]
		frame := r.FrameOf(int32(n))
		fn := &r.Functions[r.FunctionOf(frame)]
		if in := straggler.Of(files.Known(r.Files[fn.File].Name), fn.Name); in != straggler.None {
			facts[n].in = in
		}
		if fn.Code.Own() {
			facts[n].at = straggler.Place{File: r.Files[fn.File].Name, Line: r.LineOf(frame)}
		}
	}
	return facts
}

// longestMain is the main thread of a process that has the longest history; -1: none was seen.
func longestMain(r *report.View, process int) int {
	best := -1
	for t := range r.Threads {
		if th := &r.Threads[t]; th.Process == process && th.Main && (best < 0 || len(r.History(t)) > len(r.History(best))) {
			best = t
		}
	}
	return best
}
