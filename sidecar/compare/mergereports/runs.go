package mergereports

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Choice says which reports are merged, of those that are there.
type Choice struct {
	Run   string // only those of this run, as targets[].run names it; empty: all
	Force bool   // reports of several runs, and of machines whose clocks say that they were not recorded together, are merged all the same
}

// ErrSeveralRuns is of reports of several distributed runs, whose ranks have nothing to do with each other.
var ErrSeveralRuns = errors.New("choose one by --run, or merge them all the same by --force")

// runOf is the run that a report is of; empty: unknown.
func runOf(r *report.View) string {
	if run := r.Target().Run; run != nil {
		return *run
	}
	return ""
}

// takes reports whether a report is of the chosen run.
func (c Choice) takes(r *report.View) bool { return c.Run == "" || runOf(r) == c.Run }

// check requires that all reports are of one run, as far as it is known.
func (c Choice) check(reports []*report.View) error {
	if c.Force {
		return nil
	}
	count := make(map[string]int)
	for _, r := range reports {
		if run := runOf(r); run != "" {
			count[run]++
		}
	}
	if len(count) < 2 {
		return nil
	}
	var runs []string
	for run := range count {
		runs = append(runs, run)
	}
	slices.SortFunc(runs, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	const shown = 4
	var list []string
	for _, run := range runs[:min(shown, len(runs))] {
		list = append(list, fmt.Sprintf("%q (%s)", run, words.Plural(count[run], "report", "reports")))
	}
	if len(runs) > shown {
		list = append(list, fmt.Sprintf("and %d more", len(runs)-shown))
	}
	return fmt.Errorf("the reports are of %d runs: %s; %w", len(runs), strings.Join(list, ", "), ErrSeveralRuns)
}
