// Package profdir writes what people expect to find beside the traces of a training, into the folder that --prof_dir
// names.
//
// In flow the report of what was recorded and the paths of the traces, which the program has left in the folder as
// rank0.5.pt.trace.json.gz: a folder that TensorBoard's plugin for PyTorch reads as it is. Out flow, beside them:
//
//	ep0-ba5-rank0.json   what the machine and the program did in that cycle, as Composer names it
//	node0.json.gz        all traces in one, their clocks aligned
//	profiler_list.dat    operators by device time, as omni-perf analyze --summary writes it
//	csv/                 the tables of the analysis
package profdir

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/export"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/traces/page"
	"github.com/omni-perf/omni-perf/sidecar/traces/request"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Files are those of one recording.
type Files struct {
	Folder string // an absolute path
	Node   int    // number of the machine
	Traces []Trace
}

// Trace is one that a profiler has written.
type Trace struct {
	Path  string
	Cycle string // "ep0-ba5-rank0"; empty: it is of no cycle of a schedule
	// Start and End are when it was recorded, in ns of the report; 0 and 0: as the report has it.
	Start, End int64
	PID        int // of the process that wrote it; 0: the report's
}

// Write writes the files and returns the paths of all that could be written, and why others could not. The report is of
// the process that wrote the traces.
func (f Files) Write(ctx context.Context, v *report.View, version string) (written []string, err error) {
	if len(f.Traces) == 0 {
		return nil, nil
	}
	var results output.Results
	put := func(name string, make func() ([]byte, error)) {
		path := filepath.Join(f.Folder, name)
		results.PutBytes(path, make)
		written = append(written, path)
	}
	for _, t := range f.Traces {
		from, to, known := t.stretch(v)
		if t.Cycle == "" || filepath.Base(t.Cycle) != t.Cycle || !known {
			continue
		}
		put(t.Cycle+".json", func() ([]byte, error) { return export.Cycle(v, from, to, t.PID) })
	}
	q := request.Request{
		Version: version, Quiet: true, Merged: filepath.Join(f.Folder, fmt.Sprintf("node%d.json.gz", f.Node)),
		Summary: filepath.Join(f.Folder, page.SummaryName), CSV: filepath.Join(f.Folder, "csv"),
	}
	q.Analyses.IncludeLastStep = true // whole: the profiler ended it before it stopped
	for _, t := range f.Traces {
		q.Paths = append(q.Paths, t.Path)
	}
	if err := q.Run(ctx, io.Discard, io.Discard); err != nil {
		return existing(written), joined(results.Err(), err)
	}
	return existing(append(written, q.Merged, q.Summary, q.CSV)), results.Err()
}

// stretch is when a trace was recorded.
func (t Trace) stretch(v *report.View) (from, to int64, known bool) {
	if t.Start < t.End {
		return max(0, t.Start), min(t.End, v.DurationNS), t.End > 0 && t.Start < v.DurationNS
	}
	for _, merged := range v.Traces {
		if merged.File == filepath.Base(t.Path) {
			return merged.StartNS, merged.EndNS, true
		}
	}
	return 0, 0, false
}

func existing(paths []string) (list []string) {
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			list = append(list, p)
		}
	}
	return list
}

func joined(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w; %s", a, strings.TrimSuffix(b.Error(), "."))
}
