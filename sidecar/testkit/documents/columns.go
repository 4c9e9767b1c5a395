package documents

import (
	"sort"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/flame"
)

// Rows of boxes of the instants that columns show. Calls are the picture's own (package
// flame); states and lines by the viewer's rules (src/grid.ts), a second time.

// picks is the index of what ran at each instant; -1 where nothing did.
func picks(spans []span, at []float64) []int {
	out := make([]int, len(at))
	for c, t := range at {
		i := sort.Search(len(spans), func(i int) bool { return float64(spans[i].end) > t })
		if i == len(spans) || float64(spans[i].start) > t {
			i = -1
		}
		out[c] = i
	}
	return out
}

// box is columns From … To of one row with one number; of calls too short to be distinguished
// apart what most of them are, with that one's share and the number of others, of calls
// that have no row minus their number.
type box struct {
	From, To, ID int
	Share        float64 `json:",omitempty"`
	Others       int     `json:",omitempty"`
}

// treeOf merges the document's stacks as the picture does.
func treeOf(d *Document) *flame.Tree {
	p := flame.Program{Parent: make([]int32, len(d.Nodes.Parent)), Function: make([]int32, len(d.Nodes.Parent))}
	for n := 1; n < len(p.Parent); n++ {
		p.Parent[n], p.Function[n] = int32(d.Nodes.Parent[n]), int32(d.Frames.Function[d.Nodes.Frame[n]])
	}
	for _, f := range d.Functions {
		file := d.Files[f.File]
		of := flame.Function{Own: file.Code <= int(User) || f.Code <= int(User)}
		if file.Package != nil {
			of.Package = *file.Package
		}
		p.Functions = append(p.Functions, of)
	}
	return flame.New(p, nil, d.Chart.Folded)
}

// flameRows are the boxes of a lane with so many rows, the last of which may show what
// is deeper.
func flameRows(t *flame.Tree, spans []span, picked []int, l Lane, perPixel float64) [][]box {
	columns := t.Columns(picked, func(i int) int32 { return int32(spans[i].node) })
	limit := l.Limit
	if limit == 0 {
		limit = l.Rows
	}
	out := make([][]box, l.Rows)
	for r, row := range t.Rows(columns, limit, perPixel) {
		for _, b := range row {
			if r < l.Rows {
				out[r] = append(out[r], box{b.From, b.To, int(b.Call) - b.Deeper, b.Share, b.Others})
			}
		}
	}
	return out
}

// rowOf is a row of what each picked span stands for; 0 is nothing.
func rowOf(picked []int, idOf func(span int) int) []box {
	var out []box
	for c, i := range picked {
		if i >= 0 && idOf(i) > 0 {
			out = extend(out, c, idOf(i))
		}
	}
	return out
}

func extend(row []box, column, id int) []box {
	if n := len(row); n > 0 && row[n-1].To == column && row[n-1].ID == id {
		row[n-1].To++
		return row
	}
	return append(row, box{From: column, To: column + 1, ID: id})
}
