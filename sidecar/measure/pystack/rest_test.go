package pystack

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// waiter is a program that mostly waits, and keeps its own clock.
const waiter = `
import time

import harness

SPENT = {"waiting": 0, "working": 0}

def waiting():
    time.sleep(2)

def working():
    end = time.perf_counter() + 0.1
    while time.perf_counter() < end:
        pass

def one_round():
    for part in (waiting, working):
        start = time.perf_counter_ns()
        part()
        SPENT[part.__name__] += time.perf_counter_ns() - start

harness.drive(one_round, lambda: {"spent_ns": SPENT})
`

// A process that waits is read less often, of which its times and the number of samples know nothing.
func TestAProcessThatWaitsIsReadLessOften(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(try *retry.Attempt) {
			r := sampleHeld(try, python, truth.Workload{Name: "waits", Source: waiter}, 4*time.Second, SampleOptions{Budget: -1})
			got := weights(r.rec, mainThread(t, r.rec), firstOf("waiting", "working"))
			distance := truth.Distance(got, r.measured.SpentNs)
			t.Logf("distance %.4f; %d samples, %d missed, %d reads", distance, r.stats.Samples, r.stats.Missed, r.stats.Reads)
			if distance > 0.01 {
				try.Errorf("got %v, the program itself says %v", got, r.measured.SpentNs)
			}
			due := float64(r.measured.WallNs) / 1e6
			if all := float64(r.stats.Samples + r.stats.Missed); all < 0.9*due || all > 1.05*due {
				try.Errorf("%d samples and %d missed in %.0f ms", r.stats.Samples, r.stats.Missed, due)
			}
			if reads := float64(r.stats.Reads); reads > 0.75*due {
				try.Errorf("%d reads in %.0f ms", r.stats.Reads, due)
			}
		})
	})
}

// idlers is a program with children, of which the last works and the others wait.
const idlers = `
import os
import time

import harness

def waiting():
    time.sleep(60)

def working():
    while True:
        sum(range(1000))

for number in range(CHILDREN):
    if os.fork() == 0:
        (waiting if number else working)()
harness.drive(lambda: time.sleep(0.01))
`

// Workers that wait leave the budget to those that work.
func TestWorkersThatWaitAreReadLessOften(t *testing.T) {
	const children = 40
	target := truth.Start(t, truth.Any(t), truth.Workload{Name: "idlers", Source: strings.Replace(idlers, "CHILDREN", fmt.Sprint(children), 1)})
	p := attachTo(t, target)
	pids := endlessForks(t, target.Pid, children)
	retry.Again(t, func(try *retry.Attempt) {
		tape := newTape()
		tape.Describe(func(r *timeline.Recording) { r.Processes = make([]timeline.Process, children+1) })
		s := NewSampler(tape, SamplerOptions{})
		closeForks := addForks(t, s, p, pids)
		ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
		defer cancel()
		s.Run(ctx)
		closeForks()
		rec := tape.Snapshot(tape.Since(timeline.Monotonic()))
		var busy, idle timeline.StackReading
		for i, th := range rec.Threads {
			how := rec.Processes[th.Process].Stacks
			if weights(rec, timeline.ThreadID(i), firstOf("working"))["working"] > 0 {
				busy = how
			} else {
				idle = how
			}
		}
		t.Logf("who works was read %d times, each %v, one that waits %d times, each %v", busy.Reads, busy.Interval, idle.Reads, idle.Interval)
		if busy.Reads < 4*idle.Reads || idle.Reads == 0 {
			try.Errorf("who works was read %d times, one that waits %d times", busy.Reads, idle.Reads)
		}
	})
}
