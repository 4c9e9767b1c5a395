package compared

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/flame"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// changeGraph is the flame graph after, with the time that each box had before.
type changeGraph struct {
	fns      *labels.Functions
	tree     *flame.Tree
	now, was []float64 // seconds by node
	below    [][]int32 // most time first
	verdicts []significance.Verdict
}

// graph merges the stacks of both sides by who called whom; nil where none were read.
func (p Pair) graph() *changeGraph {
	g := &changeGraph{fns: labels.FunctionsOf(p.After), verdicts: p.Verdicts()}
	g.tree, g.now = totalsOf(p.After, g.fns)
	if !(g.now[0] > 0) {
		return nil
	}
	old, was := totalsOf(p.Before, labels.FunctionsOf(p.Before))
	type callKey struct{ above, function int }
	byCall := make(map[callKey]int32) // children of the old tree
	for n, c := range old.Calls {
		if n > 0 {
			byCall[callKey{int(c.Above), p.FunctionNumber(0, int(c.Function))}] = int32(n)
		}
	}
	twin := make([]int32, len(g.tree.Calls))
	g.was, g.below = make([]float64, len(twin)), make([][]int32, len(twin))
	g.was[0] = was[0]
	for n := 1; n < len(twin); n++ {
		c := g.tree.Calls[n]
		twin[n] = -1
		if above := twin[c.Above]; above >= 0 {
			if t, there := byCall[callKey{int(above), p.FunctionNumber(1, int(c.Function))}]; there {
				twin[n], g.was[n] = t, was[t]
			}
		}
		g.below[c.Above] = append(g.below[c.Above], int32(n))
	}
	for _, list := range g.below {
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(g.now[b], g.now[a]) })
	}
	return g
}

// totalsOf is a report's call tree, of the threads that run the target's code, and each
// node's time with all it called, in seconds.
func totalsOf(v *report.View, fns *labels.Functions) (*flame.Tree, []float64) {
	spent := make(map[int32]float64) // by node
	shown := slices.Clone(v.Subject.Threads)
	if main := v.MainThread(); main >= 0 && !slices.Contains(shown, main) {
		shown = append(shown, main)
	}
	for _, i := range shown {
		for _, s := range v.History(i) {
			spent[s.Node] += report.Seconds(s.End - s.Start)
		}
	}
	nodes := slices.Sorted(maps.Keys(spent))
	tree := flame.New(fns.Program, nodes, false)
	totals := make([]float64, len(tree.Calls))
	for _, n := range nodes {
		totals[tree.Of[n]] += spent[n]
	}
	for n := len(totals) - 1; n > 0; n-- {
		totals[tree.Calls[n].Above] += totals[n]
	}
	return tree, totals
}

// paint of a box: what changed by itself has a colour, the stronger the more.
func (g *changeGraph) paint(n int32) scene.Paint {
	strong := abs(g.now[n]-g.was[n]) >= 0.25*max(g.now[n], g.was[n])
	switch g.verdicts[g.tree.Calls[n].Function] {
	case significance.Less, significance.Gone:
		if strong {
			return scene.PaintGPU
		}
		return scene.PaintGPUMemory
	case significance.More, significance.New:
		if strong {
			return scene.PaintData
		}
		return scene.PaintLineSome
	}
	return scene.PaintOther
}

// rows lays the graph out between two edges, nothing narrower than least pixels.
func (g *changeGraph) rows(x0, x1, y, least float64) []scene.Row {
	var rows []scene.Row
	scale := (x1 - x0) / g.now[0]
	type place struct {
		n   int32
		x   float64
		row int
	}
	open := []place{{0, x0, 0}}
	for len(open) > 0 {
		p := open[len(open)-1]
		open = open[:len(open)-1]
		if p.row >= labels.MaxDepth {
			continue
		}
		x := p.x
		for _, child := range g.below[p.n] {
			width := g.now[child] * scale
			if width < least {
				break // the rest is narrower still
			}
			for p.row >= len(rows) {
				top := y + float64(len(rows))*scene.RowHeight
				rows = append(rows, scene.Row{Y0: top, Y1: top + scene.RowHeight - 1})
			}
			rows[p.row].Boxes = append(rows[p.row].Boxes, g.block(child, x, x+width, &rows[p.row]))
			open = append(open, place{child, x, p.row + 1})
			x += width
		}
	}
	for i := range rows {
		slices.SortFunc(rows[i].Boxes, func(a, b scene.Block) int { return cmp.Compare(a.X0, b.X0) })
	}
	return rows
}

// titled is the width from which on a box has a tooltip.
const titled = 14.0

func (g *changeGraph) block(n int32, x0, x1 float64, row *scene.Row) scene.Block {
	f := &g.fns.List[g.tree.Calls[n].Function]
	now, was := words.Seconds(g.now[n]), words.Seconds(g.was[n])
	change := words.Signed(g.now[n] - g.was[n])
	b := scene.Block{X0: x0, X1: x1, Paint: g.paint(n)}
	if x1-x0 >= titled {
		b.Title = fmt.Sprintf("%s\n%s\n%s, was %s (%s)", f.Name, f.Place(), now, was, change)
	}
	ways := []string{f.Name + "  " + change, f.Name}
	if b.Paint == scene.PaintOther {
		ways[0] = f.Name + "  " + now
	}
	room := x1 - x0 - 8
	for i, text := range ways {
		if i == len(ways)-1 {
			text = scene.Fit(text, room, scene.LabelSize, scene.Sans)
		}
		if text != "" && scene.WidthOf(text, scene.LabelSize, scene.Sans) <= room {
			b.Label = &scene.Label{X: x0 + 5, Y: row.Y1 - 4.5, S: text, Size: scene.LabelSize, Tone: scene.OnBox}
			break
		}
	}
	return b
}
