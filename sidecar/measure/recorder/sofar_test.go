package recorder

import (
	"sync/atomic"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// oneChild is a target with a child that lives, or has ended.
type oneChild struct{ lives atomic.Bool }

const childPID = targetPID + 1

func (t *oneChild) Has(pid int) bool { return pid == childPID && t.lives.Load() }

func (t *oneChild) Index(pid int) int {
	if t.Has(pid) {
		return 1
	}
	return 0
}

// What a process has sent before it ended may be read behind its end. A stranger's marks are no one's.
func TestTheLastMarksOfAProcessThatHasEndedAreItsOwn(t *testing.T) {
	child := &oneChild{}
	child.lives.Store(true)
	r := New(Options{Target: timeline.Target{PID: targetPID}, Stacks: &fakeStacks{}, Tree: func(*timeline.Builder, Children) Tree { return child }})
	defer r.Close()
	now := timeline.Monotonic()
	mustBegin(t, r, Spec{ID: "a", Started: now})
	add, stranger := r.Marks("a", childPID), r.Marks("a", childPID+1)
	mark := Mark{Kind: "step", Start: now, End: now + 1}
	if !add(mark) || stranger(mark) {
		t.Error("the child's mark is refused, or a stranger's is taken")
	}
	child.lives.Store(false)
	if !add(mark) {
		t.Error("the mark that came behind the child's end is refused")
	}
	rec := mustEnd(t, r, "a", Ending{At: now + 1e6})
	if len(rec.Marks) != 2 || rec.Marks[0].Process != 1 || rec.Marks[1].Process != 1 {
		t.Errorf("the marks are %+v", rec.Marks)
	}
}
