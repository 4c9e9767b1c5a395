package findings

import (
	"fmt"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// cyclesOf are rows of rank, idle share of 1 s and ms of the longest call.
func cyclesOf(rows ...[3]float64) *table.Table {
	t := made(analyses.TableCycles, "rank:int cycle:int idle_time_us:us kernel_time_us:us idle_share:ratio longest_call:text longest_call_us:us")
	for i, row := range rows {
		t.Add(int(row[0]), i+1, row[1]*1e6, 1e6, row[1], "cudaLaunchKernel", row[2]*1e3)
	}
	return t
}

func TestWarmUp(t *testing.T) {
	for name, c := range map[string]struct {
		in   *table.Table
		want string
	}{
		"two of four":      {cyclesOf([3]float64{0, 0.973, 630}, [3]float64{0, 0.92, 2}, [3]float64{0, 0.135, 1}, [3]float64{0, 0.141, 1}), "cudaLaunchKernel 0.4057 cycles=2 idle_share=0.9465 usual_share=0.135 call_us=6.3e+05"},
		"no call explains": {cyclesOf([3]float64{0, 0.9, 20}, [3]float64{0, 0.1, 1}), " 0.4 cycles=1 idle_share=0.9 usual_share=0.1 call_us=0"},
		"one cycle":        {cyclesOf([3]float64{0, 0.9, 20}), ""},
		"a later one":      {cyclesOf([3]float64{0, 0.1, 20}, [3]float64{0, 0.9, 20}, [3]float64{0, 0.1, 20}), ""},
		"all alike":        {cyclesOf([3]float64{0, 0.52, 20}, [3]float64{0, 0.5, 20}), ""},
		"the worse rank":   {cyclesOf([3]float64{0, 0.3, 20}, [3]float64{0, 0.1, 20}, [3]float64{1, 0.9, 1}, [3]float64{1, 0.1, 1}), " 0.25 cycles=1 idle_share=0.9 usual_share=0.1 call_us=0 rank 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if f := find(Of(Tables{c.in}), WarmUp); f != nil {
				got = f.Name + " " + figures(f, "cycles", "idle_share", "usual_share", "call_us")
				if f.Rank != nil {
					got += fmt.Sprintf(" rank %d", *f.Rank)
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
