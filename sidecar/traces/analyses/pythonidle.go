package analyses

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// deviceGap is a time when no stream of a device had work.
type deviceGap struct {
	interval
	next *span // what ended it
}

// deviceGaps lists them between the first and the last span of each device.
func deviceGaps(r *recording) (list []deviceGap) {
	for d := range r.of {
		var latest int64
		spans := r.ofDevice(d)
		for i := range spans {
			s := &spans[i]
			if i == 0 {
				latest = s.end()
			} else if s.start > latest {
				list = append(list, deviceGap{between(latest, s.start), s})
			}
			latest = max(latest, s.end())
		}
	}
	return list
}

// together are the times when some device had no work: disjoint, in order.
func together(gaps []deviceGap) []interval {
	spans := make([]span, len(gaps))
	for i, g := range gaps {
		spans[i] = span{start: g.Start, dur: g.End - g.Start}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return union(spans, anyKind)
}

// idleCost is the idle time a place was running for.
type idleCost struct {
	ns   int64
	gaps int
}

// idlePlaces sums idle time by the caller's line and the innermost line, both
// as "file(line): function".
type idlePlaces map[[2]string]*idleCost

// What idle time is charged to, as TablePythonIdle has it.
const (
	IdlePython   = "python"    // to a line
	IdleNoPython = "no_python" // to none: no Python ran
	IdleLaunched = "launched"  // to none: the next work had been launched
)

// The keys of what no line can be charged with.
var (
	noPython        = [2]string{"", "(no Python running)"}
	launchedAlready = [2]string{"", "(work was launched)"}
)

// kindOf is what a key stands for.
func kindOf(key [2]string) string {
	switch key {
	case noPython:
		return IdleNoPython
	case launchedAlready:
		return IdleLaunched
	}
	return IdlePython
}

func (p idlePlaces) add(key [2]string, c idleCost) {
	if p[key] == nil {
		p[key] = &idleCost{}
	}
	p[key].ns += c.ns
	p[key].gaps += c.gaps
}

// pythonIdle is a recording's idle time by place.
type pythonIdle struct {
	places idlePlaces
	whole  int64 // ns of all gaps
	note   string
}

// observePythonIdle attributes the devices' idle time to Python lines: to what
// the thread that launched the next kernel ran until the launch returned, and
// where that ran no Python (autograd's), to what the main thread ran. From then
// on the device waited for something else than the host.
func observePythonIdle(r *recording) pythonIdle {
	list := deviceGaps(r)
	idle := pythonIdle{places: idlePlaces{}}
	for _, g := range list {
		idle.whole += g.End - g.Start
	}
	frames := r.frames()
	if frames == nil {
		recordedStacks(r, list, &idle)
		return idle
	}
	leaves := frames.leavesOver(together(list))
	main := leaves[frames.works]
	threadOf := map[int64]uint32{} // correlation → thread
	for i := range r.calls {
		if row := r.calls[i].row; row >= 0 {
			threadOf[r.calls[i].correlation] = r.t.Calls.Thread[row]
		}
	}
	byFrame := map[int32]*idleCost{}
	for _, g := range list {
		if g.interval = r.untilLaunched(g, &idle); g.Start == g.End {
			continue
		}
		bare := []interval{g.interval}
		if thread, ok := threadOf[g.next.correlation]; ok && thread != frames.works && leaves[thread] != nil {
			bare = charge(byFrame, leaves[thread], g.interval)
		}
		var rest int64
		for _, b := range bare {
			rest += timeline.Total(charge(byFrame, main, b))
		}
		if rest > 0 {
			idle.places.add(noPython, idleCost{rest, 1})
		}
	}
	for frame, c := range byFrame {
		idle.places.add(frames.place(frame), *c)
	}
	return idle
}

// untilLaunched is the part of a gap before the launch of the next work had
// returned; the rest is nobody's line. Without its call it is all of it.
func (r *recording) untilLaunched(g deviceGap, idle *pythonIdle) interval {
	if g.next.call < 0 {
		return g.interval
	}
	at := min(g.End, max(g.Start, r.calls[g.next.call].end()))
	if at < g.End {
		idle.places.add(launchedAlready, idleCost{g.End - at, 1})
	}
	return between(g.Start, at)
}

// charge adds a gap to the frames that were innermost during it and returns
// the parts during which none was.
func charge(byFrame map[int32]*idleCost, leaves []leaf, gap interval) (bare []interval) {
	at, _ := slices.BinarySearchFunc(leaves, gap.Start, func(l leaf, at int64) int { return cmp.Compare(l.end, at+1) })
	from := gap.Start
	for ; at < len(leaves) && leaves[at].start < gap.End; at++ {
		l := leaves[at]
		if l.start > from {
			bare = append(bare, between(from, l.start))
		}
		c := byFrame[l.call]
		if c == nil {
			c = &idleCost{}
			byFrame[l.call] = c
		}
		c.ns += min(l.end, gap.End) - max(l.start, gap.Start)
		c.gaps++
		from = l.end
	}
	if from < gap.End {
		bare = append(bare, between(from, gap.End))
	}
	return bare
}

// recordedStacks is for traces of older profilers, which wrote the stack into
// each operator ("Call stack", innermost frame first): a gap is charged to the
// operator that launched the kernel after it.
func recordedStacks(r *recording, list []deviceGap, idle *pythonIdle) {
	o := &r.t.Ops
	if len(o.Stacks) == 0 {
		idle.note = "no Python frames: profile with with_stack=True"
		return
	}
	tree := r.operators()
	callOf := map[int64]int32{}
	for i := range r.calls {
		callOf[r.calls[i].correlation] = r.calls[i].row
	}
	for _, g := range list {
		if g.interval = r.untilLaunched(g, idle); g.Start == g.End {
			continue
		}
		key := noPython
		if row, ok := callOf[g.next.correlation]; ok && row >= 0 {
			if stack := tree.stackAround(tree.innermost(r.t.Calls.Thread[row], r.t.Calls.Start[row])); stack != "" {
				key = stackPlace(stack)
			}
		}
		idle.places.add(key, idleCost{g.End - g.Start, 1})
	}
}

// stackAround is the stack that an operator or one around it was recorded with.
func (tree *opTree) stackAround(op int32) string {
	for ; op >= 0; op = tree.parent[op] {
		if stack := tree.t.Ops.Stacks[tree.rows[op]]; stack != 0 {
			return tree.t.Text(stack)
		}
	}
	return ""
}

// stackPlace takes the caller's and the innermost line from "f;g;h".
func stackPlace(stack string) (key [2]string) {
	for _, frame := range strings.Split(stack, ";") {
		p, ok := place.Parse(frame)
		if !ok {
			continue
		}
		if key[1] == "" {
			key[1] = frame
		}
		if p.Own() {
			key[0] = frame
			break
		}
	}
	if key[1] == "" {
		key[1] = stack
	}
	return key
}

// answerPythonIdle lists the places of a rank, the costliest first, and what
// none can be charged with last.
func answerPythonIdle(a asked[pythonIdle]) []*table.Table {
	t := table.New(TablePythonIdle, "Python lines the device idled for",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "kind", Kind: table.Text},                   // python, no_python, launched
		&table.Column{Name: "caller", Kind: table.Text, Optional: true}, // innermost frame outside installed packages: whose line it is
		&table.Column{Name: "function", Kind: table.Text},
		&table.Column{Name: "file", Kind: table.Text, Optional: true},
		&table.Column{Name: "line", Kind: table.Int}, // where the function starts
		&table.Column{Name: "gaps", Kind: table.Int},
		&table.Column{Name: "idle_us", Kind: table.Micros},
		&table.Column{Name: "idle_share", Kind: table.Ratio}) // of the rank's idle time
	var why notes
	for _, rank := range a.ranks {
		places, whole, note := idlePlaces{}, int64(0), ""
		for _, part := range rank.parts {
			whole += part.whole
			note = part.note
			for key, c := range part.places {
				places.add(key, *c)
			}
		}
		if len(places) > 0 {
			note = ""
		}
		why.add(rank.rank, note)
		keys := make([][2]string, 0, len(places))
		for key := range places {
			keys = append(keys, key)
		}
		slices.SortFunc(keys, func(a, b [2]string) int {
			return cmp.Or(count(kindOf(a) != IdlePython)-count(kindOf(b) != IdlePython), cmp.Compare(places[b].ns, places[a].ns), strings.Compare(a[0]+a[1], b[0]+b[1]))
		})
		for _, key := range keys {
			c := places[key]
			p, _ := place.Parse(key[1])
			t.Add(rank.rank, kindOf(key), key[0], p.Function, p.File, known(int64(p.Line), p.Line > 0), c.gaps, micros(c.ns), share(c.ns, whole))
		}
	}
	t.Note = why.String()
	return []*table.Table{t}
}
