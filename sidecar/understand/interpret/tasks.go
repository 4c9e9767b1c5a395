package interpret

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// withTasks returns the recording in which a thread shows, for as long as it ran a task of an engine, the task by its
// name and below it the task's own code, without what the engine calls before that; and between two tasks that it has
// none, whatever the engine does there. A task that was not marked, as the last one of a worker that was killed, has its
// own code and no name. Of the target's threads the one that ran tasks for the longest time runs the program. It shares
// with rec what it does not change.
//
// A task that overlaps another one of its thread, as those of an event loop do, is not shown: which of them a stack
// belongs to is not known.
func withTasks(rec *timeline.Recording) *timeline.Recording {
	tasks := tasksOf(rec)
	worker := len(rec.Processes) > 0 && rec.Processes[0].Role.OfEngine()
	if len(tasks) == 0 && !worker {
		return rec
	}
	out := *rec
	out.Frames, out.Nodes, out.Threads = slices.Clone(rec.Frames), slices.Clone(rec.Nodes), slices.Clone(rec.Threads)
	r := &rooter{rec: &out, files: origin.New(rec), frames: make(map[string]timeline.FrameID), nodes: make(map[rooted]timeline.NodeID), tasks: make(map[timeline.NodeID]bool), added: addStacks(&out)}
	longest, busiest := timeline.Nanos(0), -1
	for i := range out.Threads {
		t := &out.Threads[i]
		own := tasks[threadID{t.Process, t.NativeID}]
		sum := r.inTasks(t.Spans)
		for _, m := range own {
			sum += m.End - m.Start
		}
		if len(own) == 0 && (!worker || t.Process != 0 || sum == 0) {
			continue
		}
		t.Spans = r.spans(t.Spans, own)
		if t.Process == 0 && sum > longest {
			longest, busiest = sum, i
		}
	}
	if busiest >= 0 && rec.Target.Cell == nil {
		for i := range out.Threads {
			out.Threads[i].RunsCell = i == busiest
		}
	}
	return &out
}

// threadID is a thread of a recording.
type threadID struct{ process, native int }

// tasksOf are the regions that single threads are in, in order and without overlap.
func tasksOf(rec *timeline.Recording) map[threadID][]timeline.Mark {
	tasks := make(map[threadID][]timeline.Mark)
	for _, m := range rec.Marks {
		if m.Kind == "region" && m.Thread != 0 && m.End > m.Start {
			id := threadID{m.Process, m.Thread}
			tasks[id] = append(tasks[id], m)
		}
	}
	for id, list := range tasks {
		slices.SortStableFunc(list, func(a, b timeline.Mark) int { return cmp.Compare(a.Start, b.Start) })
		tasks[id] = apart(list)
	}
	return tasks
}

// apart leaves out tasks that overlap the one before by more than an engine's clock may be changed between the two.
func apart(list []timeline.Mark) (out []timeline.Mark) {
	end := timeline.Nanos(0)
	for _, m := range list {
		if overlap := end - m.Start; overlap > 0 {
			if overlap > clockChange || overlap >= m.End-m.Start {
				end = max(end, m.End)
				continue
			}
			m.Start = end
		}
		end = m.End
		out = append(out, m)
	}
	return out
}

// clockChange is by how much an engine's clock may be corrected between two tasks: Dask's workers take over the
// scheduler's with each heartbeat, by some milliseconds.
const clockChange = timeline.Nanos(10e6)

// rooter adds the stacks of tasks to a recording.
type rooter struct {
	rec    *timeline.Recording
	files  *origin.Files
	frames map[string]timeline.FrameID // by the task's name
	nodes  map[rooted]timeline.NodeID
	tasks  map[timeline.NodeID]bool // stacks with own code below an engine's call of a task
	added  *addedStacks
}

// rooted is a stack within a task of some name.
type rooted struct {
	task string
	node timeline.NodeID
}

