package mergereports

import (
	"errors"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// ofRuns are ranks, each of the run that its launcher named; empty: it named none.
func ofRuns(t *testing.T, runs ...string) (list []*report.View, names []string) {
	t.Helper()
	for rank, run := range runs {
		r := rankedReport(t, rank, 1, 4, "boot", false)
		if run != "" {
			r.Targets[0].Run = &run
		}
		list, names = append(list, r), append(names, run+".json")
	}
	return list, names
}

func mergedOf(list []*report.View, names []string, choice Choice) (*report.View, error) {
	merged, _, err := Read(names, choice, func(at int) (*report.View, error) { return list[at], nil })
	return merged, err
}

// Ranks of two runs have nothing to do with each other: the sentence has what there is, and what to do.
func TestReportsOfTwoRunsAreRefused(t *testing.T) {
	list, names := ofRuns(t, "slurm 7.0", "slurm 8.0", "slurm 8.0", "")
	_, err := mergedOf(list, names, Choice{})
	if !errors.Is(err, ErrSeveralRuns) || !strings.Contains(err.Error(), `2 runs: "slurm 8.0" (2 reports), "slurm 7.0" (1 report); choose one by --run`) {
		t.Error(err)
	}
	if _, err := Merge(list, names); !errors.Is(err, ErrSeveralRuns) {
		t.Error(err)
	}
	if merged, err := mergedOf(list, names, Choice{Force: true}); err != nil || len(merged.Targets) != 4 {
		t.Errorf("%v", err)
	}
	if merged, err := mergedOf(list, names, Choice{Run: "slurm 8.0"}); err != nil || len(merged.Targets) != 2 {
		t.Errorf("%v", err)
	}
	if _, err := mergedOf(list, names, Choice{Run: "slurm 9.0"}); err == nil || err.Error() != `no report is of the run "slurm 9.0"` {
		t.Error(err)
	}
}

// A launcher's own report is of no run, and goes with its ranks'.
func TestAReportOfNoRunGoesWithThoseOfOne(t *testing.T) {
	list, names := ofRuns(t, "torchrun 3f", "torchrun 3f", "")
	if merged, err := mergedOf(list, names, Choice{}); err != nil || len(merged.Targets) != 3 {
		t.Errorf("%v", err)
	}
}

// Machines of several runs are put beside each other where somebody wants that.
func TestReportsOfSeveralMachinesAndNoRankAreMergedByForce(t *testing.T) {
	list, names := ofRuns(t, "slurm 7.0", "slurm 8.0")
	list[0].Targets[0].Rank, list[0].Targets[0].WorldSize = nil, nil
	list[1] = onMachine(list[1], "two", 3600*second, 7200*second)
	if _, err := mergedOf(list, names, Choice{}); !errors.Is(err, ErrSeveralRuns) {
		t.Error(err)
	}
	merged, err := mergedOf(list, names, Choice{Force: true})
	if err != nil || len(merged.Hosts) != 2 || len(merged.Targets) != 2 {
		t.Fatalf("%v", err)
	}
}

// What is no report of one process, and was not named, is left out without a word.
func TestWhatIsNotMeantIsLeftOut(t *testing.T) {
	list, names := ofRuns(t, "", "")
	merged, unread, err := Read(append(names, "trace.json"), Choice{}, func(at int) (*report.View, error) {
		if at == 2 {
			return nil, ErrNotMeant
		}
		return list[at], nil
	})
	if err != nil || unread != nil || len(merged.Targets) != 2 {
		t.Errorf("%v, %v", err, unread)
	}
}
