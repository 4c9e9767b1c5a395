package diagnose

import (
	"math"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// CPU time is known by windows. What the thread itself or its children used in another part
// of a window is not what somebody used while it waited.
func TestAWaitIsNotWhatWasUsedBeforeIt(t *testing.T) {
	waits := act{1500 * ms, 9, "", "", timeline.StateWaiting, 0}
	for _, test := range []struct {
		name          string
		before        timeline.State
		all, children float64 // cores, over all 3 s
		want          activity.Cause
	}{
		{"it computed before", timeline.StatePython, 0.6, 0, activity.Waiting},
		{"its children did", timeline.StateWaiting, 0.7, 0.7, activity.Waiting},
		{"a library's threads did all the time", timeline.StatePython, 1.4, 0, activity.Native},
		{"a library's threads did all the time, too", timeline.StatePython, 1.9, 0.4, activity.Native},
	} {
		rec := scene{acts: []act{{1500 * ms, 8, "", "", test.before, 0}, waits}, script: true, change: func(b *timeline.Builder) {
			ownCores(test.all, 4)(b)
			if test.children > 0 {
				cores(test.children)(b)
				b.Describe(func(r *timeline.Recording) {
					r.Processes = append(r.Processes, timeline.Process{PID: 2, Role: timeline.RoleChild, End: 1500 * ms})
				})
			}
		}}.record()
		d := Run(rec)
		i := slices.IndexFunc(d.Spent, func(s activity.Spent) bool { return s.Place == activity.Place{File: cellFile, Line: 9} })
		if got := d.Spent[i].Cause; got != test.want {
			t.Errorf("%s: the wait is %q, want %q", test.name, got, test.want)
		}
	}
}

// A program that was waited for spent its time in a line, too: where that is the user's own, the headline names it.
func TestAChildThatIsWaitedForNamesItsOwnLine(t *testing.T) {
	const script, library = "/u/child.py", "/x/site-packages/numpy/linalg.py"
	for _, c := range []struct {
		name string
		file string
		want activity.Place
	}{
		{"its own script", script, activity.Place{File: script, Line: 4}},
		{"a library's command", library, activity.Place{}},
	} {
		runs := func(b *timeline.Builder) {
			b.Describe(func(r *timeline.Recording) { r.Processes[1].CPU = 3 * sec })
			id := b.Thread(timeline.Thread{PID: 50 + 1, Process: 1, NativeID: 51, Main: true})
			b.Set(id, 0, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: c.file, Line: 4})), timeline.StatePython, false)
		}
		rec := scene{acts: []act{joining}, times: 3, change: both(cores(1), child("child.py", "child"), inSubprocess, runs)}.record()
		found := Run(rec).Findings
		i := slices.IndexFunc(found, func(f Finding) bool { return f.ID == WaitsForChildren })
		if i < 0 || len(found[i].Actors) != 1 {
			t.Fatalf("%s: found %+v", c.name, found)
		}
		a := found[i].Actors[0]
		if a.Place != c.want || (a.Work != nil) != (c.want.File != "") {
			t.Errorf("%s: it spent its time at %v (%+v), want %v", c.name, a.Place, a.Work, c.want)
		}
		if a.Work != nil && (a.Work.AtPlace < 0.99 || a.Work.Working < 0.99) {
			t.Errorf("%s: %+v", c.name, a.Work)
		}
	}
}

// A wait for a child process is no longer than that lived: IPython polls for the end of a shell for 0.1 s more.
func TestAWaitForAChildIsNoLongerThanItLived(t *testing.T) {
	for end, want := range map[timeline.Nanos]timeline.Nanos{9 * sec / 10: 9 * sec / 10, 0: sec, sec / 2: sec} { // of half of it nobody knows what it was
		b, main, line := aCell()
		b.Describe(func(r *timeline.Recording) {
			r.Processes = append(r.Processes, timeline.Process{PID: 2, Role: timeline.RoleChild, Command: "sleep", End: end, CPU: sec / 1000})
		})
		b.Set(main, 0, b.Child(line(2), b.Frame(timeline.Frame{Function: "Popen.wait", File: "/usr/lib/python3.12/subprocess.py", Line: 9})), timeline.StateWaiting, false)
		got := Run(b.Snapshot(sec)).Findings[0]
		if share := float64(want) / float64(sec); got.ID != WaitsForChildren || got.Time != want || math.Abs(got.Value-share) > 1e-9 {
			t.Errorf("it ended at %v: %s of %v, %v of the recording; want %v", end, got.ID, got.Time, got.Value, want)
		}
	}
}

