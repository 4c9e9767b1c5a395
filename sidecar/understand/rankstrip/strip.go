package rankstrip

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Strip is the steps of all ranks that have some.
type Strip struct {
	// ByLength: in no step was anybody seen in a collective, and a cell's Own is the step's length.
	ByLength bool
	Ranks    []Rank
	Rows     []Row
	// Least is what a rank must be longer by to count, by how often the stacks were read; 0: any difference does.
	Least int64
	// Pooled is how many ranks a row has at most; 1: each has its own. Joined is the same of steps and cells.
	Pooled, Joined int
}

// Rank is one of the ranks.
type Rank struct {
	Process, Number int
	All             int   // its steps
	Steps           int   // of them, of which its own time is known, and that at least one other rank had
	Longest         int   // of them, in which its own time was the longest of all, and beyond Level 0
	More            int64 // by which it was longer than the median rank in those, the one in the middle
	// PerStep is by how much its own time is more than that of the rank in the middle, on the mean of Steps.
	PerStep   int64
	inLongest int64 // of that, what the steps have in which it was longest, in all
}

// EachStep reports whether a rank was longer by about as much in each step as in those in which it counted: they are some
// of them, as a good part of the difference is in steps of which it cannot be known singly.
func (r *Rank) EachStep() bool {
	return r.More < likeMean*r.PerStep && float64(r.inLongest) < nearlyAll*float64(r.PerStep*int64(r.Steps))
}

const (
	// likeMean is how many times the mean a difference may be to be one of many like it.
	likeMean = 3
	// nearlyAll is the part of a difference that must be in the steps that count for their number to say in how many it is.
	nearlyAll = 0.8
)

// Row is the steps of the ranks First to Last of Strip.Ranks, in order of time. Of several ranks the
// worst cell is kept.
type Row struct {
	First, Last int
	Cells       []Cell
}

// Cell is a step of a rank. Of several steps in one cell the figures are those of the worst.
type Cell struct {
	Start, End int64 // of the cell: from the first to the last of its steps
	Rank       int   // of Strip.Ranks
	Nth        int   // of the rank's steps, from 1
	Length     int64 // of the step
	Own        int64 // of it; -1: not known
	Median     int64 // of the own times of all ranks at this step; -1: no other rank had one
	Level      Level
}

// Level is how much longer a rank was than the median rank: as a part of the step, which all ranks have lost then.
type Level int8

// The levels, by the part of the step's length from which on they hold.
const (
	Unknown Level = iota - 1
	Alike         // less than a twentieth
	Longer        // a twentieth and more
	Long          // a fifth
	Longest       // two fifths
)

var thresholds = [...]float64{Longer: 0.05, Long: 0.2, Longest: 0.4}

// surely is how many times the sampling interval a difference must be to count. The begin and the end of a rank's own
// time are each seen up to an interval late, so that its length has a standard deviation of 0.4 intervals, and its
// difference from a median one of half an interval: these are three.
const surely = 1.5

const (
	leastRanks = 2
	leastSteps = 3
)

// Bounds are how large a strip may be: rows, and cells in all of them.
type Bounds struct{ Rows, Cells int }

// Of is the strip of a report; nil where fewer than two ranks have three steps.
func Of(r *report.View, b Bounds) *Strip {
	lanes := lanesOf(r)
	if len(lanes) < leastRanks {
		return nil
	}
	s := &Strip{ByLength: byLength(lanes), Pooled: 1, Joined: 1}
	for i := range lanes {
		lanes[i].measure(s.ByLength)
	}
	compare(lanes)
	middle := middleOf(lanes)
	for i := range lanes {
		s.Ranks = append(s.Ranks, lanes[i].rank(middle))
		s.Least = max(s.Least, int64(surely*float64(lanes[i].exact)))
	}
	s.fill(lanes, b)
	return s
}

// lane is the steps of one rank.
type lane struct {
	process, number int
	exact           int64 // the sampling interval
	cells           []Cell
	collective      []int64 // by cell, -1: not known
	longest         []int64 // by which it was longer than the median, of the steps in which it was the longest
	compared        int
	own             int64 // in those that were compared, in all
}

// mean is its own time in a step that was compared.
func (l *lane) mean() int64 { return l.own / int64(max(l.compared, 1)) }

// middleOf is the mean own time of the rank in the middle; of two ranks the faster one's.
func middleOf(lanes []lane) int64 {
	means := make([]int64, len(lanes))
	for i := range lanes {
		means[i] = lanes[i].mean()
	}
	slices.Sort(means)
	return means[(len(means)-1)/2]
}

