package report_test

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
)

func TestWhereARecordingEnded(t *testing.T) {
	r := sketch.CpuCell().View()
	place, stacks := r.LastPlace(), r.LastStacks()
	if !strings.HasPrefix(place, "line ") {
		t.Errorf("it ended in %q", place)
	}
	if len(stacks) == 0 || !stacks[0].Main || len(stacks[0].Frames) == 0 {
		t.Fatalf("the last stacks are %+v", stacks)
	}
	for _, s := range stacks {
		if s.Main != (s.Thread == stacks[0].Thread) || len(s.Frames) == 0 {
			t.Errorf("%+v", s)
		}
	}
}
