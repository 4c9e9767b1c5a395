package batches

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// The queue of a loader is by the readings since the first step, and not known by a few.
func TestQueuesOfLoaders(t *testing.T) {
	l := newLoop(1, timeline.Loader{Batch: 64, Workers: 2, Prefetch: 2}, timeline.Loader{Batch: 64, Workers: 1, Prefetch: 2})
	l.rec.Queues = []timeline.QueueReading{{At: 0, Ready: 4}, {At: -5, Ready: 4}}
	l.epoch(0, 50, 1, 3200)
	for i := range 40 { // 30 with none, 5 with one, 5 with four
		ready := 0
		if i >= 35 {
			ready = 4
		} else if i >= 30 {
			ready = 1
		}
		l.rec.Queues = append(l.rec.Queues, timeline.QueueReading{At: l.at + timeline.Nanos(i)*timeline.Nanos(time.Millisecond), Ready: ready})
	}
	for range leastReadings - 1 {
		l.rec.Queues = append(l.rec.Queues, timeline.QueueReading{At: l.at, Loader: 1, Ready: 2})
	}
	l.epoch(1, 50, 1, 3200)
	loaders, _ := Of(&l.rec, 0, l.steps)
	if len(loaders) != 2 {
		t.Fatalf("%d loaders", len(loaders))
	}
	if got, want := loaders[0].Queue, (Queue{Readings: 40, Mean: 25. / 40, Empty: 0.75, Most: 4}); got != want {
		t.Errorf("the queue is %+v, want %+v", got, want)
	}
	if got := loaders[1].Queue; got != (Queue{}) {
		t.Errorf("by few readings the queue is %+v", got)
	}
}

func TestWhatAQueueShows(t *testing.T) {
	for _, test := range []struct {
		queue        Queue
		empty, ready bool
	}{
		{},
		{queue: Queue{Readings: 30, Empty: 0.93, Most: 4}, empty: true},
		{queue: Queue{Readings: 30, Median: 1, Empty: 0.3, Most: 4}},
		{queue: Queue{Readings: 30, Median: 2, Empty: 0.3, Most: 4}},
		{queue: Queue{Readings: 30, Median: 2, Empty: 0.05, Most: 4}, ready: true},
		{queue: Queue{Readings: 30, Median: 4, Most: 4}, ready: true},
	} {
		if q := test.queue; q.IsEmpty() != test.empty || q.LieReady() != test.ready {
			t.Errorf("%+v: empty %t, ready %t", q, q.IsEmpty(), q.LieReady())
		}
	}
}
