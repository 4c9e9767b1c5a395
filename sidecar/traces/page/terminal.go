package page

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/changes"
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// terminalTables is what a terminal report shows, with the columns that matter
// there and at most so many rows.
var terminalTables = []struct {
	name    string
	rows    int
	columns []string // empty: all
}{
	{changes.TableName, 16, []string{"kind", "before_us", "after_us", "change_us", "verdict", "run", "name"}},
	{analyses.TableCriticalPath, 24, nil},
	{analyses.TableRecordings, 16, []string{"rank", "cycle", "host", "process", "start_us", "duration_us", "first_step", "last_step", "file"}},
	{analyses.TableCycles, 32, nil},
	{analyses.TableTemporal, 32, []string{"rank", "kernel_time_us", "compute_time_pctg", "non_compute_time_pctg", "idle_time_pctg"}},
	{analyses.TableTemporalByDevice, 32, []string{"rank", "device", "kernel_time_us", "compute_share", "non_compute_share", "idle_share"}},
	{analyses.TableIdle, 32, nil},
	{analyses.TableIdleCauses, 32, nil},
	{analyses.TableOverlap, 32, nil},
	{analyses.TableSteps, 16, nil},
	{analyses.TableDataLoader, 16, nil},
	{analyses.TableStragglers, 32, nil},
	{analyses.TableRuns, 24, nil},
	{analyses.TableKernels, 12, nil},
	{analyses.TableCalls, 12, nil},
	{analyses.TableLaunchDelay, 24, []string{"rank", "call", "count", "p50_us", "p99_us", "max_us", "long_delays"}},
	{analyses.TablePythonIdle, 12, nil},
	{analyses.TableHostIdle, 12, nil},
	{analyses.TablePythonFunctions, 12, nil},
	{analyses.TableEfficiencyKinds, 16, nil},
	{analyses.TableEfficiency, 12, []string{"device_us", "flops_per_s", "bandwidth_gbps", "roofline_share", "bound", "dtype", "operator", "input_shapes"}},
	{analyses.TableCommunication, 12, []string{"collective", "group_size", "dtype", "size_bytes", "count", "waiting", "median_us", "algorithm_gbps", "bus_gbps", "best_bus_gbps"}},
	{analyses.TableServingPhases, 24, nil},
	{analyses.TableServingSteps, 12, []string{"rank", "step", "phase", "requests", "tokens", "start_us", "duration_us", "device_us", "idle_us"}},
	{analyses.TablePhases, 32, nil},
	{analyses.TableModuleClasses, 16, nil},
	{analyses.TableAnnotations, 12, nil},
	{analyses.TableOperators, 12, nil},
	{analyses.TableMemoryPeaks, 16, nil},
	{snapshot.TableChanges, 24, []string{"device", "kind", "before_bytes", "after_bytes", "change_bytes", "name"}},
	{snapshot.TablePeaks, 12, []string{"device", "peak_bytes", "max_memory_allocated_bytes", "reserved_bytes", "time_us", "category", "category_share", "place", "place_share"}},
	{snapshot.TableWindow, 16, []string{"device", "begin_bytes", "came_bytes", "went_bytes", "end_bytes", "blocks", "category", "place"}},
	{snapshot.TablePeak, 12, []string{"device", "category", "bytes", "share", "blocks", "place"}},
	{snapshot.TableLive, 12, []string{"device", "bytes", "blocks", "state", "category", "place"}},
	{snapshot.TableFragmentation, 12, nil},
	{snapshot.TableSegmentsAt, 12, nil},
	{snapshot.TableAroundOOM, 26, []string{"device", "failure", "event", "time_us", "action", "bytes", "allocated_bytes", "reserved_bytes", "place"}},
	{snapshot.TableOutOfMemory, 12, []string{"device", "time_us", "requested_bytes", "device_free_bytes", "place"}},
}

