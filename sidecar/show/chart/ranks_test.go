package chart

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func ranksLane(t *testing.T, s *scene.Scene) *scene.Lane {
	t.Helper()
	for i := range s.Lanes {
		if s.Lanes[i].Kind == scene.RanksLane {
			return &s.Lanes[i]
		}
	}
	t.Fatal("there is no strip of ranks")
	return nil
}

// A rank that is late in each step is one box of the hottest colour, the others one of the coldest.
func TestTheStripHasARowForEachRank(t *testing.T) {
	r := ranksOf(t, 4)
	d := digestOf(r)
	lane := ranksLane(t, lay(d, scene.DefaultWidth, fullDetail))
	if len(lane.Rows) != 4 {
		t.Fatalf("%d rows", len(lane.Rows))
	}
	for rank, row := range lane.Rows {
		want := scene.PaintAlike
		if rank == 1 {
			want = scene.PaintLongest
		}
		if len(row.Boxes) != 1 || row.Boxes[0].Paint != want {
			t.Errorf("rank %d: %+v, want one box of %q", rank, row.Boxes, want)
		}
	}
	says := "rank 1 took longest of its own in 10 of 10 steps, 0.40 s more than the median rank"
	if !strings.Contains(lane.About, says) || !strings.Contains(Text(r, 400), says) {
		t.Errorf("the strip says %q, want %q there and in the terminal", lane.About, says)
	}
	if lane.Names.Value != "rank 1" || lane.Names.Aside != "10 of 10 steps" {
		t.Errorf("beside it is %q, %q", lane.Names.Value, lane.Names.Aside)
	}
}

// Of any number of ranks the strip is at most as high as 128 pixels, and no hot row is lost.
func TestTheStripOfManyRanksIsBounded(t *testing.T) {
	for count, high := range map[int]float64{2: 10, 16: 80, 20: 60, 40: 80, 100: 100, 130: 65} {
		r := ranksOf(t, count)
		lane := ranksLane(t, lay(digestOf(r), scene.DefaultWidth, fullDetail))
		if got := lane.Y1 - lane.Y0; got != high {
			t.Errorf("%d ranks: %g pixels high, want %g", count, got, high)
		}
		hot := 0
		for _, row := range lane.Rows {
			for _, b := range row.Boxes {
				if b.Paint == scene.PaintLongest {
					hot++
				}
			}
		}
		if hot != 1 {
			t.Errorf("%d ranks: %d hot rows", count, hot)
		}
		if pooled := strings.Contains(lane.About, "a row has 2 ranks"); pooled != (count > 128) {
			t.Errorf("%d ranks: %s", count, lane.About)
		}
	}
}

// Where nobody was seen in a collective the strip compares lengths, and says so in its legend, too.
func TestTheStripByLength(t *testing.T) {
	r := ranksOf(t, 3)
	for i := range r.Steps {
		r.Steps[i].CollectiveNS = nil
	}
	d := digestOf(r)
	s := lay(d, scene.DefaultWidth, fullDetail)
	if lane := ranksLane(t, s); !strings.Contains(lane.About, "in no step was a rank a twentieth of it longer than the median rank; no rank was seen in a collective") {
		t.Errorf("it says %q", lane.About)
	}
	for _, e := range s.Legend {
		if e.Paint == scene.PaintAlike && e.Means != "rank's step as long as the median rank's" {
			t.Errorf("the legend says %q", e.Means)
		}
	}
}

// Without steps, or with one rank, there is no strip.
func TestWithoutRanksThereIsNoStrip(t *testing.T) {
	none := ranksOf(t, 3)
	none.Steps = nil
	for name, r := range map[string]*report.View{"no steps": none, "one rank": ranksOf(t, 1), "a pool": poolOf(t, 3)} {
		for _, lane := range lay(digestOf(r), scene.DefaultWidth, fullDetail).Lanes {
			if lane.Kind == scene.RanksLane {
				t.Errorf("%s: there is a strip", name)
			}
		}
	}
}

// The viewer gets the same cells, of which an output has fewer than a page.
func TestTheViewerHasTheCells(t *testing.T) {
	r := ranksOf(t, 4)
	d := digestOf(r)
	s := lay(d, scene.DefaultWidth, fullDetail)
	for most, want := range map[int]int{pageCells: 40, 12: 12} {
		c := viewerChart(r, r.Whole(), d, s, most)
		for i := range c.Lanes {
			cells := c.Lanes[i].Cells
			if c.Lanes[i].Kind != string(scene.RanksLane) {
				if cells != nil {
					t.Errorf("a lane of kind %s has cells", c.Lanes[i].Kind)
				}
				continue
			}
			if len(cells.AtUS) > want || len(cells.AtUS) < want/2 || len(cells.First) != 5 || len(cells.Ranks) != 4 || cells.First[4] != len(cells.AtUS) {
				t.Errorf("%d cells at most: %d, rows %v", most, len(cells.AtUS), cells.First)
			}
			hot := cells.First[1]
			if cells.Level[hot] != 3 || cells.OwnUS[hot] != 800_000 || cells.MedianUS[hot] != 400_000 || cells.Ranks[cells.Rank[hot]] != "rank 1" {
				t.Errorf("of rank 1: level %d, own %d, median %d", cells.Level[hot], cells.OwnUS[hot], cells.MedianUS[hot])
			}
			if thread := cells.Threads[1]; r.Threads[thread].Process != r.Ranks[1].Process {
				t.Errorf("rank 1 is thread %d", thread)
			}
		}
	}
}

// A line in which one rank is longer is a row; where all do the same there is no table.
func TestLinesInWhichRanksDiffer(t *testing.T) {
	table := rankLinesTable(ranksOf(t, 4))
	if len(table.rows) == 0 || !strings.Contains(table.rows[0].hint, "rank 1 0.80 s per step, the median rank 0 s, seen in 10 of 10 steps") {
		t.Errorf("rows %+v", table.rows)
	}
	r := ranksOf(t, 4)
	for i := range r.RankLines {
		r.RankLines[i].More = false
	}
	if table := rankLinesTable(r); len(table.rows) != 0 {
		t.Errorf("rows %+v", table.rows)
	}
}
