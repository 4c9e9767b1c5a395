package diagnose

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/straggler"
)

// Rank is what one process of a distributed run did, by its main thread.
type Rank struct {
	Process     int // index in Recording.Processes
	Number      int
	Known       timeline.Nanos // for which its stacks are known
	Computing   timeline.Nanos // of that, outside of collectives
	Steps       int
	Step        timeline.Nanos   // the median one; 0: there are none
	Collectives []straggler.Part // of Known, the longest first
}

// rankLanes are the main threads of ranks, by rank.
func rankLanes(s *activity.Stacks) (lanes []straggler.Lane, threads []*timeline.Thread) {
	for _, i := range interpret.RankThreads(s.Rec) {
		t := &s.Rec.Threads[i]
		number, _ := interpret.RankOf(s.Rec, t.Process)
		lanes, threads = append(lanes, rankLane(s, t, t.Process, number)), append(threads, t)
	}
	return lanes, threads
}

func rankLane(s *activity.Stacks, t *timeline.Thread, process, number int) straggler.Lane {
	type fact struct {
		in straggler.Collective
		at activity.Place
	}
	known := make(map[timeline.NodeID]fact)
	lane := straggler.Lane{Process: process, Rank: number}
	for _, span := range t.Spans {
		if span.Node == timeline.RootNode { // it starts, or ends
			continue
		}
		f, ok := known[span.Node]
		if !ok {
			stack := s.Stack(span.Node)
			f.at = s.Charged(stack)
			for _, id := range stack { // the innermost
				if f.in = straggler.Of(s.Files.Known(s.Rec.Frames[id].File), s.Rec.Frames[id].Function); f.in != straggler.None {
					break
				}
			}
			known[span.Node] = f
		}
		in := f.in
		if in == straggler.Backward && (s.UsesGPU || span.State.Computes()) {
			in = straggler.None
		}
		lane.Spans = append(lane.Spans, straggler.Span{Interval: timeline.Between(span.Start, span.End), In: in, Place: straggler.Place(f.at)})
	}
	return lane
}

// ranksOf sums up what the ranks did, adds the steps to their lanes, and to the steps for how long they were in collectives.
func ranksOf(lanes []straggler.Lane, threads []*timeline.Thread, steps []Step) (list []Rank) {
	for i := range lanes {
		lane := &lanes[i]
		r := Rank{Process: lane.Process, Number: lane.Rank, Known: interpret.Known(threads[i]), Collectives: lane.Parts()}
		spans := lane.Spans // one for each that has a stack
		for _, span := range threads[i].Spans {
			if span.Node == timeline.RootNode {
				continue
			}
			if span.State.Computes() && spans[0].In == straggler.None {
				r.Computing += span.End - span.Start
			}
			spans = spans[1:]
		}
		var lengths []timeline.Nanos
		for k := range steps {
			if step := &steps[k]; step.Process == lane.Process {
				lengths = append(lengths, step.End-step.Start)
				lane.Steps = append(lane.Steps, timeline.Between(step.Start, step.End))
			}
		}
		for k, in := 0, lane.InCollectives(); k < len(steps); k++ {
			if steps[k].Process == lane.Process {
				steps[k].InCollectives, in = in[0], in[1:]
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

// stragglerShare is the share of the time in which all ranks trained from which on a straggler is a finding.
const stragglerShare = 0.10

// waitsForRanks is the time that the main thread waited for other ranks, of which none is the one: the straggler's finding
// is about the same time. What they wait for a rank that has failed is no imbalance.
func waitsForRanks(e *evidence) measured {
	if findStraggler(e).low >= stragglerShare {
		return nothing
	}
	m := e.hostRule(e.main.AccountUntil(e.neverMetAgain(), activity.Only(activity.Collective)), nil)
	m.Advice = BalanceRanks
	return m
}

// neverMetAgain is when a rank that failed left the last collective that it came to, the first such rank: how long its
// interpreter took to end, and its launcher to end the others, says nothing.
func (e *evidence) neverMetAgain() timeline.Nanos {
	first := timeline.Nanos(math.MaxInt64)
	for i := range e.lanes {
		if lane := &e.lanes[i]; failed(&e.rec.Processes[lane.Process]) {
			first = min(first, lastMet(lane))
		}
	}
	return first
}

// lastMet is the end of a rank's last collective.
func lastMet(lane *straggler.Lane) timeline.Nanos {
	for _, span := range slices.Backward(lane.Spans) {
		if span.In != straggler.None {
			return span.End
		}
	}
	return 0
}

// findStraggler finds the rank that the others waited for.
func findStraggler(e *evidence) measured {
	found := e.late
	if found == nil {
		return nothing
	}
	f := StragglerFinding(e.lanes, found)
	m := measured{Finding: f, low: f.Value, lost: e.share(f.Time)}
	if e.share(found.Of) >= interpret.MinRankShare {
		m.lost = f.Value // of the time in which all ranks trained: what they do to get there is done once
	}
	return m
}

// StragglerFinding is the finding about a rank that the others waited for.
func StragglerFinding(lanes []straggler.Lane, s *straggler.Straggler) Finding {
	f := Finding{
		ID: Straggler, Severity: Warning, Value: float64(s.Time) / float64(s.Of), Unit: Share, Time: s.Time,
		Whole: s.Of, Place: activity.Place(s.Place), PlaceTime: s.More, Collective: s.In, CollectiveTime: s.InTime,
		Rank: lanes[s.Lane].Rank, Count: int64(len(lanes)), Steps: s.Steps, LateSteps: s.Late, AfterSteps: s.After, Cost: s.Time, Cores: math.NaN(), Advice: BalanceRanks,
	}
	if s.Alone {
		f.Advice = ShareWork
	}
	f.Low, f.High = f.Time, f.Time
	f.Evidence = activity.Evidence(s.Intervals)
	return f
}
