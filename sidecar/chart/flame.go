package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/words"
)

// flameBox is a box before it has a place: columns from … to of one depth.
type flameBox struct {
	run
	depth int // 1 is the outermost function
}

// flameBoxes merges columns: neighbours with the same callers and function are
// one box. Below depth limit comes one row that tells what is left out.
func flameBoxes(t *callTree, columns []int32, limit int) []flameBox {
	limit = min(limit, maxDepth)
	var boxes []flameBox
	var open, path [maxDepth + 2]flameBox // by depth; to == 0: none
	for c := 0; c <= len(columns); c++ {
		clear(path[:])
		if c < len(columns) {
			k := columns[c]
			if int(t.nodes[k].depth) > limit || t.nodes[k].cut > 0 {
				path[limit+1] = flameBox{run{c, c + 1, deeperKey(t, k, limit)}, limit + 1}
			}
			for ; k > 0; k = t.nodes[k].parent {
				if d := int(t.nodes[k].depth); d <= limit {
					path[d] = flameBox{run{c, c + 1, k}, d}
				}
			}
		}
		for d := 1; d <= limit+1; d++ {
			if open[d].to > 0 && path[d].to > 0 && open[d].key == path[d].key {
				open[d].to = c + 1
				continue
			}
			if open[d].to > 0 {
				boxes = append(boxes, open[d])
			}
			open[d] = path[d]
		}
	}
	return boxes
}

// deeperKey tells by a negative number how many callees the last row hides.
func deeperKey(t *callTree, k int32, limit int) int32 {
	return -max(t.nodes[k].depth-int32(limit)+t.nodes[k].cut, 1)
}

// flame is the flame chart of one thread.
func (l *layouter) flame(f *flameLane) {
	var p flamePicture
	for px := l.dt.column; ; px *= 1.5 {
		n, step := l.columns(px)
		p = f.picture(n, l.d.duration, l.dt.depth)
		p.step = step
		if len(p.boxes) <= l.dt.boxes || n < 8 {
			break
		}
	}
	depth := 1
	for _, b := range p.boxes {
		depth = max(depth, b.depth)
	}
	lane := Lane{ID: "flame", Kind: FlameLane, Index: f.thread, Names: LaneNames{Name: f.name}, Rows: make([]Row, depth)}
	if depth > p.limit {
		lane.Limit = p.limit
	}
	lane.Box = Box{l.Plot.X0, l.y, l.Plot.X1, l.y + float64(depth)*rowHeight}
	for d := range lane.Rows {
		lane.Rows[d].Y0 = l.y + float64(d)*rowHeight
		lane.Rows[d].Y1 = lane.Rows[d].Y0 + rowHeight - 1
	}
	for _, b := range p.boxes {
		row := &lane.Rows[b.depth-1]
		row.Boxes = append(row.Boxes, l.flameBlock(&p, b, row))
	}
	l.titles(lane.Rows, &p)
	l.hatches(lane.Rows, &p)
	if len(p.boxes) == 0 {
		l.text(l.Plot.X0+5, l.y+12, "no Python code was seen running", labelSize, Muted, sans, Left)
	}
	l.lane(lane, [][]string{{f.aside}}, min(lane.Y1-lane.Y0, 26))
	l.y = lane.Y1 + gap
}

// flamePicture is a flame chart in columns.
type flamePicture struct {
	fns     *functions
	tree    *callTree
	columns []int32 // nodes of tree
	waits   []bool  // by column: the leaf had no CPU
	boxes   []flameBox
	limit   int     // rows; deeper ones are told in one more
	step    float64 // pixels per column
}

func (f *flameLane) picture(n int, duration float64, limit int) flamePicture {
	p := flamePicture{fns: f.fns, waits: make([]bool, n)}
	leaves := make([]int32, n)
	for c, i := range raster(f.spans, n, duration) {
		if i >= 0 {
			leaves[c] = f.spans[i].node
			p.waits[c] = !f.spans[i].state.Computes() && f.spans[i].state != report.StateUnknown
		}
	}
	p.tree, p.columns = newCallTree(f.stacks, f.fns, leaves)
	p.limit = min(worthRows(p.tree, p.columns, limit), maxDepth)
	p.boxes = flameBoxes(p.tree, p.columns, p.limit)
	slices.SortFunc(p.boxes, func(a, b flameBox) int {
		return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(a.from, b.from))
	})
	return p
}

