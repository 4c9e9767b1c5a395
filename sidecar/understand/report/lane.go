package report

// LineSpan is a stretch in which one line of a file ran, nanoseconds; line 0: none did.
type LineSpan struct {
	Start, End int64
	Line       int
}

// LineLane is the lane of the user's own lines: which line of one file ran when. The
// file is the one cell, or the script, that holds most of the time; where there is
// neither, a module; -1 where no own line ran.
func (v *View) LineLane() (file int, spans []LineSpan) {
	thread := v.MainThread()
	if thread < 0 {
		return -1, nil
	}
	history := v.History(thread)
	if file = v.mostOwn(history); file < 0 {
		return -1, nil
	}
	lines := v.lineByNode(file)
	for _, s := range history {
		line := lines[s.Node]
		if n := len(spans); n > 0 && spans[n-1].Line == line && spans[n-1].End == s.Start {
			spans[n-1].End = s.End
			continue
		}
		spans = append(spans, LineSpan{s.Start, s.End, line})
	}
	return file, spans
}

// lineByNode is the innermost line of a file on each stack; 0: the file is not on it.
func (v *View) lineByNode(file int) []int {
	lines := make([]int, len(v.Nodes.Parent))
	for n := 1; n < len(lines); n++ {
		lines[n] = lines[v.Nodes.Parent[n]]
		if frame := v.FrameOf(int32(n)); v.Functions[v.FunctionOf(frame)].File == file {
			lines[n] = v.LineOf(frame)
		}
	}
	return lines
}

// mostOwn is the file of the user's own that holds most of a history; what was typed
// goes before modules.
func (v *View) mostOwn(history []Span) int {
	size := len(v.Nodes.Parent)
	spent, below := make([]int64, size), make([]int64, size) // below: with what is called
	for _, s := range history {
		spent[s.Node] += s.End - s.Start
	}
	copy(below, spent)
	for n := size - 1; n > 0; n-- {
		below[v.Nodes.Parent[n]] += below[n]
	}
	typed, modules := make(map[int]int64), make(map[int]int64)
	cell := make([]int, size) // the innermost cell on each stack
	cell[0] = -1
	for n := 1; n < size; n++ {
		f := &v.Functions[v.FunctionOf(v.FrameOf(int32(n)))]
		switch cell[n] = cell[v.Nodes.Parent[n]]; f.Code {
		case CodeCell:
			cell[n] = f.File
		case CodeUser:
			modules[f.File] += below[n]
		}
		if cell[n] >= 0 && spent[n] > 0 {
			typed[cell[n]] += spent[n]
		}
	}
	if len(typed) == 0 {
		typed = modules
	}
	best := -1
	for f, d := range typed {
		if d > 0 && (best < 0 || d > typed[best] || d == typed[best] && f < best) {
			best = f
		}
	}
	return best
}
