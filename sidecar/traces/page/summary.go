package page

import (
	"bufio"
	"fmt"
	"io"

	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
)

// SummaryName is the file name by which the original omni_perf's users know it.
const SummaryName = "profiler_list.dat"

// WriteSummary writes operators by device time, on the CPU alone by host time, then the peaks of memory, as
// aligned text.
func (r *Result) WriteSummary(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# %s: %s\n", plain(r.Name), r.about())
	if t := r.table(analyses.TableOperators); t != nil {
		by := "self_device_us"
		if t.Column(by) == nil { // nothing ran on a device
			by = "self_cpu_us"
		}
		writeTable(out, t.SortBy(by, true), t.Title, nil, t.Len(), 200)
	} else {
		fmt.Fprintln(out, "\nNo operators were recorded.")
	}
	for _, name := range []string{analyses.TableMemoryPeaks, snapshot.TableFragmentation, snapshot.TablePeak} {
		if t := r.table(name); t != nil {
			writeTable(out, t, t.Title, nil, min(50, t.Len()), 200)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return nil
}

// WriteSummaryFile writes WriteSummary's text to a file.
func (r *Result) WriteSummaryFile(path string) error { return output.Write(path, r.WriteSummary) }
