package pystack

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/spare"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestHowAWorkerGoesAboutItWhereFewCPUsAreFree(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const long, short = time.Minute, time.Second
	for _, c := range []struct {
		name  string
		keeps bool
		was   manner
		so    time.Duration
		free  float64
		want  manner
	}{
		{"a CPU is free", true, alone, long, 1.5, alone},
		{"none is, of a short recording", true, alone, short, 0, alone},
		{"none is", true, alone, long, 0, leading},
		{"none is, of descendants", false, alone, long, 0, modest},
		{"hardly one is, and was before", true, alone, long, 0.85, alone},
		{"hardly one is, and none was before", true, leading, long, 0.85, leading},
		{"one is again", true, leading, long, 1, alone},
		{"one is again, of descendants", false, modest, long, 1, alone},
		{"somebody is to be read again", false, idle, long, 0.85, alone},
	} {
		w := newWorker(c.keeps)
		w.be(c.was)
		w.suit(c.so, spare.CPUs(func() (free, cores float64) { return c.free, 2 }))
		if w.is != c.want || (w.away != nil) != (w.is == alone) {
			t.Errorf("%s: it is %d, want %d", c.name, w.is, c.want)
		}
		w.end()
	}
}

func TestThreadsOfGoWhileWorkersSample(t *testing.T) {
	for _, c := range []struct {
		workers [manners]int
		want    int
	}{
		{[manners]int{}, 16},
		{[manners]int{idle: 1}, 16},
		{[manners]int{alone: 1, modest: 1}, 16},
		{[manners]int{leading: 1, idle: 1}, 1},
		{[manners]int{leading: 1, modest: 1}, 1},
		{[manners]int{modest: 1}, 1},
		{[manners]int{leading: 2, modest: 2}, 1},
		{[manners]int{leading: 1, alone: 1}, 16},
	} {
		if got := (&scheduler{workers: c.workers}).want(16); got != c.want {
			t.Errorf("%v: %d Ps, want %d", c.workers, got, c.want)
		}
	}
	if got := (&scheduler{}).want(2); got != enough {
		t.Errorf("on two CPUs %d Ps, want %d", got, enough)
	}
}

// However a worker sleeps it wakes up when it should, all others go on, and their CPU time is not its.
func TestWorkersSleepAndAllOthersGoOn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const ticks, interval = 50, 4 * time.Millisecond
	for _, is := range []manner{alone, leading, modest} {
		ctx, stop := context.WithCancel(t.Context())
		var computed atomic.Int64
		go func() {
			for ctx.Err() == nil {
				for end := timeline.ThreadCPU() + time.Millisecond; timeline.ThreadCPU() < end; {
					computed.Add(1)
				}
				time.Sleep(time.Millisecond)
			}
		}()
		w := newWorker(is == leading)
		w.be(is)
		c := newClock(w, interval)
		began, before := time.Now(), w.cpu()
		for range ticks {
			if !c.sleep(ctx) {
				t.Fatalf("%d: the end of a sleep is taken for that of all", is)
			}
			c.next(c.now())
		}
		passed, used := time.Since(began), w.cpu()-before
		stop()
		if c.sleep(ctx) {
			t.Errorf("%d: it sleeps on after the end", is)
		}
		w.end()
		if passed < ticks*interval*8/10 || passed > 10*ticks*interval {
			t.Errorf("%d: %d sleeps of %v took %v", is, ticks, interval, passed)
		}
		if computed.Load() == 0 || used > passed/5 {
			t.Errorf("%d: in %v it used %v; another goroutine went round %d times", is, passed, used, computed.Load())
		}
	}
}
