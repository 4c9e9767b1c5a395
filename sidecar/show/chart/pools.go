package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// pool is those members of a report's pool whose stacks were read.
type pool struct {
	*report.Pool
	members []int // processes, by number
}

// few is how many workers are shown one by one beneath their strip.
const few = 4

// poolsOf are the pools of workers and ranks.
func poolsOf(r *report.View) []pool {
	return poolsWhere(r, func(p *report.Pool) bool { return !p.IsProgram() })
}

// programsOf are the other Python programs that were started, the runs of one program together.
func programsOf(r *report.View) []pool { return poolsWhere(r, (*report.Pool).IsProgram) }

func poolsWhere(r *report.View, is func(*report.Pool) bool) (list []pool) {
	for i := range r.Pools {
		p := pool{Pool: &r.Pools[i]}
		if !is(p.Pool) {
			continue
		}
		for _, m := range p.Members {
			if r.Processes[m].Stacks.Read {
				p.members = append(p.members, m)
			}
		}
		if len(p.members) > 0 {
			list = append(list, p)
		}
	}
	return list
}

func (f pool) isRanks() bool { return f.Role == string(timeline.RoleRank) }

// ofEngine reports whether they are an engine's workers: their flame charts are below each other.
func (f pool) ofEngine() bool { return timeline.Role(f.Role).OfEngine() }

// isOfWorkers reports whether the report is of several workers of an engine, and of nothing else: what one of them did is a part of it.
func isOfWorkers(r *report.View, pools []pool) bool {
	return slices.ContainsFunc(pools, func(f pool) bool {
		return f.ofEngine() && len(f.members) > 1 && slices.Contains(f.members, r.Program())
	})
}

func numberOf(p *report.Process) int {
	if p.RoleNumber == nil {
		return 0
	}
	return *p.RoleNumber
}

// name is what a pool is called: "4 pool workers", where not all could be read "3 of 4 pool workers".
func (f pool) name() string {
	text := words.Clean(f.Text, 60)
	switch {
	case len(f.members) < len(f.Members) && f.AtOnce > 0:
		return fmt.Sprintf("%s, of whose %d processes %d could be read,", text, len(f.Members), len(f.members))
	case len(f.members) < len(f.Members):
		return fmt.Sprintf("%d of %s", len(f.members), text)
	}
	return text
}

// laneName is the same where there is little room for it.
func (f pool) laneName() string {
	if f.Role == string(timeline.RoleLoaderWorker) {
		return words.Plural(f.most(), "loader worker", "loader workers")
	}
	return f.name()
}

// stripPoints is how finely a strip is drawn.
const stripPoints = 300

// most is how many of its members that were read there were at a time.
func (f pool) most() int {
	if f.AtOnce > 0 {
		return min(f.AtOnce, len(f.members))
	}
	return len(f.members)
}

// strip is a pool as one lane: how many of its members computed.
func (f pool) strip(r *report.View, histories [][]span, duration float64) *trackLane {
	sums := make([]float64, stripPoints)
	width := duration / stripPoints
	var busy []string
	total := 0.0
	for _, member := range f.members {
		own := 0.0
		for t := range r.Threads {
			if r.Threads[t].Process != member || !r.Threads[t].Main {
				continue
			}
			for _, s := range histories[t] {
				if !s.state.Computes() {
					continue
				}
				own += s.end - s.start
				for c := int(s.start / width); c < stripPoints && float64(c)*width < s.end; c++ {
					sums[c] += max(min(s.end, float64(c+1)*width)-max(s.start, float64(c)*width), 0)
				}
			}
		}
		total += own
		busy = append(busy, words.Clean(r.Processes[member].Text, 40)+": "+words.Percent(own/duration)+" busy")
	}
	lane := &trackLane{
		id: "pool", index: -1, name: f.laneName(), sources: [][]string{{"computing at a time"}}, paint: scene.PaintPython, top: float64(f.most()),
		value: words.Quantity(total/duration, "busy"), aside: fmt.Sprintf("of %d", f.most()),
	}
	peak := 0.0
	for c, sum := range sums {
		v := min(sum/width, float64(f.most()))
		peak = max(peak, v)
		lane.points = append(lane.points, scene.Point{From: float64(c) * width, To: float64(c+1) * width, Value: v})
	}
	const named = 24
	if more := len(busy) - named; more > 0 {
		busy = append(busy[:named], fmt.Sprintf("and %d more", more))
	}
	lane.about = fmt.Sprintf("%s: mean %s, peak %s\n%s", f.name(), words.Quantity(total/duration, "computing"), words.Quantity(peak, "computing"), strings.Join(busy, "\n"))
	return lane
}

// poolTrack is a strip as a track, for the viewer.
func poolTrack(points []scene.Point) report.Track {
	t := report.Track{ID: "pool", Kind: report.Rate, Unit: "busy", AtUS: make(report.Column, len(points)), Value: make(report.Figures, len(points))}
	for i, p := range points {
		t.AtUS[i], t.Value[i] = int64(math.Round(p.To*1e6)), p.Value
	}
	return t
}

// shares is the part that each member of a pool has in something, in words: by number of few, else the least and the
// most. Workers of one number, as of a loader that each epoch starts anew, are one.
func (f pool) shares(r *report.View, parts map[int]float64) string {
	sum := 0.0
	for _, v := range parts {
		sum += v
	}
	if len(f.members) < 2 || sum <= 0 {
		return ""
	}
	numbered := !slices.ContainsFunc(f.members, func(m int) bool { return r.Processes[m].RoleNumber == nil })
	if numbered && !f.IsProgram() && (len(f.members) <= few || f.AtOnce > 0) {
		var numbers []int
		of := make(map[int]float64)
		for _, m := range f.members {
			number := numberOf(&r.Processes[m])
			if !slices.Contains(numbers, number) {
				numbers = append(numbers, number)
			}
			of[number] += parts[m]
		}
		if len(numbers) > few {
			return leastToMost(numbers, of, sum)
		}
		var list []string
		for _, number := range numbers {
			if of[number] > 0 {
				list = append(list, fmt.Sprintf("%d: %s", number, words.Percent(of[number]/sum)))
			}
		}
		return "of it by " + strings.Join(list, ", ")
	}
	return leastToMost(f.members, parts, sum)
}

// leastToMost is the least and the most that each of some has of a sum.
func leastToMost(each []int, parts map[int]float64, sum float64) string {
	least, most := math.Inf(1), 0.0
	for _, m := range each {
		least, most = min(least, parts[m]/sum), max(most, parts[m]/sum)
	}
	return fmt.Sprintf("%s to %s of it each", words.Percent(least), words.Percent(most))
}
