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
	if _, err := mergedOf(list, names, Choice{Run: "slurm 9.0"}); err == nil || err.Error() != `no report is of the run "slurm 9.0"; there are "slurm 8.0" (2 reports), "slurm 7.0" (1 report)` {
		t.Error(err)
	}
}

// Programs that ran one after the other on one machine have nothing to do with each other, unless something says so.
func TestReportsOfOneAfterTheOtherAreRefused(t *testing.T) {
	one := func(begins float64, rank int, run string) *report.View {
		r := rankedReport(t, rank, begins, 4, "boot", false) // of 10 seconds
		if run != "" {
			r.Targets[0].Run = &run
		}
		return r
	}
	during := one(1, 2, "")
	during.DurationNS += int64(9 * second)
	for _, c := range []struct {
		name    string
		reports []*report.View
		refused string // which two are named
	}{
		{"one after the other", []*report.View{one(30, 1, ""), one(1, 0, "")}, "the reports b.json and a.json were not"},
		{"at the same time", []*report.View{one(1, 0, ""), one(10.9, 1, "")}, ""},
		{"a launcher's is between them", []*report.View{one(1, 0, ""), one(12, 1, ""), during}, ""},
		{"of one run", []*report.View{one(1, 0, "slurm 7.0"), one(30, 1, "slurm 7.0"), one(35, 2, "")}, ""},
		{"one is of a run, one of none", []*report.View{one(1, 0, "slurm 7.0"), one(30, 1, "")}, "the reports a.json and b.json were not"},
	} {
		_, err := mergedOf(c.reports, names[:len(c.reports)], Choice{})
		if (err != nil) != (c.refused != "") || err != nil && (!errors.Is(err, ErrOneAfterTheOther) || !strings.HasPrefix(err.Error(), c.refused)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.refused)
		}
		if merged, err := mergedOf(c.reports, names[:len(c.reports)], Choice{Force: true}); err != nil || len(merged.Targets) != len(c.reports) {
			t.Errorf("%s, by force: %v", c.name, err)
		}
	}
}

func TestTheRunThatIsMissingMayBeOfAReportThatNamesNone(t *testing.T) {
	list, names := ofRuns(t, "", "")
	if _, err := mergedOf(list, names, Choice{Run: "slurm 9.0"}); err == nil || err.Error() != `no report is of the run "slurm 9.0", and none names a run` {
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
