package view

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/torchtrace"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/snapshot"
)

// SummaryName is the file name by which the original omni_perf's users know it.
const SummaryName = "profiler_list.dat"

// WriteSummary writes operators by device time, then the peaks of memory, as
// aligned text.
func (r *Result) WriteSummary(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# %s: %s\n", plain(r.Name), r.about())
	if t := r.table(torchtrace.TableOperators); t != nil {
		writeTable(out, byDeviceTime(t), nil, t.Len(), 200)
	} else {
		fmt.Fprintln(out, "\nNo operators were recorded.")
	}
	for _, name := range []string{torchtrace.TableMemoryPeaks, snapshot.TableFragmentation, snapshot.TablePeak} {
		if t := r.table(name); t != nil {
			writeTable(out, t, nil, min(50, t.Len()), 200)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return nil
}

// WriteSummaryFile writes WriteSummary's text to a file.
func (r *Result) WriteSummaryFile(path string) error { return writeFile(path, r.WriteSummary) }

// byDeviceTime sorts a copy of the operator table, the most expensive first.
func byDeviceTime(t *torchtrace.Table) *torchtrace.Table {
	by := t.Column("self_device_us")
	if by == nil || by.Floats == nil {
		return t
	}
	order := make([]int, t.Len())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(by.Floats[b], by.Floats[a]) })
	sorted := *t
	sorted.Columns = make([]*torchtrace.Column, len(t.Columns))
	for i, c := range t.Columns {
		copied := *c
		copied.Text, copied.Ints, copied.Floats = reorder(c.Text, order), reorder(c.Ints, order), reorder(c.Floats, order)
		sorted.Columns[i] = &copied
	}
	return &sorted
}

func reorder[T any](values []T, order []int) []T {
	if values == nil {
		return nil
	}
	out := make([]T, len(order))
	for i, from := range order {
		out[i] = values[from]
	}
	return out
}
