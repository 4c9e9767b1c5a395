package torchtrace

import (
	"runtime"
	"slices"

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

// analyzeRank computes everything that looks at one rank only.
func analyzeRank(t *Trace, opts *AnalyzeOptions, stepNames int) *rankResult {
	v := newView(t, opts, stepNames)
	r := &rankResult{rank: t.Rank, steps: stepNumbers(v), tables: map[string]*Table{}}
	want := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(opts.Tables, n) })
	}
	put := func(table *Table) {
		if want(table.Name) {
			r.tables[table.Name] = table
		}
	}
	if want(TableTemporal) {
		put(temporal(v))
	}
	if want(TableOverlap) {
		put(commCompOverlap(v))
	}
	if want(TableKernels) {
		put(kernelBreakdown(v))
	}
	if want(TableKernelsTop) {
		put(kernelBreakdownTop(v, opts.TopKernels))
	}
	if want(TableKernelTypes) {
		r.typeTimes = kernelTypeTime(v)
	}
	if want(TableCollectives, TableStragglers) {
		r.comms = commRuns(v)
	}
	if want(TableAcrossRanks) {
		r.summary = summarize(v)
	}
	if want(TableKernelsTogether) {
		for _, kind := range listedKinds {
			r.kernels = append(r.kernels, kernelsOf(v, kind))
		}
	}
	if want(TableSteps) {
		whole := v
		if v.dropped >= 0 {
			every := *opts
			every.IncludeLastStep = true
			whole = newView(t, &every, stepNames)
		}
		put(stepTimes(v, whole))
	}
	if want(TableDataLoader) {
		put(dataLoading(v))
	}
	if want(TableOperators) {
		put(operators(v, opts.GroupByShape))
	}
	if want(TableMemoryPeaks) {
		put(memoryPeaks(v))
	}
	if want(TableMemoryTimeline) {
		put(memoryTimeline(v))
	}
	if want(TablePythonIdle) {
		put(pythonIdle(v))
	}
	if want(TableIdle, TableIdleIntervals, TableIdleIntervalBins) {
		all := gaps(v, opts.KernelWait)
		put(idleBreakdown(v, all))
		put(idleIntervals(v, all))
		put(idleBins(v, all))
	}
	if want(TableLaunch, TableLaunchDelay, TableLaunchDelayBins) {
		joined := launches(v)
		put(launchStats(v, joined))
		put(launchDelays(v, joined))
		put(launchBins(v, joined))
	}
	if want(TableQueueLength, TableQueueSeries) {
		changes := queueChanges(v)
		put(queueSummary(v, changes))
		if want(TableQueueSeries) {
			put(queueSeries(v, changes))
		}
	}
	if want(TableMemoryBandwidth, TableBandwidthSeries) {
		changes := bandwidthChanges(v)
		put(bandwidthSummary(v, changes))
		if want(TableBandwidthSeries) {
			put(bandwidthSeries(v, changes))
		}
	}
	return r
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
		var ranks []int
		for _, r := range results {
			comms, ranks = append(comms, r.comms), append(ranks, r.rank)
		}
		all, unpaired := meetings(comms)
		if name == TableCollectives {
			return collectives(all, unpaired, len(ranks))
		}
		return stragglers(all, unpaired, ranks)
	}
	var parts []*Table
	for _, r := range results {
		if t := r.tables[name]; t != nil {
			parts = append(parts, t)
		}
	}
	return concat(parts)
}

// concat puts tables of the same columns below each other.
func concat(parts []*Table) *Table {
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
	for _, p := range parts[1:] {
		if p.Note == "" {
			whole.Note = "" // some rank has rows
		}
	}
	return &whole
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
