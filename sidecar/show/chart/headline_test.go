package chart

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// That nothing stands out is said in grey, by the headline's kind: what was not observed, or why
// there is nothing to say, is news.
func TestNothingStandsOutInGrey(t *testing.T) {
	for _, c := range []struct {
		kind   report.HeadlineKind
		limits []int
		want   Tone
	}{
		{report.HeadlineSummary, nil, Muted}, {report.HeadlineSummary, []int{0}, Plain}, {report.HeadlineTooFew, nil, Plain}, {report.HeadlineNoStacks, nil, Plain},
	} {
		r := shortCell(5e9, 5000)
		r.Headline = report.Headline{Kind: c.kind, Text: "Any words.", Limits: c.limits}
		if got := findingOf(r); len(got) != 1 || got[0].tone != c.want {
			t.Errorf("%s with limits %v: %+v, want %v", c.kind, c.limits, got, c.want)
		}
	}
}
