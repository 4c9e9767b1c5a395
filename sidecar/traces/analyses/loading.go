package analyses

import (
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// loaderPrefix begins the annotation that torch's DataLoader puts around the
// fetching of a batch in the training loop's thread.
const loaderPrefix = "enumerate(DataLoader)"

// FetchesData recognises the annotation of fetching a batch from others.
func FetchesData(annotation string) bool { return strings.HasPrefix(annotation, loaderPrefix) }

// loadingRow is the time one step waited for its data.
type loadingRow struct {
	step                  int // -1: the trace has no steps
	fetches               int
	fetching, whole, idle int64 // ns; idle summed over the devices
}

// observeLoading has a row per step; without steps one for the recording.
func observeLoading(r *recording) []loadingRow {
	fetches := dataFetches(r)
	if len(fetches) == 0 {
		return nil
	}
	waits := union(fetches, anyKind)
	steps := hostSteps(r.steps)
	if len(steps) == 0 {
		whole := r.hostWindow()
		steps = []step{{number: -1, start: whole.Start, end: whole.End}}
	}
	starts := make([]int64, len(fetches)) // sorted, as fetches are
	for i, f := range fetches {
		starts[i] = f.start
	}
	rows := make([]loadingRow, 0, len(steps))
	for _, s := range steps {
		window := between(s.start, s.end)
		inside := timeline.Clip(waits, window)
		row := loadingRow{step: s.number, fetches: within(starts, window), fetching: timeline.Total(inside), whole: s.end - s.start}
		for d := range r.of {
			row.idle += row.fetching - timeline.Total(timeline.Common(inside, r.busy(d)))
		}
		rows = append(rows, row)
	}
	return rows
}

// hostWindow is from the first operator or runtime call to the end of the last.
func (r *recording) hostWindow() interval {
	o := &r.t.Ops
	var spans []span
	for row, start := range o.Start {
		if o.Class[row] <= kineto.OpAnnotation && r.keeps(start) {
			spans = append(spans, span{start: start, dur: max(0, o.Dur[row])})
		}
	}
	for i := range r.calls {
		spans = append(spans, span{start: r.calls[i].start, dur: r.calls[i].dur})
	}
	if len(spans) == 0 {
		return interval{}
	}
	window := between(spans[0].start, spans[0].end())
	for i := range spans {
		window = between(min(window.Start, spans[i].start), max(window.End, spans[i].end()))
	}
	return window
}

// dataFetches lists the loader's annotations by start.
func dataFetches(r *recording) []span {
	names := map[kineto.Sym]bool{}
	for s := range r.t.Names.Len() {
		if strings.HasPrefix(r.t.Names.Text(kineto.Sym(s)), loaderPrefix) {
			names[kineto.Sym(s)] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	o := &r.t.Ops
	f := recording{}
	for row, name := range o.Name {
		if names[name] && o.Class[row] <= kineto.OpAnnotation && r.keeps(o.Start[row]) {
			f.spans = append(f.spans, span{start: o.Start[row], dur: max(0, o.Dur[row])})
		}
	}
	f.sort()
	return f.spans
}

func answerLoading(a asked[[]loadingRow]) []*table.Table {
	columns := []*table.Column{
		{Name: "rank", Kind: table.Int},
		{Name: "step", Kind: table.Int}, // none: the trace has no steps
		{Name: "fetches", Kind: table.Int},
		{Name: "dataloader_us", Kind: table.Micros},
		{Name: "step_us", Kind: table.Micros},
		{Name: "dataloader_share", Kind: table.Ratio}, // of the step
	}
	if a.about.device {
		columns = append(columns, &table.Column{Name: "device_idle_us", Kind: table.Micros}) // during the fetches
	}
	t := table.New(TableDataLoader, "Waiting for data", columns...)
	var why notes
	for _, rank := range a.ranks {
		rows := slices.Concat(rank.parts...)
		note := ""
		if len(rows) == 0 {
			note = "no enumerate(DataLoader) in the trace"
		}
		why.add(rank.rank, note)
		for _, row := range rows {
			cells := []any{rank.rank, known(int64(row.step), row.step >= 0), row.fetches, micros(row.fetching), micros(row.whole), share(row.fetching, row.whole)}
			if a.about.device {
				cells = append(cells, micros(row.idle))
			}
			t.Add(cells...)
		}
	}
	t.Note = why.String()
	return []*table.Table{t}
}
