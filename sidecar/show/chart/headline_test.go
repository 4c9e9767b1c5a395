package chart

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// That nothing stands out is said in grey, by the headline's kind: what was not observed, or why
// there is nothing to say, is news.
func TestNothingStandsOutInGrey(t *testing.T) {
	for _, c := range []struct {
		kind   report.HeadlineKind
		limits []int
		want   scene.Tone
	}{
		{report.HeadlineSummary, nil, scene.Muted}, {report.HeadlineSummary, []int{0}, scene.Plain}, {report.HeadlineTooFew, nil, scene.Plain}, {report.HeadlineNoStacks, nil, scene.Plain},
	} {
		r := shortCell(5e9, 5000)
		r.Headline = report.Headline{Kind: c.kind, Text: "Any words.", Limits: c.limits}
		if got := findingOf(r); len(got) != 1 || got[0].Tone != c.want {
			t.Errorf("%s with limits %v: %+v, want %v", c.kind, c.limits, got, c.want)
		}
	}
}
