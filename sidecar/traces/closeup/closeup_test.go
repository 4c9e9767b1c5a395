package closeup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/synth"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// analysed writes made-up traces and analyses them.
func analysed(t *testing.T, cfg synth.Config) (*traces.Analysis, *synth.Answers) {
	t.Helper()
	dir := t.TempDir()
	answers, err := synth.WriteDir(cfg, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	return analyse(t, dir), answers
}

func analyse(t *testing.T, path string) *traces.Analysis {
	t.Helper()
	a, err := traces.Run(context.Background(), []string{path}, kineto.Options{}, analyses.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// traceOf writes events as a trace.
func traceOf(t *testing.T, events ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(path, []byte(`{"traceEvents":[`+strings.Join(events, ",\n")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheMedianAndTheLongestStepOfTheRankThatWasIdleMost(t *testing.T) {
	a, answers := analysed(t, synth.Config{Seed: 4, Ranks: 3, Steps: 6, Straggler: 1, StragglerDelay: 9 * time.Millisecond, Stacks: true})
	list, err := Of(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	var lengths []int64
	for _, s := range answers.Ranks[1].Steps[:5] { // the last one is dropped
		lengths = append(lengths, s.End-s.Start)
	}
	slices.Sort(lengths)
	if len(list) != 3 {
		t.Fatalf("got %d steps, want the median, the longest, and that of another rank", len(list))
	}
	for i, want := range []struct {
		reason Reason
		rank   int
		length int64
	}{{Median, 1, lengths[2]}, {Longest, 1, lengths[4]}} {
		if c := list[i]; c.Reason != want.reason || c.Rank != want.rank || c.Length != want.length || c.Of != 5 || c.Report.DurationNS != c.Length {
			t.Errorf("got %s of rank %d, %d ns of %d, want %+v", c.Reason, c.Rank, c.Length, c.Of, want)
		}
	}
	if other := list[2]; other.Reason != Other || other.Rank == 1 || other.Step != list[0].Step {
		t.Errorf("got %s: step %d of rank %d, want step %d of another rank", other.Reason, other.Step, other.Rank, list[0].Step)
	}
}

// TestTheStepHasWhatRanInIt: kernels to the nanosecond, the device's activity as the
// table of steps has it, the threads' time as their records show it.
func TestTheStepHasWhatRanInIt(t *testing.T) {
	a, _ := analysed(t, synth.Config{Seed: 4, Ranks: 1, Steps: 4, Stacks: true})
	list, err := Of(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	c := list[0]
	ran := int64(0)
	for _, lane := range c.Report.Kernels {
		for i, n := range lane.LengthNS {
			if lane.Count[i] != 1 {
				t.Fatalf("kernels of a short step were joined")
			}
			ran += n
		}
	}
	busy, steps := 0.0, c.Times
	for row := range steps.Len() {
		if steps.IntAt("step", row) == int64(c.Step) {
			busy = steps.FloatAt("device_busy_us", row)
		}
	}
	if track := c.Report.DeviceTrack(0, "gpu.util"); track == nil || track.Mean == nil || abs(*track.Mean/100*float64(c.Length)-busy*1000) > 1000 {
		t.Errorf("the device's activity is %v, the table says %g µs of %d ns", track, busy, c.Length)
	}
	if float64(ran) < busy*1000 {
		t.Errorf("kernels ran %d ns, the device was busy %g µs", ran, busy)
	}
	main := c.Report.MainThread()
	if main < 0 || c.Report.Threads[main].Name != "main thread" || !c.Report.Threads[main].RunsCell {
		t.Fatalf("the main thread is %d", main)
	}
	names := map[string]report.Code{}
	for i := range c.Report.Functions {
		names[c.Report.FunctionName(i)] = c.Report.Functions[i].Code
	}
	for name, want := range map[string]report.Code{"train_step": report.CodeUser, "cudaLaunchKernel": report.CodeDevice, "__next__": report.CodeData} {
		if got, known := names[name]; !known || got != want {
			t.Errorf("the code of %s is %v (there: %v), want %v", name, got, known, want)
		}
	}
}

func abs(v float64) float64 { return max(v, -v) }

// TestCallersComeBeforeWhatTheyCalled: of records that a window cuts to the same stretch the longer one is the caller,
// which goes on all the time and is left out; one that ends after its caller is cut to it.
func TestCallersComeBeforeWhatTheyCalled(t *testing.T) {
	const thread = `"ph":"X","pid":9,"tid":9,`
	a := analyse(t, traceOf(t,
		`{`+thread+`"cat":"python_function","name":"a.py(3): inner","ts":80,"dur":300}`,
		`{`+thread+`"cat":"python_function","name":"a.py(1): outer","ts":50,"dur":400}`,
		`{`+thread+`"cat":"user_annotation","name":"ProfilerStep#1","ts":100,"dur":100}`,
		`{`+thread+`"cat":"cpu_op","name":"aten::mm","ts":120,"dur":30}`,
		`{`+thread+`"cat":"cuda_runtime","name":"cudaStreamSynchronize","ts":140,"dur":20}`,
		`{`+thread+`"cat":"user_annotation","name":"ProfilerStep#2","ts":300,"dur":10}`,
	))
	list, err := Of(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	r := list[0].Report
	var got []string
	for _, s := range r.History(r.MainThread()) {
		stack := ""
		for _, frame := range r.Stack(s.Node, 9) {
			stack += " " + r.FunctionName(r.FunctionOf(frame))
		}
		got = append(got, strings.TrimSpace(stack)+" "+s.State.String())
	}
	want := []string{
		"inner python", "inner aten::mm native", "inner aten::mm cudaStreamSynchronize waiting", "inner python",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWithoutStepsTheDevicesTimeIsShown(t *testing.T) {
	a := analyse(t, traceOf(t,
		`{"ph":"X","pid":9,"tid":9,"cat":"cuda_runtime","name":"cudaLaunchKernel","ts":0,"dur":5,"args":{"correlation":1}}`,
		`{"ph":"X","pid":0,"tid":7,"cat":"kernel","name":"gemm","ts":40,"dur":20,"args":{"device":0,"stream":7,"correlation":1}}`,
		`{"ph":"X","pid":0,"tid":7,"cat":"kernel","name":"gemm","ts":90,"dur":10,"args":{"device":0,"stream":7,"correlation":2}}`,
	))
	list, err := Of(context.Background(), a)
	if err != nil || len(list) != 1 || list[0].Reason != Whole || list[0].Step != -1 || list[0].Length != 60_000 {
		t.Fatalf("got %+v, %v", list, err)
	}
}

func TestATraceOfNothingSaysSo(t *testing.T) {
	for name, a := range map[string]*traces.Analysis{
		"no rank": {}, "no file": {Ranks: []int{0}},
		"only a mark": analyse(t, traceOf(t, `{"ph":"i","s":"t","cat":"x","name":"y","pid":1,"tid":1,"ts":5}`)),
	} {
		if list, err := Of(context.Background(), a); !errors.Is(err, ErrNothing) || len(list) > 0 {
			t.Errorf("%s: got %d steps and %v, want ErrNothing", name, len(list), err)
		}
	}
}

// TestALongStepIsBounded: a damaged file can say any length.
func TestALongStepIsBounded(t *testing.T) {
	a := analyse(t, traceOf(t,
		`{"ph":"X","pid":9,"tid":9,"cat":"cpu_op","name":"a","ts":0,"dur":5}`,
		`{"ph":"X","pid":9,"tid":9,"cat":"cpu_op","name":"b","ts":1000000000000,"dur":5}`,
	))
	if list, err := Of(context.Background(), a); !errors.Is(err, ErrNothing) {
		t.Errorf("got %d steps and %v, want ErrNothing", len(list), err)
	}
}

// TestACycleThatStandsForTheOthers: the first one is a warm-up, the close-up has a later one.
func TestACycleThatStandsForTheOthers(t *testing.T) {
	dir := t.TempDir()
	for cycle, launch := range []int64{630_000, 9_000, 20, 30} {
		at := int64(cycle) * 10_000_000
		text := fmt.Sprintf(`{"host_name":"h","traceEvents":[
			{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":5,"tid":5,"ts":%d,"dur":%d},
			{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%d,"dur":100,"args":{"correlation":1,"stream":7}},
			{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":%d,"dur":%d,"args":{"correlation":2}},
			{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%d,"dur":100,"args":{"correlation":2,"stream":7}}]}`,
			at, launch+10, at, at+5, launch, at+launch+200)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("h_5.%d.pt.trace.json", cycle)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := analyse(t, dir)
	cycles := a.Table(analyses.TableCycles)
	if cycles.Len() != 4 || cycles.TextAt("longest_call", 0) != "cudaLaunchKernel" || cycles.FloatAt("longest_call_us", 0) != 630_000 {
		t.Fatalf("got %d cycles, the longest call of the first %q of %g µs", cycles.Len(), cycles.TextAt("longest_call", 0), cycles.FloatAt("longest_call_us", 0))
	}
	list, err := Of(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Length != 330_000 { // 30 µs + 200 + 100, in ns: the third of four by idle share is the second lowest
		t.Errorf("got %d of %d ns, want the fourth cycle's 330,000", len(list), list[0].Length)
	}
}