func lanesOf(r *report.View) (lanes []lane) {
	of := make(map[int]int) // by process
	for _, k := range r.Ranks {
		if _, twice := of[k.Process]; !twice {
			of[k.Process] = len(lanes)
			lanes = append(lanes, lane{process: k.Process, number: k.Rank, exact: intervalOf(r, k.Process)})
		}
	}
	for i := range r.Steps {
		step := &r.Steps[i]
		at, isRank := of[step.Process]
		if !isRank || step.EndNS <= step.StartNS {
			continue
		}
		collective := int64(-1)
		if step.CollectiveNS != nil {
			collective = *step.CollectiveNS
		}
		l := &lanes[at]
		l.cells = append(l.cells, Cell{Start: step.StartNS, End: step.EndNS, Nth: len(l.cells) + 1, Length: step.EndNS - step.StartNS, Own: -1, Median: -1, Level: Unknown})
		l.collective = append(l.collective, collective)
	}
	lanes = slices.DeleteFunc(lanes, func(l lane) bool { return len(l.cells) < leastSteps })
	slices.SortStableFunc(lanes, func(a, b lane) int { return cmp.Compare(a.number, b.number) })
	for i := range lanes {
		lanes[i].inOrder()
		for k := range lanes[i].cells {
			lanes[i].cells[k].Rank = i
		}
	}
	return lanes
}

// inOrder sorts steps by time, if a document has them otherwise.
func (l *lane) inOrder() {
	if slices.IsSortedFunc(l.cells, byStart) {
		return
	}
	order := make([]int, len(l.cells))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return byStart(l.cells[a], l.cells[b]) })
	cells, collective := slices.Clone(l.cells), slices.Clone(l.collective)
	for to, from := range order {
		l.cells[to], l.collective[to] = cells[from], collective[from]
		l.cells[to].Nth = to + 1
	}
}

// intervalOf is how often the stacks of a process were read, on the mean.
func intervalOf(r *report.View, process int) int64 {
	p := &r.Processes[process]
	if p.Stacks.IntervalNS != nil {
		return *p.Stacks.IntervalNS
	}
	return r.Targets[p.Target].Sampling.Interval(r.DurationNS)
}

// byLength reports whether no rank was seen in a collective in any step.
func byLength(lanes []lane) bool {
	for i := range lanes {
		if slices.ContainsFunc(lanes[i].collective, func(ns int64) bool { return ns > 0 }) {
			return false
		}
	}
	return true
}

func (l *lane) measure(byLength bool) {
	if byLength {
		l.exact = 0 // lengths are not sampled
	}
	for i := range l.cells {
		switch c := &l.cells[i]; {
		case byLength:
			c.Own = c.Length
		case l.collective[i] >= 0:
			c.Own = max(c.Length-l.collective[i], 0)
		}
	}
}

// compare gives each cell the median of the ranks at its step. Which steps are the same is decided by time, not by
// their number: ranks may begin late, and end early.
func compare(lanes []lane) {
	columns := columnsOf(lanes)
	values := make([][]int64, len(columns)) // own times, one for each rank
	at := make([][]int, len(lanes))
	for i := range lanes {
		last := -1
		for k := range lanes[i].cells {
			c := &lanes[i].cells[k]
			column := columnOf(columns, c)
			at[i] = append(at[i], column)
			if c.Own >= 0 && column != last {
				values[column] = append(values[column], c.Own)
				last = column
			}
		}
	}
	most := make([]int64, len(columns))
	for c := range values {
		slices.Sort(values[c])
		if n := len(values[c]); n > 0 {
			most[c] = values[c][n-1]
		}
	}
	for i := range lanes {
		l := &lanes[i]
		for k := range l.cells {
			c, own := &l.cells[k], values[at[i][k]]
			if c.Own < 0 || len(own) < leastRanks {
				continue
			}
			l.compared++
			l.own += c.Own
			c.Median = own[(len(own)-1)/2] // of two ranks the faster one's
			if c.Level = levelOf(c, l.exact); c.Level > Alike && c.Own == most[at[i][k]] {
				l.longest = append(l.longest, c.Own-c.Median)
			}
		}
	}
}

func levelOf(c *Cell, exact int64) Level {
	more := c.Own - c.Median
	level := Alike
	for l := Longer; l <= Longest && float64(more) > surely*float64(exact); l++ {
		if float64(more) >= thresholds[l]*float64(c.Length) {
			level = l
		}
	}
	return level
}

// columnsOf are steps to which those of all ranks are related, in order of time: those of the rank that has most, and
// those of others when it had none.
func columnsOf(lanes []lane) []Cell {
	first := 0
	for i := range lanes {
		if len(lanes[i].cells) > len(lanes[first].cells) {
			first = i
		}
	}
	columns := slices.Clone(lanes[first].cells)
	var more []Cell
	for i := range lanes {
		for k := range lanes[i].cells {
			if c := &lanes[i].cells[k]; i != first && !has(columns, c) {
				more = append(more, *c)
			}
		}
	}
	slices.SortStableFunc(more, byStart)
	last := int64(-1) // the end of the last one that was taken
	for _, c := range more {
		if c.middle() >= last {
			columns, last = append(columns, c), c.End
		}
	}
	slices.SortStableFunc(columns, byStart)
	return columns
}

