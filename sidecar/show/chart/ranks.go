package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/rankstrip"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// rankBounds is the finest strip that is drawn: a row is a pixel high at least.
var rankBounds = rankstrip.Bounds{Rows: 128, Cells: 1 << 14}

// leastRanksHigh is the room of a strip with its names, in pixels.
const leastRanksHigh = 26.0

// rankLevels are the colours of a strip's cells, and what they mean.
var rankLevels = []struct {
	level rankstrip.Level
	paint scene.Paint
	means string
}{
	{rankstrip.Alike, scene.PaintAlike, "rank's own time in a step like the median rank's"},
	{rankstrip.Longer, scene.PaintLonger, "longer by 5 % of the step"},
	{rankstrip.Long, scene.PaintLong, "longer by 20 % of the step"},
	{rankstrip.Longest, scene.PaintLongest, "longer by 40 % of the step"},
}

func levelPaint(l rankstrip.Level) scene.Paint {
	for _, of := range rankLevels {
		if of.level == l {
			return of.paint
		}
	}
	return scene.PaintGap
}

// rankLanes is the strip of all ranks: a row for each, a cell for each step.
type rankLanes struct {
	*rankstrip.Strip
	names   []string // of the ranks
	threads []int    // their main threads' places in the report; -1: not there
}

func rankLanesOf(r *report.View) *rankLanes {
	s := rankstrip.Of(r, rankBounds)
	if s == nil {
		return nil
	}
	lanes := &rankLanes{Strip: s}
	main := make(map[int]int)
	for t := range r.Threads {
		if th := &r.Threads[t]; th.Main {
			if _, twice := main[th.Process]; !twice {
				main[th.Process] = t
			}
		}
	}
	for _, rank := range s.Ranks {
		thread, known := main[rank.Process]
		if !known {
			thread = -1
		}
		lanes.names, lanes.threads = append(lanes.names, fmt.Sprintf("rank %d", rank.Number)), append(lanes.threads, thread)
	}
	return lanes
}

// says is the strip in words, for those who see no colours.
func (s *rankLanes) says() string {
	slowest := s.Slowest()
	switch {
	case slowest == nil && s.isCoarse():
		return wording.StepsTooShort(timeline.Nanos(s.Least))
	case slowest == nil:
		return wording.LikeOwnTimes(s.ByLength)
	case slowest.EachStep():
		return wording.LongerEachStep(slowest.Number, slowest.Steps, timeline.Nanos(slowest.PerStep), s.ByLength)
	}
	return wording.OwnTimes(slowest.Number, slowest.Longest, slowest.Steps, slowest.All, timeline.Nanos(slowest.More), s.ByLength)
}

// note explains the strip.
func (s *rankLanes) note() string {
	text := "steps by rank: " + s.says()
	if s.ByLength {
		text += "; no rank was seen in a collective, so steps are compared by their length"
	} else {
		text += "; a rank's own time in a step is what it was in no collective for"
	}
	if s.isCoarse() && s.Slowest() != nil {
		text += fmt.Sprintf("; what is less than %s longer counts as alike, by how often the stacks were read", words.Seconds(report.Seconds(s.Least)))
	}
	if s.Pooled > 1 {
		text += fmt.Sprintf("; a row has %d ranks, of which the longest is shown at each step", s.Pooled)
	}
	return text
}

// standsOut is of how many steps a rank must be the longest in one, on the mean, to be named beside the strip: of ranks
// that do the same each is now and then.
const standsOut = 10

// worthResolution is the share of a step, that of rankstrip.Longer, from which on it is said what cannot be seen.
const worthResolution = 0.05

// isCoarse reports whether what is worth showing is not known of a step.
func (s *rankLanes) isCoarse() bool {
	return report.Seconds(s.Least) > worthResolution*s.medianStep()
}

// medianStep is the length of a step of the first row, the one in the middle.
func (s *rankLanes) medianStep() float64 {
	cells := slices.Clone(s.Rows[0].Cells)
	slices.SortFunc(cells, func(a, b rankstrip.Cell) int { return cmp.Compare(a.Length, b.Length) })
	return report.Seconds(cells[len(cells)/2].Length)
}

// pitch is the height of a row, and of it what is drawn.
func (s *rankLanes) pitch() (pitch, height float64) {
	switch n := len(s.Rows); {
	case n <= 16:
		return 5, 4
	case n <= 32:
		return 3, 3
	case n <= 64:
		return 2, 2
	}
	return 1, 1
}

