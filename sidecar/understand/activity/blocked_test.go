package activity

import (
	"fmt"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Each line has what its threads were blocked on, apart by object; time without a line of one's own is of none.
func TestBlockedIsSummedByLineAndObject(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) { r.Processes = []timeline.Process{{PID: 7}} })
	own := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "query", File: "/u/db.py", Line: 3, FirstLine: 1}))
	library := b.Child(own, b.Frame(timeline.Frame{Function: "recv_into", File: "/v/ssl.py", Line: 9, FirstLine: 8}))
	alone := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "run", File: "/v/ssl.py", Line: 99, FirstLine: 90}))
	database := b.Object(timeline.Object{Call: "recv", Kind: timeline.ObjectSocket, Name: "10.0.0.5:5432"})
	file := b.Object(timeline.Object{Call: "fsync", Kind: timeline.ObjectFile, Name: "/u/ckpt.pt"})
	main := b.Thread(timeline.Thread{PID: 7, Main: true, OnCPU: -1})
	other := b.Thread(timeline.Thread{PID: 7, NativeID: 8, OnCPU: -1})
	blocked := func(id timeline.ThreadID, at timeline.Nanos, node timeline.NodeID, on timeline.ObjectID) {
		b.Set(id, at, node, timeline.StateIO, false)
		b.SetWait(id, at, timeline.WaitSocket, on)
	}
	blocked(main, 0, library, database)
	b.Set(main, 10*ms, own, timeline.StatePython, false)
	blocked(main, 20*ms, library, database)
	blocked(main, 50*ms, own, file)
	b.Set(main, 55*ms, own, timeline.StatePython, false)
	blocked(other, 0, library, database)
	blocked(other, 5*ms, alone, database)
	rec := b.Snapshot(100 * ms)
	got := BlockedOn(rec, func(*timeline.Thread) int { return 0 }, func(id timeline.FrameID) bool { return rec.Frames[id].File == "/u/db.py" })
	frame := rec.Nodes[own].Frame
	place := Place{File: "/u/db.py", Line: 3}
	want := []Blocked{
		{Place: place, Function: frame, Object: database, Time: 45 * ms, Main: 40 * ms, Longest: 30 * ms, Times: 3},
		{Place: place, Function: frame, Object: file, Time: 5 * ms, Main: 5 * ms, Longest: 5 * ms, Times: 1},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

// Connections with one peer are one row with their number, each wait apart; those with another peer are another row.
func TestConnectionsWithOnePeerAreCounted(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	b, line := aProgram()
	main := b.Thread(timeline.Thread{PID: 7, Main: true, OnCPU: -1})
	at := timeline.Nanos(0)
	recv := func(name string, number int) {
		b.Set(main, at, line(3), timeline.StateIO, false)
		b.SetWait(main, at, timeline.WaitSocket, b.Object(timeline.Object{Call: "recv", Kind: timeline.ObjectSocket, Name: name, Connection: number}))
		at += 10 * ms
	}
	recv("10.0.0.5:5432", 1)
	recv("10.0.0.5:5432", 2)
	recv("10.0.0.5:5432", 3)
	recv("10.0.0.9:80", 1)
	recv("10.0.0.7:80", 1)
	recv("10.0.0.7:80", 0) // too many to keep apart
	b.Set(main, at, line(4), timeline.StatePython, false)
	rec := b.Snapshot(100 * ms)
	var got []string
	for _, w := range BlockedOn(rec, func(*timeline.Thread) int { return 0 }, func(timeline.FrameID) bool { return true }) {
		got = append(got, fmt.Sprint(rec.Objects[w.Object].Name, " ", w.Connections, " ", w.Times, " ", w.Time/ms, " ", w.Longest/ms))
	}
	if want := []string{"10.0.0.5:5432 3 3 30 10", "10.0.0.7:80 0 2 20 10", "10.0.0.9:80 1 1 10 10"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// aProgram begins the recording of a program with a stack in each of its lines.
func aProgram() (b *timeline.Builder, line func(int) timeline.NodeID) {
	b = timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Processes, r.Target.PID = []timeline.Process{{PID: 7}}, 7
	})
	return b, func(line int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: "/u/a.py", Line: line, FirstLine: 1}))
	}
}

