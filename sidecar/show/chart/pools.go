package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// pool is the workers of one kind that work for one process. Of other programs
// it is the runs of one, whoever started them.
type pool struct {
	role    timeline.Role
	program string // empty of workers
	members []int  // processes, by number
}

// few is how many workers are shown one by one beneath their strip.
const few = 4

// poolsOf groups the workers whose stacks were read, ranks too.
func poolsOf(r *report.View) []pool {
	type key struct {
		role  timeline.Role
		owner int
	}
	index := make(map[key]int)
	var list []pool
	for i := range r.Processes {
		p := &r.Processes[i]
		worker := timeline.Process{Role: timeline.Role(p.Role)}
		if i == r.Target().Process && worker.Role != timeline.RoleRank || !worker.IsWorker() || !p.Stacks.Read {
			continue
		}
		k := key{worker.Role, ownerOf(r, i)}
		if worker.Role == timeline.RoleRank { // whoever has started them
			k.owner = -1
		}
		at, known := index[k]
		if !known {
			at = len(list)
			index[k] = at
			list = append(list, pool{role: worker.Role})
		}
		list[at].members = append(list[at].members, i)
	}
	for _, f := range list {
		slices.SortStableFunc(f.members, func(a, b int) int {
			return cmp.Or(cmp.Compare(numberOf(&r.Processes[a]), numberOf(&r.Processes[b])), cmp.Compare(r.Processes[a].StartNS, r.Processes[b].StartNS))
		})
	}
	return list
}

// programsOf groups the other Python programs that were started, by what they are called.
func programsOf(r *report.View) []pool {
	var list []pool
	for i := range r.Processes {
		p := &r.Processes[i]
		if p.Role != string(timeline.RoleChild) || !p.Stacks.Read || i == r.Program() {
			continue
		}
		called := words.Clean(p.Text, 40)
		at := slices.IndexFunc(list, func(f pool) bool { return f.program == called })
		if at < 0 {
			at = len(list)
			list = append(list, pool{role: timeline.RoleChild, program: called})
		}
		list[at].members = append(list[at].members, i)
	}
	return list
}

// ownerOf is whom a worker works for: its parent, past fork servers.
func ownerOf(r *report.View, process int) int {
	owner := -1
	for range 4 {
		parent := r.Processes[process].Parent
		if parent == nil {
			break
		}
		if owner = *parent; r.Processes[owner].Role != string(timeline.RoleForkServer) {
			break
		}
		process = owner
	}
	return owner
}

func numberOf(p *report.Process) int {
	if p.RoleNumber == nil {
		return 0
	}
	return *p.RoleNumber
}

// plural is what several of a role are called.
var plural = map[timeline.Role]string{
	timeline.RoleRank: "ranks", timeline.RolePoolWorker: "pool workers", timeline.RoleLoaderWorker: "DataLoader workers", timeline.RoleWorker: "worker processes",
}

// name is what a pool is called: "4 pool workers".
func (f pool) name() string {
	if f.program != "" {
		return fmt.Sprintf("%d runs of %s", len(f.members), f.program)
	}
	return fmt.Sprintf("%d %s", len(f.members), plural[f.role])
}

// stripPoints is how finely a strip is drawn.
const stripPoints = 300

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
		id: "pool", index: -1, name: f.name(), sources: [][]string{{"computing at a time"}}, paint: PaintPython, steps: true, top: float64(len(f.members)),
		value: fmt.Sprintf("%.1f busy", total/duration), aside: fmt.Sprintf("of %d", len(f.members)),
	}
	peak := 0.0
	for c, sum := range sums {
		v := min(sum/width, float64(len(f.members)))
		peak = max(peak, v)
		lane.points = append(lane.points, point{float64(c) * width, float64(c+1) * width, v})
	}
	const told = 24
	if more := len(busy) - told; more > 0 {
		busy = append(busy[:told], fmt.Sprintf("and %d more", more))
	}
	lane.about = fmt.Sprintf("%s: mean %.1f computing, peak %.1f\n%s", lane.name, total/duration, peak, strings.Join(busy, "\n"))
	return lane
}

// poolTrack is a strip as a track, for the viewer.
func poolTrack(points []point) report.Track {
	t := report.Track{ID: "pool", Kind: report.Rate, Unit: "busy", AtUS: make(report.Column, len(points)), Value: make(report.Figures, len(points))}
	for i, p := range points {
		t.AtUS[i], t.Value[i] = int64(math.Round(p.to*1e6)), p.value
	}
	return t
}

// share is the part that each member of a pool has in something, in words: by name of few, else the least and the most.
func (f pool) shares(r *report.View, parts map[int]float64) string {
	sum := 0.0
	for _, v := range parts {
		sum += v
	}
	if len(f.members) < 2 || sum <= 0 {
		return ""
	}
	if len(f.members) <= few && f.program == "" {
		var list []string
		for _, m := range f.members {
			if parts[m] > 0 {
				list = append(list, fmt.Sprintf("%d: %s", numberOf(&r.Processes[m]), words.Percent(parts[m]/sum)))
			}
		}
		return "of it by " + strings.Join(list, ", ")
	}
	least, most := math.Inf(1), 0.0
	for _, m := range f.members {
		least, most = min(least, parts[m]/sum), max(most, parts[m]/sum)
	}
	return fmt.Sprintf("%s to %s of it each", words.Percent(least), words.Percent(most))
}
