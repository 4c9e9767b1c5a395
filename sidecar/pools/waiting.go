package pools

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// withoutTask are the spans of a worker's main thread with those in which it reads the
// pipe that its next task comes through as waiting: it does no input or output, it has
// nothing to do. Spans that say so already are shared.
func (r *reader) withoutTask(spans []timeline.Span) []timeline.Span {
	shared := true
	for i, s := range spans {
		if s.State != timeline.StateIO || s.Node == timeline.RootNode || !r.stack(s.Node).starved {
			continue
		}
		if shared {
			spans, shared = slices.Clone(spans), false
		}
		spans[i].State = timeline.StateWaiting
	}
	return spans
}
