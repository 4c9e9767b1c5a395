package analyses

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/criticalpath"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// What the critical path is divided by, as TableCriticalPath has it.
const (
	PathCause      = "cause"      // what took the time: an operator on the device or the host, a line of Python, a delay
	PathPart       = "part"       // host, computing, communicating, copying, and the delays
	PathCategory   = "category"   // of kernels
	PathOperator   = "operator"   // on the host and the device together
	PathModule     = "module"     // by class and place
	PathCollective = "collective" // the communication: transfer, and waiting for other ranks where several take part
	PathIdleCause  = "idle_cause" // the part during which no device worked
)

// Where the time of a cause or part was spent.
const (
	OnDevice = "device"
	OnHost   = "host"
	InDelay  = "delay" // between two activities
)

// pathKey names a row.
type pathKey struct{ by, where, name string }

// pathTimes are what the critical path of a recording went into.
type pathTimes struct {
	steps      int
	activities int
	recorded   int64 // ns, of all windows together, as the rest
	replayed   int64 // with the recorded durations and delays
	usual      int64 // with the delays that are usual in place of those that were recorded
	by         map[pathKey]int64
	saved      map[pathKey]int64 // by how much it were shorter if a cause took no time
	calls      bool              // of the host are recorded
	onPath     map[int64]int64   // ns of collectives on the path, by their start since the epoch
	all        commRuns          // of the recording, by which they are found on other ranks
}

// causesReplayed is how many causes are replayed as if they took no time.
const causesReplayed = 5

// observeCriticalPath finds it in each run of consecutive steps, without steps in all that was recorded.
func observeCriticalPath(r *recording) *pathTimes {
	p := &pathTimes{onPath: map[int64]int64{}, all: observeCollectives(r), by: map[pathKey]int64{}, saved: map[pathKey]int64{}, calls: len(r.calls) > 0}
	if len(r.spans) == 0 || r.hta {
		return p
	}
	main, autograd := r.handingThreads()
	windows, steps := r.pathWindows(main)
	p.steps = steps
	a := newPathAnalysis(r, windows, p)
	a.main, a.autograd = main, autograd
	for _, w := range windows {
		a.add(w)
	}
	a.replay()
	return p
}

// pathAnalysis makes the graphs of a recording and says what their activities are.
type pathAnalysis struct {
	r           *recording
	p           *pathTimes
	host        *hostTimeline
	python      map[uint32][]leaf // of the frames, if there are any
	modules     map[uint32][]leaf
	hierarchy   hierarchies
	paths       map[int32]string      // of classes, by scope of a module
	kinds       map[kineto.Sym]string // by name of what ran
	launched    []bool                // by call: it launched work
	launchedRow []bool                // the same by row of the trace's calls
	main        int32
	autograd    []int32
	busy        []interval // of any device
	graphs      []pathGraph
	work        []windowWork // of the window that is being added
}

// pathGraph is the graph of a window.
type pathGraph struct {
	graph *criticalpath.Graph
	spans []int32 // by Work of its activities
}

func newPathAnalysis(r *recording, windows []interval, p *pathTimes) *pathAnalysis {
	a := &pathAnalysis{
		r: r, p: p, host: r.hostTimeline(windows), hierarchy: hierarchies{t: r.t, known: map[kineto.Sym]int32{}},
		modules: r.modules().leavesOver(windows), paths: map[int32]string{}, kinds: map[kineto.Sym]string{}, busy: union(r.spans, anyKind),
		launched: make([]bool, len(r.calls)), launchedRow: make([]bool, r.t.Calls.Len()),
	}
	for i := range r.spans {
		if c := r.spans[i].call; c >= 0 {
			a.launched[c] = true
			if row := r.calls[c].row; row >= 0 {
				a.launchedRow[row] = true
			}
		}
	}
	if frames := r.frames(); frames != nil {
		a.python = frames.leavesOver(windows)
	}
	return a
}

