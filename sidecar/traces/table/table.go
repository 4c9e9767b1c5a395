// Package table is what analyses of torch traces and memory snapshots result
// in: named columns with a unit, which JSON, CSV, terminal, HTML and pandas all
// read. It knows no trace and no display.
package table

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kind is the type and unit of a column.
type Kind uint8

const (
	Text     Kind = iota // Column.Text
	Int                  // Column.Ints: a number that names or counts something
	Bytes                // Column.Ints: bytes
	Micros               // Column.Floats: microseconds
	Percent              // Column.Floats: 0..100, as HolisticTraceAnalysis has shares
	Ratio                // Column.Floats: a share, 0..1
	GBps                 // Column.Floats: gigabytes per second
	Float                // Column.Floats: no unit
	Flop                 // Column.Floats: floating-point operations
	FlopPerS             // Column.Floats: those per second
)

// None is the value of an Int that does not exist, as NaN is of a Float.
const None = math.MinInt64

// Column is one named column; the slice that its Kind names has Table.Len()
// values, the others are nil.
type Column struct {
	Name    string // key in JSON and header in our CSV: idle_time_us
	HTAName string // HTA's DataFrame column: idle_time(us); equals Name where HTA has none
	Kind    Kind
	// Optional means a Text that may be unknown or none: "" then is no value. Else it is a text.
	Optional bool
	Text     []string
	Ints     []int64
	Floats   []float64
}

// Table is one result. Rows go by rank, then by what matters most.
type Table struct {
	Name    string // as in the JSON
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
	return t.Rows(order)
}

// Rows returns a table with these rows in this order.
func (t *Table) Rows(order []int) *Table {
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
		switch {
		case x != nil:
			return -1
		case y != nil:
			return 1
		}
		return 0
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
		if c.Optional && c.Text[row] == "" {
			return nil
		}
		return c.Text[row]
	case c.Kind == Int || c.Kind == Bytes:
		if c.Ints[row] == None {
			return nil
		}
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

// New makes an empty table; append rows with Add.
func New(name, title string, columns ...*Column) *Table {
	for _, c := range columns {
		if c.HTAName == "" {
			c.HTAName = c.Name
		}
	}
	return &Table{Name: name, Title: title, Columns: columns}
}

// Add appends one row; the values must match the columns' kinds, in order.
// It is for small tables: what has a row per event fills its columns directly.
func (t *Table) Add(values ...any) {
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

// FloatAt is a figure by its column's name, 0 where the table has no such
// column.
func (t *Table) FloatAt(column string, row int) float64 {
	c := t.Column(column)
	switch {
	case c == nil:
		return 0
	case c.Floats != nil:
		return c.Floats[row]
	case c.Ints != nil && c.Ints[row] != None:
		return float64(c.Ints[row])
	}
	return 0
}

// IntAt is a number by its column's name, None where the table has no such
// column.
func (t *Table) IntAt(column string, row int) int64 {
	if c := t.Column(column); c != nil && c.Ints != nil {
		return c.Ints[row]
	}
	return None
}

// TextAt is a text by its column's name, "" where the table has no such column.
func (t *Table) TextAt(column string, row int) string {
	if c := t.Column(column); c != nil && c.Text != nil {
		return c.Text[row]
	}
	return ""
}
