package activity

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// GrowthLine is a line of the user's own while which ran the resident memory of a process grew.
type GrowthLine struct {
	Process   int // index in Recording.Processes
	Place     Place
	Function  timeline.FrameID // a frame there
	Grown     int64            // bytes
	Uncertain int64            // of them, those that another line may have touched
	AtPeak    int64            // of them, those that made the process's peak: see atPeak
	When      []Growing
}

// Growing is a stretch in which memory grew.
type Growing struct {
	timeline.Interval
	Bytes int64
}

// Most are the stretches in which a line's memory grew most, at most so many, in order of time: growth that is no further
// apart than gap is one stretch.
func (l *GrowthLine) Most(n int, gap timeline.Nanos) []timeline.Interval {
	var joined []Growing
	for _, g := range l.When {
		if last := len(joined) - 1; last >= 0 && g.Start-joined[last].End <= gap {
			joined[last].End, joined[last].Bytes = max(joined[last].End, g.End), joined[last].Bytes+g.Bytes
		} else {
			joined = append(joined, g)
		}
	}
	slices.SortStableFunc(joined, func(a, b Growing) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var out []timeline.Interval
	for _, g := range joined[:min(n, len(joined))] {
		out = append(out, g.Interval)
	}
	slices.SortFunc(out, func(a, b timeline.Interval) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// GrowthSum is what the resident memory of a process did in all.
type GrowthSum struct {
	Process  int
	Grown    int64 // bytes
	Unplaced int64 // of them, those that grew in no line of the user's own
	Released int64 // bytes that were given back until its own code had ended …
	Kept     int64 // … and what it had grown by in all until then
}

// Memory sums up what the resident memory grew by, by the innermost line of the user's own, most
// first, and for each process. Touches divides what grew between two readings at which a thread was in different lines. What is given
// back and kept is judged when a process's own code has ended (CodeEnd): the interpreter then gives back all.
func Memory(rec *timeline.Recording, touches []Touch, own func(timeline.FrameID) bool, codeEnd func(process int) timeline.Nanos) ([]GrowthLine, []GrowthSum) {
	lines := make(map[awaitKey]*GrowthLine)
	sums := make(map[int]*GrowthSum)
	held := atPeak(rec.Growth)
	for i, g := range touches {
		sum := sums[g.Process]
		if sum == nil {
			sum = &GrowthSum{Process: g.Process}
			sums[g.Process] = sum
		}
		change := bytesUntil(g.Growth, codeEnd(g.Process))
		sum.Kept += change
		if g.Bytes < 0 {
			sum.Released -= change
			continue
		}
		sum.Grown += g.Bytes
		ofOne := g.same(func(a, b timeline.NodeID) bool { return sameLine(rec, a, b, own) })
		restHeld := held[i]
		for j, part := range g.By {
			heldPart := int64(float64(held[i]) * (float64(part.Bytes) / float64(g.Bytes)))
			if j == len(g.By)-1 && part.Bytes > 0 {
				heldPart = min(restHeld, part.Bytes)
			}
			restHeld -= heldPart
			frame, known := InnermostOwn(rec, part.Node, own)
			if !known {
				frame, known = InnermostOwn(rec, g.For, own)
			}
			switch {
			case part.Bytes == 0:
				continue
			case !known:
				sum.Unplaced += part.Bytes
				continue
			}
			line := lineAt(lines, rec, g.Process, frame)
			line.Grown += part.Bytes
			line.AtPeak += heldPart
			if !ofOne {
				line.Uncertain += part.Bytes
			}
			line.When = append(line.When, Growing{timeline.Between(g.Start, g.End), part.Bytes})
		}
	}
	out := make([]GrowthLine, 0, len(lines))
	for _, line := range lines {
		out = append(out, *line)
	}
	slices.SortFunc(out, func(a, b GrowthLine) int {
		return cmp.Or(cmp.Compare(b.Grown, a.Grown), a.Place.Compare(b.Place), cmp.Compare(a.Process, b.Process))
	})
	processes := make([]GrowthSum, 0, len(sums))
	for _, sum := range sums {
		processes = append(processes, *sum)
	}
	slices.SortFunc(processes, func(a, b GrowthSum) int { return cmp.Compare(a.Process, b.Process) })
	return out, processes
}

// bytesUntil is the part of a growth that was until a time. Of one between two readings around it, what was given back was
// so after it, and what grew did before.
func bytesUntil(g timeline.Growth, end timeline.Nanos) int64 {
	if g.End <= end {
		return g.Bytes
	}
	if g.Start >= end {
		return 0
	}
	reading := (g.End - g.Start) / timeline.Nanos(max(g.Ticks, 1))
	before := end - g.Start
	if g.Bytes < 0 {
		before = max(before-reading, 0)
	} else {
		before = min(before+reading, g.End-g.Start)
	}
	return int64(float64(g.Bytes) * (float64(before) / float64(g.End-g.Start)))
}

// atPeak is, for each growth, how much of it made its process's highest level: the level rose through each of these
// bytes for the last time in that growth. What is given back is so taken to be of what had grown last: which memory
// it was nobody knows, and it is right for what a line takes and gives back again.
func atPeak(growth []timeline.Growth) []int64 {
	type level struct {
		now, highest int64
		at           int // the growth that brought it; -1: none
	}
	levels := make(map[int]*level)
	for i, g := range growth {
		l := levels[g.Process]
		if l == nil {
			l = &level{at: -1}
			levels[g.Process] = l
		}
		if l.now += g.Bytes; l.now > l.highest {
			l.highest, l.at = l.now, i
		}
	}
	held := make([]int64, len(growth))
	released := make(map[int]int64) // by process, later and before its peak
	for i := len(growth) - 1; i >= 0; i-- {
		g := growth[i]
		switch {
		case i > levels[g.Process].at:
		case g.Bytes < 0:
			released[g.Process] -= g.Bytes
		default:
			gone := min(g.Bytes, released[g.Process])
			released[g.Process] -= gone
			held[i] = g.Bytes - gone
		}
	}
	return held
}

// sameLine reports whether two stacks have the same innermost line of the user's own, or both none.
func sameLine(rec *timeline.Recording, a, b timeline.NodeID, own func(timeline.FrameID) bool) bool {
	one, known := InnermostOwn(rec, a, own)
	other, knownOther := InnermostOwn(rec, b, own)
	return known == knownOther && (!known || placeOf(rec, one) == placeOf(rec, other))
}

func placeOf(rec *timeline.Recording, frame timeline.FrameID) Place {
	f := rec.Frames[frame]
	return Place{f.File, f.Line}
}

func lineAt(lines map[awaitKey]*GrowthLine, rec *timeline.Recording, process int, frame timeline.FrameID) *GrowthLine {
	key := awaitKey{process, placeOf(rec, frame)}
	if lines[key] == nil {
		lines[key] = &GrowthLine{Process: process, Place: key.place, Function: frame}
	}
	return lines[key]
}