// aCell begins the recording of a cell: its main thread, and a stack in each of its lines.
func aCell() (b *timeline.Builder, main timeline.ThreadID, line func(n int) timeline.NodeID) {
	b = timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Sources = []timeline.Source{{File: cellFile, Text: cellText}}
		r.Target = timeline.Target{PID: 1, Cell: &timeline.Cell{File: cellFile, Text: cellText}}
		r.Processes = []timeline.Process{{PID: 1, Role: "kernel"}}
	})
	line = func(n int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: cellFile, Line: n, FirstLine: 1}))
	}
	main = b.Thread(timeline.Thread{PID: 1, Main: true, RunsCell: true})
	return b, main, line
}

// A wait for the end of a thread that sleeps is for that one, whoever computes for a moment beside it.
func TestAWaitForAThreadThatSleepsIsForThatOne(t *testing.T) {
	for _, test := range []struct {
		state timeline.State
		wait  timeline.Wait
		want  []string
	}{
		{timeline.StateWaiting, timeline.WaitSleep, []string{"loader"}},
		{timeline.StatePython, timeline.WaitUnknown, []string{"loader", "trainer"}},
	} {
		b, main, line := aCell()
		loader := b.Thread(timeline.Thread{PID: 1, NativeID: 2, Name: "loader"})
		trainer := b.Thread(timeline.Thread{PID: 1, NativeID: 3, Name: "trainer"})
		b.Set(main, 0, b.Child(line(8), b.Frame(timeline.Frame{Function: "Thread.join", File: "/usr/lib/python3.11/threading.py", Line: 9})), timeline.StateWaiting, false)
		b.SetWait(main, 0, timeline.WaitLock, b.Object(timeline.Object{Call: "thread", Kind: timeline.ObjectThread, Holder: loader}))
		b.Set(loader, 0, line(3), test.state, false)
		b.SetWait(loader, 0, test.wait, 0)
		b.Set(trainer, 0, line(4), timeline.StatePython, false)
		b.Set(trainer, sec/10, line(4), timeline.StateWaiting, false)
		got := Run(b.Snapshot(sec)).Findings[0]
		var names []string
		for _, a := range got.Actors {
			names = append(names, a.Name)
		}
		if got.ID != WaitsForThreads || !slices.Equal(names, test.want) {
			t.Errorf("%v: %+v, want a wait for %v", test.state, got, test.want)
		}
	}
}

// The threads of a pool are waited for one by one, and all of them are the reason.
func TestAWaitForThePoolIsForAllOfItsThreads(t *testing.T) {
	b, main, line := aCell()
	var first timeline.ThreadID
	for i, name := range []string{"ThreadPoolExecutor-0_0", "ThreadPoolExecutor-0_1"} {
		id := b.Thread(timeline.Thread{PID: 1, NativeID: 2 + i, Name: name})
		b.Set(id, 0, line(3), timeline.StateWaiting, false)
		b.SetWait(id, 0, timeline.WaitSleep, 0)
		if i == 0 {
			first = id
		}
	}
	b.Set(main, 0, b.Child(line(8), b.Frame(timeline.Frame{Function: "Thread.join", File: "/usr/lib/python3.11/threading.py", Line: 9})), timeline.StateWaiting, false)
	b.SetWait(main, 0, timeline.WaitLock, b.Object(timeline.Object{Call: "thread", Kind: timeline.ObjectThread, Holder: first}))
	got := Run(b.Snapshot(sec)).Findings[0]
	if got.ID != WaitsForThreads || len(got.Actors) != 1 || got.Actors[0].Count != 2 || got.Actors[0].Name != "ThreadPoolExecutor-0" {
		t.Errorf("%+v, want a wait for two threads", got)
	}
}

