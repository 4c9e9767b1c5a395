package traces_test

import (
	"context"
	"fmt"
	"os"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/synth"
)

// Traces of two made-up ranks, of which the second comes late.
func ExampleRun() {
	folder, err := os.MkdirTemp("", "traces")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	if _, err := synth.WriteDir(synth.Config{Seed: 1, Ranks: 2, Straggler: 1, StragglerDelay: 4e6}, folder, true); err != nil {
		fmt.Println(err)
		return
	}
	a, err := traces.Run(context.Background(), []string{folder}, kineto.Options{}, analyses.Options{Tables: []string{analyses.TableStragglers}})
	if err != nil {
		fmt.Println(err)
		return
	}
	t := a.Table(analyses.TableStragglers)
	for row := range t.Len() {
		fmt.Println("rank", t.IntAt("rank", row), "was last", t.IntAt("times_last", row), "times")
	}
	// Output:
	// rank 0 was last 0 times
	// rank 1 was last 10 times
}
