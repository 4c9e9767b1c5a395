package interpret

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// pipeReadsAsWaits returns a thread's spans with the state waiting where the thread reads what
// another process sends through multiprocessing: a worker its next task, its owner the
// results, anybody a Pipe. For the system that is a read, but there is nothing to read yet. If
// there is no such span, the result is spans itself.
func (r *reader) pipeReadsAsWaits(spans []timeline.Span) []timeline.Span {
	shared := true
	for i, s := range spans {
		if s.State != timeline.StateIO || s.Node == timeline.RootNode || int(s.Node) >= len(r.rec.Nodes) {
			continue
		}
		if f := r.rec.Nodes[s.Node].Frame; int(f) >= len(r.means) || r.means[f]&origin.Receives == 0 {
			continue
		}
		if shared {
			spans, shared = slices.Clone(spans), false
		}
		spans[i].State = timeline.StateWaiting
	}
	return spans
}