// Of a lock it is said who had it, and where that thread was for most of the wait.
func TestALockIsOfTheThreadThatHasIt(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	b, line := aProgram()
	library := b.Child(line(5), b.Frame(timeline.Frame{Function: "sleep", File: "/v/lib/python3.12/site-packages/lib.py", Line: 9, FirstLine: 8}))
	main := b.Thread(timeline.Thread{PID: 7, Main: true, OnCPU: -1})
	holder := b.Thread(timeline.Thread{PID: 7, NativeID: 8, Name: "loader", OnCPU: -1})
	lock := b.Object(timeline.Object{Call: "lock", Kind: timeline.ObjectLock, Holder: holder})
	b.Set(main, 0, line(3), timeline.StatePython, false)
	b.Set(main, 10*ms, line(4), timeline.StateWaiting, false)
	b.SetWait(main, 10*ms, timeline.WaitLock, lock)
	b.Set(main, 90*ms, line(3), timeline.StatePython, false)
	b.Set(holder, 0, line(6), timeline.StatePython, false)
	b.Set(holder, 30*ms, library, timeline.StateWaiting, false)
	b.Set(holder, 80*ms, line(5), timeline.StatePython, false)
	b.Set(holder, 95*ms, line(7), timeline.StatePython, false)
	rec := b.Snapshot(100 * ms)
	own := func(id timeline.FrameID) bool { return rec.Frames[id].File == "/u/a.py" }
	got := BlockedOn(rec, func(*timeline.Thread) int { return 0 }, own)
	at5 := Holding{Place: Place{File: "/u/a.py", Line: 5}, Function: rec.Nodes[line(5)].Frame, Time: 60 * ms}
	want := Blocked{Place: Place{File: "/u/a.py", Line: 4}, Function: rec.Nodes[line(4)].Frame, Object: lock, Time: 80 * ms, Main: 80 * ms, Longest: 80 * ms, Times: 1, Holder: at5}
	if len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}

	beside := NewBystanders(NewStacks(rec, NewSource(rec, nil)), &rec.Threads[main])
	a := beside.AwaitedDuring([]timeline.Interval{timeline.Between(10*ms, 90*ms)}, timeline.ObjectLock)
	if len(a) != 1 || a[0].Name != "loader" || a[0].Count != 1 || a[0].Place.Line != 5 || a[0].Awaited != 80*ms {
		t.Errorf("%+v", a)
	}
	if a := beside.AwaitedDuring([]timeline.Interval{timeline.Between(10*ms, 60*ms), timeline.Between(90*ms, 100*ms+20*ms)}, timeline.ObjectLock); len(a) > 0 {
		t.Errorf("%+v had the lock for less than most of the time", a)
	}
}

