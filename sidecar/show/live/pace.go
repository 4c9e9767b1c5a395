package live

import (
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
)

// pace knows how fast steps follow each other.
type pace struct {
	seen []reached // in order; a look adds one if there was a step
}

// reached is how many steps had been made at an instant.
type reached struct {
	at    int64 // CLOCK_MONOTONIC
	steps int64
}

const (
	paceOver  = 30e9 // the rate is that of the last half minute …
	paceSteps = 5    // … and of as many steps at least
	paceKept  = 128
	// leastSampled steps on the stacks are a rate.
	leastSampled = 3
)

// steps returns the progress as the program reports it, else the rate that the stacks show.
func (p *pace) steps(at, began int64, marked Progress, d *diagnose.Diagnosis) *Steps {
	if marked.Steps <= 0 {
		return sampled(d)
	}
	if len(p.seen) == 0 {
		p.seen = append(p.seen, reached{began, 0})
	}
	last := p.seen[len(p.seen)-1]
	if marked.Steps > last.steps && marked.LastNS > last.at {
		last = reached{marked.LastNS, marked.Steps}
		p.seen = append(p.seen, last)
	}
	p.forget(last)
	out := &Steps{Count: &marked.Steps}
	if marked.Total > 0 {
		out.Total = &marked.Total
	}
	first := p.seen[0]
	// What comes before the first step is no step: from the second look on it is left out.
	if first.steps == 0 && len(p.seen) > 2 {
		first = p.seen[1]
	}
	if last.steps > first.steps && last.at > first.at {
		rate := float64(last.steps-first.steps) / (float64(last.at-first.at) / 1e9)
		out.PerSecond = &rate
	}
	if out.Total != nil && out.PerSecond != nil {
		left := max(int64(float64(max(marked.Total-marked.Steps, 0))/(*out.PerSecond)*1e9)-(at-last.at), 0)
		out.LeftNS = &left
	}
	return out
}

// forget drops what is older than the rate goes back.
func (p *pace) forget(last reached) {
	for len(p.seen) > 2 && (len(p.seen) > paceKept || float64(last.at-p.seen[1].at) >= paceOver && last.steps-p.seen[1].steps >= paceSteps) {
		p.seen = p.seen[1:]
	}
}

// sampled is the rate of the optimizer's calls on the stacks.
func sampled(d *diagnose.Diagnosis) *Steps {
	n := len(d.Steps)
	if n < leastSampled {
		return nil
	}
	length := d.Steps[n-1].End - d.Steps[0].Start
	if length <= 0 {
		return nil
	}
	rate := float64(n) / length.Seconds()
	return &Steps{PerSecond: &rate}
}
