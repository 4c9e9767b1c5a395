package interpret

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// waiting are a thread's spans with those as waiting in which it reads what another process
// sends through multiprocessing: a worker its next task, its owner the results, anybody a
// Pipe. The system calls that a read, but there is nothing to read yet. Spans of which none
// is are shared.
func (r *reader) waiting(spans []timeline.Span) []timeline.Span {
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
