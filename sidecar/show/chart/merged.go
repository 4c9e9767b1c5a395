package chart

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

const (
	// mergedFromS is the length from which on a recording has a merged flame graph below
	// its lanes: a pixel of its flame chart is 20 ms and more, in which most programs call
	// too much to be read one after the other.
	mergedFromS = 20
	mergedDepth = 12
)

// merged is the flame graph of the main thread, below the time axis: the same calls added
// up, widest first, over the width that all of the thread's time has.
func (l *layouter) merged() {
	if l.d.duration < mergedFromS || l.d.lanesOnly || len(l.d.flames) == 0 {
		return
	}
	f := l.d.flames[0].merged()
	all := 0.0
	if n := len(f.spans); n > 0 {
		all = f.spans[n-1].end
	}
	if all <= 0 {
		return
	}
	n, step := l.columns(l.dt.column)
	p := f.picture(n, step, all, min(l.dt.depth, mergedDepth))
	if p.boxes() > l.dt.boxes {
		return
	}
	l.Y += 4
	top := l.Y
	for _, boxes := range p.rows {
		row := scene.Row{Y0: l.Y, Y1: l.Y + scene.RowHeight - 1}
		for _, b := range boxes {
			block := l.flameBlock(&p, b, &row)
			if l.dt.titles > 0 && block.Label != nil && b.Call > 0 {
				block.Title = l.mergedTitle(&p, b.Call, float64(b.To-b.From)/float64(n), all)
			}
			row.Boxes = append(row.Boxes, block)
		}
		l.Merged = append(l.Merged, row)
		l.Y += scene.RowHeight
	}
	l.hatches(l.Merged, &p)
	l.names(scene.LaneNames{Name: "merged", Value: words.Seconds(all), Aside: "in all"}, [][]string{{f.name, "main thread"}}, top, min(l.Y-top, 26))
	l.Y += scene.Gap
}

func (l *layouter) mergedTitle(p *flamePicture, call int32, share, all float64) string {
	fn := &p.functions[p.tree.Calls[call].Function]
	title := fn.Name
	if fn.File != "" {
		title += fmt.Sprintf("\n%s:%d", fn.File, fn.Line)
	}
	return title + fmt.Sprintf("\nabout %s, %s of the thread's time", words.Seconds(share*all), words.Percent(share))
}

// merged has the thread's time sorted by what was called, as if it had run one after the
// other: what took longest first, a function's own time after what it called.
func (f *flameLane) merged() *flameLane {
	type part struct {
		call  int32
		state report.State
	}
	times := make(map[part]span)
	totals := make([]float64, len(f.tree.Calls))
	for _, s := range f.spans {
		call := f.tree.Of[s.node]
		if call == 0 {
			continue
		}
		p := part{call, s.state}
		sum := times[p]
		sum.node, sum.state, sum.end = s.node, s.state, sum.end+s.end-s.start
		times[p] = sum
		for c := call; c > 0; c = f.tree.Calls[c].Above {
			totals[c] += s.end - s.start
		}
	}
	order := f.callOrder(totals)
	parts := make([]part, 0, len(times))
	for p := range times {
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(order[a.call], order[b.call]), cmp.Compare(a.state, b.state))
	})
	m := *f
	m.spans = make([]span, len(parts))
	at := 0.0
	for i, p := range parts {
		s := times[p]
		s.start, s.end = at, at+s.end
		m.spans[i], at = s, s.end
	}
	return &m
}

// callOrder is each call's place in the merged flame graph: callees by their time, most
// first, then their caller.
func (f *flameLane) callOrder(totals []float64) []int {
	callees := make([][]int32, len(f.tree.Calls))
	for c := 1; c < len(f.tree.Calls); c++ {
		above := f.tree.Calls[c].Above
		callees[above] = append(callees[above], int32(c))
	}
	order, next := make([]int, len(f.tree.Calls)), 0
	var visit func(c int32)
	visit = func(c int32) {
		slices.SortStableFunc(callees[c], func(a, b int32) int { return cmp.Compare(totals[b], totals[a]) })
		for _, callee := range callees[c] {
			visit(callee)
		}
		order[c] = next
		next++
	}
	visit(0)
	return order
}