// worthRows is the depth to which a flame chart is drawn: rows that are all but
// empty, below an import for instance, would only push the tables away.
func worthRows(t *callTree, columns []int32, limit int) int {
	const fewRows, share = 6, 0.04
	reach := make([]int, maxDepth+2) // columns by depth of their leaf
	for _, k := range columns {
		reach[t.nodes[k].depth]++
	}
	depth, beyond := maxDepth, reach[maxDepth]
	for depth > fewRows && float64(beyond) < share*float64(len(columns)) {
		depth--
		beyond += reach[depth]
	}
	return min(depth, limit)
}

func (l *layouter) flameBlock(p *flamePicture, b flameBox, row *Row) Block {
	block := Block{X0: l.Plot.X0 + float64(b.from)*p.step, X1: l.Plot.X0 + float64(b.to)*p.step, Paint: PaintOther}
	if b.key > 0 {
		block.Paint = p.fns.list[p.tree.nodes[b.key].fn].paint
		l.paints[block.Paint] = true
	}
	if room := block.X1 - block.X0 - 8; room >= 14 {
		if s := firstThatFits(p.labels(b), room, labelSize); s != "" {
			block.Label = &Label{X: block.X0 + 4, Y: row.Y1 - 4.5, S: s, Size: labelSize, Tone: OnBox}
		}
	}
	return block
}

// labels are ways to name a box, the most telling first.
func (p *flamePicture) labels(b flameBox) []string {
	if b.key < 0 {
		return []string{fmt.Sprintf("… %d deeper", -b.key), "…"}
	}
	node := p.tree.nodes[b.key]
	return p.fns.list[node.fn].labels(int(node.repeat) + 1)
}

// labels are ways to name a function that calls itself so many times, the most
// telling first.
func (f *function) labels(calls int) []string {
	name, short := f.name, f.name
	if i := strings.LastIndexByte(name, '.'); i > 0 && i+1 < len(name) && f.place() != "" {
		short = name[i+1:] // the method without its class
	}
	if calls > 1 {
		times := fmt.Sprintf(" ×%d", calls)
		name, short = name+times, short+times
	}
	if place := f.place(); place != "" {
		return []string{name + "  " + place, name, short}
	}
	return []string{name}
}

// place is where a function stands: "train.py:12".
func (f *function) place() string {
	file := words.ShortFile(f.file)
	if file == f.name { // a module's own code
		return ""
	}
	if f.line > 0 && file != "" {
		return fmt.Sprintf("%s:%d", file, f.line)
	}
	return file
}

// titles gives the widest boxes a tooltip.
func (l *layouter) titles(rows []Row, p *flamePicture) {
	if l.dt.titles == 0 {
		return
	}
	widths := make([]int, len(p.boxes))
	for i, b := range p.boxes {
		widths[i] = b.to - b.from
	}
	least := leastTitled(widths, l.dt.titles, p.step)
	i := 0
	for r := range rows {
		for k := range rows[r].Boxes {
			if b := p.boxes[i]; b.to-b.from >= least && b.key > 0 {
				rows[r].Boxes[k].Title = l.flameTitle(p, b)
			}
			i++
		}
	}
}

// leastTitled is how many columns wide a box must be to be among the widest that
// get a tooltip, and wide enough to be hit. It sorts widths.
func leastTitled(widths []int, titles int, step float64) int {
	least := int(tellable/step) + 1
	slices.Sort(widths)
	if cut := len(widths) - titles; cut > 0 {
		least = max(least, widths[cut-1]+1)
	}
	return least
}

func (l *layouter) flameTitle(p *flamePicture, b flameBox) string {
	fn := &p.fns.list[p.tree.nodes[b.key].fn]
	title := fn.name
	if fn.file != "" {
		title += fmt.Sprintf("\n%s:%d", fn.file, fn.line)
	}
	column := l.d.duration / float64(len(p.columns))
	title += fmt.Sprintf("\nabout %s from %s on", words.Seconds(float64(b.to-b.from)*column), words.Seconds(float64(b.from)*column))
	if fn.totalS > 0 {
		title += fmt.Sprintf("\nin all %s, %s of its own", words.Seconds(fn.totalS), words.Seconds(fn.selfS))
	}
	return title
}

// hatches marks where the leaf waited, so that waiting is not taken for work.
func (l *layouter) hatches(rows []Row, p *flamePicture) {
	waits := func(c int) int32 {
		if !p.waits[c] {
			return 0
		}
		return p.columns[c]
	}
	for _, run := range runsOf(len(p.columns), waits) {
		d := min(int(p.tree.nodes[run.key].depth), len(rows))
		rows[d-1].Hatch = append(rows[d-1].Hatch, Hatch{l.Plot.X0 + float64(run.from)*p.step, l.Plot.X0 + float64(run.to)*p.step})
		l.hatch = true
	}
}
