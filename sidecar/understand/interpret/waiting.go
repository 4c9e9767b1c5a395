package interpret

import (
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// waiting are a thread's spans with those as waiting in which it reads what another process
// sends through multiprocessing: a worker its next task, its owner the results, anybody a
// Pipe. The system calls that a read, but there is nothing to read yet. Spans of which none
// is are shared.
func waiting(rec *timeline.Recording, spans []timeline.Span) []timeline.Span {
	shared := true
	for i, s := range spans {
		if s.State != timeline.StateIO || s.Node == timeline.RootNode || int(s.Node) >= len(rec.Nodes) {
			continue
		}
		if f := rec.Nodes[s.Node].Frame; int(f) >= len(rec.Frames) || !receives(rec.Frames[f]) {
			continue
		}
		if shared {
			spans, shared = slices.Clone(spans), false
		}
		spans[i].State = timeline.StateWaiting
	}
	return spans
}

// receives tells multiprocessing's function that reads from a pipe or socket, and that of
// its forks.
func receives(f timeline.Frame) bool {
	return strings.HasSuffix(f.Function, "_recv") && slices.ContainsFunc(connections, func(file string) bool { return strings.HasSuffix(f.File, file) })
}

var connections = []string{"/multiprocessing/connection.py", "/multiprocess/connection.py", "/billiard/connection.py"}
