package pystack

import (
	"context"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

func TestATargetLeavesItsShareWhileItHardlyRunsAndOthersDo(t *testing.T) {
	own := limit{descendantsBudget, takenByMany}
	s := new(Sharing)
	for _, at := range []struct {
		what  string
		busy  busyness
		work  bool
		left  bool
		given float64
	}{
		{"it begins", 1, true, false, descendantsBudget},
		{"it looks now and then", 0.09, true, true, targetBudget},
		{"what runs for a moment counts for a longer interval", 0.2, true, true, targetBudget},
		{"it works", 0.26, true, false, descendantsBudget},
		{"it does half of the time", 0.2, true, false, descendantsBudget},
		{"it waits, and there is nobody else", 0, false, false, descendantsBudget},
	} {
		s.work(at.work)
		if left := s.leave(at.busy); left != at.left {
			t.Errorf("%s: it leaves its share: %t, want %t", at.what, left, at.left)
		}
		if got := s.given(own).budget; got != at.given {
			t.Errorf("%s: descendants have %g of a core, want %g", at.what, got, at.given)
		}
	}
	var none *Sharing
	if none.leave(0) || none.given(own) != own {
		t.Error("without a sharing each has its own")
	}
}

func TestATargetThatTrainsKeepsItsShare(t *testing.T) {
	for _, trains := range []bool{false, true} {
		sharing := new(Sharing)
		sharing.work(true)
		s := &session{opts: SampleOptions{Interval: time.Millisecond, Sharing: sharing}, asked: time.Millisecond, busy: 0.05, queues: trains}
		s.share()
		if seldom := s.asked > time.Millisecond; seldom == trains {
			t.Errorf("trains: %t; it is read each %v", trains, s.asked)
		}
	}
}

func TestBusynessIsOfTheLastTime(t *testing.T) {
	busy := busyness(1)
	for range 1200 { // of 1 ms
		busy.add(false, int64(time.Millisecond))
	}
	if busy > 0.06 {
		t.Errorf("%.2f after 1.2 s in which nothing ran", busy)
	}
	for range 24 { // of 5 ms
		busy.add(true, int64(5*time.Millisecond))
	}
	if busy < 0.25 {
		t.Errorf("%.2f after 0.12 s of work", busy)
	}
	if busy.add(false, int64(time.Minute)); busy != 0 {
		t.Errorf("%.2f after a minute in which nothing ran", busy)
	}
}

// launcher looks, ten times a second, whether its processes are there, and does nothing else.
const launcher = `
import os
import time

import harness

def working():
    while True:
        sum(range(1000))

for _ in range(6):
    if os.fork() == 0:
        working()
harness.drive(lambda: time.sleep(0.1))
`

func TestALauncherLeavesTheReadingToItsProcesses(t *testing.T) {
	const children = 6
	target := truth.Start(t, truth.Any(t), truth.Workload{Name: "launcher", Source: launcher})
	p := attachTo(t, target)
	pids := endlessForks(t, target.Pid, children)
	// read returns how often the target was read, and one of its processes.
	read := func(sharing *Sharing) (launcher, process float64) {
		tape := newTape()
		tape.Describe(func(r *timeline.Recording) { r.Processes = make([]timeline.Process, children+1) })
		s := NewSampler(tape, SamplerOptions{Sharing: sharing})
		closeForks := addForks(t, s, p, pids)
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
		defer cancel()
		sampled := make(chan Stats)
		go func() {
			stats, err := p.Sample(ctx, tape, SampleOptions{Sharing: sharing})
			if err != nil {
				t.Error(err)
			}
			sampled <- stats
		}()
		s.Run(ctx)
		stats := <-sampled
		closeForks()
		rec := tape.Snapshot(tape.Since(timeline.Monotonic()))
		for _, p := range rec.Processes[1:] {
			process += float64(p.Stacks.Samples) / children
		}
		return float64(stats.Samples), process
	}
	retry.Again(t, func(try *retry.Attempt) {
		ownLauncher, ownProcess := read(nil)
		launcher, process := read(new(Sharing))
		t.Logf("the launcher was read %.0f times, and %.0f where it leaves its share, a process of it %.0f and %.0f times", ownLauncher, launcher, ownProcess, process)
		if launcher > 0.8*ownLauncher || process < 1.25*ownProcess {
			try.Errorf("the launcher was read %.0f times and %.0f, a process of it %.0f and %.0f times", ownLauncher, launcher, ownProcess, process)
		}
	})
}
