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

// A spawned worker imports the main module first: what it was started for comes after that, and is not
// after the script's end.
func TestASpawnedRanksWorkIsNotAfterTheScript(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	rank := 0
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 1, Argv: []string{"python", "/u/train.py"}}
		r.Processes = []timeline.Process{{PID: 1, Role: timeline.RoleScript, ParentIndex: -1}, {PID: 2, Parent: 1, Role: timeline.RoleRank, Rank: &rank}}
	})
	id := b.Thread(timeline.Thread{PID: 2, Process: 1, NativeID: 2, Main: true})
	b.Set(id, 0, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/u/train.py", Line: 1})), timeline.StatePython, false)
	b.Set(id, sec, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "main", File: "/u/train.py", Line: 9})), timeline.StatePython, false)
	b.Set(id, 8*sec, timeline.RootNode, timeline.StateNative, false)
	rec := b.Snapshot(10 * sec)
	if _, end := scriptLife(NewStacks(rec, NewSource(rec, nil)), &rec.Threads[0]); end != 8*sec {
		t.Errorf("its own code ended at %v, want 8 s", end.Duration())
	}
}
