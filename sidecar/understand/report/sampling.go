package report

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
)

// Sampling says how a target's stacks were read, as it was.
type Sampling struct {
	Method  string `json:"method"`   // timeline.Method
	Text    string `json:"text"`     // the same in words
	AskedNS int64  `json:"asked_ns"` // interval
	// Kept are the intervals that were kept: from when on, and how long; empty where
	// that is not known.
	Kept         [][2]int64 `json:"kept"`
	ResolutionNS int64      `json:"resolution_ns"` // of the spans
	Ticks        int64      `json:"ticks"`         // at which stacks were read, or the same for certain …
	MissedTicks  *int64     `json:"missed_ticks"`  // … and that were due besides, but came too late
	Reads        *int64     `json:"reads"`         // of single threads' stacks …
	Incomplete   int64      `json:"incomplete"`    // … of them cut to their sure prefix
	Unreadable   int64      `json:"unreadable"`    // … of them without anything sure
	CPUNS        *int64     `json:"cpu_ns"`        // what the sampling itself cost
	Clamped      []Clamp    `json:"clamped"`
	Fallback     *Fallback  `json:"fallback"` // null: read from outside
}

// Clamp is an option that was kept within its limits.
type Clamp struct {
	Option  string `json:"option"`
	AskedNS int64  `json:"asked_ns"`
	KeptNS  int64  `json:"kept_ns"`
}

// Fallback says why the sampler inside the kernel was used.
type Fallback struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// samplingOf is the one place that reads timeline.Sampling. What a recording does
// not know is null or empty.
func samplingOf(rec *timeline.Recording) Sampling {
	s := Sampling{
		Method:       string(rec.Sampling.Method),
		Text:         wording.Method(rec.Sampling.Method),
		AskedNS:      amount(rec.Sampling.Asked),
		Kept:         keptIntervals(rec),
		ResolutionNS: amount(rec.Resolution),
		Ticks:        amount(rec.Sampling.Samples),
		MissedTicks:  pointer(amount(rec.Sampling.Missed)),
		Reads:        known(amount(rec.Sampling.Reads), 0),
		Incomplete:   amount(rec.Sampling.Truncated),
		Unreadable:   amount(rec.Sampling.Lost),
		Clamped:      []Clamp{},
	}
	if s.AskedNS <= 0 {
		s.AskedNS = amount(rec.Sampling.Interval)
	}
	for _, c := range rec.Sampling.Clamps {
		s.Clamped = append(s.Clamped, Clamp{Option: c.Option, AskedNS: amount(c.Asked), KeptNS: amount(c.Used)})
	}
	if rec.Sampling.CPU >= 0 {
		s.CPUNS = pointer(amount(rec.Sampling.CPU))
	}
	if reason := rec.Sampling.FallbackReason; reason != "" {
		s.Fallback = &Fallback{ID: "not-readable", Text: clean(reason)}
	}
	return s
}

// Interval is the one between two samples that were taken, on average; the one asked for
// where that is not known.
func (s *Sampling) Interval(duration int64) int64 {
	kept := s.keptInterval(duration)
	if s.Ticks <= 0 || s.MissedTicks == nil {
		return kept
	}
	return int64(float64(kept) * float64(s.Ticks+*s.MissedTicks) / float64(s.Ticks))
}

// keptInterval is the one that was due.
func (s *Sampling) keptInterval(duration int64) int64 {
	if len(s.Kept) == 0 || duration <= 0 {
		return s.AskedNS
	}
	ticks := 0.0
	for i, k := range s.Kept {
		end := duration
		if i+1 < len(s.Kept) {
			end = min(s.Kept[i+1][0], duration)
		}
		if k[1] > 0 && end > k[0] {
			ticks += float64(end-k[0]) / float64(k[1])
		}
	}
	if ticks == 0 {
		return s.AskedNS
	}
	return int64(float64(duration) / ticks)
}

// amount keeps a figure, some of which come from the target, within what a document may hold.
func amount[T ~int64](v T) int64 { return min(max(int64(v), 0), maxInteger) }

// keptIntervals lists from when on which interval was kept.
func keptIntervals(rec *timeline.Recording) [][2]int64 {
	kept := [][2]int64{}
	if rec.Sampling.Interval <= 0 {
		return kept
	}
	kept = append(kept, [2]int64{0, amount(rec.Sampling.Interval)})
	for _, c := range rec.Sampling.Changes {
		if from := max(int64(min(c.From, rec.Duration)), kept[len(kept)-1][0]); c.Interval > 0 {
			kept = append(kept, [2]int64{from, amount(c.Interval)})
		}
	}
	return kept
}
