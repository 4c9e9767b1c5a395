// Package closeup shows single steps of a trace: what the threads of a rank called,
// what they launched and what the streams ran, as a report that package chart draws.
//
// In flows a finished analysis, out flow a few steps that stand for it, each with its
// report and with the analyses of that step alone. The files of these steps are read
// again, as for a merged trace: an analysis lets the events of a file go, so that its
// memory does not grow with the number of ranks.
package closeup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/formats"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Reason says why a step was chosen.
type Reason string

// The reasons.
const (
	Median  Reason = "median"  // of the lengths of the rank's steps
	Longest Reason = "longest" // of the rank's steps
	Other   Reason = "other"   // the same step of the rank whose device was idle least
	Whole   Reason = "whole"   // no step is marked: everything
)

// Closeup is one step of one rank, or a recording without steps.
type Closeup struct {
	Rank   int
	Step   int // its number; -1 where Reason is Whole
	Reason Reason
	Of     int   // how many steps it was chosen from
	Length int64 // ns
	// Report has the step's threads, with operators and runtime calls as functions,
	// its streams and the devices' activity. Its threads' times are whole microseconds.
	Report *report.View
	// Analysis has what the step launched, by the rules of exact mode.
	Analysis *traces.Analysis
	// Times is the table of the file's steps: how long each took and what the devices
	// did meanwhile, whichever step had launched it.
	Times *table.Table
}

// ErrNothing means that no file had anything to show.
var ErrNothing = errors.New("the trace has no events to draw")

// Of chooses from an analysis and reads again what it needs: of the rank whose
// device was idle most the step of median length and the longest one, and of the
// rank that was idle least the step of the same number. Of a rank in several files
// it is the cycle that stands for them. An error is about what could not be shown.
func Of(ctx context.Context, a *traces.Analysis) ([]Closeup, error) {
	if len(a.Ranks) == 0 {
		return nil, ErrNothing
	}
	most, least := idleExtremes(a)
	cycle := middleCycle(a, most)
	list, err := ofRank(ctx, a, most, cycle, func(steps []analyses.HostStep) []chosen {
		return medianAndLongest(steps)
	})
	if err != nil || most == least {
		return list, err
	}
	same := -1
	if len(list) > 0 {
		same = list[0].Step
	}
	other, err := ofRank(ctx, a, least, cycle, func(steps []analyses.HostStep) []chosen {
		at := slices.IndexFunc(steps, func(s analyses.HostStep) bool { return s.Number == same })
		if at < 0 {
			return nil
		}
		return []chosen{{steps[at], Other}}
	})
	return append(list, other...), err
}

// idleExtremes are the ranks whose devices were idle most and least, by share.
func idleExtremes(a *traces.Analysis) (most, least int) {
	most, least = a.Ranks[0], a.Ranks[0]
	t := a.Table(analyses.TableTemporal)
	if t == nil {
		return most, least
	}
	high, low := -1.0, 2.0
	for r := range t.Len() {
		rank := t.IntAt("rank", r)
		idle := t.FloatAt("idle_time_us", r) / t.FloatAt("kernel_time_us", r)
		if rank == table.None || !(idle >= 0) { // NaN: it ran nothing
			continue
		}
		if idle > high {
			most, high = int(rank), idle
		}
		if idle < low {
			least, low = int(rank), idle
		}
	}
	return most, least
}

// middleCycle is the rank's cycle of median step length, where none has steps of median idle share, so that it is
// neither a warm-up nor a mishap.
func middleCycle(a *traces.Analysis, rank int) int {
	t := a.Table(analyses.TableCycles)
	if t == nil {
		return 0
	}
	for _, by := range []string{"mean_step_us", "idle_share"} {
		var rows []int
		for r := range t.Len() {
			if t.IntAt("rank", r) == int64(rank) && !math.IsNaN(t.FloatAt(by, r)) {
				rows = append(rows, r)
			}
		}
		if len(rows) == 0 {
			continue
		}
		slices.SortStableFunc(rows, func(x, y int) int { return cmp.Compare(t.FloatAt(by, x), t.FloatAt(by, y)) })
		return int(t.IntAt("cycle", rows[(len(rows)-1)/2])) - 1
	}
	return 0
}

