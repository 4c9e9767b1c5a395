package mergereports

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// manyRanks are the reports of so many ranks, of which one computes longer than the others.
func manyRanks(t testing.TB, n, late int) (reports []*report.View, names []string) {
	for i := range n {
		tenths := 3 + i%2
		if i == late {
			tenths = 8
		}
		reports = append(reports, rankedReport(t, i, 100, tenths, "boot", false))
		names = append(names, fmt.Sprintf("rank%d.json", i))
	}
	return reports, names
}

func TestOfManyReportsThreeAreWhole(t *testing.T) {
	const late = 17
	reports, names := manyRanks(t, many+2, late)
	reads := make([]int, len(reports))
	merged, unread, err := Read(names, Choice{}, func(at int) (*report.View, error) {
		reads[at]++
		return reports[at], nil
	})
	if err != nil || unread != nil {
		t.Fatal(err, unread)
	}
	twice := 0
	for _, n := range reads {
		twice += n - 1
	}
	if twice != 3 || reads[late] != 2 {
		t.Errorf("read %v times; three are read twice, the late one among them", reads)
	}
	all, err := Merge(reports, names)
	if err != nil {
		t.Fatal(err)
	}
	if id := merged.Findings[0].ID; id != string(diagnose.Straggler) || merged.Findings[0].Text != all.Findings[0].Text {
		t.Errorf("%s: %s\nof whole reports: %s", id, merged.Findings[0].Text, all.Findings[0].Text)
	}
	if len(merged.Ranks) != many+2 || len(merged.Steps) != len(all.Steps) {
		t.Errorf("%d ranks, %d steps, want %d and %d", len(merged.Ranks), len(merged.Steps), many+2, len(all.Steps))
	}
	if !slices.ContainsFunc(merged.Notes, func(n report.Note) bool { return strings.HasPrefix(n.Text, "of 26 reports 3 are whole") }) {
		t.Errorf("no note says what is left out: %+v", merged.Notes)
	}
	if got, want := len(merged.Spans.Node), len(all.Spans.Node); got > want {
		t.Errorf("%d spans, of whole reports %d", got, want)
	}
}

func TestOneReportThatCannotBeReadIsLeftOut(t *testing.T) {
	damaged := errors.New("rank2.json is damaged")
	for _, n := range []int{3, many + 2} {
		reports, names := manyRanks(t, n, 1)
		merged, unread, err := Read(names, Choice{}, func(at int) (*report.View, error) {
			if at == 2 {
				return nil, damaged
			}
			return reports[at], nil
		})
		if err != nil || len(merged.Ranks) != n-1 || !errors.Is(unread, damaged) {
			t.Errorf("of %d: %v, unread %v", n, err, unread)
		}
	}
	reports, names := manyRanks(t, 2, 1)
	if _, _, err := Read(names, Choice{}, func(at int) (*report.View, error) {
		if at == 1 {
			return nil, damaged
		}
		return reports[at], nil
	}); !errors.Is(err, damaged) {
		t.Errorf("one report was merged with nothing: %v", err)
	}
}

// TestAnOutlineKeepsCollectives: what is between them is one line, the one that took longest.
func TestAnOutlineKeepsCollectives(t *testing.T) {
	whole := rankedReport(t, 1, 100, 4, "boot", true)
	kept, err := outline(whole)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept.Threads) != 1 || len(kept.Lines) != len(whole.Lines) || len(kept.Steps) != len(whole.Steps) {
		t.Errorf("%d threads, %d lines, %d steps", len(kept.Threads), len(kept.Lines), len(kept.Steps))
	}
	a, b := lanesOf(whole), lanesOf(kept)
	if fmt.Sprint(a[0].Spans) != fmt.Sprint(b[0].Spans) {
		t.Errorf("what the rank did:\n%v\nwant\n%v", b[0].Spans, a[0].Spans)
	}
}
