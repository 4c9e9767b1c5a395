package timeline

import (
	"cmp"
	"slices"
)

// maxGrowth bounds the growths of a recording, of all processes together: 6 MB.
const maxGrowth = 1 << 17

// Growth is what the resident memory of a process has grown by, or has been given back of it,
// between two times.
type Growth struct {
	Process    int // index in Recording.Processes
	Start, End Nanos
	// Before and After are the stack of the thread that touched the memory, at the two times.
	// They are both RootNode where no thread that runs Python is shown to have touched it, and
	// where memory was given back: nobody knows by which line.
	Before, After NodeID
	Bytes         int64 // negative: given back
	Ticks         int   // readings at which this was so
}

// GrowthReading says how the resident memory of a process was read, as it was. The zero value:
// it was not.
type GrowthReading struct {
	Reads       int64
	Interval    Nanos // between two of them, on average
	First, Last int64 // resident bytes at the first and the last of them
	Largest     int64 // at any of them
}

// AddGrowth takes what a process has grown by. The calls for one process come in order of time.
func (b *Builder) AddGrowth(g Growth) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g.Start, g.Ticks = max(g.Start, 0), max(g.Ticks, 1)
	if g.End <= g.Start || g.Bytes == 0 {
		return
	}
	if n := len(b.growth); n > 0 && b.growth[n-1].follows(g) {
		last := &b.growth[n-1]
		last.End, last.Bytes, last.Ticks = g.End, last.Bytes+g.Bytes, last.Ticks+g.Ticks
		return
	}
	if b.growth = append(b.growth, g); len(b.growth) > maxGrowth {
		b.thinGrowth()
	}
}

// follows reports whether next goes on with the growth, with the same stack at all times.
func (g *Growth) follows(next Growth) bool {
	return g.Process == next.Process && g.End == next.Start && g.Before == g.After &&
		g.Before == next.Before && g.After == next.After && (g.Bytes < 0) == (next.Bytes < 0)
}

// growthKey is what growths have in common that are joined.
type growthKey struct {
	window        int64
	process       int
	before, after NodeID
	back          bool
}

// thinGrowth joins what grew alike within ever longer windows, until half of the room is free.
// Where that does not help, since a process grew with too many stacks, the least are no longer
// any stack's.
func (b *Builder) thinGrowth() {
	for len(b.growth) > maxGrowth/2 {
		if b.growthStep = max(8*b.growthStep, Nanos(1e7)); b.growthStep > 1<<50 {
			slices.SortFunc(b.growth, func(x, y Growth) int { return cmp.Compare(abs(y.Bytes), abs(x.Bytes)) })
			for i := maxGrowth / 4; i < len(b.growth); i++ {
				b.growth[i].Before, b.growth[i].After = RootNode, RootNode
			}
			b.note(Note{NoteLeftOut, "memory by line", "memory grew with more stacks than are kept apart; the least are in no line"})
		}
		b.growth = joinGrowth(b.growth, b.growthStep)
	}
}

func joinGrowth(all []Growth, step Nanos) (out []Growth) {
	at := make(map[growthKey]int)
	for _, g := range all {
		key := growthKey{int64(g.Start / step), g.Process, g.Before, g.After, g.Bytes < 0}
		i, known := at[key]
		if !known {
			at[key] = len(out)
			out = append(out, g)
			continue
		}
		o := &out[i]
		o.Start, o.End, o.Bytes, o.Ticks = min(o.Start, g.Start), max(o.End, g.End), o.Bytes+g.Bytes, o.Ticks+g.Ticks
	}
	slices.SortStableFunc(out, func(x, y Growth) int { return cmp.Compare(x.Start, y.Start) })
	return out
}

func abs(n int64) int64 { return max(n, -n) }

// cutGrowth keeps what was between two times; place is the new index of a process. Of growth
// over an edge the part of its time counts.
func cutGrowth(all []Growth, from, to Nanos, place func(int) int) (out []Growth) {
	for _, g := range all {
		start, end := max(g.Start, from), min(g.End, to)
		if start >= end {
			continue
		}
		if end-start < g.End-g.Start {
			g.Bytes = int64(float64(g.Bytes) * (float64(end-start) / float64(g.End-g.Start)))
		}
		if g.Start, g.End, g.Process = start-from, end-from, place(g.Process); g.Bytes != 0 {
			out = append(out, g)
		}
	}
	return out
}

// slice is the reading between two times, by what the memory has grown by since the first.
func (g GrowthReading) slice(all []Growth, process int, from, to Nanos) GrowthReading {
	if g.Reads == 0 {
		return g
	}
	level := g.First
	began := false
	for _, one := range all {
		if one.Process != process || one.Start >= to {
			continue
		}
		if one.End > from && !began {
			began, g.First, g.Largest = true, level, level
		}
		level += one.Bytes
		if began {
			g.Largest = max(g.Largest, level)
		}
	}
	if !began {
		g.First, g.Largest = level, level
	}
	g.Last = level
	return g
}
