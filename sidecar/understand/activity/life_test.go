package activity

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// What a GPU waits for before a launcher has started the ranks is no riddle; after a rank's
// end nobody knows.
func TestAGPUThatHasNoRankYetIsBeingSetUp(t *testing.T) {
	life := lifetime{begin: sec, end: 10 * sec, firstWork: 4 * sec, born: 2 * sec, died: 8 * sec}
	for at, want := range map[timeline.Nanos]stage{0: beforeFirstWork, 3 * sec: beforeFirstWork, 5 * sec: running, 9 * sec: running} {
		if got := life.stageAt(at); got != want {
			t.Errorf("at %v s it is stage %d, want %d", at/sec, got, want)
		}
	}
	life.firstWork = 0 // of the CPU's time it is not known
	if got := life.stageAt(0); got != running {
		t.Errorf("stage %d", got)
	}
}
