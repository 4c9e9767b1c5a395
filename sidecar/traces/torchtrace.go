// Package traces analyses traces of the PyTorch profiler (Kineto) and of other tools, of one or many
// ranks: it answers where the device time went.
//
// In flow paths, out flows an [Analysis]: tables, and what was damaged in the
// input. It ties the parts together and computes nothing itself:
//
//	formats    which tool wrote a file, and who reads it
//	kineto     files → traces: columns of events, ranks, warnings
//	analyses   traces → tables
//	criticalpath  when host and devices worked → what the length of a step depends on
//	table      columns with units
//	snapshot   memory snapshots → tables
//	findings   tables → what matters most, as data
//	view       all of it → pages, charts, text, files
//
// Exact analyses go file by file: the events of a file are let go once it has
// been observed, so that memory is bounded by the largest files and not by the
// number of ranks.
package traces

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/formats"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Analysis is the result of Run.
type Analysis struct {
	Mode            analyses.Mode
	IncludeLastStep bool
	Ranks           []int // ascending
	// ProfilerSteps are the ProfilerStep#N numbers analysed, per rank.
	ProfilerSteps map[int][]int
	// Device reports whether anything ran on a device.
	Device   bool
	Warnings []kineto.Warning
	Tables   []*table.Table
	// Recordings are the files it was made from, by rank, then time.
	Recordings []Recording

	ranks []analyses.Rank
}

// Recording is one file: a rank's, or a cycle of it.
type Recording struct {
	File  string
	Rank  int
	From  kineto.Origin
	PID   int64 // of its process: a file may have several; -1 where it is not known
	First int64 // ns since the epoch of its first event of any kind; math.MaxInt64 if it has none
	Base  int64 // ns since the epoch that the file's times count from
}

// Table returns the table of that name, or nil when it was not asked for.
func (a *Analysis) Table(name string) *table.Table {
	for _, t := range a.Tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// ClockOffsets estimates the ranks' clock offsets from the collectives they
// share, in ns ahead of the lowest rank; ranks that share none are absent.
func (a *Analysis) ClockOffsets() map[int]int64 { return analyses.ClockOffsets(a.ranks) }

// CompareRuns sets the collectives of several runs side by side.
func CompareRuns(runs []*Analysis, labels []string) *table.Table {
	ranks := make([][]analyses.Rank, len(runs))
	for i, a := range runs {
		ranks[i] = a.ranks
	}
	return analyses.CompareRuns(ranks, labels)
}

// Run reads every trace under paths and analyses them. The error is non-nil only
// when no path gave a trace, none of the steps asked for is in them, or ctx ended.
func Run(ctx context.Context, paths []string, load kineto.Options, opts analyses.Options) (*Analysis, error) {
	opts = opts.WithDefaults()
	load.Inputs, load.Frame = opts.Inputs(), opts.AsHTA()
	load.SkipPython = !opts.WantsPython()
	parts := map[*kineto.Trace]*analyses.Part{}
	var mu sync.Mutex
	observe := func(t *kineto.Trace) {
		p := analyses.Observe(t, &opts, 0)
		t.Release()
		mu.Lock()
		defer mu.Unlock()
		parts[t] = p
	}
	if opts.AsHTA() {
		observe = nil // what one file gives depends on all
	}
	set, err := formats.LoadEach(ctx, paths, load, observe)
	if err != nil {
		return nil, err
	}
	if opts.AsHTA() {
		return Analyze(set, opts), nil
	}
	inOrder := make([]*analyses.Part, len(set.Traces))
	for i, t := range set.Traces {
		inOrder[i] = parts[t]
	}
	if err := noSteps(inOrder, &opts); err != nil {
		return nil, err
	}
	return answer(set, inOrder, &opts), nil
}

// noSteps is the error of a Run in which no trace has any of the steps asked for: there would be nothing to analyse.
func noSteps(parts []*analyses.Part, opts *analyses.Options) error {
	if len(opts.Steps) == 0 {
		return nil
	}
	var found []int
	for _, p := range parts {
		if len(p.Steps) > 0 {
			return nil
		}
		found = append(found, p.Found...)
	}
	if len(found) == 0 {
		return errors.New("the traces have no profiler steps to choose from")
	}
	const few = 4
	asked := fmt.Sprintf("any of the %d steps asked for", len(opts.Steps))
	if len(opts.Steps) <= few {
		var numbers []string
		for _, n := range opts.Steps {
			numbers = append(numbers, strconv.Itoa(n))
		}
		asked = "step " + words.Alternatives(numbers)
	}
	which := "steps "
	if slices.Min(found) == slices.Max(found) {
		which = "step "
	}
	return fmt.Errorf("none of the traces has %s; they have %s%s", asked, which, words.Numbers(found))
}

// Analyze analyses traces that are in memory. HTA's modes need those that were
// read with kineto.Options.Frame.
func Analyze(set *kineto.Set, opts analyses.Options) *Analysis {
	opts = opts.WithDefaults()
	stepNames := 0
	if opts.AsHTA() {
		stepNames = analyses.CountStepNames(set.Traces)
	}
	parts := make([]*analyses.Part, len(set.Traces))
	var group errgroup.Group
	for i, t := range set.Traces {
		group.Go(func() error {
			parts[i] = analyses.Observe(t, &opts, stepNames)
			return nil
		})
	}
	group.Wait() // no member fails
	return answer(set, parts, &opts)
}

// answer joins what was observed of the set's traces.
func answer(set *kineto.Set, parts []*analyses.Part, opts *analyses.Options) *Analysis {
	a := &Analysis{
		Mode: opts.Mode, IncludeLastStep: opts.IncludeLastStep,
		ProfilerSteps: map[int][]int{}, Warnings: slices.Clone(set.Warnings),
	}
	for i, t := range set.Traces {
		if n := len(a.ranks); n == 0 || a.ranks[n-1].Number != t.Rank {
			a.Ranks = append(a.Ranks, t.Rank)
			a.ranks = append(a.ranks, analyses.Rank{Number: t.Rank})
			a.ProfilerSteps[t.Rank] = []int{}
		}
		last := &a.ranks[len(a.ranks)-1]
		last.Parts = append(last.Parts, parts[i])
		a.ProfilerSteps[t.Rank] = append(a.ProfilerSteps[t.Rank], parts[i].Steps...)
		a.Device = a.Device || parts[i].Device
		r := Recording{File: t.File, Rank: t.Rank, From: t.From, PID: t.Process.PID, First: t.Earliest, Base: t.Meta.BaseTime}
		if r.First != math.MaxInt64 {
			r.First = t.UnixNs(r.First)
		}
		a.Recordings = append(a.Recordings, r)
	}
	for _, n := range opts.Steps {
		has := func(p *analyses.Part) bool { return slices.Contains(p.Steps, n) }
		if !slices.ContainsFunc(parts, has) && opts.Mode == analyses.Exact {
			a.Warnings = append(a.Warnings, kineto.Warning{Byte: -1, What: fmt.Sprintf("step %d was asked for, but no trace has it", n)})
		}
	}
	a.Tables = analyses.Answer(a.ranks, opts)
	return a
}