// add finds the critical path of a window.
func (a *pathAnalysis) add(window interval) {
	events, spans := a.events(window)
	g := criticalpath.Build(events)
	a.graphs = append(a.graphs, pathGraph{g, spans})
	a.p.activities += len(g.Activities)
	a.p.recorded += g.Recorded()
	a.p.replayed += g.Replay(criticalpath.Change{})
	a.p.usual += g.Replay(criticalpath.Change{Usual: true})
	for _, s := range g.Path() {
		stretch, activity := between(s.Start, s.End), &g.Activities[s.Activity]
		switch {
		case s.Delay != criticalpath.NoDelay:
			a.p.by[pathKey{PathCause, InDelay, s.Delay.String()}] += s.End - s.Start
			a.p.by[pathKey{PathPart, InDelay, s.Delay.String()}] += s.End - s.Start
			a.idle(s.Delay.String(), stretch)
		case activity.Work >= 0 && events.Work[activity.Work].Earlier:
			a.p.by[pathKey{PathCause, InDelay, criticalpath.Earlier.String()}] += s.End - s.Start
			a.p.by[pathKey{PathPart, InDelay, criticalpath.Earlier.String()}] += s.End - s.Start
		case activity.Work >= 0:
			a.onDevice(int(spans[activity.Work]), s.End-s.Start)
		default:
			a.onHost(uint32(activity.Thread), stretch)
		}
	}
}

// idle charges a cause with the part of a stretch in which no device worked.
func (a *pathAnalysis) idle(cause string, in interval) {
	length := in.End - in.Start
	timeline.Overlap(a.busy, in.Start, in.End, func(_ int, part int64) { length -= part })
	if length > 0 {
		a.p.by[pathKey{PathIdleCause, "", cause}] += length
	}
}

// onDevice charges a work on the path.
func (a *pathAnalysis) onDevice(span int, ns int64) {
	r := a.r
	s := &r.spans[span]
	part := map[KernelKind]string{Computation: "computing", Communication: "communicating", MemoryOp: "copying", OtherKind: "other"}[s.kind]
	a.p.by[pathKey{PathPart, OnDevice, part}] += ns
	if s.kind == Communication {
		a.p.onPath[r.t.UnixNs(s.start)] += ns
	}
	a.p.by[pathKey{PathCause, OnDevice, a.deviceCause(span)}] += ns
	a.p.by[pathKey{PathCategory, "", a.categoryOf(span)}] += ns
	if op := r.launchers()[span]; op >= 0 {
		a.p.by[pathKey{PathOperator, "", a.deviceCause(span)}] += ns
	}
	a.module(r.moduleOf(span, &a.hierarchy), ns)
}

// deviceCause names a work by the operator that launched it, else by itself.
func (a *pathAnalysis) deviceCause(span int) string {
	tree, op := a.r.operators(), a.r.launchers()[span]
	if op >= 0 && a.r.t.Ops.Class[tree.rows[op]] == kineto.OpCPU {
		if name := a.r.t.Text(a.r.t.Ops.Name[tree.rows[op]]); !IsAnnotation(name) {
			return name
		}
	}
	return a.r.t.Text(a.r.spans[span].name)
}

// categoryOf is the kind of work that a span does: of the innermost operator around its launch that has one, else by its name.
func (a *pathAnalysis) categoryOf(span int) string {
	s, tree := &a.r.spans[span], a.r.operators()
	if s.kind == Computation {
		for op := a.r.launchers()[span]; op >= 0; op = tree.parent[op] {
			row := tree.rows[op]
			if a.r.t.Ops.Class[row] != kineto.OpCPU {
				break
			}
			if m := models[a.r.t.Text(a.r.t.Ops.Name[row])]; m.of != nil {
				return m.kind
			}
		}
	}
	kind, known := a.kinds[s.name]
	if !known {
		kind = kindByName(a.r.t.Text(s.name), s.kind)
		a.kinds[s.name] = kind
	}
	return kind
}

// module charges a module, and those of its class and place, by its scope; -1 for none.
func (a *pathAnalysis) module(node int32, ns int64) {
	if node >= 0 {
		a.p.by[pathKey{PathModule, "", a.classPath(node)}] += ns
	}
}

// classPath names the class and place of a module.
func (a *pathAnalysis) classPath(node int32) string {
	path, known := a.paths[node]
	if !known {
		of := &a.r.modules().tree.nodes[node]
		path = moduleClass(of.name)
		if of.parent >= 0 {
			path = a.classPath(of.parent) + "/" + path
		}
		a.paths[node] = path
	}
	return path
}

