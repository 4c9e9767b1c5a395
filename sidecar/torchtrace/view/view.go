// Package view shows analyses of torch traces: as SVG charts, as an HTML page,
// as text for a terminal, as CSV files and as one merged Chrome trace.
//
// In flow tables of package torchtrace (and of its snapshot), out flow bytes.
// The package computes nothing that a table does not say; it chooses, sorts,
// rounds and escapes. Text from traces is foreign: it is written as text only,
// never as markup, and without control characters.
package view

import (
	"github.com/omni-perf/omni-perf/sidecar/torchtrace"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/table"
)

// Result is what there is to show.
type Result struct {
	Name     string // what was analysed: a path
	Analysis *torchtrace.Analysis
	Snapshot []*table.Table // of a memory snapshot; may be empty
	Notes    []string       // of the snapshot
}

// tables are all tables in order of showing.
func (r *Result) tables() []*table.Table {
	var all []*table.Table
	if r.Analysis != nil {
		all = append(all, r.Analysis.Tables...)
	}
	return append(all, r.Snapshot...)
}

// table is a table with at least one row, or nil.
func (r *Result) table(name string) *table.Table {
	for _, t := range r.tables() {
		if t.Name == name && t.Len() > 0 {
			return t
		}
	}
	return nil
}

// rowsOf gives typed access to a table whose columns are known by name. A
// column the table does not have reads as zero values.
type rowsOf struct{ *table.Table }

func (t rowsOf) float(column string, row int) float64 {
	c := t.Column(column)
	switch {
	case c == nil:
		return 0
	case c.Floats != nil:
		return c.Floats[row]
	case c.Ints != nil:
		return float64(c.Ints[row])
	}
	return 0
}

func (t rowsOf) int(column string, row int) int64 {
	if c := t.Column(column); c != nil && c.Ints != nil {
		return c.Ints[row]
	}
	return 0
}

func (t rowsOf) text(column string, row int) string {
	if c := t.Column(column); c != nil && c.Text != nil {
		return c.Text[row]
	}
	return ""
}
