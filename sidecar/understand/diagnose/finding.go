package diagnose

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/batches"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
	"github.com/omni-perf/omni-perf/sidecar/understand/straggler"
)

// Headline is what to read first.
type Headline struct {
	// Finding is the index of the main finding; -1 where nothing stands out, or
	// where TooFew or NoStacks says why there is none.
	Finding int
	// NoStacks reports that nothing is known of what the program did.
	NoStacks bool
	// Limits are indices of the findings that say what was not observed. They
	// qualify whatever the headline says.
	Limits []int
	TooFew *TooFew // too few stacks were read for any share of time to mean something
}

// TooFew says how many stacks were read of a recording that was too short for
// the interval.
type TooFew struct {
	Samples int64
	// Interval would have given enough; 0 where a shorter one is not possible.
	Interval time.Duration
}

// Main is the index of the main finding; ok is false where there is none.
func (d *Diagnosis) Main() (index int, ok bool) {
	index = d.Headline.Finding
	return index, index >= 0 && index < len(d.Findings)
}

// Finding is a bottleneck or hazard: which one, the figure it rests on, where,
// and what to do about it. The comment of an id says which fields it uses.
type Finding struct {
	ID        FindingID
	Severity  Severity
	Value     float64 // what was compared with the threshold, in Unit
	Unit      Unit
	Threshold float64
	Against   float64 // a second figure, given beside Value

	Time      timeline.Nanos   // what the finding is about
	Low, High timeline.Nanos   // bounds of Time where it is an estimate; equal where it is not
	Cause     activity.Cause   // of most of it; of a GPU's idle time, of nearly all of it
	Kind      activity.Kind    // of the causes of a GPU's idle time
	Parts     []gpuidle.Part   // of Time, by cause, where no cause has nearly all of it: each with its bounds
	Place     activity.Place   // with most of it; zero where none is sure to have most
	PlaceTime timeline.Nanos   // the part of Time there
	Next      activity.Place   // with nearly as much, where the two have nearly all of it; zero: there is none
	NextTime  timeline.Nanos   // the part of Time there
	CutTime   timeline.Nanos   // the part of PlaceTime, or of Time without a place, in which something may have been called that could not be read
	At        timeline.Nanos   // when it happened
	AtLast    timeline.Nanos   // when it did for the last of several; 0: it happened once
	Besides   []activity.Cause // what Time leaves out that computes, too, and took long; the longest first
	Computed  bool             // Against is of computing alone: other programs had the CPUs
	AfterEnd  bool             // it happened when the script's own code had ended
	Call      activity.Call    // what the place called, where that took most of its time
	CallShare float64          // of the place's time, in Call, or where there is none of its Cause; 0: not known
	Cores     float64          // CPUs in use meanwhile; NaN where not known
	CoreLimit float64          // of how many; 0 where not known

	Actors         []activity.Actor        // those that were waited for, or that held what was waited for
	Queue          batches.Queue           // of the loader's workers that were waited for; no Readings: it is not known
	HasLock        bool                    // Actors, one at a time, had a lock that was waited for
	Modules        []activity.ModuleTime   // that were imported
	Functions      []activity.FunctionTime // with most of Time, where none has half of it
	Lines          []activity.FunctionTime // likewise, of code that is in no function
	Alternatives   []gpuidle.Alternative   // kinds of causes of which none surely has most, by their time; all of them
	Devices        []int
	Process        *timeline.Process
	Peer           int // the device that Devices are compared with
	Throttle       []timeline.ThrottleReason
	Xid            int // NVIDIA's number of an error's kind
	Gap            timeline.GapReason
	Name           string               // of a device, memory or function
	OfRank         bool                 // it is about what Rank did, which the target only launched
	Rank           int                  // that was waited for …
	LateSteps      int                  // … in so many of its steps
	Steps          int                  // of so many; 0: its steps are not known
	AfterSteps     timeline.Nanos       // … and for so long after the last of them …
	Collective     straggler.Collective // … in this; empty: in none for most of Time
	CollectiveTime timeline.Nanos       // the part of Time in that
	Whole          timeline.Nanos       // what Time is a part of, where that is not the recording
	Count          int64
	Bytes          int64
	Together       int  // tasks that waited at once in Place at other times, for NextTime; 0: none did
	AtLeast        bool // Count and Bytes are lower bounds

	Advice   Advice
	Evidence []timeline.Interval // may be empty
	Cost     timeline.Nanos      // what removing it could save at most; 0 when unknown
}
