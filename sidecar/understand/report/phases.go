package report

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
)

// TrainingPhase is what one phase of a process's training took.
type TrainingPhase struct {
	Process int      `json:"process"`
	Epoch   *int     `json:"epoch"` // null: of all
	ID      string   `json:"id"`    // origin.Phase
	Count   *int     `json:"count"` // of steps that had it, or without steps of its stretches; null: too short to be counted
	TotalNS int64    `json:"total_ns"`
	MeanNS  *int64   `json:"mean_ns"` // of those that had it; where Count is null, of all steps
	P50NS   *int64   `json:"p50_ns"`
	P95NS   *int64   `json:"p95_ns"`
	MaxNS   *int64   `json:"max_ns"`
	Share   *float64 `json:"share"` // of the time after start-up; null: start-up itself
	IdleNS  *int64   `json:"idle_ns"`
	Text    string   `json:"text"`
}

// SlowSteps are steps that were longer than others in the same phase first of all: no other had more of what they were
// longer.
type SlowSteps struct {
	Process int    `json:"process"`
	ID      string `json:"id"` // origin.Phase
	File    *int   `json:"file"`
	Line    *int   `json:"line"`
	Count   int    `json:"count"`
	Steps   []int  `json:"steps"`    // the first of them, counted from 1 among the process's
	ExtraNS int64  `json:"extra_ns"` // by which the phase was longer than in the median step, all together
	Text    string `json:"text"`
}

// maxSlowSteps is how many of the steps with one reason are listed.
const maxSlowSteps = 100

// phases fills TrainingPhases and SlowSteps.
func (b *builder) phases(d *diagnose.Diagnosis) {
	for _, p := range d.Phases {
		row := TrainingPhase{
			Process: b.placed(p.Process), Epoch: p.Epoch, ID: p.Phase.String(), TotalNS: int64(p.Total), MeanNS: timeOrNull(p.Mean), IdleNS: timeOrNull(p.Idle),
			Text: wording.TrainingPhase(p.Phase),
		}
		if !math.IsNaN(p.Share) {
			row.Share = pointer(min(p.Share, 1))
		}
		if per := p.Per; per != nil {
			row.Count, row.P50NS, row.P95NS, row.MaxNS = pointer(per.Count), pointer(int64(per.P50)), pointer(int64(per.P95)), pointer(int64(per.Max))
		}
		b.doc.TrainingPhases = append(b.doc.TrainingPhases, row)
	}
	for _, s := range d.Slow {
		row := SlowSteps{Process: b.placed(s.Process), ID: s.Phase.String(), Count: len(s.Steps), ExtraNS: int64(s.Extra), Text: wording.TrainingPhase(s.Phase)}
		for _, i := range s.Steps[:min(len(s.Steps), maxSlowSteps)] {
			row.Steps = append(row.Steps, i+1)
		}
		if s.Place.Line > 0 {
			b.wanted[s.Place] = true
			row.File, row.Line = pointer(b.codes.file(s.Place.File)), pointer(s.Place.Line)
		}
		b.doc.SlowSteps = append(b.doc.SlowSteps, row)
	}
}

// timeOrNull is a time that may be unknown: less than 0.
func timeOrNull(t timeline.Nanos) *int64 {
	if t < 0 {
		return nil
	}
	return pointer(int64(t))
}

// phaseTimes are a step's times by phase, without those that it had not.
func phaseTimes(p *diagnose.PhaseTimes) map[string]int64 {
	if p == nil {
		return nil
	}
	out := make(map[string]int64)
	for i, t := range p {
		if t > 0 {
			out[origin.Phase(i).String()] = int64(t)
		}
	}
	return out
}

// phases checks the phases of trainings.
func (c *checker) phases() {
	for i := range c.d.TrainingPhases {
		p := &c.d.TrainingPhases[i]
		c.index("training_phases.process", p.Process, len(c.d.Processes))
		c.amount("training_phases.total_ns", p.TotalNS)
		for _, v := range []*int64{p.MeanNS, p.P50NS, p.P95NS, p.MaxNS, p.IdleNS} {
			c.amountOrNull("training_phases", v)
		}
		if p.Count != nil {
			c.count("training_phases.count", *p.Count)
		}
		c.must(p.Share == nil || *p.Share >= 0 && *p.Share <= 1, "training_phases.share is not of 0 to 1")
	}
	for i := range c.d.SlowSteps {
		s := &c.d.SlowSteps[i]
		c.index("slow_steps.process", s.Process, len(c.d.Processes))
		c.place("slow_steps", s.File, s.Line, nil)
		c.count("slow_steps.count", s.Count)
		c.amount("slow_steps.extra_ns", s.ExtraNS)
		c.must(len(s.Steps) <= s.Count, "slow_steps lists more steps than it counts")
		for _, n := range s.Steps {
			c.must(n > 0, "slow_steps.steps has the step %d", n)
		}
	}
}