// A wait for the result of a Future is for the threads that compute it, and not for a server that has nothing to do.
func TestAWaitForAFutureIsForTheThreadsThatComputeIt(t *testing.T) {
	b, main, line := aCell()
	future := b.Child(line(8), b.Frame(timeline.Frame{Function: "Future.result", File: "/usr/lib/python3.11/concurrent/futures/_base.py", Line: 9}))
	b.Set(main, 0, future, timeline.StateWaiting, false)
	for i, name := range []string{"ThreadPoolExecutor-0_0", "ThreadPoolExecutor-0_1", "Thread-1 (serve_forever)"} {
		id := b.Thread(timeline.Thread{PID: 1, NativeID: 2 + i, Name: name})
		at := line(3)
		if i == 2 {
			at = b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "BaseServer.serve_forever", File: "/usr/lib/python3.11/socketserver.py", Line: 9}))
		}
		b.Set(id, 0, at, timeline.StateIO, false)
		if i < 2 {
			b.SetWait(main, timeline.Nanos(i)*sec/2, timeline.WaitLock, b.Object(timeline.Object{Call: "result", Kind: timeline.ObjectFuture, Holder: id}))
		}
	}
	got := Run(b.Snapshot(sec)).Findings[0]
	if got.ID != WaitsForThreads || len(got.Actors) != 1 || got.Actors[0].Count != 2 || got.Actors[0].Name != "ThreadPoolExecutor-0" {
		t.Errorf("%+v, want a wait for two threads", got)
	}
}

// A wait for a lock is for the thread that has it, whatever that does meanwhile, and whoever else is busy.
func TestAWaitForALockIsForTheThreadThatHasIt(t *testing.T) {
	for _, state := range []timeline.State{timeline.StateWaiting, timeline.StatePython} {
		b, main, line := aCell()
		holder := b.Thread(timeline.Thread{PID: 1, NativeID: 2, Name: "loader"})
		busy := b.Thread(timeline.Thread{PID: 1, NativeID: 3, Name: "other"})
		b.Set(main, 0, line(8), timeline.StateWaiting, false)
		b.SetWait(main, 0, timeline.WaitLock, b.Object(timeline.Object{Call: "lock", Kind: timeline.ObjectLock, Holder: holder}))
		b.Set(holder, 0, line(3), state, false)
		b.Set(busy, 0, line(4), timeline.StateNative, false)
		rec := b.Snapshot(sec)
		got := Run(rec).Findings[0]
		if got.ID != WaitsForThreads && got.ID != WaitsForLock || !got.HasLock || len(got.Actors) != 1 || got.Actors[0].Name != "loader" || got.Actors[0].Place.Line != 3 {
			t.Errorf("%v: %+v", state, got)
		}
	}
}

