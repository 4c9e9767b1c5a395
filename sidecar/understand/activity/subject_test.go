package activity

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A thread that was lost and found again has two entries: the one of which more is
// known is meant.
func TestTheMainThreadIsTheEntryThatWasSeen(t *testing.T) {
	rec := &timeline.Recording{Duration: 10, Threads: []timeline.Thread{
		{NativeID: 7, Main: true, RunsCell: true, Spans: []timeline.Span{{Start: 0, End: 3, Node: timeline.RootNode}}},
		{NativeID: 7, Main: true, RunsCell: true, Spans: []timeline.Span{{Start: 3, End: 10, Node: 1}}},
	}}
	if got := NewStacks(rec, NewSource(rec, nil)).responsible(-1); got != &rec.Threads[1] {
		t.Errorf("got the entry with %v", got.Spans)
	}
}