// ranks is the strip.
func (l *layouter) ranks() {
	s := l.d.ranks
	if s == nil || l.d.lanesOnly {
		return
	}
	pitch, height := s.pitch()
	rows := l.rankRows(s, pitch, height)
	for _, row := range rows {
		for _, b := range row.Boxes {
			l.paints[b.Paint] = true
		}
	}
	what, value, aside := "own time", "alike", ""
	if s.ByLength {
		what = "length"
	}
	switch slowest := s.Slowest(); {
	case slowest == nil:
	case slowest.EachStep():
		value, aside = fmt.Sprintf("rank %d", slowest.Number), words.Seconds(report.Seconds(slowest.PerStep))+" a step"
	case slowest.Longest*standsOut < slowest.Steps:
		value = "mostly alike"
	default:
		value, aside = fmt.Sprintf("rank %d", slowest.Number), fmt.Sprintf("%d of %d steps", slowest.Longest, slowest.Steps)
	}
	high := float64(len(rows)) * pitch
	top := l.Y
	l.Y += max(leastRanksHigh-high, 0) / 2
	for i := range rows {
		rows[i].Y0, rows[i].Y1 = rows[i].Y0+l.Y-top, rows[i].Y1+l.Y-top
	}
	l.lane(scene.Lane{
		ID: "ranks", Kind: scene.RanksLane, Index: -1, Box: scene.Box{X0: l.Plot.X0, Y0: l.Y, X1: l.Plot.X1, Y1: l.Y + high}, About: s.note(), Rows: rows,
		Names: scene.LaneNames{Name: "steps by rank", Value: value, Aside: aside},
	}, [][]string{{words.Plural(len(s.Ranks), "rank", "ranks") + ", " + what, what}}, high)
	l.Y = max(l.Y+high, top+leastRanksHigh) + scene.Gap
}

// rankRows are the cells as boxes: neighbours that look alike are one. Where there are too many, columns are wider.
func (l *layouter) rankRows(s *rankLanes, pitch, height float64) []scene.Row {
	for px := 1.0; ; px *= 2 {
		n, step := l.columns(px)
		boxes := 0
		var rows []scene.Row
		for i, of := range s.Rows {
			row := scene.Row{Y0: l.Y + float64(i)*pitch, Y1: l.Y + float64(i)*pitch + height}
			levels := l.rankColumns(of, n)
			for _, run := range runsOf(n, func(c int) int32 { return levels[c] }) {
				row.Boxes = append(row.Boxes, scene.Block{X0: l.Plot.X0 + float64(run.from)*step, X1: l.Plot.X0 + float64(run.to)*step, Paint: levelPaint(rankstrip.Level(run.key - 2))})
			}
			boxes += len(row.Boxes)
			rows = append(rows, row)
		}
		if boxes <= max(l.dt.boxes, 4*len(s.Rows)) || n <= 8 {
			return rows
		}
	}
}

// rankColumns is the highest level in each column, and 2 more; 0: there is no step.
func (l *layouter) rankColumns(row rankstrip.Row, n int) []int32 {
	levels := make([]int32, n)
	for _, c := range row.Cells {
		at := func(ns int64) float64 { return min(max(report.Seconds(ns)/l.d.duration, 0), 1) * float64(n) }
		from := min(int(math.Round(at(c.Start))), n-1)
		to := max(int(math.Round(at(c.End))), from+1)
		for ; from < to; from++ {
			levels[from] = max(levels[from], int32(c.Level)+2)
		}
	}
	return levels
}

// viewerCells are the cells for the viewer, so many at most.
func (s *rankLanes) viewerCells(most, threads int) *viewer.Cells {
	c := &viewer.Cells{
		ByLength: s.ByLength, Ranks: s.names, Threads: make([]int, len(s.threads)), First: []int{0},
		AtUS: []int64{}, LengthUS: []int64{}, Level: []int{}, Rank: []int{}, Step: []int{}, StepUS: []int64{}, OwnUS: []int64{}, MedianUS: []int64{},
	}
	for i, t := range s.threads {
		if c.Threads[i] = t; t >= threads { // thinned out
			c.Threads[i] = -1
		}
	}
	for _, row := range s.Within(most).Rows {
		for _, cell := range row.Cells {
			c.AtUS, c.LengthUS = append(c.AtUS, cell.Start/1000), append(c.LengthUS, cell.End/1000-cell.Start/1000)
			c.Level, c.Rank, c.Step = append(c.Level, int(cell.Level)), append(c.Rank, cell.Rank), append(c.Step, cell.Nth)
			c.StepUS, c.OwnUS, c.MedianUS = append(c.StepUS, cell.Length/1000), append(c.OwnUS, microsOrUnknown(cell.Own)), append(c.MedianUS, microsOrUnknown(cell.Median))
		}
		c.First = append(c.First, len(c.AtUS))
	}
	return c
}

func microsOrUnknown(ns int64) int64 {
	if ns < 0 {
		return -1
	}
	return ns / 1000
}
