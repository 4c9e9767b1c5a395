package interpret

import (
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// What Dask has on a worker's thread, root first.
const (
	daskLoop = "/v/site-packages/distributed/threadpoolexecutor.py:_worker:60"
	daskItem = "/v/site-packages/distributed/_concurrent_futures_thread.py:_WorkItem.run:65"
	daskRun  = "/v/site-packages/distributed/worker.py:_run_task_simple:2900"
	daskTask = "/v/site-packages/dask/_task_spec.py:Task.__call__:759"
	daskGet  = "/lib/python3.12/queue.py:Queue.get:171"
)

// inEngine is the recording of a worker whose only thread runs the stints, with these regions.
func inEngine(role timeline.Role, marks []timeline.Mark, stints ...stint) *timeline.Recording {
	s := newScene()
	s.history(timeline.Thread{PID: 100, NativeID: 7}, 0, stints)
	rec := s.b.Snapshot(seconds(9))
	rec.Processes[0].Role = role
	for _, m := range marks {
		m.Kind, m.Thread = "region", 7
		rec.Marks = append(rec.Marks, m)
	}
	return withTasks(rec)
}

func mark(name string, start, end float64) timeline.Mark {
	return timeline.Mark{Name: name, Start: seconds(start), End: seconds(end)}
}

func TestAThreadShowsItsTasksByName(t *testing.T) {
	within := []string{daskLoop, daskItem, daskRun, daskTask, works}
	for name, c := range map[string]struct {
		role  timeline.Role
		marks []timeline.Mark
		want  []string
	}{
		"tasks and what is between": {timeline.RoleDaskWorker, []timeline.Mark{mark("inc", 1, 3), mark("load", 4, 6)},
			[]string{"[:0]", "[inc:0 crunch:7]", "[crunch:7]", "[load:0 crunch:7]", "[:0]"}},
		"clocks that are corrected by little": {timeline.RoleDaskWorker, []timeline.Mark{mark("inc", 1, 3.005), mark("load", 3, 6)},
			[]string{"[:0]", "[inc:0 crunch:7]", "[load:0 crunch:7]", "[:0]"}},
		"tasks at the same time": {timeline.RoleDaskWorker, []timeline.Mark{mark("a", 1, 5), mark("b", 2, 6)},
			[]string{"[:0]", "[a:0 crunch:7]", "[crunch:7]", "[:0]"}},
		"a worker killed within its task": {timeline.RoleDaskWorker, nil, []string{"[:0]", "[crunch:7]", "[:0]"}},
		"a thread of no engine":           {timeline.RoleProcess, nil, []string{"[_worker:60 Queue.get:171]", "[_worker:60 _WorkItem.run:65 _run_task_simple:2900 Task.__call__:759 crunch:7]", "[_worker:60 Queue.get:171]"}},
	} {
		rec := inEngine(c.role, c.marks, stint{[]string{daskLoop, daskGet}, io, 1}, stint{within, python, 5}, stint{[]string{daskLoop, daskGet}, io, 3})
		if got := stacksOf(rec, 0); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%v\nwant\n%v", name, got, c.want)
		}
	}
}

func TestAnEnginesTaskHasItsName(t *testing.T) {
	rec := inEngine(timeline.RoleDaskWorker, []timeline.Mark{mark("inc", 1, 3)}, stint{[]string{daskLoop, daskItem}, io, 9})
	if f := rec.Frames[rec.Nodes[rec.Threads[0].Spans[1].Node].Frame]; !f.Task || f.Function != "inc" || !rec.Threads[0].RunsCell {
		t.Errorf("frame %+v of thread %+v", f, rec.Threads[0])
	}
}
