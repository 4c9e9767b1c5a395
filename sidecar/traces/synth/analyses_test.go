package synth_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/synth"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// The proof that runs everywhere: the analyses find what the generator knows.

func analyzed(t *testing.T, cfg synth.Config, opts analyses.Options) (*synth.Answers, *traces.Analysis) {
	t.Helper()
	dir := t.TempDir()
	answers, err := synth.WriteDir(cfg, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	set, err := kineto.Load(context.Background(), []string{dir}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Warnings) > 0 {
		t.Errorf("warnings about a sound trace: %v", set.Warnings)
	}
	return answers, traces.Analyze(set, opts)
}

var training = synth.Config{
	Seed: 11, Ranks: 4, Steps: 5, Straggler: 3, StragglerDelay: 4 * time.Millisecond, DataWait: 300 * time.Microsecond,
	ClockSkew: 2 * time.Millisecond, Stacks: true, Memory: true,
}

// row finds the row whose key columns have the given values.
func row(t *testing.T, table *table.Table, keys map[string]any) int {
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

func check(t *testing.T, what string, table *table.Table, row int, column string, ns int64) {
	t.Helper()
	if got := table.Column(column).Floats[row]; math.Abs(got*1000-float64(ns)) > 0.01 {
		t.Errorf("%s: %s = %g µs, want %g", what, column, got, float64(ns)/1000)
	}
}

func TestTemporalAndOverlap(t *testing.T) {
	for _, last := range []bool{false, true} {
		answers, a := analyzed(t, training, analyses.Options{IncludeLastStep: last})
		for _, want := range answers.Ranks {
			totals := want.Kept
			if last {
				totals = want.All
			}
			table := a.Table(analyses.TableTemporal)
			r := row(t, table, map[string]any{"rank": int64(want.Rank)})
			check(t, "temporal", table, r, "kernel_time_us", totals.KernelTime)
			check(t, "temporal", table, r, "idle_time_us", totals.Idle)
			check(t, "temporal", table, r, "compute_time_us", totals.Compute)
			check(t, "temporal", table, r, "non_compute_time_us", totals.NonCompute)

			table = a.Table(analyses.TableOverlap)
			r = row(t, table, map[string]any{"rank": int64(want.Rank)})
			overlap := 100 * float64(totals.Overlap) / float64(totals.Communication)
			if got := table.Column("comp_comm_overlap_pctg").Floats[r]; math.Abs(got-overlap) > 1e-9 {
				t.Errorf("rank %d: overlap %g, want %g", want.Rank, got, overlap)
			}
		}
	}
}

// TestCausesAddUpToTheDevicesIdleTime: every device's idle time between its first
// and last event has exactly one cause.
func TestCausesAddUpToTheDevicesIdleTime(t *testing.T) {
	answers, a := analyzed(t, training, analyses.Options{})
	sums := map[int64]float64{}
	causes := a.Table(analyses.TableIdleCauses)
	for r := range causes.Len() {
		sums[causes.IntAt("rank", r)] += causes.FloatAt("device_idle_us", r)
	}
	for _, rank := range answers.Ranks {
		if got, want := sums[int64(rank.Rank)], float64(rank.Kept.Idle)/1000; math.Abs(got-want) > 1e-6 {
			t.Errorf("rank %d: causes of %g µs, idle for %g", rank.Rank, got, want)
		}
	}
}

func TestIdleByCause(t *testing.T) {
	answers, a := analyzed(t, training, analyses.Options{})
	table := a.Table(analyses.TableIdle)
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
	answers, a := analyzed(t, training, analyses.Options{})
	kernels, launches := a.Table(analyses.TableKernels), a.Table(analyses.TableLaunch)
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

// keptCollectives are those of all steps but the last.
func keptCollectives(answers *synth.Answers) []synth.Collective {
	last := training.FirstStep() + training.Steps - 1
	var kept []synth.Collective
	for _, c := range answers.Collectives {
		if c.Step < last {
			kept = append(kept, c)
		}
	}
	return kept
}

func TestStragglerUnderSkewedClocks(t *testing.T) {
	answers, a := analyzed(t, training, analyses.Options{})
	table := a.Table(analyses.TableStragglers)
	kept := keptCollectives(answers)
	for _, rank := range answers.Ranks {
		r := row(t, table, map[string]any{"rank": int64(rank.Rank)})
		var last, waited, made, transfer int64
		for _, c := range kept {
			waited += c.Wait(rank.Rank)
			transfer += c.Transfer()
			if c.Last == rank.Rank {
				last++
				for other := range answers.Ranks {
					made += c.Wait(other)
				}
			}
		}
		if got := table.Column("times_last").Ints[r]; got != last {
			t.Errorf("rank %d was last %d times, want %d", rank.Rank, got, last)
		}
		check(t, "stragglers", table, r, "waited_us", waited)
		check(t, "stragglers", table, r, "made_wait_us", made)
		check(t, "stragglers", table, r, "transfer_us", transfer)
		check(t, "clock", table, r, "clock_offset_us", rank.Skew-answers.Ranks[0].Skew)
	}
	for r := range a.Table(analyses.TableCollectives).Len() {
		if got := a.Table(analyses.TableCollectives).Column("straggler").Ints[r]; got != int64(training.Straggler) {
			t.Errorf("straggler of collective %d is rank %d, want %d", r, got, training.Straggler)
		}
	}
}

func TestStepsAndDataLoading(t *testing.T) {
	answers, a := analyzed(t, training, analyses.Options{})
	steps, loading := a.Table(analyses.TableSteps), a.Table(analyses.TableDataLoader)
	for _, rank := range answers.Ranks {
		for i, s := range rank.Steps {
			key := map[string]any{"rank": int64(rank.Rank), "step": int64(s.Number)}
			r := row(t, steps, key)
			check(t, "step", steps, r, "duration_us", s.End-s.Start)
			check(t, "step", steps, r, "start_us", s.Start-rank.Steps[0].Start)
			if i == len(rank.Steps)-1 {
				continue // dropped
			}
			r = row(t, loading, key)
			check(t, "loading", loading, r, "dataloader_us", s.DataWait)
			check(t, "loading", loading, r, "device_idle_us", s.DataWait)
		}
	}
}

func TestMemoryPeaks(t *testing.T) {
	answers, a := analyzed(t, training, analyses.Options{IncludeLastStep: true})
	table := a.Table(analyses.TableMemoryPeaks)
	for _, rank := range answers.Ranks {
		r := row(t, table, map[string]any{"rank": int64(rank.Rank)})
		if got := table.Column("peak_allocated_bytes").Ints[r]; got != rank.All.PeakAllocated {
			t.Errorf("peak %d bytes, want %d", got, rank.All.PeakAllocated)
		}
		if got := table.Column("peak_reserved_bytes").Ints[r]; got != rank.All.PeakReserved {
			t.Errorf("peak reserved %d bytes, want %d", got, rank.All.PeakReserved)
		}
	}
}

func TestOperatorsAreCounted(t *testing.T) {
	answers, a := analyzed(t, training, analyses.Options{IncludeLastStep: true})
	table := a.Table(analyses.TableOperators)
	for _, rank := range answers.Ranks {
		for name, calls := range rank.All.Calls {
			r := row(t, table, map[string]any{"rank": int64(rank.Rank), "name": name})
			if got := table.Column("calls").Ints[r]; got != int64(calls) {
				t.Errorf("rank %d: %s was called %d times, want %d", rank.Rank, name, got, calls)
			}
		}
		// The collective's device time is its operator's.
		r := row(t, table, map[string]any{"rank": int64(rank.Rank), "name": "c10d::allreduce_"})
		check(t, "allreduce", table, r, "self_device_us", rank.All.Communication)
	}
}

func TestIdleIsChargedToThePythonThatWaited(t *testing.T) {
	answers, a := analyzed(t, training, analyses.Options{})
	table := a.Table(analyses.TablePythonIdle)
	for _, rank := range answers.Ranks {
		var sum float64
		for r := range table.Len() {
			if table.Column("rank").Ints[r] == int64(rank.Rank) {
				sum += table.Column("idle_us").Floats[r]
			}
		}
		if want := float64(rank.Kept.Idle) / 1000; math.Abs(sum-want) > 0.01 {
			t.Errorf("rank %d: Python's shares add up to %g µs, idle is %g", rank.Rank, sum, want)
		}
		// All steps but the first begin with the device idle.
		var waits int64
		for _, s := range rank.Steps[1 : len(rank.Steps)-1] {
			waits += s.DataWait
		}
		r := row(t, table, map[string]any{"rank": int64(rank.Rank), "function": "__next__"})
		if got := table.Column("idle_us").Floats[r]; math.Abs(got*1000-float64(waits)) > 0.01 {
			t.Errorf("rank %d: idle under the DataLoader %g µs, want %g", rank.Rank, got, float64(waits)/1000)
		}
	}
}

func TestQueueIsEmptyAtTheEnd(t *testing.T) {
	_, a := analyzed(t, training, analyses.Options{IncludeLastStep: true, Tables: []string{analyses.TableQueueSeries}})
	table := a.Table(analyses.TableQueueSeries)
	last := map[[2]int64]int64{}
	for r := range table.Len() {
		last[[2]int64{table.Column("rank").Ints[r], table.Column("stream").Ints[r]}] = table.Column("queue_length").Ints[r]
	}
	if len(last) != 2*training.Ranks {
		t.Errorf("%d streams, want %d", len(last), 2*training.Ranks)
	}
	for stream, length := range last {
		if length != 0 {
			t.Errorf("rank and stream %v: %d launches were never finished", stream, length)
		}
	}
}

// TestSeveralDevices: a process whose devices take turns; the window is theirs
// together, the rank's times are sums over them.
func TestSeveralDevices(t *testing.T) {
	cfg := synth.Config{Seed: 5, Devices: 3, Steps: 5, Layers: 30, DataWait: 100 * time.Microsecond}
	answers, a := analyzed(t, cfg, analyses.Options{})
	totals := answers.Ranks[0].Kept
	ranks, devices, streams := a.Table(analyses.TableTemporal), a.Table(analyses.TableTemporalByDevice), a.Table(analyses.TableIdle)
	if ranks.Len() != 1 || devices.Len() != 3 || len(totals.Devices) != 3 {
		t.Fatalf("%d ranks and %d devices, want 1 and 3", ranks.Len(), devices.Len())
	}
	check(t, "rank", ranks, 0, "kernel_time_us", totals.KernelTime)
	check(t, "rank", ranks, 0, "idle_time_us", totals.Idle)
	check(t, "rank", ranks, 0, "compute_time_us", totals.Compute)
	check(t, "rank", ranks, 0, "non_compute_time_us", totals.NonCompute)
	if got, want := ranks.FloatAt("idle_time_pctg", 0), 100*float64(totals.Idle)/float64(totals.KernelTime); math.Abs(got-want) > 1e-9 {
		t.Errorf("idle %g %%, want the share of the sums, %g", got, want)
	}
	for number, want := range totals.Devices {
		r := row(t, devices, map[string]any{"device": number})
		check(t, "device", devices, r, "kernel_time_us", totals.KernelTime/3)
		check(t, "device", devices, r, "idle_time_us", totals.KernelTime/3-want.Busy)
		check(t, "device", devices, r, "compute_time_us", want.Compute)
		for stream, idle := range want.Streams {
			for category, ns := range map[string]int64{"host_wait": idle.HostWait, "kernel_wait": idle.KernelWait, "other": idle.Other} {
				if ns == 0 {
					continue
				}
				r := row(t, streams, map[string]any{"device": number, "stream": stream, "idle_category": category})
				check(t, category, streams, r, "idle_time_us", ns)
			}
		}
	}
	if idle := ranks.FloatAt("idle_time_pctg", 0); idle < 60 {
		t.Errorf("idle %g %%: of three devices that take turns two always wait", idle)
	}
}

// TestCyclesAreOneRank: the files of schedule(repeat=3) are one rank, whose
// times are the sums of its cycles, without what lies between them.
func TestCyclesAreOneRank(t *testing.T) {
	cfg := synth.Config{Seed: 9, Steps: 4, Stacks: true, Memory: true}
	dir := t.TempDir()
	var idle, kernelTime, compute int64
	var steps []int
	for cycle := range 3 {
		cfg.Cycle = cycle
		answers, err := synth.WriteDir(cfg, dir, true)
		if err != nil {
			t.Fatal(err)
		}
		kept := answers.Ranks[0].Kept
		idle, kernelTime, compute = idle+kept.Idle, kernelTime+kept.KernelTime, compute+kept.Compute
		for _, s := range answers.Ranks[0].Steps[:cfg.Steps-1] {
			steps = append(steps, s.Number)
		}
	}
	a, err := traces.Run(context.Background(), []string{dir}, kineto.Options{}, analyses.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Ranks) != 1 || len(a.Warnings) > 0 || !slices.Equal(a.ProfilerSteps[0], steps) {
		t.Fatalf("ranks %v with steps %v and warnings %v, want one with %v", a.Ranks, a.ProfilerSteps, a.Warnings, steps)
	}
	temporal := a.Table(analyses.TableTemporal)
	check(t, "rank", temporal, 0, "kernel_time_us", kernelTime)
	check(t, "rank", temporal, 0, "idle_time_us", idle)
	check(t, "rank", temporal, 0, "compute_time_us", compute)
	files := a.Table(analyses.TableRecordings)
	for cycle := range 3 {
		if got := files.FloatAt("start_us", cycle); files.IntAt("cycle", cycle) != int64(cycle+1) || math.Abs(got-60e6*float64(cycle)) > 1e4 {
			t.Errorf("file %d is cycle %d and starts at %g µs", cycle, files.IntAt("cycle", cycle), got)
		}
	}
}
