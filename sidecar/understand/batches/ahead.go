package batches

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Accelerate's loader asks torch's for a batch before it hands the one before that to the loop, to know which is the last of a pass.

// loaderOf is a loader by all its passes, in order. Where each batch is asked for one ahead, their readings are then of the batches that
// the loop has had.
func loaderOf(of timeline.Loader, passes []*pass, steps int) Loader {
	l := Loader{Loader: of, PerStep: perStep(passes)}
	if l.fits(passes, steps, 1) <= l.fits(passes, steps, 0) {
		return l
	}
	for _, p := range passes {
		for i := range p.readings {
			p.readings[i].given = max(p.readings[i].given-1, 0)
		}
	}
	l.PerStep = perStep(passes)
	return l
}

// fits counts the passes that are as long as they should be, by where they and the next ones begin and the last step ends, if so many
// batches are asked for ahead. Where the samples of a pass are not known it should be as long as the next one.
func (l *Loader) fits(passes []*pass, steps, ahead int) (count int) {
	if l.PerStep == 0 {
		return 0
	}
	end, next := steps, 0
	for _, p := range slices.Backward(passes) {
		begin := p.first().steps - max(p.first().given-ahead, 0)/l.PerStep
		made, expected := end-begin, p.expected(l)
		if expected == 0 && l.PerStep == 1 {
			expected = next
		}
		if made > 0 && made == expected {
			count++
		}
		end, next = begin, made
	}
	return count
}