// The threads of a pool have a lock in turn: what is waited for is the line at which they have it.
func TestALockThatThreadsHaveInTurnIsOneRow(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	b, line := aProgram()
	main := b.Thread(timeline.Thread{PID: 7, Main: true, OnCPU: -1})
	b.Set(main, 0, line(1), timeline.StateWaiting, false)
	names := []string{"ThreadPoolExecutor-0_0", "ThreadPoolExecutor-0_1", "ThreadPoolExecutor-1_0", "ThreadPoolExecutor-1_1"}
	for i, name := range names { // two pools, one after the other
		pool, inPool := i/2, i%2
		first := timeline.Nanos(pool) * 100 * ms
		id := b.Thread(timeline.Thread{PID: 7, NativeID: 8 + i, Name: name, OnCPU: -1})
		other := b.Object(timeline.Object{Call: "lock", Kind: timeline.ObjectLock, Holder: id + 1 - 2*timeline.ThreadID(inPool)})
		for turn := range 4 {
			at := first + timeline.Nanos(turn)*20*ms
			if turn%2 == inPool {
				b.Set(id, at, line(5), timeline.StatePython, false)
				continue
			}
			b.Set(id, at, line(4), timeline.StateWaiting, false)
			b.SetWait(id, at, timeline.WaitLock, other)
		}
		b.End(id, first+80*ms)
	}
	rec := b.Snapshot(200 * ms)
	got := BlockedOn(rec, func(*timeline.Thread) int { return 0 }, func(timeline.FrameID) bool { return true })
	if len(got) != 1 {
		t.Fatalf("%d rows, want one: %+v", len(got), got)
	}
	if w := got[0]; w.Time != 160*ms || w.Times != 8 || w.Longest != 20*ms || w.Threads != "ThreadPoolExecutor" || w.Holder.Place.Line != 5 {
		t.Errorf("%+v", w)
	}
	actors := NewBystanders(NewStacks(rec, NewSource(rec, nil)), &rec.Threads[main]).ThreadsDuring([]timeline.Interval{timeline.Between(0, 200*ms)})
	if len(actors) != 1 || actors[0].Count != 2 || actors[0].Name != "ThreadPoolExecutor" || actors[0].Queued < 0.35 {
		t.Errorf("%+v, want two threads at a time of one name, which waited for half of their time", actors)
	}
}

// What threads of a pool compute in a library alone, as those of read_csv, has no line of the user's own: it is one row all the same.
func TestWhatALibrarysPoolComputesIsOneRow(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	b, line := aProgram()
	main := b.Thread(timeline.Thread{PID: 7, Main: true, OnCPU: -1})
	library := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "read", File: "/v/lib/python3.12/site-packages/lib.py", Line: 9}))
	for i, name := range []string{"ThreadPoolExecutor-0_0", "ThreadPoolExecutor-0_1", "writer"} {
		id := b.Thread(timeline.Thread{PID: 7, NativeID: 8 + i, Name: name, OnCPU: -1})
		b.Set(id, 0, library, timeline.StateNative, false)
		b.Set(main, timeline.Nanos(i)*20*ms, line(4), timeline.StateWaiting, false)
		b.SetWait(main, timeline.Nanos(i)*20*ms, timeline.WaitLock, b.Object(timeline.Object{Call: "result", Kind: timeline.ObjectFuture, Holder: id}))
	}
	rec := b.Snapshot(60 * ms)
	got := BlockedOn(rec, func(*timeline.Thread) int { return 0 }, func(id timeline.FrameID) bool { return rec.Frames[id].File == "/u/a.py" })
	if len(got) != 2 || got[0].Threads != "ThreadPoolExecutor-0" || got[0].Time != 40*ms || got[1].Threads != "" {
		t.Errorf("%+v, want one row of the pool and one of another thread", got)
	}
}

// Threads of one kind are joined one after the other: their ends are one row, and short as each of them is, together they are what
// was waited for longest.
func TestTheEndsOfThreadsOfOneKindAreOneRow(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	b, line := aProgram()
	main := b.Thread(timeline.Thread{PID: 7, Main: true, OnCPU: -1})
	join := func(name string, at, took, used timeline.Nanos, slept timeline.NodeID) {
		id := b.Thread(timeline.Thread{PID: 7, NativeID: int(8 + at/ms), Name: name, OnCPU: -1})
		b.Set(main, at, line(3), timeline.StateWaiting, false)
		b.SetWait(main, at, timeline.WaitLock, b.Object(timeline.Object{Call: "join", Kind: timeline.ObjectThread, Holder: id}))
		b.Set(id, at, slept, timeline.StateWaiting, false)
		b.SetWait(id, at, timeline.WaitSleep, 0)
		b.Set(id, at+took-used, slept, timeline.StatePython, false)
		b.End(id, at+took)
	}
	for i := range 30 {
		join(fmt.Sprintf("Thread-%d (task)", i+1), timeline.Nanos(i)*20*ms, 20*ms, 0, line(5))
	}
	join("loader", 600*ms, 150*ms, 10*ms, line(6))
	rec := b.Snapshot(750 * ms)
	got := BlockedOn(rec, func(*timeline.Thread) int { return 0 }, func(timeline.FrameID) bool { return true })
	if len(got) != 2 || got[0].Threads != "task" || got[0].Times != 30 || got[0].Time != 600*ms || got[1].Threads != "" || got[1].Time != 150*ms {
		t.Errorf("%+v, want 30 ends of a task and one of another thread", got)
	}
	actors := NewBystanders(NewStacks(rec, NewSource(rec, nil)), &rec.Threads[main]).ThreadsDuring([]timeline.Interval{timeline.Between(0, 750*ms)})
	if len(actors) != 2 || actors[0].Name != "task" || actors[0].Cause != Sleep || actors[1].Name != "loader" {
		t.Errorf("%+v, want the tasks, which slept longest, and the loader", actors)
	}
}

