package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/straggler"
)

// Rank is what one process of a distributed run did, by its main thread.
type Rank struct {
	Process     int // index in Recording.Processes
	Number      int
	Known       timeline.Nanos // for which its stacks are known
	Computing   timeline.Nanos // of that
	Steps       int
	Step        timeline.Nanos   // the median one; 0: there are none
	Collectives []straggler.Part // of Known, the longest first
}

// rankOf is the rank that a process is, and whether it is one: a worker of a rank's own
// has the number of it, too.
func rankOf(rec *timeline.Recording, i int) (int, bool) {
	switch p := &rec.Processes[i]; {
	case p.Role == timeline.RoleRank && p.Rank != nil:
		return *p.Rank, true
	case i == 0 && rec.Target.Rank != nil && p.Role == timeline.RoleScript:
		return rec.Target.Rank.Global, true
	}
	return 0, false
}

// rankLanes are the main threads of ranks, by rank.
func (s *stacks) rankLanes() (lanes []straggler.Lane, threads []*timeline.Thread) {
	for i := range s.rec.Processes {
		number, is := rankOf(s.rec, i)
		if !is {
			continue
		}
		var main *timeline.Thread
		for k := range s.rec.Threads {
			if t := &s.rec.Threads[k]; t.Main && t.Process == i && len(t.Spans) > 0 && (main == nil || seen(t) > seen(main)) {
				main = t
			}
		}
		if main != nil {
			lanes, threads = append(lanes, s.rankLane(main, i, number)), append(threads, main)
		}
	}
	order := make([]int, len(lanes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return lanes[a].Rank - lanes[b].Rank })
	sorted, sortedThreads := make([]straggler.Lane, len(lanes)), make([]*timeline.Thread, len(lanes))
	for to, from := range order {
		sorted[to], sortedThreads[to] = lanes[from], threads[from]
	}
	return sorted, sortedThreads
}

func (s *stacks) rankLane(t *timeline.Thread, process, number int) straggler.Lane {
	type fact struct {
		in straggler.Collective
		at Place
	}
	known := make(map[timeline.NodeID]fact)
	lane := straggler.Lane{Process: process, Rank: number}
	for _, span := range t.Spans {
		if span.Node == timeline.RootNode { // it starts, or ends
			continue
		}
		f, ok := known[span.Node]
		if !ok {
			stack := s.stack(span.Node)
			f.at = s.charged(stack)
			for _, id := range stack { // the innermost
				if f.in = straggler.Of(s.files.Known(s.rec.Frames[id].File), s.rec.Frames[id].Function); f.in != straggler.None {
					break
				}
			}
			known[span.Node] = f
		}
		in := f.in
		if in == straggler.Backward && (s.device || span.State.Computes()) {
			in = straggler.None
		}
		lane.Spans = append(lane.Spans, straggler.Span{Start: int64(span.Start), End: int64(span.End), In: in, Place: straggler.Place(f.at)})
	}
	return lane
}

// leadingRank is the main thread by which a launcher is explained: that of its first rank.
// It is nil for a cell and for a target that is a rank itself, that ran code of the user's own
// without waiting meanwhile for most of the recording, or whose ranks are known for a small
// part of it only. The threads are those of ranks.
func (s *stacks) leadingRank(threads []*timeline.Thread) *timeline.Thread {
	if len(threads) == 0 || threads[0].Process <= 0 || float64(seen(threads[0])) < trained*float64(s.rec.Duration) || s.rec.Target.Cell != nil {
		return nil
	}
	ranOwn, waited := false, timeline.Nanos(0)
	life := []timeline.Interval{s.lifeOfProcess(threads[0].Process)}
	for i := range s.rec.Threads {
		t := &s.rec.Threads[i]
		if t.Process != 0 {
			continue
		}
		for _, span := range t.Spans {
			ranOwn = ranOwn || s.ownest(s.stack(span.Node)) >= 0
			if t.Main && !span.State.Computes() {
				timeline.Overlap(life, span.Start, span.End, func(_ int, part timeline.Nanos) { waited += part })
			}
		}
	}
	if ranOwn && float64(waited) < mostShare*float64(s.rec.Duration) {
		return nil
	}
	return threads[0]
}

// lifeOfProcess is the part of the recording in which a process lived.
func (s *stacks) lifeOfProcess(index int) timeline.Interval {
	p := &s.rec.Processes[index]
	return timeline.Between(max(p.Start, 0), cmp.Or(min(p.End, s.rec.Duration), s.rec.Duration))
}

// ranksOf sums up what the ranks did, and tells their lanes the steps.
func ranksOf(lanes []straggler.Lane, threads []*timeline.Thread, steps []Step) (list []Rank) {
	for i := range lanes {
		lane := &lanes[i]
		r := Rank{Process: lane.Process, Number: lane.Rank, Known: seen(threads[i]), Collectives: lane.Parts()}
		for _, span := range threads[i].Spans {
			if span.Node != timeline.RootNode && span.State.Computes() {
				r.Computing += span.End - span.Start
			}
		}
		var lengths []timeline.Nanos
		for _, step := range steps {
			if step.Process == lane.Process {
				lengths = append(lengths, step.End-step.Start)
				lane.Steps = append(lane.Steps, [2]int64{int64(step.Start), int64(step.End)})
			}
		}
		if r.Steps = len(lengths); r.Steps > 0 {
			slices.Sort(lengths)
			r.Step = lengths[len(lengths)/2]
		}
		list = append(list, r)
	}
	return list
}

// trained is the share of a recording from which on what its ranks did is the first thing to know.
const trained = 0.10

// findStraggler finds the rank that the others waited for.
func findStraggler(e *evidence) measured {
	found := straggler.FindStraggler(e.lanes)
	if found == nil {
		return nothing
	}
	f := StragglerFinding(e.lanes, found)
	m := measured{Finding: f, low: f.Value, lost: e.share(f.Time)}
	if e.share(timeline.Nanos(found.Of)) >= trained {
		m.lost = f.Value // of the time in which all ranks trained: what they do to get there is done once
	}
	return m
}

// StragglerFinding is the finding about a rank that the others waited for.
func StragglerFinding(lanes []straggler.Lane, s *straggler.Straggler) Finding {
	f := Finding{
		ID: Straggler, Severity: Warning, Value: float64(s.Time) / float64(s.Of), Unit: Share, Time: timeline.Nanos(s.Time),
		Whole: timeline.Nanos(s.Of), Place: Place(s.Place), PlaceTime: timeline.Nanos(s.More), Collective: s.In,
		Rank: lanes[s.Lane].Rank, Count: int64(len(lanes)), Steps: s.Steps, LateSteps: s.Late, Cost: timeline.Nanos(s.Time), Cores: math.NaN(), Advice: BalanceRanks,
	}
	f.Low, f.High = f.Time, f.Time
	for _, i := range s.Intervals {
		f.Evidence = append(f.Evidence, timeline.Between(timeline.Nanos(i[0]), timeline.Nanos(i[1])))
	}
	f.Evidence = timeline.Longest(timeline.Joined(f.Evidence), maxEvidence)
	return f
}
