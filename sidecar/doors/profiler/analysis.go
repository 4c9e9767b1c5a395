package profiler

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/host"
	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
	"github.com/omni-perf/omni-perf/sidecar/understand/devicework"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
)

// Analyser makes reports of a process's recordings, also after its end. The files are the
// process's as they were before anything was recorded (targetfs.FS), the version is
// omni_perf's, for the document.
func Analyser(files *targetfs.FS, version string) func(*timeline.Recording) (*report.View, error) {
	analyse := TracedAnalyser(files, version)
	return func(rec *timeline.Recording) (*report.View, error) { return analyse(rec, addtrace.Traced{}) }
}

// TracedAnalyser makes reports as Analyser does, of recordings during which torch.profiler wrote traces, too. Traces
// that cannot be read, or are of another time, are left out with a note.
func TracedAnalyser(files *targetfs.FS, version string) func(rec *timeline.Recording, traced addtrace.Traced) (*report.View, error) {
	home, _ := os.UserHomeDir() // none: paths stay as they are
	return func(rec *timeline.Recording, traced addtrace.Traced) (*report.View, error) {
		rec, opts := addTraces(interpret.Of(rec), traced)
		files.Refresh()
		lines := host.NewLines(files) // anew: modules are edited between cells
		opts.Version, opts.Home, opts.Line, opts.Text = version, home, lines.Line, lines.Text
		opts.OutOfMemory, opts.TorchMemory, opts.Allocations = traced.OutOfMemory, traced.TorchMemory, traced.Allocations
		found := diagnose.Options{Line: lines.Line, KernelWait: traced.KernelWait}.Run(rec)
		return report.Build(rec, &found, opts)
	}
}

// maxTraceTime is how long the traces of a cell are read, which somebody waits for.
const maxTraceTime = 2 * time.Minute

func addTraces(rec *timeline.Recording, traced addtrace.Traced) (*timeline.Recording, report.Options) {
	if len(traced.Files) == 0 {
		return devicework.Into(rec), report.Options{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxTraceTime)
	defer cancel()
	merged, opts, err := addtrace.Recorded(ctx, rec, traced)
	if err == nil {
		return merged, opts
	}
	with := *devicework.Into(rec)
	with.Notes = append(slices.Clone(with.Notes), timeline.Note{ID: timeline.NoteFailed, What: wording.TorchTrace, Reason: err.Error()})
	return &with, report.Options{}
}
