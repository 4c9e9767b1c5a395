package chart

import (
	"fmt"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/flame"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// flame is the flame chart of one thread.
func (l *layouter) flame(f *flameLane) {
	var p flamePicture
	for px := l.dt.column; ; px *= 1.5 {
		n, step := l.columns(px)
		p = f.picture(n, step, l.d.duration, l.dt.depth)
		if p.boxes() <= l.dt.boxes || n < 8 {
			break
		}
	}
	lane := scene.Lane{ID: "flame", Kind: scene.FlameLane, Index: f.thread, Names: scene.LaneNames{Name: f.name}, Rows: make([]scene.Row, max(len(p.rows), 1))}
	if len(p.rows) > p.limit {
		lane.Limit = p.limit
	}
	lane.Box = scene.Box{X0: l.Plot.X0, Y0: l.Y, X1: l.Plot.X1, Y1: l.Y + float64(len(lane.Rows))*scene.RowHeight}
	for d := range lane.Rows {
		lane.Rows[d].Y0 = l.Y + float64(d)*scene.RowHeight
		lane.Rows[d].Y1 = lane.Rows[d].Y0 + scene.RowHeight - 1
	}
	for d, boxes := range p.rows {
		for _, b := range boxes {
			lane.Rows[d].Boxes = append(lane.Rows[d].Boxes, l.flameBlock(&p, b, &lane.Rows[d]))
		}
	}
	l.titles(lane.Rows, &p)
	l.hatches(lane.Rows, &p)
	l.gaps(lane.Box, &p)
	if len(p.rows) == 0 {
		l.Text(l.Plot.X0+5, l.Y+12, "no Python code was seen running", scene.LabelSize, scene.Muted, scene.Sans, scene.Left)
	}
	l.lane(lane, [][]string{{f.aside}}, min(lane.Y1-lane.Y0, 26))
	l.Y = lane.Y1 + scene.Gap
}

// flamePicture is a flame chart in columns.
type flamePicture struct {
	*flameLane
	columns []flame.Column
	waits   []bool // by column: the innermost call had no CPU
	unknown []bool // by column: no stack could be read
	rows    [][]flame.Box
	limit   int     // of rows; what calls deeper is counted in one more
	step    float64 // pixels per column
}

func (f *flameLane) picture(n int, step, duration float64, limit int) flamePicture {
	picks := raster(f.spans, n, duration)
	p := flamePicture{flameLane: f, waits: make([]bool, n), unknown: make([]bool, n), step: step}
	p.columns = f.tree.Columns(picks, func(i int) int32 { return f.spans[i].node })
	for c, i := range picks {
		if i >= 0 {
			p.waits[c] = !f.spans[i].state.Computes() && f.spans[i].state != report.StateUnknown
			p.unknown[c] = f.spans[i].state == report.StateUnknown && f.tree.Calls[p.columns[c].Call].Depth == 0
		}
	}
	p.limit = worthRows(f.tree, p.columns, limit)
	p.rows = f.tree.Rows(p.columns, p.limit, 1/step)
	return p
}

func (p *flamePicture) boxes() (n int) {
	for _, row := range p.rows {
		n += len(row)
	}
	return n
}

// worthRows is the depth to which a flame chart is drawn: rows that are all but
// empty, below an import for instance, would only push the tables away.
func worthRows(t *flame.Tree, columns []flame.Column, limit int) int {
	const fewRows, share = 6, 0.04
	reach := make([]int, labels.MaxDepth+1) // columns by depth of their innermost call
	for _, c := range columns {
		reach[min(int(t.Calls[c.Call].Depth), labels.MaxDepth)]++
	}
	depth, beyond := labels.MaxDepth, reach[labels.MaxDepth]
	for depth > fewRows && float64(beyond) < share*float64(len(columns)) {
		depth--
		beyond += reach[depth]
	}
	return min(depth, limit)
}

func (l *layouter) flameBlock(p *flamePicture, b flame.Box, row *scene.Row) scene.Block {
	block := scene.Block{X0: l.Plot.X0 + float64(b.From)*p.step, X1: l.Plot.X0 + float64(b.To)*p.step, Paint: scene.PaintOther, Several: b.Share > 0}
	if b.Call > 0 {
		block.Paint = p.functionOf(b).Paint
		l.paints[block.Paint] = true
	}
	if room := block.X1 - block.X0 - 8; room >= 14 {
		if s := firstThatFits(p.labels(b), room, scene.LabelSize); s != "" {
			block.Label = &scene.Label{X: block.X0 + 4, Y: row.Y1 - 4.5, S: s, Size: scene.LabelSize, Tone: scene.OnBox}
		}
	}
	return block
}

func (f *flameLane) functionOf(b flame.Box) *labels.Function {
	return &f.functions[f.tree.Calls[b.Call].Function]
}

// labels are ways to name a box, the most informative first.
func (p *flamePicture) labels(b flame.Box) []string {
	if b.Call == 0 {
		return []string{fmt.Sprintf("… %d deeper", b.Deeper), "…"}
	}
	names := p.functionOf(b).Names(int(p.tree.Calls[b.Call].Repeats) + 1)
	if b.Share == 0 {
		return names
	}
	name := names[len(names)-1]
	most := name + " " + words.Percent(b.Share)
	if b.Others == 0 {
		return []string{most, name}
	}
	return []string{fmt.Sprintf("%s + %d more", most, b.Others), most, name}
}

// titles gives the widest boxes a tooltip.
func (l *layouter) titles(rows []scene.Row, p *flamePicture) {
	if l.dt.titles == 0 {
		return
	}
	var widths []int
	for _, boxes := range p.rows {
		for _, b := range boxes {
			widths = append(widths, b.To-b.From)
		}
	}
	least := leastTitled(widths, l.dt.titles, p.step)
	for r, boxes := range p.rows {
		for k, b := range boxes {
			if b.To-b.From >= least && b.Call > 0 {
				rows[r].Boxes[k].Title = l.flameTitle(p, b)
			}
		}
	}
}

// leastTitled is how many columns wide a box must be to be among the widest that
// get a tooltip, and wide enough to be hit. It sorts widths.
func leastTitled(widths []int, titles int, step float64) int {
	least := int(hittable/step) + 1
	slices.Sort(widths)
	if cut := len(widths) - titles; cut > 0 {
		least = max(least, widths[cut-1]+1)
	}
	return least
}

func (l *layouter) flameTitle(p *flamePicture, b flame.Box) string {
	call, fn := p.tree.Calls[b.Call], p.functionOf(b)
	title := fn.Name
	if b.Share > 0 {
		title += fmt.Sprintf(" %s of this", words.Percent(b.Share))
	}
	if fn.File != "" {
		title += fmt.Sprintf("\n%s:%d", fn.File, fn.Line)
	}
	switch {
	case b.Share > 0:
		title += "\nshort calls side by side"
		if b.Others > 0 {
			title += ", " + words.Plural(b.Others, "other function among them", "other functions among them")
		}
	case call.Callees:
		title += "\nand what it calls in its package"
	}
	column := l.d.duration / float64(len(p.columns))
	title += fmt.Sprintf("\nabout %s from %s on", words.Seconds(float64(b.To-b.From)*column), words.Seconds(float64(b.From)*column))
	if fn.TotalS > 0 {
		title += fmt.Sprintf("\nin all %s, %s of its own", words.Seconds(fn.TotalS), words.Seconds(fn.SelfS))
		if split := labels.Split(fn.States); split != "" {
			title += " (" + split + ")"
		}
	}
	return title
}

// hatches marks where the innermost call waited, so that waiting is not taken for work.
func (l *layouter) hatches(rows []scene.Row, p *flamePicture) {
	waits := func(c int) int32 {
		if !p.waits[c] {
			return 0
		}
		return p.columns[c].Call
	}
	for _, run := range runsOf(len(p.columns), waits) {
		d := min(int(p.tree.Calls[run.key].Depth), p.limit)
		rows[d-1].Hatch = append(rows[d-1].Hatch, scene.Hatch{X0: l.Plot.X0 + float64(run.from)*p.step, X1: l.Plot.X0 + float64(run.to)*p.step})
		l.hatch = true
	}
}

// gaps marks where no stack could be read, and says so where there is room.
func (l *layouter) gaps(lane scene.Box, p *flamePicture) {
	const label = "not sampled"
	unknown := func(c int) int32 { return int32(btoi(p.unknown[c])) }
	for _, run := range runsOf(len(p.columns), unknown) {
		x0, x1 := l.Plot.X0+float64(run.from)*p.step, l.Plot.X0+float64(run.to)*p.step
		l.gap(x0, x1, lane)
		if len(p.rows) > 0 && x1-x0 >= scene.WidthOf(label, scene.SmallSize, scene.Sans)+8 {
			l.Text((x0+x1)/2, lane.Y0+12, label, scene.SmallSize, scene.Muted, scene.Sans, scene.Middle)
		}
	}
}