// spans are a thread's, divided where tasks begin and end.
func (r *rooter) spans(spans []timeline.Span, tasks []timeline.Mark) []timeline.Span {
	out := make([]timeline.Span, 0, len(spans)+2*len(tasks))
	add := func(s timeline.Span, start, end timeline.Nanos, node timeline.NodeID) {
		if end > start {
			s.Start, s.End, s.Node = start, end, node
			out = append(out, s)
		}
	}
	k := 0
	for _, s := range spans {
		at := s.Start
		for ; k < len(tasks) && tasks[k].Start < s.End; k++ {
			m := tasks[k]
			if m.End <= at {
				continue
			}
			add(s, at, max(m.Start, at), r.none(s.Node))
			add(s, max(m.Start, at), min(m.End, s.End), r.within(m.Name, s.Node))
			if at = min(m.End, s.End); m.End > s.End { // the task goes on in the next span
				break
			}
		}
		add(s, at, s.End, r.none(s.Node))
	}
	return out
}

// none is the stack of a thread that has no task; where its stack is not known, that is not known either, and in a task
// that was not marked it is the task's own code.
func (r *rooter) none(node timeline.NodeID) timeline.NodeID {
	if node == timeline.RootNode {
		return node
	}
	if !r.inTask(node) {
		return r.added.child(timeline.RootNode, r.frame(""))
	}
	at := timeline.RootNode
	for _, f := range r.below(r.path(node)) {
		at = r.added.child(at, f)
	}
	return at
}

// inTasks is for how long the user's own code was on a stack below an engine's call of a task.
func (r *rooter) inTasks(spans []timeline.Span) (sum timeline.Nanos) {
	for _, s := range spans {
		if r.inTask(s.Node) {
			sum += s.End - s.Start
		}
	}
	return sum
}

func (r *rooter) inTask(node timeline.NodeID) bool {
	in, known := r.tasks[node]
	if !known {
		path := r.path(node)
		in = slices.ContainsFunc(path, r.runsTask) && slices.ContainsFunc(path, r.isOwn)
		r.tasks[node] = in
	}
	return in
}

func (r *rooter) isOwn(frame timeline.FrameID) bool { return r.files.Own(r.rec.Frames[frame].File) }

// frame stands for the tasks of a name.
func (r *rooter) frame(task string) timeline.FrameID {
	frame, ok := r.frames[task]
	if !ok {
		frame = timeline.FrameID(len(r.rec.Frames))
		r.rec.Frames = append(r.rec.Frames, timeline.Frame{Function: task, Task: true})
		r.frames[task] = frame
	}
	return frame
}

// within is the stack of a task: its name, and of a stack what is below the engine's call of the task.
func (r *rooter) within(task string, node timeline.NodeID) timeline.NodeID {
	key := rooted{task, node}
	if known, ok := r.nodes[key]; ok {
		return known
	}
	at := r.added.child(timeline.RootNode, r.frame(task))
	for _, f := range r.below(r.path(node)) {
		at = r.added.child(at, f)
	}
	r.nodes[key] = at
	return at
}

// path are the frames of a stack, root first.
func (r *rooter) path(node timeline.NodeID) (path []timeline.FrameID) {
	for n := node; n != timeline.RootNode && int(n) < len(r.rec.Nodes); n = r.rec.Nodes[n].Parent {
		at := r.rec.Nodes[n]
		if at.Parent >= n || int(at.Frame) >= len(r.rec.Frames) { // a damaged file
			break
		}
		path = append(path, at.Frame)
	}
	slices.Reverse(path)
	return path
}

// below are the frames below the calls by which the engine runs a task, which end where the user's own code begins;
// all where there is no such call.
func (r *rooter) below(path []timeline.FrameID) []timeline.FrameID {
	first := 0
	for i, frame := range path {
		if r.runsTask(frame) {
			first = i + 1
		} else if r.isOwn(frame) {
			break
		}
	}
	return path[first:]
}

func (r *rooter) runsTask(frame timeline.FrameID) bool {
	return r.files.Means(r.rec.Frames[frame])&origin.RunsTask != 0
}
