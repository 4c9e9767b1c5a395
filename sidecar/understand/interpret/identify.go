package interpret

import (
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// loop is the function that a worker of some library runs in from its start to its end.
type loop struct {
	file     string // end of its path
	function string
	role     timeline.Role
}

var loops = []loop{
	{"/torch/utils/data/_utils/worker.py", "_worker_loop", timeline.RoleLoaderWorker},
	{"/multiprocessing/pool.py", "worker", timeline.RolePoolWorker},
	{"/multiprocess/pool.py", "worker", timeline.RolePoolWorker}, // the fork that uses dill
	{"/billiard/pool.py", "workloop", timeline.RolePoolWorker},
	{"/concurrent/futures/process.py", "_process_worker", timeline.RolePoolWorker},
	{"/loky/process_executor.py", "_process_worker", timeline.RolePoolWorker},
}

func loopOf(f timeline.Frame) (timeline.Role, bool) {
	name := f.Function[strings.LastIndexByte(f.Function, '.')+1:]
	for _, l := range loops {
		if name == l.function && strings.HasSuffix(f.File, l.file) {
			return l.role, true
		}
	}
	return "", false
}

// Identify returns the recording with the roles that only stacks tell, every worker
// numbered as its owner counts, waiting what waits for another process's message, and the
// thread that runs the code where the target only starts what does. What it does not change it
// shares with rec.
//
// A pool that replaces a worker, or a loader that starts anew each epoch, gives the same
// numbers again: the least one that no living worker of the same owner has.
func Identify(rec *timeline.Recording) *timeline.Recording {
	out := *rec
	out.Processes = slices.Clone(rec.Processes)
	runs := make([]timeline.Role, len(rec.Nodes)) // the loop that is on a stack, by node
	launches := make([]bool, len(rec.Nodes))
	for i := 1; i < len(rec.Nodes); i++ {
		n := rec.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(rec.Frames) { // a damaged file
			continue
		}
		runs[i] = runs[n.Parent]
		launches[i] = launches[n.Parent] || launchOf(rec.Frames[n.Frame])
		if role, ok := loopOf(rec.Frames[n.Frame]); ok { // the innermost: a fork has its owner's stack below
			runs[i] = role
		}
	}
	for _, t := range rec.Threads {
		if !t.Main || t.Process <= 0 || t.Process >= len(out.Processes) {
			continue
		}
		p := &out.Processes[t.Process]
		if p.Role != timeline.RoleWorker {
			continue
		}
		var times [2]timeline.Nanos // in a pool's loop, in a loader's
		for _, s := range t.Spans {
			if int(s.Node) < len(runs) && runs[s.Node] == timeline.RolePoolWorker {
				times[0] += s.End - s.Start
			} else if int(s.Node) < len(runs) && runs[s.Node] == timeline.RoleLoaderWorker {
				times[1] += s.End - s.Start
			}
		}
		switch {
		case times[1] > times[0]:
			p.Role = timeline.RoleLoaderWorker
		case times[0] > 0:
			p.Role = timeline.RolePoolWorker
		}
	}
	beforeExec := isBeforeExec(rec, launches)
	for i := range out.Processes {
		if p := &out.Processes[i]; i > 0 && p.Role == timeline.RoleWorker && beforeExec(i) {
			p.Role, p.Command, p.Number = timeline.RoleChild, "", nil // the program it became was not seen
		}
	}
	number(&out)
	out.Threads = slices.Clone(rec.Threads)
	r := newReader(&out)
	for i := range out.Threads {
		out.Threads[i].Spans = waiting(rec, out.Threads[i].Spans)
	}
	if program := r.program(); program > 0 {
		for i := range out.Threads {
			t := &out.Threads[i]
			t.RunsCell = t.Main && t.Process == program
		}
	}
	return &out
}

// ownerOf is the process that a worker works for: its parent, or, where a fork server
// made it, the parent of that.
func ownerOf(rec *timeline.Recording, i int) int {
	owner := rec.Processes[i].ParentIndex
	for range 4 {
		if owner < 0 || owner >= len(rec.Processes) || rec.Processes[owner].Role != timeline.RoleForkServer {
			break
		}
		owner = rec.Processes[owner].ParentIndex
	}
	return owner
}

func number(rec *timeline.Recording) {
	type family struct {
		role  timeline.Role
		owner int
	}
	taken := make(map[family]map[int]timeline.Nanos) // number → end of who has it; 0: it lives
	order := make([]int, len(rec.Processes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(rec.Processes[a].Start - rec.Processes[b].Start) })
	for _, i := range order {
		p := &rec.Processes[i]
		if i == 0 || p.Number != nil || !p.IsWorker() {
			continue
		}
		f := family{p.Role, ownerOf(rec, i)}
		if taken[f] == nil {
			taken[f] = make(map[int]timeline.Nanos)
		}
		n := 1
		if p.Role == timeline.RoleLoaderWorker { // torch counts from 0
			n = 0
		}
		for ; ; n++ {
			if end, used := taken[f][n]; !used || end != 0 && end <= p.Start {
				break
			}
		}
		taken[f][n] = p.End
		p.Number = &n
	}
}

func containsAny(file string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(file, part) })
}
