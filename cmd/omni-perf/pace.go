package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// paceName is the figure that --fail-if of run names.
const paceName = "steps_per_s"

// pace is how many training steps in a second a program must make at least.
type pace struct {
	text     string // as it was given; empty: nothing is asked
	least    float64
	unjudged bool // the program's steps are not known
	missed   bool
}

func (*pace) Type() string   { return paceName + "=N" }
func (*pace) String() string { return "" }

// Set reads the option.
func (p *pace) Set(text string) error {
	value, ok := strings.CutPrefix(text, paceName+"=")
	least, err := strconv.ParseFloat(value, 64)
	if !ok || err != nil || !(least > 0) || math.IsInf(least, 0) {
		return errors.New("it takes " + paceName + "=N, N steps in a second, as in " + paceName + "=5")
	}
	p.text, p.least, p.unjudged = value, least, true // until there is a report
	return nil
}

// judge compares the steps of a report with what is asked.
func (p *pace) judge(r *report.View) {
	steps := r.StepTimes()
	if p.unjudged = steps.PerSecond() == 0; p.unjudged {
		return
	}
	p.missed = steps.PerSecond() < p.least
	if p.missed {
		fmt.Fprintf(messages, "omni-perf: %s steps in a second, fewer than %s.\n", words.Significant(steps.PerSecond(), 3), p.text)
	}
}

// err is how a program ends that itself ended well.
func (p *pace) err() error {
	switch {
	case p.missed:
		return exitStatus(exitExceeded)
	case p.unjudged:
		return fmt.Errorf("--fail-if compares training steps, and none are known: call omni_perf.step() at the end of the training loop's body")
	}
	return nil
}
