package activity

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	// A line is known to grow by surges that was seen to do so seenTimes and more between the same lines. That it also did where it was
	// not seen is likely where the growth has between alikeSize of what it had when seen and the inverse of that, as has alikeShare of all growth of
	// the lines around, and if the times come in no order: of a line beside it that grows by as much in each turn of a loop no two
	// surges were seen without a growth between them. randomShare of how often two would follow each other by chance must do so.
	seenTimes   = 5
	alikeSize   = 1.5
	alikeShare  = 0.8
	randomShare = 0.5
)

// surge is a growth that goes on from reading to reading, with the line that was seen amid it.
type surge struct {
	first  int // index of its first growth
	parts  int
	bytes  int64
	around [2]lineOf       // what ran before it, and what after it
	amid   []lineOf        // what was seen in between
	node   timeline.NodeID // a stack of the last of these
}

// of is the line that a surge is of: the only one in between, which ran neither before nor after it.
func (s *surge) of() (line lineOf, ok bool) {
	if len(s.amid) != 1 || !s.amid[0].own || slices.Contains(s.around[:], s.amid[0]) {
		return lineOf{}, false
	}
	return s.amid[0], true
}

// surges finds the growths of a process that follow upon each other.
func (e *evidence) surges(process int) (list []surge) {
	var last *timeline.Growth
	for i := range e.rec.Growth {
		g := &e.rec.Growth[i]
		if g.Process != process || g.Bytes <= 0 {
			continue
		}
		before := e.line(process, g.Before)
		if last == nil || last.End != g.Start || last.After != g.Before {
			list = append(list, surge{first: i, around: [2]lineOf{before}})
		} else if s := &list[len(list)-1]; len(s.amid) < maxBetween && !slices.Contains(s.amid, before) {
			s.amid, s.node = append(s.amid, before), g.Before
		}
		s := &list[len(list)-1]
		s.parts, s.bytes, s.around[1] = s.parts+1, s.bytes+g.Bytes, e.line(process, g.After)
		last = g
	}
	return list
}

// usual is what the surges of a line are like.
type usual struct {
	seen        []int // which of all they are
	bytes, most int64
	node        timeline.NodeID // of the largest
	around      []lineOf
}

// alike reports whether a growth between the lines around this one is as large as its own, and whether it is between these at all.
func (u *usual) alike(s *surge) (alike, between bool) {
	if !slices.Contains(u.around, s.around[0]) || !slices.Contains(u.around, s.around[1]) {
		return false, false
	}
	size := float64(s.bytes) * float64(len(u.seen)) / float64(u.bytes)
	return size <= alikeSize && size >= 1/alikeSize, true
}

func usualSurges(surges []surge) map[lineOf]*usual {
	known := make(map[lineOf]*usual)
	for i := range surges {
		s := &surges[i]
		line, ok := s.of()
		if !ok {
			continue
		}
		u := known[line]
		if u == nil {
			u = &usual{}
			known[line] = u
		}
		if u.seen, u.bytes = append(u.seen, i), u.bytes+s.bytes; s.bytes > u.most {
			u.most, u.node = s.bytes, s.node
		}
		for _, other := range s.around {
			if len(u.around) < maxBetween && !slices.Contains(u.around, other) {
				u.around = append(u.around, other)
			}
		}
	}
	return known
}

// unseen are the growths, by their index, of lines that ran between two looks at the stack, with a stack of the line.
func (e *evidence) unseen(process int) map[int]timeline.NodeID {
	surges := e.surges(process)
	lone := make(map[lineOf][]int) // by what ran before
	for i := range surges {
		if surges[i].parts == 1 {
			lone[surges[i].around[0]] = append(lone[surges[i].around[0]], i)
		}
	}
	out := make(map[int]timeline.NodeID)
	claimed := make(map[int]int)
	for _, u := range usualSurges(surges) {
		if len(u.seen) < seenTimes {
			continue
		}
		for _, i := range u.hidden(surges, lone) {
			claimed[i]++
			out[i] = u.node
		}
	}
	for i, lines := range claimed {
		if lines > 1 { // it may be of either
			delete(out, i)
		}
	}
	return out
}

// hidden are the growths, by their index, that a line is likely to have caused without being seen.
func (u *usual) hidden(surges []surge, lone map[lineOf][]int) (hidden []int) {
	all := slices.Clone(u.seen)
	for _, line := range u.around {
		all = append(all, lone[line]...)
	}
	slices.Sort(all)
	others, pairs, next, afterSeen := 0, 0, 0, false
	for _, i := range all {
		if next < len(u.seen) && i == u.seen[next] {
			if next++; afterSeen {
				pairs++
			}
			afterSeen = true
			continue
		}
		switch alike, between := u.alike(&surges[i]); {
		case alike:
			hidden, afterSeen = append(hidden, surges[i].first), false
		case between:
			others++
		}
	}
	times, n := float64(len(u.seen)), float64(len(hidden))
	byChance := times * times / (times + n)
	if n < alikeShare*(n+float64(others)) || float64(pairs) < max(randomShare*byChance, 1) {
		return nil
	}
	return hidden
}
