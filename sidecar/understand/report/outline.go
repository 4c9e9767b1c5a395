package report

import (
	"maps"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	outlinePoints = 256  // of a track that an outline has, at most
	outlineSpans  = 4096 // of a thread
)

// Outline is a document in which only some threads are left, in ascending order, with these histories in place of
// theirs. More than outlineSpans are put on a grid, tracks are thinned, and what nothing refers to any more is left
// out; Thinned says so.
func (v *View) Outline(keep []int, histories [][]Span) (*View, error) {
	d := *v.Document
	d.Thinned = &Thinned{Tables: make(map[string]KeptOf)}
	if v.Thinned != nil {
		d.Thinned.SpansStepNS, d.Thinned.Tables = v.Thinned.SpansStepNS, maps.Clone(v.Thinned.Tables)
	}
	t := &thinner{v: v, d: &d}
	threads := indices(len(v.Threads))
	d.Threads = []Thread{}
	for _, at := range keep {
		threads[at] = len(d.Threads)
		d.Threads = append(d.Threads, v.Threads[at])
	}
	if len(keep) < len(v.Threads) {
		d.Thinned.Tables["threads"] = KeptOf{Kept: len(keep), Of: len(v.Threads)}
	}
	subject := *d.Subject
	subject.Threads = []int{}
	for _, at := range d.Subject.Threads {
		if threads[at] >= 0 {
			subject.Threads = append(subject.Threads, threads[at])
		}
	}
	if subject.Thread != nil {
		if subject.Thread = pointer(threads[*subject.Thread]); *subject.Thread < 0 {
			subject.Thread = nil
		}
	}
	d.Subject = &subject
	t.outlineSpans(histories)
	most := outlinePoints
	d.Thinned.TracksPoints = &most
	d.Tracks = []Track{}
	for _, track := range v.Tracks {
		if track.Thread != nil {
			if threads[*track.Thread] < 0 {
				continue
			}
			track.Thread = pointer(threads[*track.Thread])
		}
		d.Tracks = append(d.Tracks, thinTrack(track, most))
	}
	d.Kernels = slices.Clone(d.Kernels)
	for i := range d.Kernels {
		d.Kernels[i] = joinBlocks(d.Kernels[i], d.DurationNS/outlinePoints)
	}
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