// Of a lock whose owner is nowhere to be read, as of a threading.Lock, the line that takes it says that it is one; a thread
// that waits in a queue waits for no lock.
func TestALockThatNobodyIsKnownToHave(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	for text, want := range map[string]float64{"lock.acquire()": 0.75, "with lock:": 0.75, "task = tasks.get()": 0} {
		b, line := aProgram()
		b.Describe(func(r *timeline.Recording) {
			r.Sources = []timeline.Source{{File: "/u/a.py", Text: "\n\n\n" + text + "\n"}}
		})
		main := b.Thread(timeline.Thread{PID: 7, Main: true, OnCPU: -1})
		b.Set(main, 0, line(1), timeline.StateWaiting, false)
		for i := range 4 {
			id := b.Thread(timeline.Thread{PID: 7, NativeID: 8 + i, OnCPU: -1})
			for turn := range 4 {
				at, wait := line(4), timeline.WaitLock
				if turn == i {
					at, wait = line(5), timeline.WaitSleep
				}
				b.Set(id, timeline.Nanos(turn)*20*ms, at, timeline.StateWaiting, false)
				b.SetWait(id, timeline.Nanos(turn)*20*ms, wait, 0)
			}
		}
		rec := b.Snapshot(80 * ms)
		actors := NewBystanders(NewStacks(rec, NewSource(rec, nil)), &rec.Threads[main]).ThreadsDuring([]timeline.Interval{timeline.Between(0, 80*ms)})
		if len(actors) != 1 || actors[0].Queued != want || (actors[0].QueuedAt.Line == 4) != (want > 0) {
			t.Errorf("%s: %+v", text, actors)
		}
	}
}

