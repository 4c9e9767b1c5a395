package report

import (
	"maps"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	outlinePoints = 256  // of a track that an outline has, at most
	outlineSpans  = 4096 // of a thread
	outlineRows   = 50   // of the tables of lines and functions: those that took most
)

// Outline is a document in which only some threads are left, in ascending order, with these histories in place of
// theirs. More than outlineSpans are put on a grid, tracks are thinned, of lines and functions outlineRows are left, and what nothing refers to any more is left
// out; Thinned says so.
func (v *View) Outline(keep []int, histories [][]Span) (*View, error) {
	d := *v.Document
	d.Thinned = &Thinned{Tables: make(map[string]KeptOf)}
	if v.Thinned != nil {
		d.Thinned.SpansStepNS, d.Thinned.Tables = v.Thinned.SpansStepNS, maps.Clone(v.Thinned.Tables)
	}
	t := &thinner{v: v, d: &d}
	t.threads(keep)
	t.outlineSpans(histories)
	t.tracks(outlinePoints)
	t.kernels(d.DurationNS / outlinePoints)
	// Copies: the whole tables are not kept for the sake of these rows.
	d.Lines = slices.Clone(cut(t, "lines", d.Lines, outlineRows))
	d.FunctionTimes = slices.Clone(cut(t, "function_times", d.FunctionTimes, outlineRows))
	d.Steps = slices.Clone(d.Steps)
	t.code()
	return Check(&d)
}

func (t *thinner) outlineSpans(histories [][]Span) {
	t.nodes = indices(len(t.v.Nodes.Parent))
	out := newThinSpans(t)
	for _, history := range histories {
		if step := t.d.DurationNS / outlineSpans; len(history) > outlineSpans {
			if t.d.Thinned.SpansStepNS == nil || *t.d.Thinned.SpansStepNS < step {
				t.d.Thinned.SpansStepNS = &step
			}
			out.thread(slices.Values(timeline.Resample(recorded(history), timeline.Nanos(step))))
		} else {
			out.thread(recorded(history))
		}
	}
	t.d.Spans = out.finish()
}
