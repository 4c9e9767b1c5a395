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
		for _, p := range paces {
			if t, ok := p.track(rest[:n], b.doc.DurationNS/paceParts); ok {
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

// sum is how much the steps did that said so, and how long they took.
func (p pace) sum(steps []Step) (amount, time int64) {
	for i := range steps {
		if of := p.of(&steps[i]); of != nil {
			amount, time = amount+*of, time+steps[i].EndNS-steps[i].StartNS
		}
	}
	return amount, time
}
