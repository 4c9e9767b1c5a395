package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/straggler"
)

// measured is a finding in the making.
type measured struct {
	Finding
	// low is compared with the threshold: a finding claims no more than its lower
	// bound. NaN = not known.
	low float64
	// lost is the share of the subject's wall time that the finding is about, 0..1. Of a
	// hazard, for which that is not known, it is how much of a limit is used.
	lost float64
}

var nothing = measured{low: math.NaN()}

// of makes a finding about a share of the recording that is known exactly.
func (e *evidence) of(f Finding) measured {
	f.Value = e.share(f.Time)
	return measured{Finding: f, low: f.Value, lost: f.Value}
}

// findings applies the rules to a recording, the main finding first.
func findings(e *evidence) []Finding {
	if e.rec.Duration <= 0 && e.rec.Late <= 0 {
		return nil // nothing has a share of it
	}
	few := tooFew(e.rec) != nil || e.rec.Duration <= 0
	var list []ranked
	for _, r := range rules {
		if few && r.severity != Limit {
			continue
		}
		m := r.measure(e)
		if math.IsNaN(m.low) || m.low < r.threshold {
			continue
		}
		if m.ID == "" {
			m.ID = r.id
		}
		if m.High == 0 { // known exactly
			m.Low, m.High = m.Time, m.Time
		}
		m.Severity, m.Threshold, m.Unit = r.severity, r.threshold, cmp.Or(r.unit, Share)
		m.Evidence = activity.Evidence(m.Evidence)
		list = append(list, ranked{m.Finding, r.group, r.weight * m.lost})
	}
	slices.SortStableFunc(list, compareRanked)
	out := make([]Finding, len(list))
	for i, m := range list {
		out[i] = m.Finding
		if p := e.leading(); p != nil && isOfThread(m.ID) {
			out[i].OfRank, out[i].Rank, out[i].Whole = true, *p.Rank, cmp.Or(m.Whole, e.whole())
		}
	}
	return out
}

// leading is the rank that a launcher is explained by; nil where there is none, and where
// GPUs are used, whose idle time is explained in place of a thread's.
func (e *evidence) leading() *timeline.Process {
	if e.stacks.About.Why != timeline.SubjectLeadingRank || len(e.used()) > 0 {
		return nil
	}
	return &e.rec.Processes[e.main.Process]
}

// isOfThread reports whether a finding is about what one process's main thread did.
func isOfThread(id FindingID) bool {
	switch id {
	case RankFailed, WorkerKilled, Straggler, MemoryPressure, Swapping, Printing, StacksUnknown, Traceback, DrawnAfterError, BegunLate:
		return false
	}
	return slices.ContainsFunc(cpuRules, func(r rule) bool { return r.id == id }) || id == Computing || id == NoLineStandsOut
}

// fewSamples is the number below which shares of time are guesses.
const fewSamples = 20

// headline chooses what to read first.
func headline(rec *timeline.Recording, spent []activity.Spent, list []Finding) Headline {
	h := Headline{Finding: -1, TooFew: tooFew(rec)}
	h.NoStacks = len(spent) == 0 || len(spent) == 1 && spent[0].Cause == activity.Unknown
	for i, f := range list {
		switch {
		case f.Severity == Limit:
			h.Limits = append(h.Limits, i)
		case h.Finding < 0 && h.TooFew == nil:
			h.Finding = i
		}
	}
	return h
}

// tooFew describes a recording that was too short for its interval; nil where it was
// long enough, or where the interval is not what was wrong.
func tooFew(rec *timeline.Recording) *TooFew {
	s := rec.Sampling
	if s.Samples >= fewSamples || s.Interval <= 0 || rec.Duration > timeline.Nanos(2*fewSamples*s.Interval) {
		return nil
	}
	few := &TooFew{Samples: s.Samples}
	// The sampler in the kernel is as fast as it can be.
	if finer := timeline.FinerInterval(s.Interval); s.FallbackReason == "" && !targetFailed(rec) && !ranNoPython(rec) && rec.Duration >= timeline.Nanos(fewSamples*finer) {
		few.Interval = finer // with which it would not be too short
	}
	return few
}

// targetFailed reports whether the target ended by a signal or with another exit code than 0: another run would end so, too.
func targetFailed(rec *timeline.Recording) bool {
	return slices.ContainsFunc(rec.Processes, func(p timeline.Process) bool {
		return p.PID == rec.Target.PID && p.Exit != nil && *p.Exit != 0
	})
}

// ranNoPython reports whether the target was never seen to run Python: that is no matter of the interval.
func ranNoPython(rec *timeline.Recording) bool {
	return rec.Sampling.Samples == 0 && slices.ContainsFunc(rec.Gaps, func(g timeline.Gap) bool {
		return g.PID == rec.Target.PID && g.Reason.BeforePython()
	})
}

// evidence is what the rules look at.
type evidence struct {
	rec        *timeline.Recording
	stacks     *activity.Stacks
	diagnosis  *Diagnosis
	devices    []*gpuidle.Device
	main       *activity.Reading // the one that runs the cell, or the main one
	bystanders *activity.Bystanders
	lanes      []straggler.Lane     // of ranks
	late       *straggler.Straggler // the one that they waited for; nil: none
}

// whole is what the thread's time is a part of: the recording, of a launcher the life of the
// rank by which it is explained.
func (e *evidence) whole() timeline.Nanos {
	if e.leading() == nil {
		return e.rec.Duration
	}
	return interpret.LifeOf(e.rec, e.main.Process).Nanos()
}

func (e *evidence) share(n timeline.Nanos) float64 { return float64(n) / float64(max(e.whole(), 1)) }

// always is all the time of the recording.
func (e *evidence) always() []timeline.Interval {
	return []timeline.Interval{timeline.Between(0, e.rec.Duration)}
}

// used are the devices the program worked on.
func (e *evidence) used() []*gpuidle.Device {
	var list []*gpuidle.Device
	for _, d := range e.devices {
		if d.IsDivided() {
			list = append(list, d)
		}
	}
	return list
}

// explainedByGPUs reports whether what the used devices waited for answers where the time went.
// It does not where they were lost, or not known for other reasons, most of the time.
func (e *evidence) explainedByGPUs() bool {
	known, used := timeline.Nanos(0), e.used()
	for _, d := range used {
		known += d.Time.Busy + d.Time.Idle
	}
	return len(used) > 0 && known >= timeline.Nanos(len(used))*e.rec.Duration/2
}

// findingOf is what an account shows by itself.
func findingOf(a activity.Account) Finding {
	return Finding{Time: a.Total, Cause: a.Cause, Place: a.Place, PlaceTime: a.There, Evidence: a.Where, Cost: a.Total, Cores: math.NaN()}
}

func (e *evidence) gpuTrack(index int, lane string) *timeline.Track {
	return e.stacks.Track(fmt.Sprintf("gpu%d.%s", index, lane))
}
