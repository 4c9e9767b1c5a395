package activity

import (
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Who is waited for is who works, and who sleeps while nobody works.
func TestProcessesThatAreWaitedFor(t *testing.T) {
	const s = timeline.Nanos(1e9)
	child := func(command string, start, end, cpu timeline.Nanos) timeline.Process {
		return timeline.Process{PID: 9, Parent: 7, Command: command, Role: timeline.RoleChild, Start: start, End: end, CPU: cpu}
	}
	for name, test := range map[string]struct {
		children []timeline.Process
		want     []string
	}{
		"one after the other": {[]timeline.Process{child("sleep", 0, s, 0), child("python3", s, 3*s, s), child("git", 3*s, 4*s, s/2)}, []string{"python3", "git", "sleep"}},
		"beside another":      {[]timeline.Process{child("watch", 0, 4*s, 0), child("python3", 0, 4*s, s)}, []string{"python3"}},
		"for a moment alone":  {[]timeline.Process{child("watch", 0, 4*s, 0), child("python3", s/4, 4*s, s)}, []string{"python3"}},
		"nobody works":        {[]timeline.Process{child("sleep", 0, 4*s, 0)}, []string{"sleep"}},
	} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) {
			r.Target = timeline.Target{PID: 7}
			r.Processes = append([]timeline.Process{{PID: 7, Role: timeline.RoleScript}}, test.children...)
		})
		main := b.Thread(timeline.Thread{PID: 7, Main: true})
		b.Set(main, 0, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: "/u/a.py", Line: 3})), timeline.StateWaiting, false)
		rec := b.Snapshot(4 * s)
		beside := NewBystanders(NewStacks(rec, NewSource(rec, nil)), &rec.Threads[main])
		var names []string
		for _, a := range beside.ProcessesDuring([]timeline.Interval{timeline.Between(0, 4*s)}) {
			names = append(names, a.Name)
		}
		if !slices.Equal(names, test.want) {
			t.Errorf("%s: %v, want %v", name, names, test.want)
		}
	}
}

// Of two pools the one that had nothing to do meanwhile is not waited for, and none of its time is that of the other's
// workers; of two that work both are.
func TestAPoolThatIsLeftOverIsNotWaitedFor(t *testing.T) {
	const s = timeline.Nanos(1e9)
	worker := []timeline.Frame{{Function: "worker", File: "/lib/python3.12/multiprocessing/pool.py", Line: 125}}
	gets := append(slices.Clone(worker), timeline.Frame{Function: "SimpleQueue.get", File: "/lib/python3.12/multiprocessing/queues.py", Line: 386})
	works := append(slices.Clone(worker), timeline.Frame{Function: "g", File: "/u/a.py", Line: 6})
	for name, c := range map[string]struct {
		left  []timeline.Frame
		state timeline.State
		count int
	}{"idle": {gets, timeline.StateWaiting, 2}, "at work": {works, timeline.StatePython, 4}} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) {
			r.Target = timeline.Target{PID: 7}
			r.Processes = []timeline.Process{{PID: 7, Role: timeline.RoleScript, ParentIndex: -1}}
			for i := range 4 {
				number, command := i%2+1, "joblib.externals.loky.backend.popen_loky_posix"
				if i >= 2 {
					command = "a.py"
				}
				r.Processes = append(r.Processes, timeline.Process{PID: 10 + i, Parent: 7, Command: command, Role: timeline.RolePoolWorker, Number: &number, Start: -s, CPU: s})
			}
		})
		stack := func(frames []timeline.Frame) (n timeline.NodeID) {
			n = timeline.RootNode
			for _, f := range frames {
				n = b.Child(n, b.Frame(f))
			}
			return n
		}
		main := b.Thread(timeline.Thread{PID: 7, Main: true})
		b.Set(main, 0, stack([]timeline.Frame{{Function: "f", File: "/u/a.py", Line: 3}}), timeline.StateWaiting, false)
		for i := range 4 {
			frames, state := works, timeline.StatePython
			if i < 2 {
				frames, state = c.left, c.state
			}
			b.Set(b.Thread(timeline.Thread{PID: 10 + i, Process: i + 1, Main: true}), 0, stack(frames), state, false)
		}
		rec := b.Snapshot(2 * s)
		beside := NewBystanders(NewStacks(rec, NewSource(rec, nil)), &rec.Threads[main])
		actors := beside.ProcessesDuring([]timeline.Interval{timeline.Between(0, 2*s)})
		if len(actors) != 1 || actors[0].Count != c.count || actors[0].Work == nil || actors[0].Work.Starved != 0 || actors[0].Work.Working != 1 {
			t.Errorf("%s: %+v, want %d workers that work", name, actors, c.count)
		}
	}
}

// Workers that a loader has started anew are counted once.
func TestWorkersStartedAnewAreCountedOnce(t *testing.T) {
	const s = timeline.Nanos(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 7}
		r.Processes = []timeline.Process{{PID: 7, Role: timeline.RoleScript, ParentIndex: -1}}
		for life := range timeline.Nanos(3) {
			for number := range 2 {
				r.Processes = append(r.Processes, timeline.Process{PID: 9, Parent: 7, Command: "train.py", Role: timeline.RoleLoaderWorker, Number: &number, Start: life * s, End: (life + 1) * s, CPU: s})
			}
		}
	})
	main := b.Thread(timeline.Thread{PID: 7, Main: true})
	b.Set(main, 0, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: "/u/a.py", Line: 3})), timeline.StateWaiting, false)
	rec := b.Snapshot(3 * s)
	beside := NewBystanders(NewStacks(rec, NewSource(rec, nil)), &rec.Threads[main])
	if actors := beside.ProcessesDuring([]timeline.Interval{timeline.Between(0, 3*s)}); len(actors) != 1 || actors[0].Count != 2 {
		t.Errorf("got %+v, want 2 workers", actors)
	}
}
