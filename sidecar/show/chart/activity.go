package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/flame"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// stepsLane is the training steps of the leading process on the axis.
type stepsLane struct {
	count  int
	ends   []float64
	median float64
}

func stepsOf(r *report.View) stepsLane {
	var s stepsLane
	var lengths []float64
	leading, _ := r.LeadingSteps()
	for _, step := range leading {
		if start, end := report.Seconds(step.StartNS), report.Seconds(step.EndNS); start < end {
			s.ends = append(s.ends, end)
			lengths = append(lengths, end-start)
		}
	}
	slices.Sort(s.ends)
	slices.Sort(lengths)
	if s.count = len(lengths); s.count > 0 {
		s.median = lengths[s.count/2]
	}
	return s
}

// linesLane shows which line of the cell ran when. A span's node is an index
// into lines.
type linesLane struct {
	index int        // of the report's file
	file  string     // where they are, empty for the cell itself
	lines []cellLine // [0] is "none"
	spans []span
}

type cellLine struct {
	line  int
	text  string
	paint scene.Paint
	total float64 // in this lane, seconds
}

func linesOf(r *report.View) *linesLane {
	file, spans := r.LineLane()
	if file < 0 {
		return nil
	}
	lane := &linesLane{index: file, lines: []cellLine{{}}, spans: make([]span, 0, len(spans))}
	if !r.IsCell(file) {
		lane.file = words.ShortFile(r.FileName(&file))
	}
	index := make(map[int]int32)
	for _, s := range spans {
		if s.Line <= 0 {
			continue
		}
		k, ok := index[s.Line]
		if !ok {
			k = int32(len(lane.lines))
			index[s.Line] = k
			lane.lines = append(lane.lines, cellLine{line: s.Line, text: labels.Code(r.Text(file, s.Line))})
		}
		lane.spans = append(lane.spans, span{start: report.Seconds(s.Start), end: report.Seconds(s.End), node: k})
	}
	if len(lane.spans) == 0 {
		return nil
	}
	covered := 0.0
	for _, s := range lane.spans {
		lane.lines[s.node].total += s.end - s.start
		covered += s.end - s.start
	}
	for i := range lane.lines {
		l := &lane.lines[i]
		switch share := l.total / covered; {
		case share >= 0.3:
			l.paint = scene.PaintLineMuch
		case share >= 0.05:
			l.paint = scene.PaintLineSome
		default:
			l.paint = scene.PaintLineRare
		}
	}
	return lane
}

// flameLane is the stacks of the thread that ran the cell.
type flameLane struct {
	thread      int // of the report's threads
	name, aside string
	tree        *flame.Tree
	functions   []labels.Function
	spans       []span // node is one of the report's
}

func flameOf(r *report.View, fns *labels.Functions, thread int, spans []span) *flameLane {
	t := &r.Threads[thread]
	nodes := make([]int32, len(spans))
	for i, s := range spans {
		nodes[i] = s.node
	}
	tree := flame.New(fns.Program, nodes, true)
	return &flameLane{thread: thread, name: threadName(r, t), aside: doingMost(t), tree: tree, functions: fns.List, spans: spans}
}

// maxWorkerFlames bounds the workers of an engine whose stacks are shown: what they run is alike.
const maxWorkerFlames = 4

// flamesOf are the threads of which the stacks are shown: the main one, and where that runs an engine's tasks the
// threads of other workers that do.
func flamesOf(r *report.View, main int, histories [][]span) []*flameLane {
	fns := labels.FunctionsOf(r)
	flames := []*flameLane{flameOf(r, fns, main, histories[main])}
	if !runsTasks(r, &r.Threads[main]) {
		return flames
	}
	for t := range r.Threads {
		if t != main && runsTasks(r, &r.Threads[t]) && len(flames) < maxWorkerFlames {
			flames = append(flames, flameOf(r, fns, t, histories[t]))
		}
	}
	return flames
}

// runsTasks reports whether a thread is the one of an engine's worker that ran most of its tasks.
func runsTasks(r *report.View, t *report.Thread) bool {
	return t.RunsCell && timeline.Role(r.Processes[t.Process].Role).OfEngine()
}

// doingMost says what a thread did most of the time it lived.
func doingMost(t *report.Thread) string {
	all, most := t.StateNS.Sum(), 0
	for state, ns := range t.StateNS {
		if ns > t.StateNS[most] {
			most = state
		}
	}
	if all <= 0 {
		return ""
	}
	return labels.States[most] + " " + words.Percent(float64(t.StateNS[most])/float64(all))
}

func threadName(r *report.View, t *report.Thread) string {
	name := words.Clean(t.Name, 60)
	if name == "" {
		name = fmt.Sprintf("thread %d", t.NativeID)
	}
	main := r.MainThread()
	if runsTasks(r, t) { // one lane per worker at first sight
		return words.Clean(r.Processes[t.Process].Text, 60)
	}
	if p := &r.Processes[t.Process]; t.Process != r.Program() || main >= 0 && r.Threads[main].Process != t.Process || p.Role == string(timeline.RoleRank) {
		process := words.Clean(p.Text, 60)
		if t.Main && !timeline.Role(p.Role).OfEngine() { // one lane per process at first sight
			return process
		}
		return process + " · " + name
	}
	return name
}

// threadLane is a folded thread: what it was doing, not where.
type threadLane struct {
	index              int // of the report's threads
	name, value, about string
	spans              []span
	strip              *trackLane // a pool as one lane, in place of the above
}

// maxThreads bounds the folded threads shown.
const maxThreads = 12

