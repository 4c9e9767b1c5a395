package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// The picture is of whom the report says it is about, and decides nothing of that itself.
func TestThePictureIsOfTheReportsSubject(t *testing.T) {
	v := ranksOf(t, 4)
	for rank := range 4 {
		at := slices.IndexFunc(v.Threads, func(th report.Thread) bool {
			return th.Main && v.Processes[th.Process].Rank != nil && *v.Processes[th.Process].Rank == rank
		})
		subject := *v.Subject
		subject.Thread, subject.Process = &at, v.Threads[at].Process
		v.Subject = &subject
		if got := digestOf(v).flames[0].thread; got != at {
			t.Errorf("rank %d is the subject, and the flame chart is of thread %d, not %d", rank, got, at)
		}
	}
	before := Text(v, 120)
	v.Pools = nil
	if after := Text(v, 120); !strings.Contains(before, "What the 4 ranks did") || strings.Contains(after, "What the 4 ranks did") {
		t.Errorf("without pools in the report there is a table of one:\n%s", after)
	}
}
