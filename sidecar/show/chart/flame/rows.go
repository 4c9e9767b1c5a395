package flame

// Box is columns From … To of a row, To excluded: one call, or what stands for several.
type Box struct {
	From, To int
	Call     int32 // 0: calls that have no row of their own
	Deeper   int   // how many those are
	// Of calls too short to be distinguished Call is the one that took most; Share is how
	// much of the box, Others are how many different ones are left. Share is 0 of a box
	// that is one call.
	Share  float64
	Others int
}

// Column is what a column of pixels shows.
type Column struct {
	Call int32 // 0: nothing ran
	Same int32 // depth to which this is the very call that the column before shows
}

// witnesses are how many spans between those of two columns are asked whether it was
// the same call all the time: where calls are much shorter than a column, neighbours
// show the same function by chance.
const witnesses = 3

// Columns are what picked spans of a thread's history show: by column the index of one,
// in order, -1 where there was none.
func (t *Tree) Columns(picks []int, nodeAt func(span int) int32) []Column {
	columns := make([]Column, len(picks))
	for c, pick := range picks {
		if pick < 0 {
			continue
		}
		columns[c].Call = t.Of[nodeAt(pick)]
		if c == 0 || picks[c-1] < 0 {
			continue
		}
		same, last := columns[c].Call, picks[c-1]
		for k := 1; k <= witnesses; k++ {
			same = t.common(same, t.Of[nodeAt(last+(pick-last)*k/(witnesses+1))])
		}
		columns[c].Same = t.Calls[same].Depth
	}
	return columns
}

// common is the innermost call that two have on their stacks.
func (t *Tree) common(a, b int32) int32 {
	for a != b {
		if a > b { // callers precede
			a = t.Calls[a].Above
		} else {
			b = t.Calls[b].Above
		}
	}
	return a
}

// Rows turns the stack of each column upright, outermost call first, and joins
// neighbours with the same callers and function. What calls deeper than limit rows is
// counted in one more.
//
// perPixel is how many columns a pixel has: by it a folded tree's short calls are
// joined, where many of them are side by side.
func (t *Tree) Rows(columns []Column, limit int, perPixel float64) [][]Box {
	g := t.grid(columns, limit)
	if t.Folded {
		g.foldShort(columns, perPixel)
	}
	rows := make([][]Box, g.rows)
	for r := range rows {
		line := g.line(r)
		for from := 0; from < len(line); {
			to := runEnd(line, from, len(line))
			switch id := line[from]; {
			case id > 0:
				rows[r] = append(rows[r], Box{From: from, To: to, Call: id})
			case id < 0:
				box := g.marks[-1-id]
				box.From, box.To = from, to
				rows[r] = append(rows[r], box)
			}
			from = to
		}
	}
	return rows
}

// grid is rows of cells by column: a call, 0 for nothing, -1 - i for marks[i].
type grid struct {
	rows, columns int
	cells         []int32
	marks         []Box
}

func (g *grid) line(row int) []int32 { return g.cells[row*g.columns : (row+1)*g.columns] }

func (t *Tree) grid(columns []Column, limit int) *grid {
	depth := 0
	for _, c := range columns {
		depth = max(depth, int(t.Calls[c.Call].Depth))
	}
	g := &grid{rows: min(depth, limit+1), columns: len(columns)}
	g.cells = make([]int32, g.rows*g.columns)
	deeper := make(map[int]int32) // marks by number of calls
	for c := range columns {
		k := columns[c].Call
		if more := int(t.Calls[k].Depth) - limit; more > 0 {
			if deeper[more] == 0 {
				g.marks = append(g.marks, Box{Deeper: more})
				deeper[more] = -int32(len(g.marks))
			}
			g.line(limit)[c] = deeper[more]
		}
		for ; k > 0; k = t.Calls[k].Above {
			if d := int(t.Calls[k].Depth); d <= limit {
				g.line(d - 1)[c] = k
			}
		}
	}
	return g
}

// Short calls are joined where at least so many stand side by side below one caller,
// each too narrow for a name and most too narrow to be distinguished by eye, together wide
// enough to say something (pixels).
const (
	leastShort = 5
	shortWidth = 8.0
	meanWidth  = 3.0
	leastWidth = 12.0
)

// foldShort makes one box of each stretch of calls too short to be distinguished.
func (g *grid) foldShort(columns []Column, perPixel float64) {
	short, mean := max(shortWidth*perPixel, 3), max(meanWidth*perPixel, 2) // chance counts in columns, however wide
	for row := 1; row < g.rows; row++ {
		above, line := g.line(row-1), g.line(row)
		callEnd := func(from, to int) int {
			at := from + 1
			for at < to && line[at] == line[from] && (line[at] == 0 || int(columns[at].Same) > row) {
				at++
			}
			return at
		}
		for at := 0; at < len(line); {
			end := runEnd(above, at, len(above)) // up to there all have one caller
			for at < end {
				to, calls := at, 0
				next := callEnd(to, end)
				for to < end && float64(next-to) <= short {
					calls++
					if to = next; to < end {
						next = callEnd(to, end)
					}
				}
				if width := float64(to - at); calls >= leastShort && width >= leastWidth*perPixel && width <= mean*float64(calls) && above[at] != 0 {
					g.join(line, at, to)
				}
				if at = to; calls == 0 {
					at = next
				}
			}
		}
	}
}

// join makes one box of the cells from … to, if they differ.
func (g *grid) join(line []int32, from, to int) {
	columns := make(map[int32]int)
	var most int32
	for _, id := range line[from:to] {
		if id != 0 {
			columns[id]++
		}
	}
	for _, id := range line[from:to] { // of the same length the first
		if id != 0 && (most == 0 || columns[id] > columns[most]) {
			most = id
		}
	}
	if columns[most] == to-from {
		return
	}
	if most > 0 { // else numbers of deeper calls: one of them will do
		g.marks = append(g.marks, Box{Call: most, Share: float64(columns[most]) / float64(to-from), Others: len(columns) - 1})
		most = -int32(len(g.marks))
	}
	for c := from; c < to; c++ {
		line[c] = most
	}
}

// runEnd is where the stretch of equal cells that begins at from ends, to at the latest.
func runEnd(cells []int32, from, to int) int {
	at := from + 1
	for at < to && cells[at] == cells[from] {
		at++
	}
	return at
}
