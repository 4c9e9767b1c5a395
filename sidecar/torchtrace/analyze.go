package torchtrace

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Analyze computes the tables opts asks for. It never fails: what a trace
// cannot answer is an empty table with a Note that says why.
func Analyze(set *TraceSet, opts AnalyzeOptions) *Analysis {
	opts = opts.withDefaults()
	stepNames := countStepNames(set)
	results := make([]*rankResult, len(set.Traces))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, t := range set.Traces {
		group.Go(func() error {
			results[i] = analyzeRank(t, &opts, stepNames)
			return nil
		})
	}
	group.Wait() // no member fails
	return together(set, &opts, results)
}

func (opts AnalyzeOptions) withDefaults() AnalyzeOptions {
	if opts.Mode == "" {
		opts.Mode = Exact
	}
	if opts.TopKernels <= 0 {
		opts.TopKernels = 10
	}
	if len(opts.Tables) == 0 {
		opts.Tables = DefaultTables()
	}
	return opts
}

// together joins the ranks' results, which are in the set's order.
func together(set *TraceSet, opts *AnalyzeOptions, results []*rankResult) *Analysis {
	a := &Analysis{
		Mode: opts.Mode, IncludeLastStep: opts.IncludeLastStep, Ranks: set.Ranks(),
		ProfilerSteps: map[int][]int{}, Warnings: slices.Clone(set.Warnings),
	}
	for _, r := range results {
		a.ProfilerSteps[r.rank] = r.steps
	}
	for _, n := range opts.Steps {
		has := func(r *rankResult) bool { return slices.Contains(r.steps, n) }
		if !slices.ContainsFunc(results, has) && opts.Mode == Exact {
			a.Warnings = append(a.Warnings, Warning{Byte: -1, What: fmt.Sprintf("step %d was asked for, but no trace has it", n)})
		}
	}
	for _, name := range opts.Tables {
		if t := across(name, results); t != nil {
			a.Tables = append(a.Tables, t)
		}
	}
	return a
}

// rankResult is what one rank contributes.
type rankResult struct {
	rank      int
	world     int // ranks there are, as the trace says; 0 if it does not
	steps     []int
	tables    map[string]*Table
	typeTimes map[int]int64
	comms     []commRun
	summary   rankSummary
	kernels   [][]*kernelStats // by listedKinds
}

// stamp gives the result its rank after the fact.
func (r *rankResult) stamp(rank int) {
	r.rank = rank
	for _, t := range r.tables {
		if c := t.Column("rank"); c != nil {
			for row := range c.Ints {
				c.Ints[row] = int64(rank)
			}
		}
	}
	for i := range r.comms {
		r.comms[i].rank = rank
	}
}

// rankWork is what the analyses of one rank share.
type rankWork struct {
	v         *view
	opts      *AnalyzeOptions
	stepNames int
	result    *rankResult
}

// whole is the view with the last step kept.
func (w *rankWork) whole() *view {
	if w.v.dropped < 0 {
		return w.v
	}
	every := *w.opts
	every.IncludeLastStep = true
	return newView(w.v.t, &every, w.stepNames)
}

// perRank lists the analyses that look at one rank: the tables they are needed
// for, and how to compute them. Those of the last group leave something in the
// result for the comparison of ranks.
var perRank = []struct {
	tables  []string
	compute func(w *rankWork) []*Table
}{
	{[]string{TableTemporal}, func(w *rankWork) []*Table { return []*Table{temporal(w.v)} }},
	{[]string{TableOverlap}, func(w *rankWork) []*Table { return []*Table{commCompOverlap(w.v)} }},
	{[]string{TableKernels}, func(w *rankWork) []*Table { return []*Table{kernelBreakdown(w.v)} }},
	{[]string{TableKernelsTop}, func(w *rankWork) []*Table { return []*Table{kernelBreakdownTop(w.v, w.opts.TopKernels)} }},
	{[]string{TableSteps}, func(w *rankWork) []*Table { return []*Table{stepTimes(w.v, w.whole())} }},
	{[]string{TableDataLoader}, func(w *rankWork) []*Table { return []*Table{dataLoading(w.v)} }},
	{[]string{TableOperators}, func(w *rankWork) []*Table { return []*Table{operators(w.v, w.opts.GroupByShape)} }},
	{[]string{TableMemoryPeaks}, func(w *rankWork) []*Table { return []*Table{memoryPeaks(w.v)} }},
	{[]string{TableMemoryTimeline}, func(w *rankWork) []*Table { return []*Table{memoryTimeline(w.v)} }},
	{[]string{TablePythonIdle}, func(w *rankWork) []*Table { return []*Table{pythonIdle(w.v)} }},
	{[]string{TableIdle, TableIdleIntervals, TableIdleIntervalBins}, func(w *rankWork) []*Table {
		all := gaps(w.v, w.opts.KernelWait)
		return []*Table{idleBreakdown(w.v, all), idleIntervals(w.v, all), idleBins(w.v, all)}
	}},
	{[]string{TableLaunch, TableLaunchDelay, TableLaunchDelayBins}, func(w *rankWork) []*Table {
		joined := launches(w.v)
		return []*Table{launchStats(w.v, joined), launchDelays(w.v, joined), launchBins(w.v, joined)}
	}},
	{[]string{TableQueueLength}, func(w *rankWork) []*Table { return []*Table{queueSummary(w.v, queueChanges(w.v))} }},
	{[]string{TableQueueSeries}, func(w *rankWork) []*Table { return []*Table{queueSeries(w.v, queueChanges(w.v))} }},
	{[]string{TableMemoryBandwidth}, func(w *rankWork) []*Table { return []*Table{bandwidthSummary(w.v, bandwidthChanges(w.v))} }},
	{[]string{TableBandwidthSeries}, func(w *rankWork) []*Table { return []*Table{bandwidthSeries(w.v, bandwidthChanges(w.v))} }},

	{[]string{TableKernelTypes}, func(w *rankWork) []*Table { w.result.typeTimes = kernelTypeTime(w.v); return nil }},
	{[]string{TableCollectives, TableStragglers}, func(w *rankWork) []*Table { w.result.comms = commRuns(w.v); return nil }},
	{[]string{TableAcrossRanks}, func(w *rankWork) []*Table { w.result.summary = summarize(w.v); return nil }},
	{[]string{TableKernelsTogether}, func(w *rankWork) []*Table {
		for _, kind := range listedKinds {
			w.result.kernels = append(w.result.kernels, kernelsOf(w.v, kind))
		}
		return nil
	}},
}

