package program

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// figures of a training's pace, the first one without a word of the program's.
var figures = []figure{
	{"steps_per_s", "training steps", "call omni_perf.step() at the end of the training loop's body", (*report.StepTimes).PerSecond},
	{"samples_per_s", "samples", "call omni_perf.step(samples=…) at the end of the training loop's body", func(t *report.StepTimes) float64 { return t.Samples.PerSecond() }},
	{"tokens_per_s", "tokens", "call omni_perf.step(tokens=…) at the end of the training loop's body", func(t *report.StepTimes) float64 { return t.Tokens.PerSecond() }},
}

// figure is what a Pace can bound.
type figure struct {
	name    string // as users write it
	of      string
	unknown string // what to do where it is not known
	value   func(*report.StepTimes) float64
}

// PaceNames are the figures that a Pace can bound, as users write them.
func PaceNames() (names []string) {
	for _, f := range figures {
		names = append(names, f.name)
	}
	return names
}

// Pace is how many training steps, samples or tokens in a second a program must make at least; the zero value asks nothing.
type Pace struct {
	figure *figure // nil: nothing is asked
	text   string  // as it was given
	least  float64
	actual float64 // 0: it is not known
}

// ParsePace reads "steps_per_s=5", "samples_per_s=900".
func ParsePace(text string) (Pace, error) {
	name, value, _ := strings.Cut(text, "=")
	at := slices.IndexFunc(figures, func(f figure) bool { return f.name == name })
	least, err := strconv.ParseFloat(value, 64)
	if at < 0 || err != nil || !(least > 0) || math.IsInf(least, 0) {
		return Pace{}, errors.New("it takes steps_per_s=N, samples_per_s=N or tokens_per_s=N, so many in a second, as in steps_per_s=5")
	}
	return Pace{figure: &figures[at], text: value, least: least}, nil
}

// Judge takes the steps of a report.
func (p *Pace) Judge(r *report.View) {
	if p.figure != nil {
		steps := r.StepTimes()
		p.actual = p.figure.value(&steps)
	}
}

// Err is a significance.Exceeded where the program was too slow; another error where that is not known.
func (p *Pace) Err() error {
	switch {
	case p.figure == nil:
		return nil
	case p.actual == 0:
		return fmt.Errorf("--fail-if compares %s, and none are known: %s", p.figure.of, p.figure.unknown)
	case p.actual < p.least:
		return significance.Exceeded(fmt.Sprintf("%s %s in a second, fewer than %s", words.Significant(p.actual, 3), p.figure.of, p.text))
	}
	return nil
}
