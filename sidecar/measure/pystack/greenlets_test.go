package pystack

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// greenlets wait in gevent's event loop in several ways, below calls from C, and say how long each does.
var greenlets = truth.Workload{Name: "greenlets", Source: `
import time
import gevent, gevent.event, gevent.queue
import harness

SPENT = {}

def spent(name, start):
    SPENT[name] = SPENT.get(name, 0) + time.monotonic_ns() - start

def nap():
    start = time.monotonic_ns()
    gevent.sleep(0.03)
    spent("nap", start)

def worker(event, queue):
    gevent.sleep(0.02)
    start = time.monotonic_ns()
    while time.monotonic_ns() < start + 5_000_000:
        pass
    spent("worker", start)
    event.set()
    gevent.sleep(0.02)
    queue.put(1)

def until(event):
    start = time.monotonic_ns()
    event.wait()
    spent("until", start)

def get(queue):
    start = time.monotonic_ns()
    queue.get()
    spent("get", start)

def one_round():
    list(map(lambda n: nap(), range(2)))
    event, queue = gevent.event.Event(), gevent.queue.Queue()
    gevent.spawn(worker, event, queue)
    before = SPENT.get("worker", 0)
    until(event)
    SPENT["until"] -= SPENT["worker"] - before
    get(queue)

harness.drive(one_round, lambda: {"spent_ns": SPENT})
`}

// What a program waits for with gevent is where its main greenlet was left, and not the hub that has the thread.
func TestWhatGeventWaitsFor(t *testing.T) {
	for _, minor := range truth.Minors {
		t.Run(minor, func(t *testing.T) {
			python := truth.Interpreter{Minor: minor, Path: truth.With(t, "gevent", minor)}
			retry.Again(t, func(t *retry.Attempt) {
				r := sampleHeld(t, python, greenlets, 1500*time.Millisecond, SampleOptions{Budget: -1})
				main := mainThread(t, r.rec)
				got := weights(r.rec, main, firstOf("nap", "worker", "until", "get"))
				distance := truth.Distance(got, r.measured.SpentNs)
				t.Logf("distance %.4f; %.1f µs CPU and %.2f calls a tick", distance, float64(r.stats.CPU.Nanoseconds())/1000/float64(r.stats.Samples), float64(r.stats.Calls)/float64(r.stats.Samples))
				if distance > 0.05 {
					t.Errorf("distance %.3f: got %v, the program itself says %v", distance, got, r.measured.SpentNs)
				}
				rootless := weights(r.rec, main, func(s timeline.Span, stack truth.Sample) string {
					if firstOf("nap", "until", "get")(s, stack) != "" && firstOf("one_round")(s, stack) == "" {
						return "rootless"
					}
					return ""
				})
				if rootless["rootless"] > 0 {
					t.Errorf("%.0f ms of waiting without its callers", rootless["rootless"]/1e6)
				}
			})
		})
	}
}
