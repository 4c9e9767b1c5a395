package mergereports

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
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

// ErrOneAfterTheOther is of reports of one machine of which nothing says that they belong together.
var ErrOneAfterTheOther = errors.New("were not recorded at the same time, and name no run of which both are; merge them all the same by --force")

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
	return fmt.Errorf("the reports are of %d runs: %s; %w", len(count), listOf(count), ErrSeveralRuns)
}

// listOf names runs, those first of which there are most reports, by how many there are of each.
func listOf(count map[string]int) string {
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
	return strings.Join(list, ", ")
}

// missing says that no report is of the chosen run, and of which runs there are some.
func (c Choice) missing(count map[string]int) error {
	if len(count) == 0 {
		return fmt.Errorf("no report is of the run %q, and none names a run", c.Run)
	}
	return fmt.Errorf("no report is of the run %q; there are %s", c.Run, listOf(count))
}

// stretch is a time in which something was recorded.
type stretch struct {
	begin, end  int64
	first, last int // the reports that begin and end it
}

// apart requires that reports were recorded at the same time: each of them at that of another one, so that a launcher's
// report joins those of the programs that it started one after the other. Those of one named run, of an engine's workers and of one process
// belong together whenever they were recorded: of a run in which ranks were started again, of the cells of a kernel.
func (m *merging) apart(names []string) error {
	all := m.stretches()
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.begin, b.begin) })
	so := all[0]
	for _, s := range all[1:] {
		if s.begin > so.end+m.clocks.bound() {
			return fmt.Errorf("the reports %s and %s %w", names[so.last], names[s.first], ErrOneAfterTheOther)
		}
		if s.end > so.end {
			so.end, so.last = s.end, s.last
		}
	}
	return nil
}

// stretches are those of the reports: one of all that are of a run, one of all of an engine's workers, one of all of one process.
func (m *merging) stretches() (list []stretch) {
	type whose struct {
		run      string
		ofEngine bool
		process  int
	}
	at := make(map[whose]int)
	for i, r := range m.reports {
		target := r.Target().Process
		is := whose{run: runOf(r), ofEngine: timeline.Role(r.Processes[target].Role).OfEngine()}
		if is.ofEngine {
			is.run = ""
		} else if is.run == "" {
			is.process = m.places[i][target]
		}
		one := stretch{m.clocks.begin[i], m.clocks.begin[i] + r.DurationNS, i, i}
		k, known := at[is]
		if !known {
			at[is] = len(list)
			list = append(list, one)
			continue
		}
		if one.begin < list[k].begin {
			list[k].begin, list[k].first = one.begin, one.first
		}
		if one.end > list[k].end {
			list[k].end, list[k].last = one.end, one.last
		}
	}
	return list
}
