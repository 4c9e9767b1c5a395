package recorder

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// runKeepingStacks keeps what it gets to know about its run.
type runKeepingStacks struct {
	fakeStacks
	run     chan Run
	atStart uint64 // the coroutine of thread 1
}

func (f *runKeepingStacks) Collect(ctx context.Context, run Run) error {
	f.atStart = run.Coroutine(1)
	f.run <- run
	<-ctx.Done()
	return nil
}

func newRunKeepingStacks() *runKeepingStacks { return &runKeepingStacks{run: make(chan Run, 1)} }

func TestTheCoroutineIsThatOfTheInnermostCell(t *testing.T) {
	stacks := newRunKeepingStacks()
	r := New(Options{Target: timeline.Target{PID: targetPID}, Stacks: stacks})
	mustBegin(t, r, Spec{ID: "outer", ThreadID: 1, Coroutine: 0x100})
	run := <-stacks.run
	mustBegin(t, r, Spec{ID: "elsewhere", ThreadID: 2})
	if got := fmt.Sprintf("%#x %#x", run.Coroutine(1), run.Coroutine(2)); got != "0x100 0x0" {
		t.Errorf("coroutines of threads 1 and 2: %s", got)
	}
	mustBegin(t, r, Spec{ID: "inner", ThreadID: 1, Coroutine: 0x200})
	if got := run.Coroutine(1); got != 0x200 {
		t.Errorf("within a cell that a cell runs: %#x", got)
	}
	mustEnd(t, r, "inner", Ending{})
	if got := run.Coroutine(1); got != 0x100 {
		t.Errorf("after it: %#x", got)
	}
	mustEnd(t, r, "outer", Ending{})
	if got := run.Coroutine(1); got != 0 {
		t.Errorf("after both: %#x", got)
	}
}

// The first look at the stacks knows it already: there may be none for long after that.
func TestTheCoroutineIsKnownFromTheStart(t *testing.T) {
	for range 200 {
		stacks := newRunKeepingStacks()
		r := New(Options{Target: timeline.Target{PID: targetPID}, Stacks: stacks})
		mustBegin(t, r, Spec{ID: "cell", ThreadID: 1, Coroutine: 0x100})
		if <-stacks.run; stacks.atStart != 0x100 {
			t.Fatalf("at the start: %#x", stacks.atStart)
		}
		mustEnd(t, r, "cell", Ending{})
	}
}

func TestOwnThreadsAreToldOnceForAll(t *testing.T) {
	stacks := newRunKeepingStacks()
	r := New(Options{Target: timeline.Target{PID: targetPID}, Stacks: stacks})
	mustBegin(t, r, Spec{ID: "a", OwnThreads: []int{7}})
	if run := <-stacks.run; !run.Own(7) || run.Own(8) {
		t.Error("thread 7 is the profiler's, 8 is not")
	}
	mustEnd(t, r, "a", Ending{})
	mustBegin(t, r, Spec{ID: "b"})
	if run := <-stacks.run; !run.Own(7) {
		t.Error("thread 7 was the profiler's and is forgotten")
	}
	mustEnd(t, r, "b", Ending{})
}

func TestStacksOfAProgramThatBeginsAreWaitedFor(t *testing.T) {
	stacks := newRunKeepingStacks()
	stacks.refusal = errors.New("no CPython in this process")
	r := New(Options{Target: timeline.Target{PID: targetPID}, Stacks: stacks})
	if _, err := r.Begin(Spec{ID: "script", Patient: true}); err != nil {
		t.Fatal(err)
	}
	if run := <-stacks.run; !run.Patient {
		t.Error("the stacks do not know that they may have to wait")
	}
	mustEnd(t, r, "script", Ending{})
}

func TestAClampIsSaid(t *testing.T) {
	r := newTestRecorder(&fakeStacks{})
	mustBegin(t, r, Spec{ID: "a", Interval: time.Nanosecond, FigureInterval: time.Second})
	rec := mustEnd(t, r, "a", Ending{})
	if !hasNote(rec, "interval") {
		t.Errorf("notes %v do not say that the interval is another", rec.Notes)
	}
	if got, want := fmt.Sprint(rec.Sampling.Asked, rec.Sampling.Interval, rec.Sampling.Clamps), "1ns 50µs [{interval 1ns 50µs}]"; got != want {
		t.Errorf("asked, kept and clamps: %s, want %s", got, want)
	}
	if got := fmt.Sprint(rec.Notes); !strings.Contains(got, "interval 1 ns was asked for; 50 µs is the shortest") {
		t.Errorf("notes %s do not say it as people write intervals", got)
	}
	r = newTestRecorder(&fakeStacks{})
	mustBegin(t, r, Spec{ID: "b", Interval: 2 * time.Hour})
	rec = mustEnd(t, r, "b", Ending{})
	if got, want := fmt.Sprint(rec.Sampling.Clamps), "[{interval 2h0m0s 1h0m0s}]"; got != want {
		t.Errorf("clamps: %s, want %s", got, want)
	}
}

// What a report recommends is what a recording keeps.
func TestTheIntervalThatIsRecommendedIsKept(t *testing.T) {
	for _, interval := range []time.Duration{timeline.MaxInterval, timeline.DefaultInterval, 500 * time.Microsecond, 100 * time.Microsecond, 60 * time.Microsecond} {
		finer := timeline.FinerInterval(interval)
		if spec, clamps := (Spec{Interval: finer}).withDefaults(); finer <= 0 || finer >= interval || spec.Interval != finer || len(clamps) != 0 {
			t.Errorf("after %v, %v is recommended and %v is kept, %v", interval, finer, spec.Interval, clamps)
		}
	}
	if finer := timeline.FinerInterval(timeline.MinInterval); finer != 0 {
		t.Errorf("after the shortest interval, %v is recommended", finer)
	}
}
