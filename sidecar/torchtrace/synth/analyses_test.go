package synth_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/torchtrace"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/synth"
)

// The proof that runs everywhere: the analyses find what the generator knows.

func analyzed(t *testing.T, cfg synth.Config, opts torchtrace.AnalyzeOptions) (*synth.Answers, *torchtrace.Analysis) {
	t.Helper()
	dir := t.TempDir()
	answers, err := synth.WriteDir(cfg, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	set, err := torchtrace.Load(context.Background(), []string{dir}, torchtrace.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Warnings) > 0 {
		t.Errorf("warnings about a sound trace: %v", set.Warnings)
	}
	return answers, torchtrace.Analyze(set, opts)
}

var training = synth.Config{
	Seed: 11, Ranks: 4, Steps: 5, Straggler: 3, StragglerDelay: 4 * time.Millisecond, DataWait: 300 * time.Microsecond,
	ClockSkew: 2 * time.Millisecond, Stacks: true, Memory: true,
}

// row finds the row whose key columns have the given values.
func row(t *testing.T, table *torchtrace.Table, keys map[string]any) int {
	t.Helper()
	for r := range table.Len() {
		found := true
		for name, want := range keys {
			found = found && table.Column(name).Value(r) == want
		}
		if found {
			return r
		}
	}
	t.Fatalf("%s has no row %v", table.Name, keys)
	return -1
}

func check(t *testing.T, what string, table *torchtrace.Table, row int, column string, ns int64) {
	t.Helper()
	if got := table.Column(column).Floats[row]; math.Abs(got*1000-float64(ns)) > 0.01 {
		t.Errorf("%s: %s = %g µs, want %g", what, column, got, float64(ns)/1000)
	}
}

func TestTemporalAndOverlap(t *testing.T) {
	for _, last := range []bool{false, true} {
		answers, a := analyzed(t, training, torchtrace.AnalyzeOptions{IncludeLastStep: last})
		for _, want := range answers.Ranks {
			totals := want.Kept
			if last {
				totals = want.All
			}
			table := a.Table(torchtrace.TableTemporal)
			r := row(t, table, map[string]any{"rank": int64(want.Rank)})
			check(t, "temporal", table, r, "kernel_time_us", totals.KernelTime)
			check(t, "temporal", table, r, "idle_time_us", totals.Idle)
			check(t, "temporal", table, r, "compute_time_us", totals.Compute)
			check(t, "temporal", table, r, "non_compute_time_us", totals.NonCompute)

			table = a.Table(torchtrace.TableOverlap)
			r = row(t, table, map[string]any{"rank": int64(want.Rank)})
			overlap := 100 * float64(totals.Overlap) / float64(totals.Communication)
			if got := table.Column("comp_comm_overlap_pctg").Floats[r]; math.Abs(got-overlap) > 1e-9 {
				t.Errorf("rank %d: overlap %g, want %g", want.Rank, got, overlap)
			}
		}
	}
}

func TestIdleByCause(t *testing.T) {
	answers, a := analyzed(t, training, torchtrace.AnalyzeOptions{})
	table := a.Table(torchtrace.TableIdle)
	for _, want := range answers.Ranks {
		for stream, idle := range want.Kept.Streams {
			for category, ns := range map[string]int64{"host_wait": idle.HostWait, "kernel_wait": idle.KernelWait, "other": idle.Other} {
				if ns == 0 {
					continue // a category without an event has no row
				}
				r := row(t, table, map[string]any{"rank": int64(want.Rank), "stream": stream, "idle_category": category})
				check(t, category, table, r, "idle_time_us", ns)
			}
		}
	}
}

func TestKernelsAndLaunches(t *testing.T) {
	answers, a := analyzed(t, training, torchtrace.AnalyzeOptions{})
	kernels, launches := a.Table(torchtrace.TableKernels), a.Table(torchtrace.TableLaunch)
	for _, want := range answers.Ranks {
		for name, k := range want.Kept.Kernels {
			r := row(t, kernels, map[string]any{"rank": int64(want.Rank), "name": name, "kernel_type": k.Kind})
			check(t, name, kernels, r, "sum_us", k.Sum)
			check(t, name, kernels, r, "min_us", k.Min)
			check(t, name, kernels, r, "max_us", k.Max)
		}
		n, sum, most := 0, 0.0, 0.0
		for r := range launches.Len() {
			if launches.Column("rank").Ints[r] != int64(want.Rank) {
				continue
			}
			delay := launches.Column("launch_delay_us").Floats[r]
			n++
			sum += delay
			most = max(most, delay)
		}
		if n != want.Kept.Launches {
			t.Errorf("rank %d: %d launches, want %d", want.Rank, n, want.Kept.Launches)
		}
		if got, want := sum*1000, float64(want.Kept.DelaySum); math.Abs(got-want) > 1 {
			t.Errorf("delays add up to %g ns, want %g", got, want)
		}
		if got, want := most*1000, float64(want.Kept.DelayMax); math.Abs(got-want) > 0.01 {
			t.Errorf("longest delay %g ns, want %g", got, want)
		}
	}
}
