package torchtrace

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Names of the tables. The first ten are the sections of the JSON schema that
// HolisticTraceAnalysis knows too.
const (
	TableTemporal        = "temporal_breakdown"
	TableIdle            = "idle_time_breakdown"
	TableOverlap         = "comm_comp_overlap"
	TableLaunch          = "cuda_kernel_launch_stats"
	TableKernels         = "gpu_kernel_breakdown"
	TableKernelTypes     = "gpu_kernel_type_breakdown"
	TableKernelsTop      = "gpu_kernel_breakdown_top10"
	TableIdleIntervals   = "idle_interval_stats"
	TableMemoryBandwidth = "memory_bw_summary"
	TableQueueLength     = "queue_length_summary"

	TableLaunchDelay      = "launch_delay_summary" // percentiles and outliers per rank and call
	TableSteps            = "profiler_step_times"  // one row per rank and step
	TableCollectives      = "collectives"          // the same collective across ranks: straggler, wait, transfer
	TableStragglers       = "straggler_summary"    // per rank: how often and for how long others waited
	TableDataLoader       = "dataloader"           // per step: time in enumerate(DataLoader), device idle under it
	TableOperators        = "operators"            // key_averages
	TableMemoryPeaks      = "memory_peaks"         // per rank and device: peak allocated and reserved
	TablePythonIdle       = "python_idle"          // device idle attributed to Python lines
	TableAcrossRanks      = "across_ranks"         // each headline figure: mean and extremes over the ranks
	TableKernelsTogether  = "gpu_kernel_breakdown_all_ranks"
	TableBandwidthSeries  = "memory_bw_series"        // series: only when asked for by name
	TableQueueSeries      = "queue_length_series"     // series
	TableMemoryTimeline   = "memory_timeline"         // series
	TableLaunchDelayBins  = "launch_delay_histogram"  // counts per delay bin
	TableIdleIntervalBins = "idle_interval_histogram" // counts per idle-gap bin
)

// DefaultTables is what Analyze computes when not told otherwise: everything
// but the series, which have a row per event.
func DefaultTables() []string {
	return []string{
		TableTemporal, TableIdle, TableOverlap, TableLaunch, TableKernels,
		TableKernelTypes, TableKernelsTop, TableIdleIntervals,
		TableMemoryBandwidth, TableQueueLength,
		TableLaunchDelay, TableSteps, TableCollectives, TableStragglers,
		TableDataLoader, TableOperators, TableMemoryPeaks, TablePythonIdle,
		TableLaunchDelayBins, TableIdleIntervalBins,
		TableAcrossRanks, TableKernelsTogether,
	}
}

// Kind is the type and unit of a column.
type Kind uint8

const (
	Text    Kind = iota // Column.Text
	Int                 // Column.Ints: a number that names or counts something
	Bytes               // Column.Ints: bytes
	Micros              // Column.Floats: microseconds
	Percent             // Column.Floats: 0..100
	Ratio               // Column.Floats: 0..1
	GBps                // Column.Floats: gigabytes per second
	Float               // Column.Floats: no unit
)

// Column is one named column; the slice that its Kind names has Table.Len()
// values, the others are nil. A Float that does not exist (0/0) is NaN.
type Column struct {
	Name    string // key in JSON and header in our CSV: idle_time_us
	HTAName string // HTA's DataFrame column: idle_time(us); equals Name where HTA has none
	Kind    Kind
	Text    []string
	Ints    []int64
	Floats  []float64
}

// Table is one result. Rows go by rank, then by what matters most.
type Table struct {
	Name    string // one of the Table… constants
	Title   string // a heading for people
	Note    string // why the table is empty, or a reservation about its figures
	Columns []*Column
}

// Len is the number of rows.
func (t *Table) Len() int {
	if len(t.Columns) == 0 {
		return 0
	}
	return t.Columns[0].len()
}

// Column returns the column of that Name (or HTAName), or nil.
func (t *Table) Column(name string) *Column {
	for _, c := range t.Columns {
		if c.Name == name {
			return c
		}
	}
	for _, c := range t.Columns {
		if c.HTAName == name {
			return c
		}
	}
	return nil
}

// SortBy returns the table with its rows ordered by a column; where there is
// no value comes last. An unknown column leaves the order.
func (t *Table) SortBy(name string, descending bool) *Table {
	key := t.Column(name)
	if key == nil {
		return t
	}
	order := make([]int, t.Len())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return key.compare(a, b, descending) })
	sorted := *t
	sorted.Columns = make([]*Column, len(t.Columns))
	for i, c := range t.Columns {
		s := *c
		s.Text, s.Ints, s.Floats = pick(c.Text, order), pick(c.Ints, order), pick(c.Floats, order)
		sorted.Columns[i] = &s
	}
	return &sorted
}

// compare two rows of a column.
func (c *Column) compare(a, b int, descending bool) int {
	x, y := c.Value(a), c.Value(b)
	if x == nil || y == nil {
		return b2i(x == nil) - b2i(y == nil)
	}
	var order int
	switch x := x.(type) {
	case string:
		order = strings.Compare(x, y.(string))
	case int64:
		order = cmp.Compare(x, y.(int64))
	case float64:
		order = cmp.Compare(x, y.(float64))
	}
	if descending {
		return -order
	}
	return order
}

// pick returns the values in that order; nil of nil.
func pick[T any](values []T, order []int) []T {
	if values == nil {
		return nil
	}
	picked := make([]T, len(order))
	for i, from := range order {
		picked[i] = values[from]
	}
	return picked
}

// Cell is a string, an int64, a float64, or nil where there is no value.
func (t *Table) Cell(row, column int) any { return t.Columns[column].Value(row) }

// Value is a string, an int64, a float64, or nil where there is no value.
func (c *Column) Value(row int) any {
	switch {
	case c.Kind == Text:
		return c.Text[row]
	case c.Kind == Int || c.Kind == Bytes:
		return c.Ints[row]
	case math.IsNaN(c.Floats[row]) || math.IsInf(c.Floats[row], 0):
		return nil
	}
	return c.Floats[row]
}

// Format writes a value without rounding, "" where there is none: the cell of
// a CSV file.
func (c *Column) Format(row int) string {
	switch v := c.Value(row).(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

func (c *Column) len() int {
	switch c.Kind {
	case Text:
		return len(c.Text)
	case Int, Bytes:
		return len(c.Ints)
	}
	return len(c.Floats)
}

// newTable makes an empty table; append rows with add.
func newTable(name, title string, columns ...*Column) *Table {
	for _, c := range columns {
		if c.HTAName == "" {
			c.HTAName = c.Name
		}
	}
	return &Table{Name: name, Title: title, Columns: columns}
}

// add appends one row; the values must match the columns' kinds, in order.
// It is for small tables: launch statistics and series fill columns directly.
func (t *Table) add(values ...any) {
	for i, v := range values {
		c := t.Columns[i]
		switch c.Kind {
		case Text:
			c.Text = append(c.Text, v.(string))
		case Int, Bytes:
			switch n := v.(type) {
			case int:
				c.Ints = append(c.Ints, int64(n))
			default:
				c.Ints = append(c.Ints, v.(int64))
			}
		default:
			c.Floats = append(c.Floats, v.(float64))
		}
	}
}

// micros converts nanoseconds for a table. Up to 2^53 ns (104 days) the
// result prints with the trace's own three decimals.
func micros(ns int64) float64 { return float64(ns) / 1000 }

// percent of a whole; a share of nothing does not exist.
func percent(part, whole int64) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return 100 * float64(part) / float64(whole)
}
