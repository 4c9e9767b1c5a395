package synthetic

import "sort"

// The rules by which rows of boxes come of the instants that columns show: those of
// the viewer (src/grid.ts), for the static picture to follow.

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

// tree merges stacks by function: direct recursion counts once.
type tree struct {
	parent, fn, depth []int
	of                []int // by node of the document
}

func treeOf(d *Document) *tree {
	t := &tree{parent: []int{-1}, fn: []int{-1}, depth: []int{0}, of: make([]int, len(d.Nodes.Parent))}
	children := make(map[[2]int]int)
	for n := 1; n < len(t.of); n++ {
		at := t.of[d.Nodes.Parent[n]]
		f := d.Frames.Function[d.Nodes.Frame[n]]
		if at > 0 && t.fn[at] == f {
			t.of[n] = at
			continue
		}
		key := [2]int{at, f}
		child, ok := children[key]
		if !ok {
			child = len(t.parent)
			children[key] = child
			t.parent, t.fn, t.depth = append(t.parent, at), append(t.fn, f), append(t.depth, t.depth[at]+1)
		}
		t.of[n] = child
	}
	return t
}

// box is columns From … To of one row with one number.
type box struct {
	From, To, ID int
}

// flameRows stands the stack of each column upright; a box is a node of the tree.
func flameRows(t *tree, spans []span, picked []int, rows int) [][]box {
	out := make([][]box, rows)
	for c, i := range picked {
		if i < 0 {
			continue
		}
		k := t.of[spans[i].node]
		for t.depth[k] > rows {
			k = t.parent[k]
		}
		for ; k > 0; k = t.parent[k] {
			r := t.depth[k] - 1
			out[r] = extend(out[r], c, k)
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
	return append(row, box{column, column + 1, id})
}