func byStart(a, b Cell) int { return cmp.Compare(a.Start, b.Start) }

// middle is the instant at which a step is looked for in others.
func (c *Cell) middle() int64 { return c.Start + (c.End-c.Start)/2 }

// has reports whether a step's middle is in one of the columns.
func has(columns []Cell, c *Cell) bool {
	at := columnOf(columns, c)
	return columns[at].Start <= c.middle() && c.middle() < columns[at].End
}

// columnOf is the column that has a step's middle in it, or the nearest.
func columnOf(columns []Cell, c *Cell) int {
	middle := c.middle()
	at, _ := slices.BinarySearchFunc(columns, middle+1, func(column Cell, t int64) int { return cmp.Compare(column.End, t) })
	if at == len(columns) || at > 0 && columns[at].Start-middle > middle-columns[at-1].End {
		at--
	}
	return at
}

func (l *lane) rank(middle int64) Rank {
	r := Rank{Process: l.process, Number: l.number, All: len(l.cells), Steps: l.compared, Longest: len(l.longest)}
	if l.compared > 0 {
		r.PerStep = l.mean() - middle
	}
	for _, more := range l.longest {
		r.inLongest += more
	}
	if r.Longest > 0 {
		slices.Sort(l.longest)
		r.More = l.longest[r.Longest/2]
	}
	return r
}

// Slowest is the rank whose own time was the longest of all in most of its steps; nil where no rank's was beyond
// Level 0 in any.
func (s *Strip) Slowest() *Rank {
	var slowest *Rank
	for i := range s.Ranks {
		if r := &s.Ranks[i]; r.Longest > 0 && (slowest == nil || r.Longest > slowest.Longest || r.Longest == slowest.Longest && r.More > slowest.More) {
			slowest = r
		}
	}
	return slowest
}

// fill makes the rows, within bounds: ranks are pooled, then steps.
func (s *Strip) fill(lanes []lane, b Bounds) {
	s.Pooled = (len(lanes)-1)/max(b.Rows, 1) + 1
	for first := 0; first < len(lanes); first += s.Pooled {
		last := min(first+s.Pooled, len(lanes)) - 1
		row := Row{First: first, Last: last, Cells: lanes[first].cells}
		if last > first {
			row.Cells = pooled(lanes[first : last+1])
		}
		s.Rows = append(s.Rows, row)
	}
	*s = *s.Within(b.Cells)
}

// Within is the strip with so many cells at most, but with one in each row: neighbours in a row become one.
func (s *Strip) Within(most int) *Strip {
	cells, out := 0, *s
	for _, row := range s.Rows {
		cells += len(row.Cells)
	}
	times := 1
	for ; times < cells && cells/times > max(most-len(s.Rows), 0); times *= 2 {
	}
	if times == 1 {
		return &out
	}
	out.Joined, out.Rows = s.Joined*times, slices.Clone(s.Rows)
	for i := range out.Rows {
		out.Rows[i].Cells = joined(out.Rows[i].Cells, times)
	}
	return &out
}

// pooled puts the cells of several ranks over each other. Those that share most of their time are one.
func pooled(lanes []lane) (cells []Cell) {
	columns := columnsOf(lanes)
	cells = make([]Cell, len(columns))
	for i := range cells {
		cells[i].Level = Unknown - 1
	}
	for i := range lanes {
		for _, c := range lanes[i].cells {
			at := columnOf(columns, &c)
			if worse(&c, &cells[at]) {
				start, end := columns[at].Start, columns[at].End
				cells[at] = c
				cells[at].Start, cells[at].End = start, end
			}
		}
	}
	return slices.DeleteFunc(cells, func(c Cell) bool { return c.Level < Unknown })
}

// joined makes one of each n cells of a row.
func joined(cells []Cell, n int) (list []Cell) {
	for from := 0; from < len(cells); from += n {
		group := cells[from:min(from+n, len(cells))]
		worst := group[0]
		for i := range group[1:] {
			if worse(&group[i+1], &worst) {
				worst = group[i+1]
			}
		}
		worst.Start, worst.End = group[0].Start, group[len(group)-1].End
		list = append(list, worst)
	}
	return list
}

// worse reports whether a cell is to be kept in place of another.
func worse(a, b *Cell) bool {
	return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Own-a.Median, b.Own-b.Median)) > 0
}
