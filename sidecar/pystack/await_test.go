package pystack

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/pystack/truth"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// waiters wait in an event loop in every way there is, and say how long each does.
var waiters = truth.Workload{Name: "waiters", Source: `
import asyncio, time, types
import harness

SPENT = {}

def spent(name, seconds):
    SPENT[name] = SPENT.get(name, 0) + seconds * 1e9

async def plain(seconds):
    await asyncio.sleep(seconds)
    spent("plain", seconds)

async def items():
    for n in range(2):
        await asyncio.sleep(0.02)
        spent("items", 0.02)
        yield n

@types.coroutine
def generator():
    yield from asyncio.sleep(0.05).__await__()
    spent("generator", 0.05)

class Awaitable:
    def __await__(self):
        yield from asyncio.sleep(0.05).__await__()
        spent("Awaitable.__await__", 0.05)

class Wrapped:
    def __await__(self):
        return plain(0.02).__await__()

async def together():
    await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.03))
    spent("together", 0.03)

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

func TestWhatALoopWaitsFor(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target, err := truth.Launch(python.Path, waiters, truth.Settings{Held: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(target.Kill)
		p := attachTo(t, target)
		target.Go()
		_, rec, stats := sampleFor(t, p, 1500*time.Millisecond, SampleOptions{Budget: -1})
		measured, err := target.Stop()
		if err != nil {
			t.Fatal(err)
		}
		got := weights(rec, mainThread(t, rec), func(s timeline.Span, stack truth.Sample) string {
			for n := s.Node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
				if f := rec.Frames[rec.Nodes[n].Frame]; f.Suspended && measured.SpentNs[f.Function] > 0 {
					return f.Function
				}
			}
			return ""
		})
		distance := truth.Distance(got, measured.SpentNs)
		t.Logf("distance %.4f; %.1f µs CPU and %.2f calls a tick", distance, float64(stats.CPU.Nanoseconds())/1000/float64(stats.Samples), float64(stats.Calls)/float64(stats.Samples))
		if distance > 0.06 && stats.Missed*50 > stats.Samples {
			t.Skipf("the machine is too busy for shares: %d of %d samples missed", stats.Missed, stats.Samples+stats.Missed)
		}
		if distance > 0.06 {
			t.Errorf("got %v, the program itself says %v", got, measured.SpentNs)
		}
	})
}
