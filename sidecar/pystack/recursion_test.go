package pystack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/noise"
	"github.com/omni-perf/omni-perf/sidecar/pystack/truth"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// recursion is DEPTH calls deep between outer and bottom.
const recursion = `
import sys
import harness

sys.setrecursionlimit(10_000_000)

def bottom(n=harness.turns(300)):
    for i in range(n):
        pass

def down(n):
    if n:
        return down(n - 1)
    for turn in range(TURNS):
        bottom()

def outer():
    down(DEPTH)

harness.drive(outer)
`

func TestDeepRecursionKeepsItsEnds(t *testing.T) {
	for _, depth := range []int{50, 1000, 5000, 200_000} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			eachVersion(t, func(t *testing.T, python truth.Interpreter) {
				source := strings.NewReplacer("DEPTH", fmt.Sprint(depth), "TURNS", fmt.Sprint(50+depth/200)).Replace(recursion)
				p := attachTo(t, truth.Start(t, python, truth.Workload{Name: "recursion", Source: source}))
				time.Sleep(200 * time.Millisecond)
				noise.Again(t, func(t *noise.Attempt) {
					_, rec, stats := sampleFor(t, p, time.Second, SampleOptions{Budget: -1})
					whole, all := 0.0, 0.0
					elided := 0
					for _, s := range rec.Threads[mainThread(t, rec)].Spans {
						all += (s.End - s.Start).Seconds()
						var names []string
						count := 0
						for n := s.Node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
							f := rec.Frames[rec.Nodes[n].Frame]
							names = append(names, f.Function)
							if count += f.Elided; f.Elided > 0 && f.Function != "down" {
								t.Fatalf("%d frames of %s left out, want them of down", f.Elided, f.Function)
							}
						}
						if len(names) > 0 && names[0] == "bottom" && names[1] == "down" && slices.Contains(names, "outer") && names[len(names)-1] == "<module>" {
							whole += (s.End - s.Start).Seconds()
							elided = max(elided, count)
						}
					}
					t.Logf("%.0f %% of the time at the bottom; about %d left out; %d nodes, %d ticks, %.0f µs CPU and %.2f calls a tick, lost %d of %d", 100*whole/all, elided,
						len(rec.Nodes), stats.Samples, float64(stats.CPU.Microseconds())/float64(stats.Samples), float64(stats.Calls)/float64(stats.Samples), stats.Lost, stats.Reads)
					if whole < 0.5*all {
						t.Errorf("%.0f %% of the time has its stack from <module> to bottom, want most", 100*whole/all)
					}
					if wrong := elided*2 < depth-keptWhole || elided > 2*depth; wrong {
						t.Errorf("about %d frames left out of %d", elided, depth)
					}
				})
			})
		})
	}
}
