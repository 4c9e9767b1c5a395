package pystack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// recursion is DEPTH calls deep between outer and bottom; DOWN goes on.
const recursion = `
import sys
import harness

sys.setrecursionlimit(10_000_000)

def bottom(n=harness.turns(300)):
    for i in range(n):
        pass

DOWN

harness.drive(outer)
`

// waysDown are the ways to go deep, and how deep each is tried.
var waysDown = []struct {
	name, source string
	depths       []int
	throughC     bool
}{
	{"calls", `
def down(n):
    if n:
        return down(n - 1)
    for turn in range(TURNS):
        bottom()

def outer():
    down(DEPTH)
`, []int{50, 1000, 5000, 200_000}, false},
	{"through C", `
def down(n):
    if n:
        return max([n], key=lambda _: down(n - 1))
    for turn in range(TURNS):
        bottom()

def outer():
    down(DEPTH)
`, []int{300, 2000}, true},
	{"generators and calls", `
def down(n):
    if n:
        return sum(through(n))
    for turn in range(TURNS):
        bottom()
    return 0

def through(n):
    yield down(n - 1)

def outer():
    down(DEPTH)
`, []int{300, 1000}, true},
	{"generators", `
def down(n):
    if n:
        yield from down(n - 1)
    else:
        for turn in range(TURNS):
            bottom()
        yield n

def outer():
    list(down(DEPTH))
`, []int{60, 80, 300, 900, 5000}, false},
	{"coroutines", `
async def down(n):
    if n:
        return await down(n - 1)
    for turn in range(TURNS):
        bottom()

def outer():
    try:
        down(DEPTH).send(None)
    except StopIteration:
        pass
`, []int{60, 80, 300, 900, 5000}, false},
}

func TestDeepRecursionKeepsItsEnds(t *testing.T) {
	turn := 0
	for _, way := range waysDown {
		for _, depth := range way.depths {
			turn++
			t.Run(fmt.Sprint(way.name, "/", depth), func(t *testing.T) {
				eachVersionInTurn(t, turn, func(t *testing.T, python truth.Interpreter) {
					if way.throughC && depth > 300 && (python.Minor == "3.12" || python.Minor == "3.13") {
						t.Skip("it limits recursion through C to some hundred calls")
					}
					source := strings.NewReplacer("DOWN", way.source).Replace(recursion)
					source = strings.NewReplacer("DEPTH", fmt.Sprint(depth), "TURNS", fmt.Sprint(50+depth/100)).Replace(source)
					p := attachTo(t, truth.Start(t, python, truth.Workload{Name: "recursion", Source: source}))
					time.Sleep(200 * time.Millisecond)
					call := 1 + strings.Count(source[:strings.Index(source, "        bottom()")], "\n")
					retry.Again(t, func(t *retry.Attempt) { checkEnds(t, p, depth, call) })
				})
			})
		}
	}
}

// checkEnds samples a recursion: most of the time its stack has to go from <module> by outer to the
// line of down that calls bottom.
func checkEnds(t *retry.Attempt, p *Process, depth, call int) {
	_, rec, stats := sampleFor(t, p, 400*time.Millisecond, SampleOptions{Budget: -1})
	whole, all := 0.0, 0.0
	elided := 0
	for _, s := range rec.Threads[mainThread(t, rec)].Spans {
		all += (s.End - s.Start).Seconds()
		var stack []timeline.Frame // leaf first
		var names []string
		count := 0
		for n := s.Node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
			f := rec.Frames[rec.Nodes[n].Frame]
			stack, names = append(stack, f), append(names, f.Function)
			if count += f.Elided; f.Elided > 0 && !strings.HasPrefix(f.Function, "down") && f.Function != "through" {
				t.Fatalf("%d frames of %s left out, want them of down", f.Elided, f.Function)
			}
		}
		if len(names) > 0 && names[0] == "bottom" && names[1] == "down" && stack[1].Line == call &&
			slices.Contains(names, "outer") && names[len(names)-1] == "<module>" {
			whole += (s.End - s.Start).Seconds()
			elided = max(elided, count)
		}
	}
	calls := float64(stats.Calls) / float64(stats.Samples)
	t.Logf("%.0f %% of the time at the bottom; about %d left out; %d nodes, %d ticks, %.0f µs CPU and %.2f calls a tick, lost %d of %d", 100*whole/all, elided,
		len(rec.Nodes), stats.Samples, float64(stats.CPU.Microseconds())/float64(stats.Samples), calls, stats.Lost, stats.Reads)
	if depth <= 1000 && calls > 10 {
		t.Errorf("%.1f calls a tick: the stack's frames are searched at most of them", calls)
	}
	if whole < 0.5*all {
		t.Errorf("%.0f %% of the time has its stack from <module> to the call of bottom, want most", 100*whole/all)
	}
	if wrong := elided*2 < depth-keptWhole || elided > 2*depth; wrong {
		t.Errorf("about %d frames left out of %d", elided, depth)
	}
}
