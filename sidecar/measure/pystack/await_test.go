package pystack

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// waiters wait in an event loop in every way there is, and say how long each does.
var waiters = truth.Workload{Name: "waiters", Source: `
import asyncio, time, types
import harness

SPENT = {}

def spent(name, start):
    SPENT[name] = SPENT.get(name, 0) + time.monotonic_ns() - start

async def plain(seconds):
    start = time.monotonic_ns()
    await asyncio.sleep(seconds)
    spent("plain", start)

async def items():
    for n in range(2):
        start = time.monotonic_ns()
        await asyncio.sleep(0.02)
        spent("items", start)
        yield n

@types.coroutine
def generator():
    start = time.monotonic_ns()
    yield from asyncio.sleep(0.05).__await__()
    spent("generator", start)

class Awaitable:
    def __await__(self):
        start = time.monotonic_ns()
        yield from asyncio.sleep(0.05).__await__()
        spent("Awaitable.__await__", start)

class Wrapped:
    def __await__(self):
        return plain(0.02).__await__()

async def together():
    start = time.monotonic_ns()
    await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.03))
    spent("together", start)

async def serve():
    await plain(0.03)
    async for item in items():
        pass
    await generator()
    await Awaitable()
    await Wrapped()
    await together()

def one_round():
    asyncio.run(serve())

harness.drive(one_round, lambda: {"spent_ns": SPENT})
`}

// timeIn is the main thread's time by the innermost function on the stack that counts.
func timeIn(t testing.TB, rec *timeline.Recording, counts func(timeline.Frame) bool) map[string]float64 {
	return weights(rec, mainThread(t, rec), func(s timeline.Span, _ truth.Sample) string {
		for n := s.Node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
			if f := rec.Frames[rec.Nodes[n].Frame]; counts(f) {
				return f.Function
			}
		}
		return ""
	})
}

func TestWhatALoopWaitsFor(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(t *retry.Attempt) {
			r := sampleHeld(t, python, waiters, 1500*time.Millisecond, SampleOptions{Budget: -1})
			rec, measured, stats := r.rec, r.measured, r.stats
			got := timeIn(t, rec, func(f timeline.Frame) bool { return f.Suspended && measured.SpentNs[f.Function] > 0 })
			distance := truth.Distance(got, measured.SpentNs)
			t.Logf("distance %.4f; %.1f µs CPU and %.2f calls a tick", distance, float64(stats.CPU.Nanoseconds())/1000/float64(stats.Samples), float64(stats.Calls)/float64(stats.Samples))
			if distance > 0.06 {
				t.Errorf("got %v, the program itself says %v", got, measured.SpentNs)
			}
		})
	})
}

// A loop that another thread has made idle for good, as far as the GIL shows: that one had it last.
const loopAndThread = `
import asyncio, threading, time
async def cell():
    await asyncio.sleep(60)
loop = asyncio.new_event_loop()
coroutine = cell()
task = loop.create_task(coroutine)
def last():
    time.sleep(0.2)
    print(id(coroutine), flush=True)
    time.sleep(60)
threading.Thread(target=last, daemon=True).start()
loop.run_forever()
`

// What a loop waits for that could not be read at first is looked for again.
func TestWhatALoopWaitsForIsLookedForAgain(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target := exec.Command(python.Path, "-c", loopAndThread)
		out, err := target.StdoutPipe()
		if err == nil {
			err = target.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		defer target.Wait()
		defer target.Process.Kill()
		coroutine, looks := uint64(0), 0
		if _, err := fmt.Fscan(out, &coroutine); err != nil {
			t.Fatal(err)
		}
		p, err := Attach(target.Process.Pid, Options{Wait: 5 * time.Second})
		if errors.Is(err, ErrPermission) {
			t.Skipf("this user may not read other processes: %v", err)
		} else if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		_, rec, _ := sampleFor(t, p, 200*time.Millisecond, SampleOptions{Coroutine: func(int) uint64 {
			if looks++; looks < 3 {
				return 0
			}
			return coroutine
		}})
		got := timeIn(t, rec, func(f timeline.Frame) bool { return f.Suspended && f.Function == "cell" })
		if got["cell"] < float64(100*time.Millisecond) {
			t.Errorf("got %v after %d looks, want the coroutine's time", got, looks)
		}
	})
}

// thrown catch what is thrown into them while they wait for each other, and clean up for
// a while.
var thrown = truth.Workload{Name: "thrown", Source: `
import asyncio, time
import harness

SPENT = {}

def clean_up(name):
    start = time.monotonic_ns()
    time.sleep(0.02)
    SPENT[name] = SPENT.get(name, 0) + time.monotonic_ns() - start

async def innermost():
    try:
        await asyncio.sleep(9)
    finally:
        clean_up("innermost")

async def middle():
    try:
        await innermost()
    finally:
        clean_up("middle")

async def outermost():
    try:
        await middle()
    except asyncio.CancelledError:
        clean_up("outermost")

async def serve():
    task = asyncio.create_task(outermost())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await task

def one_round():
    asyncio.run(serve())

harness.drive(one_round, lambda: {"spent_ns": SPENT})
`}

func TestWhatCoroutinesDoWithWhatIsThrownIntoThem(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(t *retry.Attempt) {
			r := sampleHeld(t, python, thrown, time.Second, SampleOptions{Budget: -1})
			got := timeIn(t, r.rec, func(f timeline.Frame) bool { return r.measured.SpentNs[f.Function] > 0 })
			if distance := truth.Distance(got, r.measured.SpentNs); distance > 0.06 {
				t.Errorf("got %v, the program itself says %v", got, r.measured.SpentNs)
			}
		})
	})
}

// awaitDeep awaits DEPTH calls deep.
const awaitDeep = `
import asyncio, sys
import harness

sys.setrecursionlimit(10_000_000)

async def bottom():
    await asyncio.sleep(0.2)

async def down(n):
    if n:
        return await down(n - 1)
    await bottom()

async def outer():
    await down(DEPTH)

def one_round():
    asyncio.run(outer())

harness.drive(one_round)
`

func TestDeepAwaitsKeepTheirEnds(t *testing.T) {
	for _, depth := range []int{200, 300, 900, 3000} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			eachVersion(t, func(t *testing.T, python truth.Interpreter) {
				source := strings.ReplaceAll(awaitDeep, "DEPTH", fmt.Sprint(depth))
				retry.Again(t, func(t *retry.Attempt) {
					rec := sampleHeld(t, python, truth.Workload{Name: "deep", Source: source}, 400*time.Millisecond, SampleOptions{Budget: -1}).rec
					whole, all := 0.0, 0.0
					for _, s := range rec.Threads[mainThread(t, rec)].Spans {
						all += (s.End - s.Start).Seconds()
						seen, down, elided := make(map[string]bool), 0, 0
						for n := s.Node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
							f := rec.Frames[rec.Nodes[n].Frame]
							elided += f.Elided
							if seen[f.Function] = true; f.Function == "down" && f.Suspended {
								down++
							}
						}
						if !seen["bottom"] || !seen["outer"] || !seen["<module>"] || down == 0 {
							continue
						}
						whole += (s.End - s.Start).Seconds()
						if got := down + elided; got < depth*3/4 || got > depth*5/4 {
							t.Errorf("%d awaits and about %d left out, want %d", down, elided, depth)
						}
					}
					t.Logf("%.0f %% of the time from <module> to bottom, %d nodes", 100*whole/all, len(rec.Nodes))
					if whole < 0.5*all {
						t.Errorf("%.0f %% of the time has its stack from <module> to bottom, want most", 100*whole/all)
					}
				})
			})
		})
	}
}
