// Package page shows analyses of torch traces: as SVG charts, as an HTML page,
// as text for a terminal, as CSV files, as JSON and as one merged Chrome trace.
//
// In flow tables of the analyses and of a memory snapshot, out flow bytes. The
// package computes nothing that a table or a finding does not say; it chooses,
// sorts, rounds, words and escapes. Text from traces is foreign: it is written
// as text only, never as markup, and without control characters.
package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/closeup"
	"github.com/omni-perf/omni-perf/sidecar/traces/findings"
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// Result is what there is to show.
type Result struct {
	Name     string // what was analysed: a path
	Version  string // of omni_perf
	Analysis *traces.Analysis
	Snapshot []*table.Table // of a memory snapshot; may be empty
	Notes    []string       // of the snapshot
	Memory   *snapshot.Snapshot
	Bands    *snapshot.Bands // of Memory; nil: single allocations are not shown
	Steps    []closeup.Closeup
	StepNote string // why a step could not be shown
}

// tables are all tables in order of showing.
func (r *Result) tables() []*table.Table {
	var all []*table.Table
	if r.Analysis != nil {
		all = append(all, r.Analysis.Tables...)
	}
	return append(all, r.Snapshot...)
}

// shown are the tables that have something to show.
func (r *Result) shown() []*table.Table {
	var all []*table.Table
	for _, t := range r.tables() {
		if t.Len() > 0 && !r.repeats(t) {
			all = append(all, t)
		}
	}
	return all
}

// repeats recognises tables that say once more what another has: the devices where
// every rank has one, the ranks together where there is one.
func (r *Result) repeats(t *table.Table) bool {
	switch t.Name {
	case analyses.TableTemporalByDevice:
		return !r.severalDevices()
	case analyses.TableAcrossRanks, analyses.TableKernelsTogether:
		return !r.severalRanks()
	case analyses.TableRecordings:
		return len(r.Analysis.Recordings) < 2
	case analyses.TableOverlap:
		return !hasFigures(t)
	case analyses.TableHostIdle: // lines say more
		return r.table(analyses.TablePythonIdle) != nil
	case analyses.TableIdle: // the causes divide it further
		return r.table(analyses.TableIdleCauses) != nil
	}
	return false
}

func (r *Result) findings() []findings.Finding { return findings.Of(r.tables()) }

// table is a table with at least one row, or nil.
func (r *Result) table(name string) *table.Table {
	for _, t := range r.tables() {
		if t.Name == name && t.Len() > 0 {
			return t
		}
	}
	return nil
}

// hasFigures reports whether a table says anything of what its rows are about: it
// has not where nothing ran that it counts.
func hasFigures(t *table.Table) bool {
	return slices.ContainsFunc(t.Columns, func(c *table.Column) bool {
		return !slices.Contains(identifiers, c.Name) && hasValues(c, t.Len())
	})
}

// hasValues reports whether a column has a value in any of that many rows.
func hasValues(c *table.Column, rows int) bool {
	for row := range rows {
		if v := c.Value(row); v != nil && v != "" {
			return true
		}
	}
	return false
}

func (r *Result) severalRanks() bool { return r.Analysis != nil && len(r.Analysis.Ranks) > 1 }

// severalDevices recognises traces of a process that used more than one device.
func (r *Result) severalDevices() bool {
	ranks, devices := r.table(analyses.TableTemporal), r.table(analyses.TableTemporalByDevice)
	return ranks != nil && devices != nil && devices.Len() > ranks.Len()
}

// label names a row of a chart: of rank, device and stream what there are several
// of, else what is asked for last.
func (r *Result) label(t *table.Table, row int) string {
	return r.labelOf(t, row, "rank", "device", "stream")
}

// labelOf is label by those of the columns.
func (r *Result) labelOf(t *table.Table, row int, columns ...string) string {
	var parts, rest []string
	for _, column := range columns {
		n := t.IntAt(column, row)
		if n == table.None {
			continue
		}
		part := fmt.Sprintf("%s %d", column, n)
		if column == "rank" && r.severalRanks() || column == "device" && r.severalDevices() || column == "stream" {
			parts = append(parts, part)
		} else {
			rest = append(rest, part)
		}
	}
	if len(parts) == 0 && len(rest) > 0 {
		parts = rest[len(rest)-1:]
	}
	return strings.Join(parts, ", ")
}
