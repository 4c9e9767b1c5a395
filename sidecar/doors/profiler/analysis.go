package profiler

import (
	"os"

	"github.com/omni-perf/omni-perf/sidecar/measure/host"
	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Analyser makes reports of a process's recordings, also after its end. The files are the
// process's as they were before anything was recorded (targetfs.FS), the version is
// omni_perf's, for the document.
func Analyser(files *targetfs.FS, version string) func(*timeline.Recording) (*report.View, error) {
	home, _ := os.UserHomeDir() // none: paths stay as they are
	return func(rec *timeline.Recording) (*report.View, error) {
		rec = interpret.Of(rec)
		files.Refresh()
		lines := host.NewLines(files) // anew: modules are edited between cells
		found := diagnose.Options{Line: lines.Line}.Run(rec)
		return report.Build(rec, &found, report.Options{Version: version, Home: home, Line: lines.Line, Text: lines.Text})
	}
}
