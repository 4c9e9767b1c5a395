package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
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
	if e.rec.Duration <= 0 {
		return nil // nothing has a share of it
	}
	few := tooFew(e.rec) != nil
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
		m.Evidence = timeline.Longest(timeline.Joined(m.Evidence), maxEvidence)
		list = append(list, ranked{m.Finding, r.group, r.weight * m.lost})
	}
	slices.SortStableFunc(list, compareRanked)
	out := make([]Finding, len(list))
	for i, m := range list {
		out[i] = m.Finding
		if p := e.leading(); p != nil && isOfThread(m.ID) {
			out[i].OfRank, out[i].Rank, out[i].Whole = true, *p.Rank, e.whole()
		}
	}
	return out
}

// leading is the rank that a launcher is explained by; nil where there is none, and where
// GPUs are used, whose idle time is told in place of a thread's.
func (e *evidence) leading() *timeline.Process {
	if e.stacks.leader == nil || e.stacks.leader != e.thread || len(e.used()) > 0 {
		return nil
	}
	return &e.rec.Processes[e.thread.Process]
}

// isOfThread tells the findings about what one process's main thread did.
func isOfThread(id FindingID) bool {
	switch id {
	case Straggler, MemoryPressure, Swapping, Printing, StacksUnknown:
		return false
	}
	return slices.ContainsFunc(cpuRules, func(r rule) bool { return r.id == id }) || id == Computing || id == NoLineStandsOut
}

// fewSamples is the number below which shares of time are guesses.
const fewSamples = 20

// headline chooses what to read first.
func headline(rec *timeline.Recording, spent []Spent, list []Finding) Headline {
	h := Headline{Finding: -1, TooFew: tooFew(rec)}
	h.NoStacks = len(spent) == 0 || len(spent) == 1 && spent[0].Cause == Unknown
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

// tooFew tells a recording that was too short for its interval; nil where it was
// long enough, or where the interval is not what was wrong.
func tooFew(rec *timeline.Recording) *TooFew {
	s := rec.Sampling
	if s.Samples >= fewSamples || s.Interval <= 0 || rec.Duration > timeline.Nanos(2*fewSamples*s.Interval) {
		return nil
	}
	few := &TooFew{Samples: s.Samples}
	// The sampler in the kernel is as fast as it can be.
	if s.FallbackReason == "" {
		few.Interval = timeline.FinerInterval(s.Interval)
	}
	return few
}

// evidence is what the rules look at.
type evidence struct {
	rec        *timeline.Recording
	stacks     *stacks
	diagnosis  *Diagnosis
	devices    []*device
	thread     *timeline.Thread // the one that runs the cell, or the main one; nil: none was seen
	main       *host            // its states
	bystanders *bystanders
	lanes      []straggler.Lane // of ranks
	ended      timeline.Nanos   // when the script's own code had ended; the duration where it had not
}

// whole is what the thread's time is a part of: the recording, of a launcher the life of the
// rank by which it is explained.
func (e *evidence) whole() timeline.Nanos {
	if e.leading() == nil {
		return e.rec.Duration
	}
	return e.stacks.lifeOfProcess(e.thread.Process).Nanos()
}

func (e *evidence) share(n timeline.Nanos) float64 { return float64(n) / float64(max(e.whole(), 1)) }

// used are the devices the program worked on.
func (e *evidence) used() []*device {
	var list []*device
	for _, d := range e.devices {
		if d.time.Used && d.shares != nil {
			list = append(list, d)
		}
	}
	return list
}

// toldByGPUs tells whether what the used devices waited for answers where the time went.
// It does not where they were lost, or not known for other reasons, most of the time.
func (e *evidence) toldByGPUs() bool {
	known, used := timeline.Nanos(0), e.used()
	for _, d := range used {
		known += d.time.Busy + d.time.Idle
	}
	return len(used) > 0 && known >= timeline.Nanos(len(used))*e.rec.Duration/2
}

// account is the main thread's time in some states.
type account struct {
	total  timeline.Nanos
	at     Place // with most of it
	there  timeline.Nanos
	nextAt Place          // with the second most …
	next   timeline.Nanos // … of it
	visits int            // how often the thread came to at from another place
	cause  Cause          // of most of it
	where  []timeline.Interval
}

// accountOf sums up the main thread's time in states that fit.
func (e *evidence) accountOf(fits func(Cause) bool) account {
	var a account
	places := make(map[Place]timeline.Nanos)
	causes := make(map[Cause]timeline.Nanos)
	visits := make(map[Place]int)
	last, there := Place{}, false
	for _, s := range e.main.stretches {
		st := e.main.states[s.state]
		if !fits(st.cause) {
			there = there && st.at == last && st.at != (Place{})
			continue
		}
		length := s.end - s.start
		a.total += length
		places[st.at] += length
		causes[st.cause] += length
		if st.at != last || !there {
			visits[st.at]++
		}
		last, there = st.at, true
		a.where = append(a.where, timeline.Between(s.start, s.end))
	}
	if len(places) == 0 {
		return a
	}
	a.at = most(places, comparePlaces)
	a.there, a.visits = places[a.at], visits[a.at]
	a.cause = most(causes, func(x, y Cause) int { return cmp.Compare(x, y) })
	delete(places, a.at)
	a.nextAt = most(places, comparePlaces)
	a.next = places[a.nextAt]
	return a
}

// ownPlace is the account's place where a line of the user's own has it, or where the
// program has none at all: the line of a library is no news to its user.
func (e *evidence) ownPlace(a account) (Place, timeline.Nanos) {
	if a.at == (Place{}) || e.stacks.files.Own(a.at.File) || !slices.ContainsFunc(e.stacks.facts, func(f frameFacts) bool { return f.own }) {
		return a.at, a.there
	}
	return Place{}, 0
}

// halves reports whether two places have about half of the time each: neither has most.
func (a account) halves() bool {
	return a.at != (Place{}) && a.nextAt != (Place{}) && float64(a.next) >= nearlyAsMuch*float64(a.there) &&
		float64(a.there+a.next) >= nearlyAll*float64(a.total)
}

// nearlyAsMuch is the share of the most from which on the second most is no less, to a reader.
const nearlyAsMuch = 0.8

// finding is what an account says by itself.
func (a account) finding() Finding {
	return Finding{Time: a.total, Cause: a.cause, Place: a.at, PlaceTime: a.there, Evidence: a.where, Cost: a.total, Cores: math.NaN()}
}

// only makes a condition of some causes.
func only(list ...Cause) func(Cause) bool {
	return func(c Cause) bool { return slices.Contains(list, c) }
}

func (e *evidence) gpuTrack(index int, lane string) *timeline.Track {
	return e.stacks.track(fmt.Sprintf("gpu%d.%s", index, lane))
}
