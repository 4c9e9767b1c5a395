package profiler

import (
	"os"

	"github.com/omni-perf/omni-perf/sidecar/measure/host"
	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
)

// Follower makes who looks at one recording of a process while it is in progress. The files
// are those of Analyser; sources are read once: what runs is what was loaded.
func Follower(files *targetfs.FS) *live.Follower {
	home, _ := os.UserHomeDir() // none: paths stay as they are
	files.Refresh()
	return live.New(live.Options{Line: host.NewLines(files).Line, Home: home})
}