// chosen is a step and why.
type chosen struct {
	analyses.HostStep
	reason Reason
}

func medianAndLongest(steps []analyses.HostStep) []chosen {
	if len(steps) == 0 {
		return nil
	}
	byLength := slices.Clone(steps)
	slices.SortStableFunc(byLength, func(a, b analyses.HostStep) int { return cmp.Compare(a.End-a.Start, b.End-b.Start) })
	middle, last := byLength[(len(byLength)-1)/2], byLength[len(byLength)-1]
	if middle.Number == last.Number {
		return []chosen{{middle, Median}}
	}
	return []chosen{{middle, Median}, {last, Longest}}
}

// ofRank reads the file of a rank's cycle, the first one if there is no such, and shows what pick chooses of the steps that
// the analysis counts, or all of it where it has none.
func ofRank(ctx context.Context, a *traces.Analysis, rank, cycle int, pick func([]analyses.HostStep) []chosen) ([]Closeup, error) {
	files := slices.DeleteFunc(slices.Clone(a.Recordings), func(r traces.Recording) bool { return r.Rank != rank })
	if len(files) == 0 {
		return nil, ErrNothing
	}
	if cycle >= len(files) {
		cycle = 0
	}
	set, err := formats.Load(ctx, []string{files[cycle].File}, kineto.Options{})
	if err != nil {
		return nil, fmt.Errorf("reading the trace again: %w", err)
	}
	trace := formats.OfProcess(set, files[cycle].PID)
	trace.Rank = rank
	counted := a.ProfilerSteps[rank]
	steps := slices.DeleteFunc(analyses.HostSteps(trace), func(s analyses.HostStep) bool { return !slices.Contains(counted, s.Number) })
	if len(steps) == 0 {
		from, to, ok := extent(trace)
		if !ok {
			return nil, ErrNothing
		}
		c, err := show(trace, chosen{analyses.HostStep{Number: -1, Start: from, End: to}, Whole})
		return []Closeup{c}, err
	}
	times := traces.Analyze(&kineto.Set{Traces: []*kineto.Trace{trace}}, analyses.Options{
		Tables: []string{analyses.TableSteps}, IncludeLastStep: true,
	}).Table(analyses.TableSteps)
	var list []Closeup
	for _, s := range pick(steps) {
		c, err := show(trace, s)
		if err != nil {
			return list, err
		}
		c.Of, c.Times = len(steps), times
		list = append(list, c)
	}
	return list, nil
}

// tables are those of a step's own analysis.
var tables = []string{
	analyses.TableTemporal, analyses.TableKernels, analyses.TableCalls, analyses.TableOperators,
}

func show(trace *kineto.Trace, s chosen) (Closeup, error) {
	c := Closeup{Rank: trace.Rank, Step: s.Number, Reason: s.reason, Length: s.End - s.Start}
	var err error
	if c.Report, err = reportOf(trace, s.Start, s.End); err != nil {
		return c, err
	}
	opts := analyses.Options{Tables: tables}
	if s.reason != Whole {
		opts.Steps = []int{s.Number}
	}
	c.Analysis = traces.Analyze(&kineto.Set{Traces: []*kineto.Trace{trace}}, opts)
	return c, nil
}

// extent is the time that an analysis counts: from the first device event to the last.
// Where nothing ran on a device it is from the first operator to the last; Python's
// frames reach beyond to where the profiler was started, and count only where there is
// nothing else.
func extent(t *kineto.Trace) (from, to int64, ok bool) {
	see := func(start, dur int64) {
		if end := start + max(0, dur); !ok {
			from, to, ok = start, end, true
		} else {
			from, to = min(from, start), max(to, end)
		}
	}
	for row := range t.Device.Len() {
		see(t.Device.Start[row], t.Device.Dur[row])
	}
	if ok && to > from {
		return from, to, true
	}
	for row := range t.Ops.Len() {
		if t.Ops.Class[row] == kineto.OpCPU {
			see(t.Ops.Start[row], t.Ops.Dur[row])
		}
	}
	if !ok {
		for row := range t.Python.Len() {
			see(t.Python.Start[row], t.Python.Dur[row])
		}
	}
	return from, to, ok && to > from
}