// A thread that stood still in a wait of its own, whenever the main thread woke up, is not what that waited for. It may be the
// one where it ran, where it left its wait with the main thread, and where nobody else was active.
func TestAThreadThatStandsStillIsNotWaitedFor(t *testing.T) {
	const producer, server = "producer", "server"
	for name, test := range map[string]struct {
		ran    timeline.Nanos // by the server
		leaves bool           // it does when the main thread wakes up for the last time
		alone  bool
		once   bool // the main thread is not seen to wake up before the end
		want   []string
	}{
		"it stands still":          {want: []string{producer}},
		"it wakes up once":         {ran: 20e3, want: []string{producer}},
		"it ran":                   {ran: 2e6, want: []string{producer, server}},
		"it never ran":             {once: true, want: []string{producer}},
		"it ran once, too":         {once: true, ran: 4e3, want: []string{producer, server}},
		"nobody knows":             {ran: -1, want: []string{producer, server}},
		"it leaves":                {leaves: true, want: []string{producer, server}},
		"there is no other thread": {alone: true, want: []string{server}},
	} {
		b, main, line := aCell()
		get := b.Child(line(8), b.Frame(timeline.Frame{Function: "Queue.get", File: "/usr/lib/python3.11/queue.py", Line: 9}))
		const turn = sec / 10
		for i := range timeline.Nanos(10) {
			b.Set(main, i*turn, get, timeline.StateWaiting, false)
			b.SetWait(main, i*turn, timeline.WaitLock, 0)
			if !test.once || i == 9 {
				b.Set(main, i*turn+turn*9/10, line(9), timeline.StatePython, false)
			}
		}
		if !test.alone {
			id := b.Thread(timeline.Thread{PID: 1, NativeID: 2, Name: producer, OnCPU: 2e6}) // its loop is in one line
			b.Set(id, 0, line(3), timeline.StateWaiting, false)
			b.SetWait(id, 0, timeline.WaitSleep, 0)
		}
		id := b.Thread(timeline.Thread{PID: 1, NativeID: 3, Name: server, OnCPU: test.ran})
		b.Set(id, 0, line(5), timeline.StateIO, false)
		if test.leaves {
			b.Set(id, 9*turn+turn*9/10, line(6), timeline.StateWaiting, false)
		}
		d := Run(b.Snapshot(sec))
		got := findingOfID(t, &d, WaitsForThreads)
		var names []string
		for _, a := range got.Actors {
			names = append(names, a.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, test.want) {
			t.Errorf("%s: a wait for %v, want %v", name, names, test.want)
		}
	}
}

// Two threads that have each other's lock did something for a moment: that is not what those wait for who join them.
func TestThreadsThatAreJoinedWaitThemselves(t *testing.T) {
	b, main, line := aCell()
	var ids []timeline.ThreadID
	for i, name := range []string{"one", "two"} {
		id := b.Thread(timeline.Thread{PID: 1, NativeID: 2 + i, Name: name})
		b.Set(id, 0, line(2), timeline.StateWaiting, false)
		b.SetWait(id, 0, timeline.WaitSleep, 0)
		b.Set(id, sec/20, line(3+i), timeline.StateWaiting, false)
		b.SetWait(id, sec/20, timeline.WaitLock, 0)
		ids = append(ids, id)
	}
	for i, id := range ids {
		at := timeline.Nanos(i) * sec / 2
		join := b.Child(line(8), b.Frame(timeline.Frame{Function: "Thread.join", File: "/usr/lib/python3.11/threading.py", Line: 9}))
		b.Set(main, at, join, timeline.StateWaiting, false)
		b.SetWait(main, at, timeline.WaitLock, b.Object(timeline.Object{Call: "join", Kind: timeline.ObjectThread, Holder: id}))
	}
	d := Run(b.Snapshot(sec))
	if a := findingOfID(t, &d, WaitsForThreads).Actors; len(a) != 2 || a[0].Place.Line != 3 || a[0].Cause != activity.Lock || a[1].Place.Line != 4 {
		t.Errorf("a wait for %+v, want two threads that wait for locks in lines 3 and 4", a)
	}
}

// The lines of a child process's output come through a pipe, whatever the line looks like that reads them. What comes in by the program's own
// input is not a child's.
func TestWhoReadsAPipeWaitsForTheChild(t *testing.T) {
	for name, want := range map[string]FindingID{"": WaitsForChildren, timeline.StandardInput: WaitsForIO} {
		b, main, line := aCell()
		b.Describe(func(r *timeline.Recording) {
			r.Processes = []timeline.Process{{PID: 1, ParentIndex: -1}, {PID: 5, Parent: 1, Role: timeline.RoleChild, Command: "make", End: sec, CPU: -1}}
		})
		b.Set(main, 0, line(8), timeline.StateIO, false)
		b.SetWait(main, 0, 0, b.Object(timeline.Object{Call: "read", Kind: timeline.ObjectPipe, Name: name}))
		d := Run(b.Snapshot(sec))
		if got := d.Findings[0].ID; got != want {
			t.Errorf("a pipe %q: %s, want %s", name, got, want)
		}
	}
}

// A server in a thread of its own, as of http.server, looks from time to time whether it is to end. The program waits for whom it will, and
// not for that thread.
func TestNobodyWaitsForAServersThread(t *testing.T) {
	const polls = sec / 2
	for _, own := range []bool{false, true} { // the thread's function is the user's own
		b, main, line := aCell()
		get := b.Child(line(8), b.Frame(timeline.Frame{Function: "Queue.get", File: "/usr/lib/python3.11/queue.py", Line: 9}))
		b.Set(main, 0, get, timeline.StateWaiting, false)
		b.SetWait(main, 0, timeline.WaitLock, 0)
		b.Set(main, 2*sec-sec/100, line(9), timeline.StatePython, false)
		root := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "Thread.run", File: "/usr/lib/python3.11/threading.py", Line: 9}))
		if own {
			root = line(3)
		}
		serves := b.Child(root, b.Frame(timeline.Frame{Function: "BaseServer.serve_forever", File: "/usr/lib/python3.11/socketserver.py", Line: 232}))
		selects := b.Child(serves, b.Frame(timeline.Frame{Function: "_PollLikeSelector.select", File: "/usr/lib/python3.11/selectors.py", Line: 415}))
		id := b.Thread(timeline.Thread{PID: 1, NativeID: 2, Name: "server", OnCPU: 2e6})
		for i := range timeline.Nanos(4) {
			b.Set(id, i*polls, selects, timeline.StateWaiting, false)
			b.SetWait(id, i*polls, timeline.WaitSocket, 0)
			b.Set(id, (i+1)*polls-1e5, serves, timeline.StatePython, false)
		}
		d := Run(b.Snapshot(2 * sec))
		if f := d.Findings[0]; f.ID != WaitsForLock || len(f.Actors) > 0 {
			t.Errorf("%s, for %+v", f.ID, f.Actors)
		}
	}
}