// onHost charges a stretch of a thread.
func (a *pathAnalysis) onHost(thread uint32, in interval) {
	a.p.by[pathKey{PathPart, OnHost, "host"}] += in.End - in.Start
	a.eachOnHost(thread, in, func(piece interval, cause hostActivity, launching bool) {
		ns := piece.End - piece.Start
		a.p.by[pathKey{PathCause, OnHost, cause.name}] += ns
		if cause.kind == HostOperator {
			a.p.by[pathKey{PathOperator, "", cause.name}] += ns
		}
		if launching {
			a.idle(CauseInsideCall, piece)
		} else {
			a.idle(CauseNotLaunched, piece)
		}
	})
	for _, l := range pieces(a.modules[thread], in) {
		if l.call >= 0 {
			a.module(a.r.modules().node[l.call], l.end-l.start)
		}
	}
}

// eachOnHost divides a stretch of a thread by what it did: its outermost operator, a line of Python, an annotation, a call; launching
// is that it was in a call that launched work.
func (a *pathAnalysis) eachOnHost(thread uint32, in interval, visit func(piece interval, cause hostActivity, launching bool)) {
	h := a.host
	for _, l := range pieces(h.opLeaves[thread], in) {
		activity := hostActivity{}
		if l.call >= 0 {
			activity = h.activity(l.call)
		}
		for _, c := range pieces(h.callLeaves[thread], between(l.start, l.end)) {
			of, launching := activity, false
			if c.call >= 0 {
				row := h.calls.rows[c.call]
				launching = a.launchedRow[row]
				if of.kind != HostOperator {
					of = hostActivity{HostCall, a.r.t.Text(a.r.t.Calls.Name[row])}
				}
			}
			if of.kind == HostOperator || of.kind == HostCall || a.python[thread] == nil {
				visit(between(c.start, c.end), of, launching)
				continue
			}
			for _, f := range pieces(a.python[thread], between(c.start, c.end)) {
				in := of
				if f.call >= 0 {
					in = hostActivity{HostPython, a.r.frames().line(f.call)}
				}
				visit(between(f.start, f.end), in, launching)
			}
		}
	}
}

// line is the innermost line of the user's code of a frame, else the frame itself.
func (s *pythonStacks) line(frame int32) string {
	if own := s.own[frame]; own != 0 {
		return s.t.Text(own)
	}
	return s.place(frame)[1]
}

// replay finds out how much shorter it were without each of the first causes.
func (a *pathAnalysis) replay() {
	causes := a.p.firstCauses()
	for _, g := range a.graphs {
		for i, less := range a.without(causes, g) {
			change := criticalpath.Change{Less: less}
			for d := range criticalpath.Delays {
				change.Without[d] = causes[i].where == InDelay && d.String() == causes[i].name
			}
			a.p.saved[causes[i]] += g.graph.Recorded() - g.graph.Replay(change)
		}
	}
}

// without is by how much each activity of a graph is shorter without each of some causes; nil for delays.
func (a *pathAnalysis) without(causes []pathKey, g pathGraph) [][]int64 {
	less := make([][]int64, len(causes))
	at := map[string]map[string]int{OnHost: {}, OnDevice: {}, InDelay: {}}
	for i, cause := range causes {
		if at[cause.where][cause.name] = i; cause.where != InDelay {
			less[i] = make([]int64, len(g.graph.Activities))
		}
	}
	onHost, onDevice := at[OnHost], at[OnDevice]
	for i := range g.graph.Activities {
		activity := &g.graph.Activities[i]
		switch {
		case activity.Work < 0 && len(onHost) == 0:
		case activity.Work < 0:
			a.eachOnHost(uint32(activity.Thread), between(activity.Start, activity.End), func(piece interval, of hostActivity, _ bool) {
				if cause, is := onHost[of.name]; is {
					less[cause][i] += piece.End - piece.Start
				}
			})
		case g.spans[activity.Work] >= 0:
			if cause, is := onDevice[a.deviceCause(int(g.spans[activity.Work]))]; is {
				less[cause][i] = activity.Length()
			}
		}
	}
	return less
}

// firstCauses are those that most of the path is of.
func (p *pathTimes) firstCauses() (causes []pathKey) {
	for key := range p.by {
		if key.by == PathCause {
			causes = append(causes, key)
		}
	}
	slices.SortFunc(causes, func(x, y pathKey) int { return cmp.Or(cmp.Compare(p.by[y], p.by[x]), comparePath(x, y)) })
	return causes[:min(len(causes), causesReplayed)]
}

func comparePath(x, y pathKey) int {
	return cmp.Or(cmp.Compare(x.by, y.by), cmp.Compare(x.where, y.where), cmp.Compare(x.name, y.name))
}
