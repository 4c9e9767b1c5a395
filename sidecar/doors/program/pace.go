package program

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// PaceName is the figure that a Pace bounds, as users write it.
const PaceName = "steps_per_s"

// Pace is how many training steps in a second a program must make at least; the zero value asks nothing.
type Pace struct {
	text   string // as it was given; empty: nothing is asked
	least  float64
	actual float64 // 0: the program's steps are not known
}

// ParsePace reads "steps_per_s=5".
func ParsePace(text string) (Pace, error) {
	value, ok := strings.CutPrefix(text, PaceName+"=")
	least, err := strconv.ParseFloat(value, 64)
	if !ok || err != nil || !(least > 0) || math.IsInf(least, 0) {
		return Pace{}, errors.New("it takes " + PaceName + "=N, N steps in a second, as in " + PaceName + "=5")
	}
	return Pace{text: value, least: least}, nil
}

// Judge takes the steps of a report.
func (p *Pace) Judge(r *report.View) {
	steps := r.StepTimes()
	p.actual = steps.PerSecond()
}

// Err is a significance.Exceeded where the program was too slow; another error where that is not known.
func (p *Pace) Err() error {
	switch {
	case p.text == "":
		return nil
	case p.actual == 0:
		return errors.New("--fail-if compares training steps, and none are known: call omni_perf.step() at the end of the training loop's body")
	case p.actual < p.least:
		return significance.Exceeded(fmt.Sprintf("%s steps in a second, fewer than %s", words.Significant(p.actual, 3), p.text))
	}
	return nil
}
