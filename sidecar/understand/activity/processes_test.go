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
