package pools

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// waiting are a thread's spans with those as waiting in which a worker reads the pipe
// that its next task comes through, or its owner's thread the one of the results: that is
// no input or output, there is nothing to do. Spans of which none is are shared.
func (r *reader) waiting(spans []timeline.Span) []timeline.Span {
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