// lanesOf are the lanes below the flame chart: the ranks in order, each pool as one
// strip, with its members beneath where they are few, then the other threads.
func lanesOf(r *report.View, main int, histories [][]span, pools []pool, duration float64) ([]threadLane, string) {
	var lanes []threadLane
	behind := make(map[int]bool) // processes that are shown in their place
	idle := leftovers(r, duration)
	for _, f := range pools {
		if f.ofEngine() || idle[f.members[0]] {
			continue
		}
		if !f.isRanks() && len(f.members) > 1 {
			lanes = append(lanes, threadLane{strip: f.strip(r, histories, duration)})
		}
		for _, process := range f.members {
			behind[process] = true
		}
		for _, process := range f.single(r) {
			for t := range r.Threads {
				if th := &r.Threads[t]; th.Process == process && th.Main && t != main {
					lanes = append(lanes, threadLaneOf(r, t, histories[t], duration))
				}
			}
		}
	}
	lanes = lanes[:min(len(lanes), maxPoolLanes)]
	others, more := threadsOf(r, main, histories, behind, idle, duration)
	return append(lanes, others...), more
}

// single are the members that have lanes of their own.
func (f pool) single(r *report.View) []int {
	switch {
	case !f.isRanks() && len(f.members) > few:
		return nil
	case !f.isRanks() || len(f.members) <= maxRanks || len(r.Ranks) <= maxRanks:
		return f.members[:min(len(f.members), maxRanks)]
	}
	var list []int
	for _, at := range shownRanks(r) {
		if process := r.Ranks[at].Process; slices.Contains(f.members, process) {
			list = append(list, process)
		}
	}
	return list
}

// maxPoolLanes bounds the lanes of ranks and pools.
const maxPoolLanes = 24

func threadLaneOf(r *report.View, t int, history []span, duration float64) threadLane {
	computed := 0.0
	for _, s := range history {
		if s.state.Computes() {
			computed += s.end - s.start
		}
	}
	th := &r.Threads[t]
	lane := threadLane{index: t, name: threadName(r, th), value: words.Percent(computed/duration) + " busy", spans: history}
	lane.about = fmt.Sprintf("%s: computing %s", lane.name, words.Seconds(computed))
	if p := &r.Processes[th.Process]; th.Main && p.Role == string(timeline.RoleLoaderWorker) && p.RoleNumber != nil && p.Rank == nil {
		lane.name = fmt.Sprintf("loader worker %d", *p.RoleNumber) // fits beside the lane
	}
	if split := labels.Split(th.StateNS); split != "" {
		lane.about += " (" + split + ")"
	}
	if th.Leaf != nil {
		lane.about += ", last seen " + words.Clean(*th.Leaf, 80)
	}
	return lane
}

// worthLane is the share of the recording for which another process's thread beside its main
// one must have done something to have a lane.
const (
	worthLane    = 0.05
	worthOwnLane = 0.005 // of the target's
)

// threadsOf sorts the other threads by the time they had a CPU and says what is
// left out; the main threads of some processes are shown elsewhere.
func threadsOf(r *report.View, main int, histories [][]span, behind, idle map[int]bool, duration float64) ([]threadLane, string) {
	var active []activity
	quiet, folded := 0, 0
	for i := range r.Threads {
		if i == main || idle[r.Threads[i].Process] || r.Threads[i].Internal || onlyCleansUp(&r.Processes[r.Threads[i].Process]) || behind[r.Threads[i].Process] && r.Threads[i].Main || servesEngine(r, i) {
			continue
		}
		a := activityOf(i, histories[i])
		switch own := r.Threads[i].Process == r.Program(); {
		case a.computed+a.awake < 0.001*duration:
			quiet++
		case a.computed+a.awake < worthOwnLane*duration, !own && a.computed+a.awake < worthLane*duration: // what serves queues
			folded++
		default:
			active = append(active, a)
		}
	}
	slices.SortStableFunc(active, func(a, b activity) int {
		return cmp.Or(cmp.Compare(b.computed, a.computed), cmp.Compare(b.awake, a.awake))
	})
	names := make(map[string]int)
	for i := range r.Threads {
		names[threadName(r, &r.Threads[i])]++
	}
	var lanes []threadLane
	for _, a := range active[:min(len(active), maxThreads)] {
		lane := threadLaneOf(r, a.thread, histories[a.thread], duration)
		if names[lane.name] > 1 {
			was := lane.name
			lane.name = fmt.Sprintf("%s %d", was, r.Threads[a.thread].NativeID)
			lane.about = lane.name + strings.TrimPrefix(lane.about, was)
		}
		lanes = append(lanes, lane)
	}
	more := othersText(len(active)-len(lanes)+folded, quiet)
	switch text := idleText(idle); {
	case text != "" && more != "":
		more += ", " + text
	case text != "":
		more = "+ " + text
	}
	return lanes, more
}

// activity is what a thread did, in seconds.
type activity struct {
	thread   int
	computed float64
	awake    float64 // neither computing nor idle
}

func activityOf(thread int, history []span) activity {
	a := activity{thread: thread}
	for _, s := range history {
		switch d := s.end - s.start; {
		case s.state.Computes():
			a.computed += d
		case !s.state.Idle():
			a.awake += d
		}
	}
	return a
}

// servesEngine reports whether a thread of an engine's worker is one beside those that run tasks: that of its event loop.
func servesEngine(r *report.View, thread int) bool {
	t := &r.Threads[thread]
	return !t.AtWork && timeline.Role(r.Processes[t.Process].Role).OfEngine()
}

func othersText(active, quiet int) string {
	switch {
	case active > 0 && quiet > 0:
		return fmt.Sprintf("+ %s, and %d that only waited", words.Plural(active, "more thread", "more threads"), quiet)
	case active > 0:
		return "+ " + words.Plural(active, "more thread", "more threads")
	case quiet > 0:
		return "+ " + words.Plural(quiet, "thread that only waited", "threads that only waited")
	}
	return ""
}
