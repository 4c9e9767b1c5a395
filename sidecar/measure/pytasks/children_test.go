package pytasks

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// many forks processes that do the same, and prints their numbers.
const many = `
import json, os, time
%s
async def wait(seconds):
    await asyncio.sleep(seconds)
async def some(count, seconds):
    while True:
        await asyncio.gather(*(wait(seconds) for _ in range(count)))
def naps():
    while True: time.sleep(0.02)
children = []
for n in range(%d):
    child = os.fork()
    if not child:
        %s
    children.append(child)
print(json.dumps(children), flush=True)
time.sleep(600)
`

// collectFrom collects the tasks of children for some seconds, and returns what a second of that costs.
func collectFrom(t *retry.Attempt, count int, imports, does string, seconds float64) (*timeline.Recording, *round, float64) {
	t.Helper()
	_, line := start(t, truth.Any(t), "-c", fmt.Sprintf(many, imports, count, does))
	var pids []int
	if err := json.Unmarshal([]byte(line), &pids); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	var sources []Source
	for i, pid := range pids {
		p, err := pystack.Attach(pid, pystack.Options{Wait: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		sources = append(sources, Source{i + 1, p})
	}
	b := timeline.NewBuilder(timeline.Options{})
	r := (&Collector{Sources: func() []Source { return sources }}).begin(b)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds*float64(time.Second)))
	defer cancel()
	r.collect(ctx)
	return b.Snapshot(b.Since(timeline.Monotonic())), r, r.reading.CPU.Seconds() / seconds
}

// Many processes without tasks are looked at seldom, though they run now and then, whether asyncio is imported in them or not:
// that costs less than half of a look at each of them at every tick of the grid. What a look takes differs tenfold between
// machines, and on one from minute to minute, so it is measured, too.
func TestProcessesWithoutTasksCostLittle(t *testing.T) {
	for _, imports := range []string{"import asyncio", ""} {
		retry.Again(t, func(t *retry.Attempt) {
			_, r, cost := collectFrom(t, 40, imports, "naps()", 6)
			each := r.costOfLooks()
			t.Logf("%q: %.2f %% of a core, a look at each takes %v", imports, 100*cost, each)
			if always := each.Seconds() / grid.Seconds(); cost > always/2 {
				t.Errorf("%q: 40 processes without tasks cost %.2f %% of a core; to look at each every %v would cost %.2f %%",
					imports, 100*cost, grid, 100*always)
			}
		})
	}
}

// costOfLooks is the CPU time of one look at each process, where each look is some time after the last.
func (r *round) costOfLooks() time.Duration {
	const times = 20
	var spent time.Duration
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range times {
		time.Sleep(50 * time.Millisecond)
		before := timeline.ThreadCPU()
		for _, s := range r.series {
			_ = processCPU(s.reader.pid)
			_, _ = s.reader.Read()
		}
		spent += timeline.ThreadCPU() - before
	}
	return spent / times
}

// All processes together keep to the budget, and one with many tasks leaves their part to those with few.
func TestProcessesShareTheBudget(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		_, r, cost := collectFrom(t, 4, "import asyncio", "asyncio.run(some(3000 if n == 0 else 10, 0.05))", 3)
		t.Logf("%.2f %% of a core; %d reads, the longest pause %v", 100*cost, r.reading.Reads, r.reading.Longest.Duration())
		if cost > 1.5*budget { // whatever a read takes
			t.Errorf("reading cost %.2f %% of a core", 100*cost)
		}
		if r.reading.Reads < 100 {
			t.Errorf("%d reads of 4 processes in 3 s: those with few tasks waited for that with many", r.reading.Reads)
		}
	})
}
