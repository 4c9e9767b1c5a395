package changes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Judge compares a run's steps with a limit. Its error is a significance.Exceeded where they are slower by more
// than in one of the others, which the table was made with; another one where steps cannot be compared with those of each.
func Judge(changed *table.Table, others []string, limit significance.Limit) error {
	unjudged := slices.Clone(others)
	var slower []string
	for r := range changed.Len() {
		if changed.TextAt("kind", r) != Step {
			continue
		}
		const us = 1000 // ns
		run, before, change := changed.TextAt("run", r), changed.FloatAt("before_us", r), changed.FloatAt("change_us", r)
		unjudged = slices.DeleteFunc(unjudged, func(name string) bool { return name == run })
		if limit.Exceeded(significance.Verdict(changed.TextAt("verdict", r)), before*us, change*us) {
			slower = append(slower, fmt.Sprintf("a step is slower by %s (%s) than in %s, beyond the limit of %s and beyond noise",
				words.Seconds(change/1e6), words.SignedPercent(change/before), run, limit))
		}
	}
	switch {
	case len(slower) > 0:
		return significance.Exceeded(strings.Join(slower, "; "))
	case len(unjudged) > 0:
		return fmt.Errorf("--fail-if compares profiler steps, which this run and %s do not both have: call prof.step() in the training loop", unjudged[0])
	}
	return nil
}
