package pystack

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// benchmarkPython is the interpreter benchmarks run: OMNI_PERF_BENCH_PYTHON, or
// the first 3.12 there is.
func benchmarkPython(b *testing.B) truth.Interpreter {
	b.Helper()
	if path := os.Getenv("OMNI_PERF_BENCH_PYTHON"); path != "" {
		return truth.Interpreter{Path: path}
	}
	found, err := truth.Interpreters()
	if err != nil {
		b.Fatal(err)
	}
	for _, python := range found {
		if python.Minor == "3.12" {
			return python
		}
	}
	b.Skip("no CPython 3.12 on this machine")
	return truth.Interpreter{}
}

func benchmark(b *testing.B, w truth.Workload, opts SampleOptions) {
	target := truth.Start(b, benchmarkPython(b), w)
	p := attachTo(b, target)
	time.Sleep(300 * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	stats, err := p.Sample(ctx, newTape(), opts)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(stats.Samples)/stats.Wall.Seconds(), "samples/s")
	b.ReportMetric(100*stats.CPU.Seconds()/stats.Wall.Seconds(), "%core")
	b.ReportMetric(float64(stats.CPU.Nanoseconds())/float64(stats.Samples), "ns/sample")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkOneThread1kHz(b *testing.B) { benchmark(b, truth.Work, SampleOptions{Budget: -1}) }
func BenchmarkIdle160At1kHz(b *testing.B) {
	benchmark(b, truth.Threads(160), SampleOptions{Budget: -1})
}
func BenchmarkHandover1kHz(b *testing.B) { benchmark(b, truth.Handover, SampleOptions{Budget: -1}) }
func BenchmarkMaximumRate(b *testing.B) {
	benchmark(b, truth.Work, SampleOptions{Interval: time.Nanosecond, Budget: -1})
}

// twelve calls, or generators, of each other.
func twelve(way int) truth.Workload {
	source := strings.NewReplacer("DOWN", waysDown[way].source).Replace(recursion)
	return truth.Workload{Name: "twelve", Source: strings.NewReplacer("DEPTH", "12", "TURNS", "50").Replace(source)}
}

func BenchmarkTwelveCalls1kHz(b *testing.B)      { benchmark(b, twelve(0), SampleOptions{Budget: -1}) }
func BenchmarkTwelveGenerators1kHz(b *testing.B) { benchmark(b, twelve(1), SampleOptions{Budget: -1}) }
