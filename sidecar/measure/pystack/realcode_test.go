package pystack

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

var (
	realPackages = flag.String("realcode", "", "sample imports and tests of the packages in `FOLDER`/VERSION, which tools/realcode fetches, too")
	realSamples  = flag.Int64("realcode-samples", 100_000, "stacks to read of them on each version")
)

// realPrograms are those of one version: the standard library at work, and with -realcode the tests of two
// packages and imports of large ones, as far as there are wheels of them.
func realPrograms(t *testing.T, minor string) (programs []truth.RealProgram, samples int64) {
	if *realPackages == "" {
		return []truth.RealProgram{truth.Library}, 0
	}
	folder, err := filepath.Abs(filepath.Join(*realPackages, minor))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		needs     []string
		arguments []string
	}{
		{[]string{"pytest", "networkx"}, []string{"pytest", "networkx.classes.tests.test_graph", "networkx.classes.tests.test_digraph", "networkx.utils.tests"}},
		{[]string{"pytest", "sympy", "hypothesis"}, []string{"pytest", "sympy.unify.tests", "sympy.strategies.tests", "sympy.sets.tests.test_contains", "sympy.sets.tests.test_conditionset"}},
		{[]string{"pandas"}, []string{"import", "pandas"}},
		{[]string{"sklearn"}, []string{"import", "sklearn.ensemble", "sklearn.linear_model", "sklearn.cluster"}},
		{[]string{"torch"}, []string{"import", "torch", "torch.utils.data", "torch._dynamo"}},
	} {
		missing := ""
		for _, name := range p.needs {
			if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
				missing = name
			}
		}
		if missing != "" {
			t.Logf("%v is left out: there is no %s for %s in %s", p.arguments, missing, minor, folder)
			continue
		}
		programs = append(programs, truth.RealProgram{Name: strings.Join(p.arguments, " "), Arguments: p.arguments, Libraries: folder})
	}
	if len(programs) == 0 {
		t.Skipf("there are no packages in %s; tools/realcode fetches them", folder)
	}
	return programs, *realSamples / int64(len(programs))
}

// TestRealCode compares stacks of code that nobody wrote for a test with what the interpreter's own tracing
// says that it calls.
func TestRealCode(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		programs, samples := realPrograms(t, python.Minor)
		traces, all := 3, realCounts{}
		if samples == 0 {
			traces, samples = 1, 1
		}
		for _, program := range programs {
			t.Run(program.Name, func(t *testing.T) {
				pairs := make(truth.Pairs)
				for range traces {
					if err := pairs.TraceCalls(python.Path, program); err != nil {
						t.Fatal(err)
					}
				}
				var counts realCounts
				for counts.samples < samples {
					counts.add(sampleReal(t, python.Path, program, pairs))
				}
				t.Logf("%v, %d pairs", counts, len(pairs))
				all.add(counts)
			})
		}
		t.Logf("all: %v", all)
		limit := 1e-4 * float64(all.samples)
		if all.samples < 100_000 { // three standard deviations more for few of them
			limit += 3 * math.Sqrt(max(limit, 1))
		}
		if float64(all.impossible) > limit {
			t.Errorf("%d of %d stacks are impossible, at most 0.01 %%: %s", all.impossible, all.samples, all.example)
		}
		if all.stacks < 100 {
			t.Errorf("%d different stacks of %d were judged", all.stacks, all.samples)
		}
	})
}

// realCounts counts stacks read.
type realCounts struct {
	stacks                         int // different ones, of each run
	samples, cut, lost, impossible int64
	cpu                            time.Duration
	example                        string
}

func (c *realCounts) add(d realCounts) {
	c.stacks += d.stacks
	c.samples += d.samples
	c.cut += d.cut
	c.lost += d.lost
	c.impossible += d.impossible
	c.cpu += d.cpu
	if d.example != "" {
		c.example = d.example
	}
}

func (c realCounts) String() string {
	share := func(n int64) float64 { return 100 * float64(n) / float64(max(c.samples, 1)) }
	return fmt.Sprintf("%d samples of %d stacks, %.4f %% impossible, %.2f %% cut, %.3f %% lost, %.1f µs each %s", c.samples, c.stacks, share(c.impossible),
		share(c.cut), share(c.lost), float64(c.cpu.Microseconds())/float64(max(c.samples, 1)), c.example)
}

// sampleReal runs a program once from beginning to end.
func sampleReal(t *testing.T, python string, program truth.RealProgram, pairs truth.Pairs) realCounts {
	t.Helper()
	target, err := program.Launch(python)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Kill()
	p, err := Attach(target.Pid, Options{Wait: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(context.Background())
	tape := newTape()
	type result struct {
		stats Stats
		err   error
	}
	done := make(chan result)
	go func() {
		stats, err := p.Sample(ctx, tape, SampleOptions{Interval: 250 * time.Microsecond, Budget: -1})
		done <- result{stats, err}
	}()
	ran := target.Run()
	cancel()
	sampled := <-done
	if ran != nil || sampled.err != nil {
		t.Fatal(ran, sampled.err)
	}
	counts := realCounts{samples: sampled.stats.Reads, cut: sampled.stats.Truncated, lost: sampled.stats.Lost, cpu: sampled.stats.CPU}
	rec := tape.Snapshot(tape.Since(timeline.Monotonic()))
	judged := make(map[timeline.NodeID]string)
	for i, s := range tape.sets {
		why, known := judged[s.node]
		if !known {
			if pair, impossible := pairs.Impossible(functionsOf(rec, s.node)); impossible {
				why = fmt.Sprintf("%v does not call %v", pair[0], pair[1])
			}
			judged[s.node] = why
			counts.stacks++
		}
		if why == "" {
			continue
		}
		counts.example = why
		counts.impossible++
		for _, later := range tape.sets[i+1:] { // as often as it was seen
			if later.id == s.id {
				counts.impossible += int64((later.at - s.at) / timeline.Nanos(time.Millisecond))
				break
			}
		}
	}
	return counts
}

// functionsOf is a stack's functions, root first, without those that were not called by the ones below and without the
// garbage collector, which is none: the interpreter's tracing knows nothing of it.
func functionsOf(rec *timeline.Recording, node timeline.NodeID) []truth.Function {
	if node == timeline.RootNode {
		return nil
	}
	stack := functionsOf(rec, rec.Nodes[node].Parent)
	f := rec.Frames[rec.Nodes[node].Frame]
	if f.Suspended || f.Elided > 0 || f == timeline.GarbageCollection {
		return stack
	}
	return append(stack, truth.Function{File: f.File, Name: f.Function, FirstLine: f.FirstLine})
}
