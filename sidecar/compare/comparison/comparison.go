// Package comparison compares recordings: what took longer or shorter after a change than
// before, by line, function, cause of idle time and kind of step, and whether that is more
// than noise.
//
// In flow the reports of two sides, each of which was recorded once or several times; out
// flows a Comparison, plain data with figures, places and verdicts. Words for people stand
// beside them (Name, File, Text); nothing is found or compared by these. All functions are
// pure.
//
// What is the same in two recordings: a file by the SHA-256 of its text, then by its name,
// then by the likeness of its lines; a function by file and qualified name; a line by a diff
// of the two texts; a cause by id and place; a step by its name.
//
// How noise is known is package significance's; what one run shows of it is figures.go's.
package comparison

import (
	"errors"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// Kind and Version say what the document is, as those of a report.
const (
	Kind    = "omni_perf.comparison"
	Version = 1
)

// Level is the probability with which intervals hold if nothing but noise differs: that
// of the first row of Whole by itself, those of all other rows together. So of a hundred
// comparisons of unchanged programs some five have a verdict where there is nothing.
const Level = 0.95

// Comparison is what differs between two sides. Its JSON names are an interface, as the
// report's: times are integers of nanoseconds, what is unknown is null, lists are never null.
type Comparison struct {
	Document string  `json:"document"`
	Version  int     `json:"version"`
	Level    float64 `json:"level"`
	Basis    Basis   `json:"basis"`
	// AssumedSpread is difference.AssumedSpread where a side has one run, else null.
	AssumedSpread *float64 `json:"assumed_spread"`

	Before Side `json:"before"`
	After  Side `json:"after"`

	Whole     []Change `json:"whole"` // WallTime first
	Lines     []Change `json:"lines"`
	Functions []Change `json:"functions"`
	Causes    []Change `json:"causes"`
	Steps     []Change `json:"steps"`
	Memory    *Memory  `json:"memory"` // null where it is not known

	// same numbers the functions of both sides' first runs, by index in these: what has one
	// number is one function.
	same [2][]int

	unrelated bool
}

// Basis is what the intervals rest on.
type Basis string

// The bases.
const (
	OneRun       Basis = "one-run"         // of each side: the noise of sampling, and AssumedSpread
	OneRunOfSide Basis = "one-run-of-side" // the spread between the runs of the other side
	Runs         Basis = "runs"            // the spread between the runs of both
)

// Side is one side of a comparison.
type Side struct {
	Name string `json:"name"` // of what was recorded: "Cell [7]", "train.py"
	Runs []Run  `json:"runs"`
}

// Run is one recording of a side.
type Run struct {
	Name       string `json:"name"`
	StartedAt  string `json:"started_at"` // RFC 3339
	DurationNS int64  `json:"duration_ns"`
	IntervalNS int64  `json:"interval_ns"` // at which stacks were read
	// Starved is the share of the time of computing for which no CPU was free. By so
	// much a single run may have taken too long.
	Starved float64 `json:"starved"`
	Ticks   int64   `json:"ticks"` // how often
}

// Change is how one figure differs.
type Change struct {
	ID       string               `json:"id"` // of what Whole, Causes and Steps are about; empty of lines and functions
	Name     string               `json:"name"`
	BeforeNS int64                `json:"before_ns"` // mean of the runs
	AfterNS  int64                `json:"after_ns"`
	ChangeNS int64                `json:"change_ns"`
	LowNS    int64                `json:"low_ns"` // of the change
	HighNS   int64                `json:"high_ns"`
	Verdict  significance.Verdict `json:"verdict"` // "" is within noise
	Before   *Place               `json:"before"`  // null where it is not there, or has no place
	After    *Place               `json:"after"`
	Role     string               `json:"role"`     // of the processes, where they are not the target's
	Function *int                 `json:"function"` // index in the report of the first run after
	Count    *[2]int              `json:"count"`    // of steps, before and after
	Edited   bool                 `json:"edited"`   // of a line: its text changed
}

// Place is a place in one side's code.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// What Whole and Steps have figures of.
const (
	WallTime = "wall"
	GPUBusy  = "gpu-busy" // mean of the devices in use
	GPUIdle  = "gpu-idle"

	StepTime = "step" // means per step
	DataWait = "step-data-wait"
	StepBusy = "step-gpu-busy"
	StepIdle = "step-gpu-idle"
)

// Wall is how the time from begin to end differs.
func (c *Comparison) Wall() Change { return c.Whole[0] }

// IsDifferent reports whether anything differs beyond noise.
func (c *Comparison) IsDifferent() bool {
	return slices.ContainsFunc(c.All(), func(v Change) bool { return v.Verdict != significance.WithinNoise }) ||
		c.Memory != nil && c.Memory.Verdict != significance.WithinNoise
}

// All are the changes of all tables.
func (c *Comparison) All() []Change {
	return slices.Concat(c.Whole, c.Causes, c.Lines, c.Steps, c.Functions)
}

// FunctionNumber numbers the functions of the first runs before (side 0) and after (1), by
// their indices there: what has one number is one function.
func (c *Comparison) FunctionNumber(side, function int) int { return c.same[side][function] }

// Verdicts are what the functions of the first report after amount to, by their index.
func (c *Comparison) Verdicts() []significance.Verdict {
	of := make(map[int]significance.Verdict)
	for _, f := range c.Functions {
		if f.Function != nil && f.Role == "" {
			of[c.same[1][*f.Function]] = f.Verdict
		}
	}
	out := make([]significance.Verdict, len(c.same[1]))
	for i, number := range c.same[1] {
		out[i] = of[number]
	}
	return out
}

// ErrNothing is of a side without a run.
var ErrNothing = errors.New("there is nothing to compare on one of the sides")

// Of compares two sides, each with one report or more of the same program. The reports
// stay as they are.
func Of(before, after []*report.View) (*Comparison, error) {
	if len(before) == 0 || len(after) == 0 {
		return nil, ErrNothing
	}
	c := &Comparison{
		Document: Kind, Version: Version, Level: Level, Basis: Runs, Before: sideOf(before), After: sideOf(after),
		Whole: []Change{}, Lines: []Change{}, Functions: []Change{}, Causes: []Change{}, Steps: []Change{},
	}
	switch spread := significance.AssumedSpread; {
	case len(before) == 1 && len(after) == 1:
		c.Basis, c.AssumedSpread = OneRun, &spread
	case len(before) == 1 || len(after) == 1:
		c.Basis, c.AssumedSpread = OneRunOfSide, &spread
	}
	book := newFileBook(before, after)
	runs := [2][]*figures{}
	for i, v := range before {
		runs[0] = append(runs[0], figuresOf(v, book, book.before[i]))
	}
	for i, v := range after {
		runs[1] = append(runs[1], figuresOf(v, book, book.after[i]))
	}
	for i := range runs {
		c.same[i] = runs[i][0].functionNumbers()
	}
	c.fill(gather(runs))
	c.Memory = memoryOf(before, after)
	c.unrelated = unrelated(before[0], after[0])
	return c, nil
}

func sideOf(runs []*report.View) Side {
	s := Side{Name: nameOf(runs[0])}
	for _, v := range runs {
		t := v.Target()
		s.Runs = append(s.Runs, Run{
			Name: nameOf(v), StartedAt: v.StartedAt.Format("2006-01-02T15:04:05Z07:00"), DurationNS: v.DurationNS,
			IntervalNS: t.Sampling.Interval(v.DurationNS), Ticks: t.Sampling.Ticks, Starved: starvedOf(v),
		})
	}
	return s
}

func nameOf(v *report.View) string {
	if v.Name != "" {
		return v.Name
	}
	return v.Target().Name
}

const (
	// least is the part of the wall time from which on a figure is worth a row; what is
	// below changes nothing that anybody waits for.
	least = 0.005
	// maxRows bounds each table, for documents that nobody recorded.
	maxRows = 200
)

// fill makes the tables of rows that are worth it.
func (c *Comparison) fill(tables *tables) {
	wall := max(meanOf(tables.whole[0].readings[0]), meanOf(tables.whole[0].readings[1]))
	kept := 0
	keep := func(rows []*row, floor float64) []*row {
		rows = slices.DeleteFunc(rows, func(r *row) bool {
			return max(meanOf(r.readings[0]), meanOf(r.readings[1])) < floor
		})
		slices.SortStableFunc(rows, func(a, b *row) int { return b.compare(a) })
		rows = rows[:min(len(rows), maxRows)]
		kept += len(rows)
		return rows
	}
	whole := tables.whole[1:]
	kept += len(whole)
	lines, functions := keep(tables.lines, least*wall), keep(tables.functions, least*wall)
	causes, steps := keep(tables.causes, least*wall), keep(tables.steps, 0)
	// Bonferroni: intervals that each fail one time in n fail together at most as often
	// as the level says.
	each := 1 - (1-Level)/float64(max(kept, 1))
	c.Whole = append(c.Whole, tables.whole[0].change(Level))
	for _, table := range []struct {
		to   *[]Change
		rows []*row
	}{{&c.Whole, whole}, {&c.Lines, lines}, {&c.Functions, functions}, {&c.Causes, causes}, {&c.Steps, steps}} {
		for _, r := range table.rows {
			*table.to = append(*table.to, r.change(each))
		}
	}
	for _, list := range [][]Change{c.Lines, c.Functions, c.Causes} { // what differs first
		slices.SortStableFunc(list, func(a, b Change) int { return isNoise(a) - isNoise(b) })
	}
}

func isNoise(c Change) int {
	if c.Verdict == significance.WithinNoise {
		return 1
	}
	return 0
}

// row is a Change in the making.
type row struct {
	Change
	readings [2][]significance.Reading
}

func meanOf(readings []significance.Reading) float64 {
	sum := 0.0
	for _, r := range readings {
		sum += r.Value
	}
	return sum / float64(len(readings))
}

// compare orders rows by how much they differ, then by how long they took.
func (r *row) compare(o *row) int {
	by := func(r *row) (difference, most float64) {
		a, b := meanOf(r.readings[0]), meanOf(r.readings[1])
		return math.Abs(b - a), max(a, b)
	}
	d1, m1 := by(r)
	d2, m2 := by(o)
	switch {
	case d1 != d2 && d1 < d2, d1 == d2 && m1 < m2:
		return -1
	case d1 != d2 || m1 != m2:
		return 1
	}
	return 0
}

func (r *row) change(level float64) Change {
	d := significance.Of(r.readings[0], r.readings[1], level)
	c := r.Change
	ns := func(v float64) int64 { return int64(math.Round(v)) }
	c.BeforeNS, c.AfterNS, c.LowNS, c.HighNS, c.Verdict = ns(d.Before), ns(d.After), ns(d.Low), ns(d.High), d.Verdict
	c.ChangeNS = c.AfterNS - c.BeforeNS
	return c
}
