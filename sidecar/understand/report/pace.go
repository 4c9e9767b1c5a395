package report

import (
	"math"
	"slices"
)

// Tracks of a training: how many steps, and of what is known samples and tokens, there were in a second.
const (
	PaceSteps   = "training.steps"
	PaceSamples = "training.samples"
	PaceTokens  = "training.tokens"
)

const (
	leastPaced = 8   // steps that have a course
	paceParts  = 240 // values of such a track, at most
)

// pace is what is counted of steps.
type pace struct {
	id, unit string
	of       func(*Step) *int64
}

var paces = []pace{
	{PaceSteps, "steps", func(*Step) *int64 { return pointer(int64(1)) }},
	{PaceSamples, "samples", func(s *Step) *int64 { return s.Samples }},
	{PaceTokens, "tokens", func(s *Step) *int64 { return s.Tokens }},
}

// paceTracks are the course of each training's pace.
func (b *builder) paceTracks() {
	for rest := b.doc.Steps; len(rest) > 0; {
		process := rest[0].Process
		n := slices.IndexFunc(rest, func(s Step) bool { return s.Process != process })
		if n < 0 {
			n = len(rest)
		}
		of := rest[:n]
		if b.countedBy(process) {
			of = likelySamples(of)
		}
		for _, p := range paces {
			if t, ok := p.track(of, b.doc.DurationNS/paceParts); ok {
				if t.Process = &process; p.id == PaceSamples && b.countedBy(process) {
					t.Source += ", DataLoader"
				}
				b.doc.Tracks = append(b.doc.Tracks, t)
			}
		}
		rest = rest[n:]
	}
}

// track is a pace's course. A value is of whole steps, as many as it takes to fill a part of the recording.
func (p pace) track(steps []Step, part int64) (t Track, ok bool) {
	amount, time := p.sum(steps)
	if len(steps) < leastPaced || amount <= 0 || time <= 0 {
		return Track{}, false
	}
	t = Track{ID: p.id, Kind: Rate, Unit: p.unit + "/s", Source: "steps"}
	scale := 1e9
	if float64(amount)*scale < float64(time) {
		t.Unit, scale = p.unit+"/min", 60e9
	}
	end, peak := int64(0), 0.0
	add := func(at int64, value float64) {
		if us := at / 1000; us > end {
			t.AtUS, t.Value, end = append(t.AtUS, us), append(t.Value, single(value)), us
		}
	}
	for i := 0; i < len(steps); {
		n := 1
		for i+n < len(steps) && steps[i+n].StartNS == steps[i+n-1].EndNS && steps[i+n].EndNS-steps[i].StartNS <= part {
			n++
		}
		value, group := math.NaN(), steps[i:i+n]
		if of, length := p.sum(group); length > 0 {
			value = float64(of) * scale / float64(length)
			peak = max(peak, value)
		}
		add(group[0].StartNS, 0) // no step until then
		add(group[n-1].EndNS, value)
		i += n
	}
	t.Mean, t.Peak = pointer(single(float64(amount)*scale/float64(time))), pointer(single(peak))
	return t, true
}

const (
	// leastKnown is the share of steps without a pause whose samples must be known for the others to have as many in all
	// likelihood, also before the first and after the last known one.
	leastKnown = 0.1
	// otherBatches is the share of the known ones that may have another number: the last batch of an epoch is short.
	otherBatches = 0.05
)

// likelySamples are steps with the samples that those had in all likelihood for which a loader does not show them: as many as the
// others, but for the last one of an epoch, whose batch may be short. A step that is read of is slower than others, so
// that a mean over those alone is too low.
func likelySamples(steps []Step) []Step {
	filled := slices.Clone(steps)
	for from := 0; from < len(steps); {
		to := from + 1
		for to < len(steps) && steps[to].StartNS == steps[to-1].EndNS { // behind a pause another training may go on
			to++
		}
		fillSamples(filled[from:to])
		from = to
	}
	return filled
}

func fillSamples(steps []Step) {
	counts, known := make(map[int64]int), 0
	var most int64
	for i := range steps {
		if n := steps[i].Samples; n != nil {
			known++
			if counts[*n]++; counts[*n] > counts[most] {
				most = *n
			}
		}
	}
	alike := known >= leastPaced && float64(known) >= leastKnown*float64(len(steps)) && float64(known-counts[most]) <= otherBatches*float64(known)
	before := -1 // the last step whose samples are known
	fill := func(to int, with int64) {
		for i := before + 1; i < to; i++ {
			ends := i+1 == len(steps) || steps[i].Epoch == nil && i+1 == to && to-before == 2
			if !ends && steps[i].Epoch != nil {
				next := steps[i+1].Epoch
				ends = next == nil || *next != *steps[i].Epoch
			}
			if !ends {
				steps[i].Samples = &with
			}
		}
	}
	for i := range steps {
		n := steps[i].Samples
		if n == nil {
			continue
		}
		switch {
		case alike:
			fill(i, most)
		case before >= 0 && *steps[before].Samples == *n:
			fill(i, *n)
		}
		before = i
	}
	if alike {
		fill(len(steps), most)
	}
}

// sum is how much the steps did that said so, and how long they took.
func (p pace) sum(steps []Step) (amount, time int64) {
	for i := range steps {
		if of := p.of(&steps[i]); of != nil {
			amount, time = amount+*of, time+steps[i].EndNS-steps[i].StartNS
		}
	}
	return amount, time
}