func TestWhatNamesOfThreadsHaveInCommon(t *testing.T) {
	for want, names := range map[string][]string{
		"work":                 {"Thread-1 (work)", "Thread-2 (work)"},
		"ThreadPoolExecutor-0": {"ThreadPoolExecutor-0_3", "ThreadPoolExecutor-0_1"},
		"ThreadPoolExecutor":   {"ThreadPoolExecutor-0_3", "ThreadPoolExecutor-12_1"},
		"loader-1":             {"loader-1"},
		"":                     {"Thread-1", "Thread-2"},
	} {
		if got := commonName(names); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
	if got := commonName([]string{"loader", "writer"}); got != "" {
		t.Errorf("%q", got)
	}
}

// Who has the lock of a database, or of a file, is known a while after a wait has begun: the whole wait is for it. A wait that begins anew is not.
func TestTheBeginningOfAWaitIsForTheSame(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	all := []timeline.Object{
		{},
		{Call: "sleep", Kind: timeline.ObjectDatabase, Name: "/u/x.db", Owner: 8},
		{Call: "flock", Kind: timeline.ObjectFile, Name: "/u/lock"},
		{Call: "flock", Kind: timeline.ObjectFile, Name: "/u/lock", Owner: 8},
		{Call: "result", Kind: timeline.ObjectFuture, Holder: -1},
		{Call: "result", Kind: timeline.ObjectFuture, Holder: 1},
		{Call: "lock", Kind: timeline.ObjectLock, Holder: -1},
		{Call: "lock", Kind: timeline.ObjectLock, Holder: 1},
		{Call: "wait", Kind: timeline.ObjectEvent},
	}
	type span struct {
		length timeline.Nanos
		node   timeline.NodeID
		state  timeline.State
		on     timeline.ObjectID
	}
	const waits, off = timeline.StateWaiting, timeline.StateOff
	for _, test := range []struct {
		name  string
		spans []span
		want  []timeline.ObjectID
	}{
		{"a database", []span{{50 * ms, 1, waits, 0}, {50 * ms, 1, waits, 1}}, []timeline.ObjectID{1, 1}},
		{"a database, with no CPU in between", []span{{50 * ms, 1, waits, 0}, {ms, 1, off, 0}, {50 * ms, 1, waits, 1}}, []timeline.ObjectID{1, 0, 1}},
		{"a database, at another line before", []span{{50 * ms, 2, waits, 0}, {50 * ms, 1, waits, 1}}, []timeline.ObjectID{0, 1}},
		{"a database, with another line in between", []span{{50 * ms, 1, waits, 0}, {ms, 2, off, 0}, {50 * ms, 1, waits, 1}}, []timeline.ObjectID{0, 0, 1}},
		{"a file", []span{{50 * ms, 1, waits, 2}, {50 * ms, 1, waits, 3}}, []timeline.ObjectID{3, 3}},
		{"a future of a new thread", []span{{50 * ms, 1, waits, 4}, {50 * ms, 1, waits, 5}}, []timeline.ObjectID{5, 5}},
		{"a future that was queued", []span{{500 * ms, 1, waits, 4}, {50 * ms, 1, waits, 5}}, []timeline.ObjectID{4, 5}},
		{"a lock that is handed over", []span{{50 * ms, 1, waits, 6}, {50 * ms, 1, waits, 7}}, []timeline.ObjectID{6, 7}},
		{"an event", []span{{50 * ms, 1, waits, 0}, {50 * ms, 1, waits, 8}}, []timeline.ObjectID{0, 8}},
	} {
		var spans []timeline.Span
		at := timeline.Nanos(0)
		for _, s := range test.spans {
			spans = append(spans, timeline.Span{Start: at, End: at + s.length, Node: s.node, State: s.state, On: s.on})
			at += s.length
		}
		if got := wholeWaits(spans, all); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// A thread that wants to compute and gets no CPU for longer than it sleeps at the same line computes there.
func TestAThreadThatIsHeldUpDoesWhatItIsHeldUpIn(t *testing.T) {
	const ms = timeline.Nanos(1e6)
	for held, want := range map[timeline.Nanos]Cause{5 * ms: Sleep, 40 * ms: Native} {
		b, line := aProgram()
		main := b.Thread(timeline.Thread{PID: 7, Main: true, OnCPU: -1})
		b.Set(main, 0, line(1), timeline.StateWaiting, false)
		id := b.Thread(timeline.Thread{PID: 7, NativeID: 8, OnCPU: -1})
		b.Set(id, 0, line(4), timeline.StateWaiting, false)
		b.SetWait(id, 0, timeline.WaitSleep, 0)
		b.Set(id, 30*ms, line(4), timeline.StateNative, false)
		b.Set(id, 40*ms, line(4), timeline.StateOff, false)
		b.Set(id, 40*ms+held, line(4), timeline.StateNative, false)
		end := 45*ms + held
		rec := b.Snapshot(end)
		actors := NewBystanders(NewStacks(rec, NewSource(rec, nil)), &rec.Threads[main]).ThreadsDuring([]timeline.Interval{timeline.Between(0, end)})
		if len(actors) != 1 || actors[0].Cause != want {
			t.Errorf("without a CPU for %d ms: %+v, want %s", held/ms, actors, want)
		}
	}
}