// Text writes the report for a terminal of that many columns. Foreign text has
// no control characters in it.
func (r *Result) Text(w io.Writer, columns int) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s: %s\n", cut(r.Name, columns/2), r.about())
	for _, line := range r.headline() {
		fmt.Fprintln(out, line)
	}
	if r.Analysis != nil {
		for _, warning := range r.Analysis.Warnings {
			if !warning.Note {
				fmt.Fprintf(out, "! %s\n", plain(warning.String()))
			}
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(out, "! %s\n", plain(note))
	}
	for _, show := range terminalTables {
		if t := r.table(show.name); t != nil && !r.repeats(t) && !(t.Name == analyses.TablePythonFunctions && r.Analysis.Device) {
			if t = condense(t); t.Len() == 0 { // no row had a figure
				continue
			}
			title := t.Title
			if !r.severalRanks() {
				title = strings.TrimSuffix(title, ", all ranks")
			}
			writeTable(out, t, title, show.columns, show.rows, columns)
		}
	}
	if missing := r.missing(); len(missing) > 0 {
		fmt.Fprintf(out, "\nNot recorded: %s.\n", strings.Join(missing, "; "))
	}
	r.writeNotes(out)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// writeNotes lists what was noted about the input and affects no figure.
func (r *Result) writeNotes(out io.Writer) {
	if r.Analysis == nil {
		return
	}
	for _, warning := range r.Analysis.Warnings {
		if warning.Note {
			fmt.Fprintf(out, "\nNote: %s.\n", plain(warning.String()))
		}
	}
}

// places are columns whose text ends with a file's name and line, which a cut leaves.
var places = []string{"place", "caller", "file", "run"}

// writeTable aligns numbers at the right; the last text column gets what room
// is left. Columns without a value are left out.
func writeTable(out *bufio.Writer, t *table.Table, title string, names []string, rows, columns int) {
	var cols []*table.Column
	for _, c := range t.Columns {
		if len(names) == 0 {
			cols = append(cols, c)
		}
	}
	for _, n := range names {
		if c := t.Column(n); c != nil {
			cols = append(cols, c)
		}
	}
	cols = slices.DeleteFunc(cols, func(c *table.Column) bool { return !hasValues(c, t.Len()) })
	rows = min(rows, t.Len())
	cells := make([][]string, rows+1)
	widths := make([]int, len(cols))
	for i, c := range cols {
		cells[0] = append(cells[0], headingIn(t, c))
		for r := range rows {
			cells[r+1] = append(cells[r+1], cellText(c, r))
		}
		for _, row := range cells {
			if len(row) > i {
				widths[i] = max(widths[i], words.Columns(row[i]))
			}
		}
	}
	cols = cols[:fit(cols, widths, columns)]
	fmt.Fprintf(out, "\n%s\n", title)
	for _, row := range cells {
		var line strings.Builder
		for i, text := range row[:len(cols)] {
			if slices.Contains(places, cols[i].Name) {
				text = words.CutFront(plain(text), widths[i])
			} else {
				text = cut(text, widths[i])
			}
			blank := strings.Repeat(" ", widths[i]-words.Columns(text))
			if cols[i].Kind == table.Text {
				line.WriteString(text + blank + "  ")
			} else {
				line.WriteString(blank + text + "  ")
			}
		}
		fmt.Fprintln(out, "  "+strings.TrimRight(line.String(), " "))
	}
	if t.Len() > rows {
		fmt.Fprintf(out, "  … %s (in the files of --csv FOLDER or --json FILE)\n", plural(t.Len()-rows, "more row"))
	}
}

// fit narrows text columns, the widest first, until a row fits; if that is not
// enough it leaves out columns at the end. It returns how many are left.
func fit(cols []*table.Column, widths []int, columns int) int {
	n := len(cols)
	for {
		sum, widest := 0, -1
		for i, w := range widths[:n] {
			sum += w + 2
			if cols[i].Kind == table.Text && w > 20 && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if sum <= columns || n == 1 {
			return n
		}
		if widest < 0 {
			n--
			continue
		}
		widths[widest] = max(20, widths[widest]-(sum-columns))
	}
}