// analyzeRank computes what looks at one rank, as far as opts.Tables need it.
func analyzeRank(t *Trace, opts *AnalyzeOptions, stepNames int) *rankResult {
	w := &rankWork{v: newView(t, opts, stepNames), opts: opts, stepNames: stepNames}
	w.result = &rankResult{rank: t.Rank, world: t.Meta.WorldSize, steps: stepNumbers(w.v), tables: map[string]*Table{}}
	wanted := func(name string) bool { return slices.Contains(opts.Tables, name) }
	for _, a := range perRank {
		if !slices.ContainsFunc(a.tables, wanted) {
			continue
		}
		for _, table := range a.compute(w) {
			if wanted(table.Name) {
				w.result.tables[table.Name] = table
			}
		}
	}
	return w.result
}

// across joins the ranks' tables, and makes those that compare ranks.
func across(name string, results []*rankResult) *Table {
	switch name {
	case TableKernelTypes:
		var times []map[int]int64
		for _, r := range results {
			times = append(times, r.typeTimes)
		}
		return kernelTypes(times)
	case TableAcrossRanks:
		return acrossRanks(results)
	case TableKernelsTogether:
		return kernelsTogether(results)
	case TableCollectives, TableStragglers:
		var comms [][]commRun
		world := 0
		for _, r := range results {
			comms, world = append(comms, r.comms), max(world, r.world)
		}
		all, unpaired := meetings(comms)
		if name == TableCollectives {
			return collectives(all, unpaired, len(results), world)
		}
		return stragglers(all, unpaired, len(results), world)
	}
	var parts []*Table
	var notes []string
	for _, r := range results {
		if t := r.tables[name]; t != nil {
			parts = append(parts, t)
			if t.Note != "" {
				notes = append(notes, fmt.Sprintf("rank %d: %s", r.rank, t.Note))
			}
		}
	}
	return concat(parts, notes)
}

// concat puts the ranks' tables below each other.
func concat(parts []*Table, notes []string) *Table {
	if len(parts) <= 1 {
		if len(parts) == 0 {
			return nil
		}
		return parts[0]
	}
	whole := *parts[0]
	whole.Columns = make([]*Column, len(parts[0].Columns))
	for i, first := range parts[0].Columns {
		c := *first
		c.Text, c.Ints, c.Floats = nil, nil, nil
		for _, p := range parts {
			c.Text = append(c.Text, p.Columns[i].Text...)
			c.Ints = append(c.Ints, p.Columns[i].Ints...)
			c.Floats = append(c.Floats, p.Columns[i].Floats...)
		}
		whole.Columns[i] = &c
	}
	whole.Note = joinNotes(parts, notes)
	return &whole
}

// joinNotes says once what holds for all ranks, else whom it concerns.
func joinNotes(parts []*Table, notes []string) string {
	differs := func(p *Table) bool { return p.Note != parts[0].Note }
	if !slices.ContainsFunc(parts, differs) {
		return parts[0].Note
	}
	const told = 3
	if len(notes) > told {
		notes = append(notes[:told:told], fmt.Sprintf("and %d ranks more", len(notes)-told))
	}
	return strings.Join(notes, "; ")
}

// countStepNames counts the distinct ProfilerStep#N of all ranks, by which HTA
// decides whether there is a last step to drop.
func countStepNames(set *TraceSet) int {
	names := map[string]bool{}
	for _, t := range set.Traces {
		for s := range t.Names.Len() {
			if text := t.Names.Text(Sym(s)); len(text) > 0 {
				if _, ok := stepNumber(text); ok {
					names[text] = true
				}
			}
		}
	}
	return len(names)
}

// stepNumbers lists the steps a view covers, ascending.
func stepNumbers(v *view) []int {
	numbers := []int{}
	for _, s := range v.steps {
		if !slices.Contains(numbers, s.number) {
			numbers = append(numbers, s.number)
		}
	}
	slices.Sort(numbers)
	return numbers
}