// Of threads that are joined in turn, that one is named first for which most of the wait was, whoever it is that stands in the
// first line; and those that had a lock in turn likewise.
func TestAWaitForSeveralThreadsIsForTheOneThatTakesLongest(t *testing.T) {
	for _, kind := range []timeline.ObjectKind{timeline.ObjectThread, timeline.ObjectLock} {
		b, main, line := aCell()
		at := b.Child(line(8), b.Frame(timeline.Frame{Function: "Thread.join", File: "/usr/lib/python3.11/threading.py", Line: 9}))
		b.Set(main, 0, at, timeline.StateWaiting, false)
		for i, name := range []string{"short", "long", "other"} {
			id := b.Thread(timeline.Thread{PID: 1, NativeID: 2 + i, Name: name})
			b.Set(id, 0, line(3+i), timeline.StateWaiting, false)
			b.SetWait(id, 0, timeline.WaitSleep, 0)
			if name != "other" {
				b.SetWait(main, timeline.Nanos(i)*4*sec/10, timeline.WaitLock, b.Object(timeline.Object{Call: "thread", Kind: kind, Holder: id}))
			}
		}
		d := Run(b.Snapshot(sec))
		got := d.Findings[0]
		if len(got.Actors) != 2 || got.HasLock != (kind == timeline.ObjectLock) || got.Actors[0].Name != "long" || got.Actors[0].Place.Line != 4 ||
			got.Actors[0].Awaited != 6*sec/10 || got.Actors[1].Awaited != 4*sec/10 {
			t.Errorf("%v: %+v", kind, got)
		}
	}
}

// The line of threads that take turns at the GIL is that at which they do, however long they slept elsewhere before, as those
// of a pool with several tasks.
func TestTurnsAtTheGILAreWhereTheThreadsTakeThem(t *testing.T) {
	b, main, line := aCell()
	for i, at := range []timeline.Nanos{0, 7 * sec / 10} {
		b.Set(main, at, b.Child(line(6+2*i), b.Frame(timeline.Frame{Function: "Thread.join", File: "/usr/lib/python3.11/threading.py", Line: 9})), timeline.StateWaiting, false)
	}
	for i, state := range []timeline.State{timeline.StatePython, timeline.StateGIL} {
		id := b.Thread(timeline.Thread{PID: 1, NativeID: 2 + i})
		b.Set(id, 0, line(3), timeline.StateWaiting, false)
		b.SetWait(id, 0, timeline.WaitSleep, 0)
		b.Set(id, 7*sec/10, line(4), state, false)
	}
	d := Run(b.Snapshot(sec))
	got := findingOfID(t, &d, ThreadsTakeTurns)
	if got.Place.Line != 4 || got.PlaceTime != 0 || len(got.Evidence) != 1 || got.Evidence[0].Start != 7*sec/10 {
		t.Errorf("%+v", got)
	}
}

// A thread of which only a library's lines are known is what was waited for, where its end was, and not one that stood still.
func TestAWaitForAThreadThatRunsCIsForThatOne(t *testing.T) {
	const library = "/usr/lib/python3.11/threading.py"
	b, main, line := aCell()
	joined := b.Thread(timeline.Thread{PID: 1, NativeID: 2, Name: "Thread-1 (sleep)", OnCPU: 1e6})
	daemon := b.Thread(timeline.Thread{PID: 1, NativeID: 3, Name: "daemon"})
	b.Set(main, 0, b.Child(line(8), b.Frame(timeline.Frame{Function: "Thread.join", File: library, Line: 9})), timeline.StateWaiting, false)
	b.SetWait(main, 0, timeline.WaitLock, b.Object(timeline.Object{Call: "thread", Kind: timeline.ObjectThread, Holder: joined}))
	b.Set(main, 9*sec/10, line(9), timeline.StatePython, false)
	b.Set(joined, 0, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "Thread.run", File: library, Line: 5})), timeline.StateWaiting, false)
	b.End(joined, 9*sec/10)
	b.Set(daemon, 0, line(3), timeline.StateWaiting, false)
	b.SetWait(daemon, 0, timeline.WaitSleep, 0)
	d := Run(b.Snapshot(sec))
	if got := findingOfID(t, &d, WaitsForThreads); len(got.Actors) != 1 || got.Actors[0].Name != "sleep" || got.Actors[0].Cause != activity.Waiting {
		t.Errorf("%+v", got.Actors)
	}
}
